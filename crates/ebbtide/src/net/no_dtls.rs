//! In place of `dtls` where that feature is not enabled: no socket speaks DTLS.

use super::peer::PeerInfo;
use super::shared::SocketState;
use super::socket::Outbound;
use ebbtide_core::endpoint::Sent;
use ebbtide_core::time::{Instant, Micros};
use std::net::{IpAddr, SocketAddr};

/// There are none.
#[derive(Debug)]
pub(crate) enum Sessions {}

/// There are none.
#[derive(Debug)]
pub(crate) enum OpenedMessages {}

impl OpenedMessages {
    pub(crate) fn messages(&self) -> core::iter::Empty<(SocketAddr, &[u8])> {
        match *self {}
    }
}

impl Sessions {
    pub(crate) fn advance(&mut self, _: Instant) {
        match *self {}
    }

    pub(crate) fn address(&self, _: SocketAddr) -> Option<SocketAddr> {
        match *self {}
    }

    pub(crate) fn peer(&self, _: SocketAddr) -> Option<PeerInfo> {
        match *self {}
    }

    pub(crate) fn receive(&mut self, _: Instant, _: SocketAddr, _: &[u8]) -> OpenedMessages {
        match *self {}
    }

    pub(crate) fn reuse(&mut self, _: OpenedMessages) {
        match *self {}
    }

    pub(crate) fn send(
        &mut self,
        _: &mut Outbound<Sent>,
        _: (SocketAddr, Option<IpAddr>),
        _: (&[u8], Sent),
    ) {
        match *self {}
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *self {}
    }

    pub(crate) fn handle_timeout(&mut self, _: Instant) {
        match *self {}
    }

    pub(crate) fn answered(&mut self, _: SocketAddr, _: Micros) {
        match *self {}
    }

    pub(crate) fn wake_all(&mut self) -> Vec<std::task::Waker> {
        match *self {}
    }

    pub(crate) fn suspect(&mut self, _: SocketAddr) {
        match *self {}
    }
}

impl SocketState {
    pub(crate) fn pump(&mut self, _: Option<IpAddr>) -> bool {
        false
    }
}

/// Stand-ins for the addresses of DTLS peers: there are none.
pub(crate) mod address {
    use std::net::{IpAddr, SocketAddr};

    pub(crate) fn is_stand_in(_: IpAddr) -> bool {
        false
    }

    pub(crate) fn family(_: SocketAddr) -> Option<bool> {
        None
    }
}
