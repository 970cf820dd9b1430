//! The buffers for receiving.

use super::dtls::OpenedMessages;
use super::socket::Inbox;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct ReceiveBuffers {
    pub(super) inbox: Inbox,
    /// The messages of the present datagram, on a socket that speaks DTLS.
    pub(super) opened: OpenedMessages,
}
