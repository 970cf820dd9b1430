//! Events of `tracing` about connections, all at level DEBUG: `ebbtide::message` has `sent` and
//! `received` with `peer` and `datagram`, as for UDP; `ebbtide::stream` says how connections end.

use ebbtide_core::stream::Received;
use ebbtide_core::wire::{Frame, FrameHeader, Framing};
use std::net::SocketAddr;
use tracing::{Level, debug, enabled};

#[inline]
pub(crate) fn received(peer: SocketAddr, received: &Received<'_>) {
    if !enabled!(target: "ebbtide::message", Level::DEBUG) {
        return;
    }
    match received {
        Received::Request(_, message)
        | Received::Response { message, .. }
        | Received::Notification { message, .. } => {
            debug!(target: "ebbtide::message", %peer, datagram = ?message, "received");
        }
        signal => debug!(target: "ebbtide::message", %peer, datagram = ?signal, "received"),
    }
}

/// What the transport has just taken; the last message of it may be cut.
#[inline]
pub(crate) fn sent(peer: SocketAddr, framing: Framing, mut bytes: &[u8]) {
    if !enabled!(target: "ebbtide::message", Level::DEBUG) {
        return;
    }
    while let Ok(Some(header)) = FrameHeader::parse(framing, bytes) {
        let whole = match framing {
            Framing::Stream => usize::try_from(header.message_len()).unwrap_or(usize::MAX),
            Framing::WebSocket => bytes.len(),
        };
        let Some((message, rest)) = bytes.split_at_checked(whole) else { return };
        if let Ok(message) = Frame::parse(header, message) {
            debug!(target: "ebbtide::message", %peer, datagram = ?message, "sent");
        }
        bytes = rest;
    }
}
