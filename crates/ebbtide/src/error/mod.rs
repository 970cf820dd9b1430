//! The errors of clients and servers, each of which states whose fault it is.

mod bind;
mod cause;
mod kind;
mod oscore;

pub use bind::BindError;
pub(crate) use cause::Cause;
pub use kind::ErrorKind;
pub use oscore::OscoreFailure;

#[cfg(feature = "serde")]
use crate::message::DataError;
use crate::message::{Response, UriError, is_harmless};
use core::fmt::{self, Write as _};
use ebbtide_core::session::StatusError;
use std::io;
use std::net::SocketAddr;

/// The reason why a request got no response, or none that the caller accepts.
///
/// [`Self::kind`] distinguishes the reasons; the text also says what to do.
///
/// ```no_run
/// use ebbtide::{Client, ErrorKind};
///
/// # async fn example() {
/// match Client::new().get("coap://192.0.2.7/temperature").await {
///     Ok(response) => println!("{}", response.text()),
///     Err(error) if error.kind() == ErrorKind::Uri => eprintln!("correct the URI: {error}"),
///     Err(error) if error.may_retry() => eprintln!("try again later: {error}"),
///     Err(error) => eprintln!("{error}"),
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Error(Box<Details>);

#[derive(Clone)]
struct Details {
    remote: Option<SocketAddr>,
    cause: Cause,
}

impl Error {
    /// An error of a request to this peer.
    pub(crate) fn for_peer(remote: impl Into<Option<SocketAddr>>, cause: Cause) -> Self {
        Self(Box::new(Details { remote: remote.into(), cause }))
    }

    /// The details by which this crate decides.
    pub(crate) const fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The kind of the error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.0.cause.kind()
    }

    /// The peer's address, where the error is about a peer.
    #[must_use]
    pub const fn remote(&self) -> Option<SocketAddr> {
        self.0.remote
    }

    /// The error response of [`ErrorKind::Status`].
    #[must_use]
    pub fn response(&self) -> Option<&Response> {
        match &self.0.cause {
            Cause::Status(error) => Some(error.response()),
            _ => None,
        }
    }

    /// Whether no answer arrived in time: within the caller's time limit, to any retransmission,
    /// or after an acknowledgement.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match &self.0.cause {
            Cause::Resolve { source: Some(source), .. } => source.kind() == io::ErrorKind::TimedOut,
            cause => {
                use ErrorKind::{GaveUp, NoResponse, TimedOut};
                matches!(cause.kind(), TimedOut | GaveUp | NoResponse)
            }
        }
    }

    /// Whether the peer could not be reached: its name has no address, no socket could be opened,
    /// there is no route or no program at the port, or the handshake of TLS or DTLS failed.
    #[must_use]
    pub const fn is_connect(&self) -> bool {
        use ErrorKind::{Bind, Dtls, Network, Resolve, Tls};
        matches!(self.kind(), Bind | Resolve | Tls | Dtls | Network)
    }

    /// Whether the same request may succeed later, because the path, the peer or the load may have
    /// changed by then. It does not mean that the request had no effect: repeating a request that
    /// is not idempotent may process it twice.
    #[must_use]
    pub const fn may_retry(&self) -> bool {
        match self.kind() {
            ErrorKind::GaveUp
            | ErrorKind::NoResponse
            | ErrorKind::TimedOut
            | ErrorKind::Resolve
            | ErrorKind::Network
            | ErrorKind::Reset
            | ErrorKind::Changed
            // By then the server may be back, or may know the key.
            | ErrorKind::Dtls => true,
            ErrorKind::NotSent => self.0.cause.may_be_sent_later(),
            _ => self.is_lost_connection(),
        }
    }

    /// The code with which the server has refused an OSCORE message without protection.
    #[cfg(feature = "edhoc")]
    pub(crate) fn oscore_refusal(&self) -> Option<ebbtide_core::wire::Code> {
        match &self.0.cause {
            Cause::Oscore(OscoreFailure::Refused { code, .. }) => Some(*code),
            _ => None,
        }
    }

    /// Whether the connection over which a request was sent has ended.
    pub(crate) const fn is_lost_connection(&self) -> bool {
        self.0.cause.is_lost_connection()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { remote, cause } = &*self.0;
        f.debug_struct("Error").field("remote", remote).field("cause", cause).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.cause.write(self.0.remote, f)
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.0.cause.source()
    }
}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Self {
        Self(Box::new(Details { remote: None, cause }))
    }
}

impl From<UriError> for Error {
    fn from(error: UriError) -> Self {
        Cause::Uri(error).into()
    }
}

impl From<BindError> for Error {
    fn from(error: BindError) -> Self {
        Cause::Bind(error).into()
    }
}

impl From<StatusError> for Error {
    fn from(error: StatusError) -> Self {
        Cause::Status(error).into()
    }
}

#[cfg(feature = "serde")]
impl From<DataError> for Error {
    fn from(error: DataError) -> Self {
        Cause::Data(error).into()
    }
}

/// A peer's text as the terminal may show it on which an error is printed.
struct Harmless<'a>(&'a str);

impl fmt::Display for Harmless<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if is_harmless(c) { f.write_char(c)? } else { c.escape_unicode().fmt(f)? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::error::Error as _;
    use ebbtide_core::stream::{Closed, Failure};
    use std::sync::Arc;

    fn peer() -> SocketAddr {
        ([192, 0, 2, 7], 5683).into()
    }

    #[test]
    fn a_diagnostic_of_a_peer_cannot_control_the_terminal() {
        let aborted = |text: &str| {
            let reason = Failure::Closed(Closed::ByPeer);
            let diagnostic = Some(text.into());
            Error::for_peer(peer(), Cause::Connection { reason, diagnostic })
        };
        let text = aborted("no\u{1b}]0;owned\u{7}\u{1b}[2J\n\u{9b}1m").to_string();
        assert!(!text.contains(char::is_control), "{text:?}");
        assert!(text.ends_with(r"no\u{1b}]0;owned\u{7}\u{1b}[2J\u{a}\u{9b}1m"), "{text}");
        assert!(aborted("a\u{202e}b").to_string().ends_with(r"a\u{202e}b"));
        assert!(aborted("größer").to_string().ends_with("größer"));
    }

    #[test]
    fn a_clone_of_an_error_of_the_operating_system_has_the_same_source() {
        let source = io::Error::from_raw_os_error(111);
        let error = Error::for_peer(peer(), Cause::Network(Arc::new(source)));
        let copy = error.clone();
        let of = |error: &Error| -> Option<i32> {
            error.source()?.downcast_ref::<io::Error>()?.raw_os_error()
        };
        assert_eq!((of(&error), of(&copy)), (Some(111), Some(111)));
        assert_eq!((copy.kind(), copy.remote()), (ErrorKind::Network, error.remote()));
        assert!(copy.is_connect() && copy.may_retry() && !copy.is_timeout());
    }
}
