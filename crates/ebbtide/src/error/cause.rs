//! The content of an error, which this crate matches and the text shows.

use super::{BindError, ErrorKind, Harmless, OscoreFailure};
#[cfg(feature = "serde")]
use crate::message::DataError;
use crate::message::UriError;
use core::fmt::{self, Display as _};
use ebbtide_core::endpoint::{Failure, SendError};
use ebbtide_core::session::StatusError;
use ebbtide_core::session::client::TransferError;
use ebbtide_core::stream::{self, Closed, Fault};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// A kind of error with its details. An error of the operating system is shared, because it cannot be cloned.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Uri(UriError),
    Bind(BindError),
    /// `source` is the resolver's error; `None` if it found no address of a usable family.
    Resolve {
        host: String,
        source: Option<Arc<io::Error>>,
    },
    /// The endpoint of a socket did not accept the message.
    Send(SendError),
    /// An exchange over a socket ended without an answer.
    Failed(Failure),
    /// A connection did not accept the message.
    NotSent(stream::SendError),
    /// A request over a connection ended without a response. `diagnostic` is the payload of the peer's Abort.
    Connection {
        reason: stream::Failure,
        diagnostic: Option<Arc<str>>,
    },
    Tls(Arc<io::Error>),
    #[cfg(feature = "dtls")]
    Dtls(ebbtide_dtls::Failure),
    #[cfg(feature = "dtls")]
    NoCredentials,
    Oscore(OscoreFailure),
    Network(Arc<io::Error>),
    Reset,
    Gone,
    TimedOut,
    /// The rule that the peer violated.
    Protocol(&'static str),
    TooLarge {
        limit: usize,
    },
    Changed,
    Read(Arc<io::Error>),
    Status(StatusError),
    #[cfg(feature = "serde")]
    Data(DataError),
    Closed,
}

impl Cause {
    pub(super) const fn kind(&self) -> ErrorKind {
        match self {
            Self::Uri(_) => ErrorKind::Uri,
            Self::Bind(_) => ErrorKind::Bind,
            Self::Resolve { .. } => ErrorKind::Resolve,
            Self::Failed(Failure::GaveUp) => ErrorKind::GaveUp,
            Self::Failed(Failure::NoResponse)
            | Self::Connection { reason: stream::Failure::NoResponse, .. } => ErrorKind::NoResponse,
            Self::Failed(Failure::BadOption)
            | Self::Connection { reason: stream::Failure::BadOption, .. } => ErrorKind::BadOption,
            Self::Send(_) | Self::NotSent(_) | Self::Failed(_) => ErrorKind::NotSent,
            Self::Connection { .. } => ErrorKind::Connection,
            Self::Tls(_) => ErrorKind::Tls,
            #[cfg(feature = "dtls")]
            Self::Dtls(_) => ErrorKind::Dtls,
            #[cfg(feature = "dtls")]
            Self::NoCredentials => ErrorKind::NoCredentials,
            Self::Oscore(_) => ErrorKind::Oscore,
            Self::Network(_) => ErrorKind::Network,
            Self::Reset => ErrorKind::Reset,
            Self::Gone => ErrorKind::Gone,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::Protocol(_) => ErrorKind::Protocol,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Changed => ErrorKind::Changed,
            Self::Read(_) => ErrorKind::Read,
            Self::Status(_) => ErrorKind::Status,
            #[cfg(feature = "serde")]
            Self::Data(_) => ErrorKind::Data,
            Self::Closed => ErrorKind::Closed,
        }
    }

    pub(super) fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Uri(error) => Some(error),
            Self::Bind(error) => Some(error),
            Self::Send(error) => Some(error),
            Self::Status(error) => Some(error),
            #[cfg(feature = "serde")]
            Self::Data(error) => Some(error),
            Self::NotSent(reason) => Some(reason),
            Self::Connection { reason, .. } => Some(reason),
            Self::Oscore(reason) => Some(reason),
            #[cfg(feature = "dtls")]
            Self::Dtls(reason) => Some(reason),
            Self::Tls(source)
            | Self::Network(source)
            | Self::Read(source)
            | Self::Resolve { source: Some(source), .. } => Some(&**source),
            _ => None,
        }
    }

    /// Whether the connection over which a request was sent has ended.
    pub(super) const fn is_lost_connection(&self) -> bool {
        matches!(
            self,
            Self::Connection {
                reason: stream::Failure::Closed(Closed::Released | Closed::ByPeer | Closed::Lost),
                ..
            } | Self::NotSent(stream::SendError::Releasing | stream::SendError::Closed)
        )
    }

    /// Whether what did not accept a message may accept it later.
    pub(super) const fn may_be_sent_later(&self) -> bool {
        match self {
            Self::Send(error) => !matches!(
                error,
                SendError::Encode(_) | SendError::WrongCode(_) | SendError::TooLong { .. }
            ),
            Self::NotSent(reason) => {
                use stream::SendError::{Closed, OutputFull, Releasing, TooManyRequests};
                matches!(reason, TooManyRequests | OutputFull | Releasing | Closed)
            }
            _ => true,
        }
    }

    /// Writes the text of the error. `remote` is the peer; it is known wherever the text names one.
    pub(super) fn write(
        &self,
        remote: Option<SocketAddr>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let peer = ShownPeer(remote);
        match self {
            Self::Uri(error) => error.fmt(f),
            Self::Bind(error) => error.fmt(f),
            Self::Resolve { host, source: Some(source) } => {
                write!(f, "'{host}' does not resolve: {source}")
            }
            Self::Resolve { host, source: None } => write!(f, "'{host}' has no address"),
            Self::Send(error) => error.fmt(f),
            Self::Failed(reason) => write!(f, "{peer}: {reason}"),
            Self::NotSent(reason) => write!(f, "{peer}: {reason}"),
            Self::Connection { reason, diagnostic } => {
                write!(f, "{peer}: {reason}")?;
                if let Some(diagnostic) = diagnostic {
                    write!(f, ": {}", Harmless(diagnostic))?;
                }
                if let stream::Failure::Closed(Closed::Aborted(
                    Fault::CsmLate | Fault::CsmMissing(_),
                )) = reason
                {
                    f.write_str(
                        "; a peer that exchanges no CSM, as Californium does not, speaks a TCP \
                         that is not RFC 8323's: ask it by coap:// instead",
                    )?;
                }
                Ok(())
            }
            Self::Tls(source) => {
                write!(f, "{peer}: TLS handshake failed: {source}")?;
                if is_distrust(source) {
                    f.write_str("; name the authority to trust, if it is not the system's")?;
                }
                Ok(())
            }
            #[cfg(feature = "dtls")]
            Self::Dtls(reason) => write!(f, "{peer}: {reason}"),
            #[cfg(feature = "dtls")]
            Self::NoCredentials => {
                write!(
                    f,
                    "{peer}: coaps needs an identity with its pre-shared key, or certificates"
                )
            }
            Self::Oscore(reason) => write!(f, "{peer}: {reason}"),
            Self::Network(source) => match source.kind() {
                io::ErrorKind::ConnectionRefused => {
                    write!(f, "{peer} refused: no program listens at that port")
                }
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                    write!(f, "no route to {peer}")
                }
                // The operating system reports this if there is no address of that family.
                io::ErrorKind::AddrNotAvailable => {
                    write!(f, "no route to {peer}: this machine has no address that reaches it")
                }
                _ => write!(f, "{peer} cannot be reached: {source}"),
            },
            Self::Reset => write!(f, "{peer} answered the message with a Reset"),
            Self::Gone => write!(f, "the session with {peer} has ended: it must open another one"),
            Self::TimedOut => write!(f, "no answer from {peer} within the time given"),
            Self::Protocol(what) => write!(f, "{peer} violated the protocol: {what}"),
            Self::TooLarge { limit } => write!(f, "the body is longer than {limit} bytes"),
            Self::Changed => {
                write!(f, "the resource at {peer} has changed on the way: begin again")
            }
            Self::Read(error) => write!(f, "what is to be sent cannot be read: {error}"),
            Self::Status(error) => error.fmt(f),
            #[cfg(feature = "serde")]
            Self::Data(error) => error.fmt(f),
            Self::Closed => f.write_str("the endpoint is closed"),
        }
    }
}

/// The reason why a transfer failed, unless it is that of its last message.
impl From<TransferError> for Cause {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Lost => Self::Closed,
            TransferError::TooLarge { limit } => Self::TooLarge { limit },
            TransferError::Protocol(what) => Self::Protocol(what),
            TransferError::TimedOut => Self::TimedOut,
            TransferError::NoResponse => Self::Failed(Failure::NoResponse),
        }
    }
}

/// The peer of an error.
struct ShownPeer(Option<SocketAddr>);

impl fmt::Display for ShownPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(remote) => remote.fmt(f),
            None => f.write_str("the peer"),
        }
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
