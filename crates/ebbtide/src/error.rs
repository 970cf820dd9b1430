//! What goes wrong, and whose fault it is.

#[cfg(feature = "serde")]
use crate::message::DataError;
use crate::message::UriError;
use core::fmt::{self, Write as _};
use ebbtide_core::endpoint::{Failure, SendError};
use ebbtide_core::session::StatusError;
use ebbtide_core::stream::{self, Closed, Fault};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// In place of an address: a name that has none.
pub(crate) const UNRESOLVED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A socket could not be bound.
#[derive(Debug)]
#[non_exhaustive]
pub struct BindError {
    /// To which address; `0.0.0.0:0` if a name has none.
    pub address: SocketAddr,
    /// What the system said.
    pub source: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        match self.source.kind() {
            // A stored state, before there is an address.
            io::ErrorKind::InvalidData => self.source.fmt(f),
            // What the system says of a real address holds no error of ours.
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
                write!(f, "{address} may not be bound: ports below 1024 need a privilege")
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

/// Why a request got no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The URI is not valid, or cannot be asked for: the caller's fault.
    Uri(UriError),
    /// No socket could be had.
    Bind(BindError),
    /// The host's name has no address.
    Resolve {
        /// The name.
        host: String,
        /// What the system said; nothing if it found no address of a usable family.
        source: Option<io::Error>,
    },
    /// The message was not accepted for sending.
    Send(SendError),
    /// The exchange ended without an answer.
    Failed {
        /// With whom.
        remote: SocketAddr,
        /// Why.
        reason: Failure,
    },
    /// A connection did not accept the message for sending.
    NotSent {
        /// With whom it is.
        remote: SocketAddr,
        /// Why.
        reason: stream::SendError,
    },
    /// A request over a connection ended without an answer, most often because the connection
    /// did.
    Connection {
        /// With whom it was.
        remote: SocketAddr,
        /// Why.
        reason: stream::Failure,
        /// What the peer's Abort said, if it sent one that says something.
        diagnostic: Option<Arc<str>>,
    },
    /// No TLS: the peer's certificate is not trusted, or it speaks something else.
    Tls {
        /// With whom.
        remote: SocketAddr,
        /// What rustls said.
        source: io::Error,
    },
    /// There is no DTLS session: the handshake failed.
    #[cfg(feature = "dtls")]
    Dtls {
        /// With whom.
        remote: SocketAddr,
        /// Why.
        reason: ebbtide_dtls::Failure,
    },
    /// `coaps` without an identity and a key.
    NoCredentials {
        /// With whom.
        remote: SocketAddr,
    },
    /// The network refused: no route, or no program at the port (ICMP, TCP).
    Network {
        /// Whom it could not reach.
        remote: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The peer reset the message: it has no use for it.
    Reset {
        /// Who.
        remote: SocketAddr,
    },
    /// The time that the caller set has passed.
    TimedOut {
        /// Whom it waited for.
        remote: SocketAddr,
    },
    /// The peer did not keep to a protocol.
    Protocol {
        /// Who.
        remote: SocketAddr,
        /// Which rule it broke.
        what: &'static str,
    },
    /// The body is longer than the client wants to hold.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The resource has changed while its body was fetched block by block.
    Changed {
        /// From whom.
        remote: SocketAddr,
    },
    /// The reader of a body failed.
    Read(io::Error),
    /// The server's answer is an error, and the caller takes it for one
    /// ([`Response::error_for_status`](crate::Response::error_for_status)).
    Status(StatusError),
    /// A body is not the value that was asked for, or a value cannot be written.
    #[cfg(feature = "serde")]
    Data(DataError),
    /// The endpoint was closed, or the runtime that it was driven by has ended.
    Closed,
}

impl Error {
    /// The same with the peer's true address.
    pub(crate) fn of(mut self, address: SocketAddr) -> Self {
        match &mut self {
            Self::Failed { remote, .. }
            | Self::NotSent { remote, .. }
            | Self::Connection { remote, .. }
            | Self::Tls { remote, .. }
            | Self::NoCredentials { remote }
            | Self::Network { remote, .. }
            | Self::Reset { remote }
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

    /// Whether nothing answered in time: neither within the time that the caller gave, nor to any
    /// retransmission, nor after an acknowledgement.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Failed { reason, .. } => {
                matches!(reason, Failure::GaveUp | Failure::NoResponse)
            }
            _ => false,
        }
    }

    /// Whether the peer could not be reached: its name has no address, no socket could be had, there is no
    /// route, no program at the port, no TLS.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        match self {
            Self::Bind(_) | Self::Resolve { .. } | Self::Tls { .. } | Self::Network { .. } => true,
            #[cfg(feature = "dtls")]
            Self::Dtls { .. } => true,
            _ => false,
        }
    }

    /// Whether the same request may succeed later: the path, the peer or the load may have changed by
    /// then. It does not say that the request has had no effect: to repeat one that is not idempotent may do
    /// it twice.
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
            // The server may be there again, or know the key by then.
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

    /// Whether the connection that a request went over ended.
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
                write!(f, "{remote}: no TLS: {source}")?;
                if crate::stream::is_distrust(source) {
                    f.write_str("; name the authority to trust, if it is not the system's")?;
                }
                Ok(())
            }
            #[cfg(feature = "dtls")]
            Self::Dtls { remote, reason } => write!(f, "{remote}: {reason}"),
            Self::NoCredentials { remote } => {
                write!(f, "{remote}: coaps needs an identity and a pre-shared key")
            }
            Self::Network { remote, source } => match source.kind() {
                io::ErrorKind::ConnectionRefused => {
                    write!(f, "{remote} refused: no program listens at that port")
                }
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                    write!(f, "no route to {remote}")
                }
                // So the system says it if there is no address of that family.
                io::ErrorKind::AddrNotAvailable => {
                    write!(f, "no route to {remote}: this machine has no address that reaches it")
                }
                _ => write!(f, "{remote} cannot be reached: {source}"),
            },
            Self::Reset { remote } => write!(f, "{remote} reset the message"),
            Self::TimedOut { remote } => write!(f, "no answer from {remote} within the time given"),
            Self::Protocol { remote, what } => write!(f, "{remote} broke the protocol: {what}"),
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

/// A peer's text with its control characters escaped: a peer must not command the terminal that an
/// error is shown on.
struct Harmless<'a>(&'a str);

impl fmt::Display for Harmless<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() { c.escape_unicode().fmt(f)? } else { f.write_char(c)? }
        }
        Ok(())
    }
}
