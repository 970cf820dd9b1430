//! The rest of a body whose beginning is there.

use crate::web_body::WebBody;
use ebbtide::client::Download;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest body of a device, and the longest beginning of a body, that the gateway holds for a client that receives
/// or sends it block by block. Few constrained devices have longer ones.
pub(crate) const HELD: usize = 32 << 10;
/// The longest block of a body (RFC 7959 section 2.2).
pub(crate) const MAX_BLOCK: usize = 1024;

/// Where a body goes on.
#[derive(Clone, Debug)]
pub(crate) enum Remainder {
    /// At a device, which can be asked for each block again.
    Device { download: Box<Download>, address: SocketAddr },
    /// On a connection to an HTTP server: for the first one who takes it.
    Web(Arc<Mutex<Option<WebBody>>>),
}

/// The rest of a body for one client.
#[derive(Debug)]
pub(crate) enum ClaimedRest {
    Device { download: Box<Download>, address: SocketAddr },
    Web(WebBody),
}

impl Remainder {
    pub(crate) fn of_web(body: WebBody) -> Self {
        Self::Web(Arc::new(Mutex::new(Some(body))))
    }

    /// The rest, unless another client has taken it.
    pub(crate) fn claim(self) -> Option<ClaimedRest> {
        match self {
            Self::Device { download, address } => Some(ClaimedRest::Device { download, address }),
            Self::Web(body) => {
                body.lock().unwrap_or_else(PoisonError::into_inner).take().map(ClaimedRest::Web)
            }
        }
    }
}
