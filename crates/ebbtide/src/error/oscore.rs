//! The failures of OSCORE.

use super::Harmless;
use core::fmt;
use ebbtide_core::wire::Code;

/// The reason why a request that OSCORE is to protect got no response. It is the source of an error of
/// [`ErrorKind::Oscore`](super::ErrorKind::Oscore).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OscoreFailure {
    /// There is no security context for this server.
    NoContext,
    /// It does not work for a group.
    Group,
    /// The request could not be protected.
    NotProtected(Box<str>),
    /// The handshake by EDHOC, which comes before the first request, failed.
    Handshake(Box<str>),
    /// The server has answered without protection that it does not accept the request (RFC 8613
    /// section 8.2). Anyone on the path can say so.
    Refused {
        /// The code of its answer.
        code: Code,
        /// The diagnostic payload.
        diagnostic: Box<str>,
    },
    /// The server has refused a copy of the request without protection, or by a Reset: it does not
    /// repeat its answer, which was lost. The request may have been processed. One that is idempotent
    /// is made anew instead.
    CopyRefused(Box<str>),
    /// The server has refused a request without an ID Context, which it needs to find the keys that
    /// were made anew, while the client is set not to repeat requests. Later requests contain it.
    IdContextWanted,
    /// New keys for a secret that was used before could not be made.
    Renewal(Box<str>),
    /// The response is not that of the server to this request.
    NotVerified(Box<str>),
}

impl fmt::Display for OscoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoContext => f.write_str("no OSCORE security context is meant for this server"),
            Self::Group => f.write_str("OSCORE does not protect requests to a group"),
            Self::NotProtected(reason) => f.write_str(reason),
            Self::Handshake(reason) => write!(f, "EDHOC failed: {reason}"),
            Self::Refused { code, diagnostic } => {
                write!(f, "the server does not accept the OSCORE message: {code}")?;
                if diagnostic.is_empty() { Ok(()) } else { write!(f, " {}", Harmless(diagnostic)) }
            }
            Self::CopyRefused(answer) => {
                let what =
                    "the server does not accept a copy of the OSCORE message whose answer was lost";
                write!(f, "{what}: {}", Harmless(answer))
            }
            Self::IdContextWanted => {
                f.write_str("the server needs the ID Context in each request: ask again")
            }
            Self::Renewal(reason) => write!(f, "no new keys: {reason}"),
            Self::NotVerified(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for OscoreFailure {}
