//! The rest of a body whose beginning is there.

use ebbtide::client::Download;
use std::net::SocketAddr;

/// Where a body goes on.
#[derive(Clone, Debug)]
pub(crate) struct Remainder {
    pub(crate) download: Download,
    pub(crate) address: SocketAddr,
}
