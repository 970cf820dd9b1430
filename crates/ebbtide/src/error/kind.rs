//! The kinds of errors.

/// The kind of an [`Error`](crate::Error). Where a kind names a type here, the error's
/// [`source`](core::error::Error::source) is of that type and has the details: obtain them by `downcast_ref`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URI is not valid, or requests to it are not supported: the caller's fault
    /// ([`UriError`](crate::UriError)).
    Uri,
    /// No socket could be opened ([`BindError`](crate::BindError)).
    Bind,
    /// The host's name has no address, or the time limit of the request passed during the look-up.
    Resolve,
    /// The network reported that the peer cannot be reached: there is no route, or no program at the port (ICMP,
    /// TCP; [`io::Error`](std::io::Error)).
    Network,
    /// The TLS handshake failed: the peer's certificate is not trusted, or the peer does not speak TLS
    /// ([`io::Error`](std::io::Error)).
    Tls,
    /// There is no DTLS session because the handshake failed (`dtls::Failure`).
    Dtls,
    /// The scheme is `coaps`, but neither an identity and its key nor certificates are configured.
    NoCredentials,
    /// The request was not sent, or its response not accepted, because of OSCORE (RFC 8613;
    /// [`OscoreFailure`](crate::OscoreFailure)).
    Oscore,
    /// All retransmissions of the message went unanswered (RFC 7252 section 4.2).
    GaveUp,
    /// No response followed in time to a request that was acknowledged, Non-confirmable, or sent over a
    /// connection.
    NoResponse,
    /// The time limit that the caller set has passed.
    TimedOut,
    /// The peer answered the message with a Reset, because it cannot process it.
    Reset,
    /// The connection ended before the response, or another DTLS session took the place of the one over which a request
    /// had been sent that is not idempotent.
    Connection,
    /// The message was not sent: it is too long, or a limit of memory is reached.
    NotSent,
    /// The response has a critical option that is not understood (RFC 7252 section 5.4.1).
    BadOption,
    /// The peer violated a protocol.
    Protocol,
    /// The body is longer than the client accepts.
    TooLarge,
    /// The resource has changed while its body was fetched block by block.
    Changed,
    /// The source of a body that was to be sent could not be read ([`io::Error`](std::io::Error)).
    Read,
    /// The response has an error code, and the caller asked for an error in that case
    /// ([`Response::error_for_status`](crate::Response::error_for_status),
    /// [`StatusError`](crate::StatusError)).
    Status,
    /// A body cannot be decoded as the requested value, or a value cannot be encoded (`DataError`).
    Data,
    /// The session or connection with the peer has ended, and only the peer can begin another one: see
    /// [`Peer`](crate::Peer).
    Gone,
    /// The endpoint was closed, or the runtime that drove it has ended.
    Closed,
}
