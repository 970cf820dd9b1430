//! The errors of clients and servers, each of which states whose fault it is.

#[cfg(feature = "serde")]
use crate::message::DataError;
use crate::message::UriError;
use core::fmt::{self, Write as _};
use ebbtide_core::endpoint::{Failure, SendError};
use ebbtide_core::params::SpanTooLong;
use ebbtide_core::session::StatusError;
use ebbtide_core::stream::{self, Closed, Fault};
use ebbtide_core::wire::Code;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Used in place of an address if a name has none.
pub(crate) const UNRESOLVED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The error of binding a socket.
#[derive(Debug)]
#[non_exhaustive]
pub struct BindError {
    /// The address; `0.0.0.0:0` if a name has none.
    pub address: SocketAddr,
    /// The operating system's error.
    pub source: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        match self.source.kind() {
            // A setting or a stored state, before there is an address.
            _ if self.source.get_ref().is_some_and(|error| error.is::<SpanTooLong>()) => {
                self.source.fmt(f)
            }
            io::ErrorKind::InvalidData => self.source.fmt(f),
            // The operating system's error for a real address never wraps an error of ours.
            _ if address == UNRESOLVED && self.source.get_ref().is_some() => {
                write!(f, "there is no address to bind to: {}", self.source)
            }
            io::ErrorKind::AddrInUse => {
                write!(f, "{address} is in use: another program serves there, choose another port")
            }
            io::ErrorKind::AddrNotAvailable => {
                write!(f, "{address} is not an address of this machine")
            }
            io::ErrorKind::PermissionDenied => {
                write!(f, "{address} cannot be bound: ports below 1024 need a privilege")
            }
            _ => write!(f, "{address} cannot be bound: {}", self.source),
        }
    }
}

impl core::error::Error for BindError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The reason why a request got no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The URI is not valid, or requests to it are not supported: the caller's fault.
    Uri(UriError),
    /// No socket could be opened.
    Bind(BindError),
    /// The host's name has no address.
    #[non_exhaustive]
    Resolve {
        /// The name.
        host: String,
        /// The resolver's error; `None` if it found no address of a usable family. Its kind is `TimedOut`
        /// if the caller's time limit passed during the look-up.
        source: Option<io::Error>,
    },
    /// The message was not accepted for sending.
    Send(SendError),
    /// The exchange ended without an answer.
    #[non_exhaustive]
    Failed {
        /// The peer.
        remote: SocketAddr,
        /// The reason.
        reason: Failure,
    },
    /// A connection did not accept the message for sending.
    #[non_exhaustive]
    NotSent {
        /// The peer.
        remote: SocketAddr,
        /// The reason.
        reason: stream::SendError,
    },
    /// A request over a connection ended without a response, most often because the connection
    /// ended.
    #[non_exhaustive]
    Connection {
        /// The peer.
        remote: SocketAddr,
        /// The reason.
        reason: stream::Failure,
        /// The diagnostic payload of the peer's Abort, if there is one.
        diagnostic: Option<Arc<str>>,
    },
    /// The TLS handshake failed: the peer's certificate is not trusted, or the peer does not speak
    /// TLS.
    #[non_exhaustive]
    Tls {
        /// The peer.
        remote: SocketAddr,
        /// The error of rustls.
        source: io::Error,
    },
    /// There is no DTLS session because the handshake failed.
    #[cfg(feature = "dtls")]
    #[non_exhaustive]
    Dtls {
        /// The peer.
        remote: SocketAddr,
        /// The reason.
        reason: ebbtide_dtls::Failure,
    },
    /// The scheme is `coaps`, but neither an identity and its key nor certificates are configured.
    #[non_exhaustive]
    NoCredentials {
        /// The peer.
        remote: SocketAddr,
    },
    /// The request was not sent, or its response not accepted, because of OSCORE (RFC 8613).
    #[non_exhaustive]
    Oscore {
        /// The peer.
        remote: SocketAddr,
        /// The reason.
        reason: OscoreFailure,
    },
    /// The network reported that the peer cannot be reached: there is no route, or no program at
    /// the port (ICMP, TCP).
    #[non_exhaustive]
    Network {
        /// The peer.
        remote: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// The peer answered the message with a Reset, because it cannot process it.
    #[non_exhaustive]
    Reset {
        /// The peer.
        remote: SocketAddr,
    },
    /// The session or connection with the peer has ended, and only the peer can begin another one: see
    /// [`Peer`](crate::Peer).
    #[non_exhaustive]
    Gone {
        /// The peer's last address.
        remote: SocketAddr,
    },
    /// The time limit that the caller set has passed.
    #[non_exhaustive]
    TimedOut {
        /// The peer.
        remote: SocketAddr,
    },
    /// The peer violated a protocol.
    #[non_exhaustive]
    Protocol {
        /// The peer.
        remote: SocketAddr,
        /// The rule that it violated.
        what: &'static str,
    },
    /// The body is longer than the client accepts.
    #[non_exhaustive]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The resource has changed while its body was fetched block by block.
    #[non_exhaustive]
    Changed {
        /// The server.
        remote: SocketAddr,
    },
    /// The source of a body that was to be sent could not be read.
    Read(io::Error),
    /// The response has an error code, and the caller asked for an error in that case
    /// ([`Response::error_for_status`](crate::Response::error_for_status)).
    Status(StatusError),
    /// A body cannot be decoded as the requested value, or a value cannot be encoded.
    #[cfg(feature = "serde")]
    Data(DataError),
    /// The endpoint was closed, or the runtime that drove it has ended.
    Closed,
}

/// The reason why a request that OSCORE is to protect got no response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OscoreFailure {
    /// There is no security context for this server.
    NoContext,
    /// It does not work over this transport, or for a group.
    Transport,
    /// The request could not be protected.
    NotProtected(Box<str>),
    /// The server has answered without protection that it does not accept the request (RFC 8613 section 8.2). Anyone on the path can
    /// say so.
    Refused {
        /// The code of its answer.
        code: Code,
        /// The diagnostic payload.
        diagnostic: Box<str>,
    },
    /// The response is not that of the server to this request.
    NotVerified(Box<str>),
}

impl fmt::Display for OscoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoContext => f.write_str("no OSCORE security context is meant for this server"),
            Self::Transport => {
                f.write_str("OSCORE protects requests to one server over UDP or DTLS only")
            }
            Self::NotProtected(reason) => f.write_str(reason),
            Self::Refused { code, diagnostic } => {
                write!(f, "the server does not accept the OSCORE message: {code}")?;
                if diagnostic.is_empty() { Ok(()) } else { write!(f, " {}", Harmless(diagnostic)) }
            }
            Self::NotVerified(reason) => f.write_str(reason),
        }
    }
}

/// A copy of an error of the operating system.
fn again(error: &io::Error) -> io::Error {
    let copied = || io::Error::new(error.kind(), error.to_string());
    error.raw_os_error().map_or_else(copied, io::Error::from_raw_os_error)
}

impl Error {
    /// The same error once more, for another observer of the same resource.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Uri(error) => Self::Uri(error.clone()),
            Self::Bind(BindError { address, source }) => {
                Self::Bind(BindError { address: *address, source: again(source) })
            }
            Self::Resolve { host, source } => {
                Self::Resolve { host: host.clone(), source: source.as_ref().map(again) }
            }
            Self::Send(error) => Self::Send(*error),
            &Self::Failed { remote, reason } => Self::Failed { remote, reason },
            &Self::NotSent { remote, reason } => Self::NotSent { remote, reason },
            Self::Connection { remote, reason, diagnostic } => {
                let (remote, reason) = (*remote, *reason);
                Self::Connection { remote, reason, diagnostic: diagnostic.clone() }
            }
            Self::Tls { remote, source } => Self::Tls { remote: *remote, source: again(source) },
            #[cfg(feature = "dtls")]
            &Self::Dtls { remote, reason } => Self::Dtls { remote, reason },
            &Self::NoCredentials { remote } => Self::NoCredentials { remote },
            Self::Oscore { remote, reason } => {
                Self::Oscore { remote: *remote, reason: reason.clone() }
            }
            Self::Network { remote, source } => {
                Self::Network { remote: *remote, source: again(source) }
            }
            &Self::Reset { remote } => Self::Reset { remote },
            &Self::Gone { remote } => Self::Gone { remote },
            &Self::TimedOut { remote } => Self::TimedOut { remote },
            &Self::Protocol { remote, what } => Self::Protocol { remote, what },
            &Self::TooLarge { limit } => Self::TooLarge { limit },
            &Self::Changed { remote } => Self::Changed { remote },
            Self::Read(source) => Self::Read(again(source)),
            Self::Status(error) => Self::Status(error.clone()),
            #[cfg(feature = "serde")]
            Self::Data(error) => Self::Data(error.clone()),
            Self::Closed => Self::Closed,
        }
    }

    /// The same error with the peer's real address.
    pub(crate) fn of(mut self, address: SocketAddr) -> Self {
        match &mut self {
            Self::Failed { remote, .. }
            | Self::NotSent { remote, .. }
            | Self::Connection { remote, .. }
            | Self::Tls { remote, .. }
            | Self::NoCredentials { remote }
            | Self::Oscore { remote, .. }
            | Self::Network { remote, .. }
            | Self::Reset { remote }
            | Self::Gone { remote }
            | Self::TimedOut { remote }
            | Self::Changed { remote }
            | Self::Protocol { remote, .. } => *remote = address,
            #[cfg(feature = "dtls")]
            Self::Dtls { remote, .. } => *remote = address,
            Self::Uri(_)
            | Self::Bind(_)
            | Self::Resolve { .. }
            | Self::Send(_)
            | Self::TooLarge { .. }
            | Self::Read(_)
            | Self::Status(_)
            | Self::Closed => {}
            #[cfg(feature = "serde")]
            Self::Data(_) => {}
        }
        self
    }

    /// Whether no answer arrived in time: within the caller's time limit, to any retransmission,
    /// or after an acknowledgement.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Resolve { source: Some(source), .. } => source.kind() == io::ErrorKind::TimedOut,
            Self::Failed { reason, .. } => {
                matches!(reason, Failure::GaveUp | Failure::NoResponse)
            }
            _ => false,
        }
    }

    /// Whether the peer could not be reached: its name has no address, no socket could be opened,
    /// there is no route or no program at the port, or the TLS handshake failed.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        match self {
            Self::Bind(_) | Self::Resolve { .. } | Self::Tls { .. } | Self::Network { .. } => true,
            #[cfg(feature = "dtls")]
            Self::Dtls { .. } => true,
            _ => false,
        }
    }

    /// Whether the same request may succeed later, because the path, the peer or the load may have
    /// changed by then. It does not mean that the request had no effect: repeating a request that
    /// is not idempotent may process it twice.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        match self {
            Self::Failed { reason, .. } => *reason != Failure::BadOption,
            Self::Send(error) => {
                !matches!(error, SendError::Encode(_) | SendError::WrongCode(_))
                    && !matches!(error, SendError::TooLong { .. })
            }
            Self::NotSent { reason, .. } => {
                use stream::SendError::{Closed, OutputFull, Releasing, TooManyRequests};
                matches!(reason, TooManyRequests | OutputFull | Releasing | Closed)
            }
            // By then the server may be back, or may know the key.
            #[cfg(feature = "dtls")]
            Self::Dtls { .. } => true,
            Self::Resolve { .. }
            | Self::Network { .. }
            | Self::TimedOut { .. }
            | Self::Changed { .. }
            | Self::Reset { .. } => true,
            _ => self.is_lost_connection(),
        }
    }

    /// Whether the connection over which a request was sent has ended.
    pub(crate) fn is_lost_connection(&self) -> bool {
        matches!(
            self,
            Self::Connection {
                reason: stream::Failure::Closed(Closed::Released | Closed::ByPeer | Closed::Lost),
                ..
            } | Self::NotSent {
                reason: stream::SendError::Releasing | stream::SendError::Closed,
                ..
            }
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uri(error) => error.fmt(f),
            Self::Bind(error) => error.fmt(f),
            Self::Resolve { host, source: Some(source) } => {
                write!(f, "'{host}' does not resolve: {source}")
            }
            Self::Resolve { host, source: None } => write!(f, "'{host}' has no address"),
            Self::Send(error) => error.fmt(f),
            Self::Failed { remote, reason } => write!(f, "{remote}: {reason}"),
            Self::NotSent { remote, reason } => write!(f, "{remote}: {reason}"),
            Self::Connection { remote, reason, diagnostic } => {
                write!(f, "{remote}: {reason}")?;
                if let Some(diagnostic) = diagnostic {
                    write!(f, ": {}", Harmless(diagnostic))?;
                }
                let aborted = stream::Failure::Closed(Closed::Aborted(Fault::CsmLate));
                let missing = matches!(
                    reason,
                    stream::Failure::Closed(Closed::Aborted(Fault::CsmMissing(_)))
                );
                if *reason == aborted || missing {
                    f.write_str(
                        "; a peer that exchanges no CSM, as Californium does not, speaks a TCP \
                         that is not RFC 8323's: ask it by coap:// instead",
                    )?;
                }
                Ok(())
            }
            Self::Tls { remote, source } => {
                write!(f, "{remote}: TLS handshake failed: {source}")?;
                if is_distrust(source) {
                    f.write_str("; name the authority to trust, if it is not the system's")?;
                }
                Ok(())
            }
            #[cfg(feature = "dtls")]
            Self::Dtls { remote, reason } => write!(f, "{remote}: {reason}"),
            Self::NoCredentials { remote } => {
                write!(
                    f,
                    "{remote}: coaps needs an identity with its pre-shared key, or certificates"
                )
            }
            Self::Oscore { remote, reason } => write!(f, "{remote}: {reason}"),
            Self::Network { remote, source } => match source.kind() {
                io::ErrorKind::ConnectionRefused => {
                    write!(f, "{remote} refused: no program listens at that port")
                }
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                    write!(f, "no route to {remote}")
                }
                // The operating system reports this if there is no address of that family.
                io::ErrorKind::AddrNotAvailable => {
                    write!(f, "no route to {remote}: this machine has no address that reaches it")
                }
                _ => write!(f, "{remote} cannot be reached: {source}"),
            },
            Self::Reset { remote } => write!(f, "{remote} answered the message with a Reset"),
            Self::Gone { remote } => {
                write!(f, "the session with {remote} has ended: it must open another one")
            }
            Self::TimedOut { remote } => write!(f, "no answer from {remote} within the time given"),
            Self::Protocol { remote, what } => write!(f, "{remote} violated the protocol: {what}"),
            Self::TooLarge { limit } => write!(f, "the body is longer than {limit} bytes"),
            Self::Changed { remote } => {
                write!(f, "the resource at {remote} has changed on the way: begin again")
            }
            Self::Read(error) => write!(f, "what is to be sent cannot be read: {error}"),
            Self::Status(error) => error.fmt(f),
            #[cfg(feature = "serde")]
            Self::Data(error) => error.fmt(f),
            Self::Closed => f.write_str("the endpoint is closed"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Uri(error) => Some(error),
            Self::Bind(error) => Some(error),
            Self::Send(error) => Some(error),
            Self::Read(source) => Some(source),
            Self::Status(error) => Some(error),
            #[cfg(feature = "serde")]
            Self::Data(error) => Some(error),
            Self::NotSent { reason, .. } => Some(reason),
            Self::Connection { reason, .. } => Some(reason),
            #[cfg(feature = "dtls")]
            Self::Dtls { reason, .. } => Some(reason),
            Self::Tls { source, .. }
            | Self::Network { source, .. }
            | Self::Resolve { source: Some(source), .. } => Some(source),
            _ => None,
        }
    }
}

impl From<UriError> for Error {
    fn from(error: UriError) -> Self {
        Self::Uri(error)
    }
}

impl From<BindError> for Error {
    fn from(error: BindError) -> Self {
        Self::Bind(error)
    }
}

impl From<StatusError> for Error {
    fn from(error: StatusError) -> Self {
        Self::Status(error)
    }
}

#[cfg(feature = "serde")]
impl From<DataError> for Error {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

/// Whether the TLS handshake failed because the peer's certificate was not accepted.
#[cfg(feature = "tls")]
fn is_distrust(error: &io::Error) -> bool {
    use tokio_rustls::rustls::Error;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(inner, Some(Error::InvalidCertificate(_)))
}

#[cfg(not(feature = "tls"))]
fn is_distrust(_: &io::Error) -> bool {
    false
}

/// A peer's text with control characters escaped, so that a peer cannot control the terminal on
/// which an error is printed.
struct Harmless<'a>(&'a str);

impl fmt::Display for Harmless<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() { c.escape_unicode().fmt(f)? } else { f.write_char(c)? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_of_a_peer_cannot_control_the_terminal() {
        let aborted = |text: &str| Error::Connection {
            remote: UNRESOLVED,
            reason: stream::Failure::Closed(Closed::ByPeer),
            diagnostic: Some(text.into()),
        };
        let text = aborted("no\u{1b}]0;owned\u{7}\u{1b}[2J\n\u{9b}1m").to_string();
        assert!(!text.contains(char::is_control), "{text:?}");
        assert!(text.ends_with(r"no\u{1b}]0;owned\u{7}\u{1b}[2J\u{a}\u{9b}1m"), "{text}");
        assert!(aborted("größer").to_string().ends_with("größer"));
    }
}
