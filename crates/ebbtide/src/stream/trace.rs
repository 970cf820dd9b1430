//! Events of `tracing` about connections, all at level DEBUG. `ebbtide::message` has `sent` and
//! `received` with `peer` and `datagram`, as for UDP; `ebbtide::stream` reports how connections
//! end.

use crate::message::ShownFrame;
use crate::net::trace::queries;
use ebbtide_core::stream::{Ignored, Received};
use ebbtide_core::wire::{Frame, FrameHeader, Framing};
use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use tracing::{Level, debug, enabled};

#[inline]
pub(crate) fn received(peer: SocketAddr, received: &Received<'_>) {
    if !enabled!(target: "ebbtide::message", Level::DEBUG) {
        return;
    }
    debug!(target: "ebbtide::message", %peer, datagram = %DisplayReceived(received), "received");
}

/// A received message; a signal is shown with its decoded options.
struct DisplayReceived<'r, 'i>(&'r Received<'i>);

impl Display for DisplayReceived<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Received::Request(_, message)
            | Received::Response { message, .. }
            | Received::Notification { message, .. } => ShownFrame(message, queries()).fmt(f),
            Received::Capabilities(peer) => {
                write!(f, "7.01 CSM, Max-Message-Size {}", peer.max_message_size)?;
                f.write_str(if peer.block_wise_transfer { ", Block-Wise-Transfer" } else { "" })
            }
            Received::Ignored(Ignored::Ping) => f.write_str("7.02 Ping"),
            Received::Pong { custody, .. } => {
                f.write_str(if *custody { "7.03 Pong, Custody" } else { "7.03 Pong" })
            }
            Received::Release(release) => {
                f.write_str("7.04 Release")?;
                for address in release.alternative_addresses() {
                    write!(f, ", Alternative-Address {address:?}")?;
                }
                release.hold_off().map_or(Ok(()), |seconds| write!(f, ", Hold-Off {seconds}"))
            }
            Received::Abort(diagnostic) => {
                write!(f, "7.05 Abort, \"{}\"", diagnostic.escape_ascii())
            }
            Received::Ignored(why) => write!(f, "ignored: {why:?}"),
        }
    }
}

/// Reports the messages that the transport has just taken; the last of them may be incomplete.
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
            debug!(target: "ebbtide::message", %peer, datagram = %ShownFrame(&message, queries()), "sent");
        }
        bytes = rest;
    }
}
