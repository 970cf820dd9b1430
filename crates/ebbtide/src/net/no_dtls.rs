//! In place of `dtls` where that feature is not enabled: no socket speaks DTLS.

use super::peer::PeerInfo;
use super::socket::Outbound;
use ebbtide_core::endpoint::Sent;
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::{PeerId, SessionKey};
use std::net::{IpAddr, SocketAddr};

/// There are none.
#[derive(Debug)]
pub(crate) enum Sessions {}

/// A session as it is stored.
pub(crate) type StoredSession = Box<[u8]>;

/// None is stored.
pub(crate) const fn reserve(_: &[u8]) -> Option<StoredSession> {
    None
}

/// A message that is to be sent over a session.
#[derive(Debug)]
#[expect(dead_code, reason = "no message is")]
pub(crate) struct Queued<'m> {
    pub(crate) local: Option<IpAddr>,
    pub(crate) datagram: &'m [u8],
    pub(crate) what: Sent,
}

/// There are none.
#[derive(Debug, Default)]
pub(crate) struct OpenedMessages;

impl OpenedMessages {
    pub(crate) fn clear(&mut self) {}

    pub(crate) fn messages(&self) -> core::iter::Empty<(SessionKey, &[u8])> {
        core::iter::empty()
    }
}

impl Sessions {
    pub(crate) fn advance(&mut self, _: Instant) {
        match *self {}
    }

    pub(crate) fn address(&self, _: PeerId) -> Option<SocketAddr> {
        match *self {}
    }

    pub(crate) fn peer(&self, _: PeerId) -> Option<PeerInfo> {
        match *self {}
    }

    pub(crate) fn receive(&mut self, _: Instant, _: SocketAddr, _: &[u8], _: &mut OpenedMessages) {
        match *self {}
    }

    pub(crate) fn send(&mut self, _: &mut Outbound<Sent>, _: SessionKey, _: Queued<'_>) {
        match *self {}
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *self {}
    }

    pub(crate) fn handle_timeout(&mut self, _: Instant) {
        match *self {}
    }

    pub(crate) fn answered(&mut self, _: PeerId, _: Micros) {
        match *self {}
    }

    pub(crate) fn wake_all(&mut self) -> Vec<std::task::Waker> {
        match *self {}
    }

    pub(crate) fn note_changes(&mut self) {
        match *self {}
    }

    pub(crate) fn take_changed(&mut self) -> Vec<(u64, Option<StoredSession>)> {
        match *self {}
    }

    pub(crate) fn take_all(&mut self) -> Vec<(u64, StoredSession)> {
        match *self {}
    }

    pub(crate) fn restore(&mut self, _: Instant, _: u64, _: &[u8]) -> bool {
        match *self {}
    }

    pub(crate) fn replaced(&mut self, _: PeerId, _: &std::task::Waker) -> u64 {
        match *self {}
    }

    pub(crate) fn suspect(&mut self, _: PeerId) {
        match *self {}
    }
}
