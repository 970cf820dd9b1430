//! The state of a network, and the task that delivers its packets.

use crate::conditions::Conditions;
use crate::connections::Connections;
use crate::links::{AgendaEntry, Links, Packet, PacketRoute};
use crate::ports::{Ports, WaitingDatagram};
use crate::trace::PacketFate;
use bytes::Bytes;
use ebbtide_core::time::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Fabric {
    state: Mutex<TestState>,
    /// The next packet may be due earlier than before.
    earlier: Notify,
    epoch: tokio::time::Instant,
}

#[derive(Debug)]
pub(crate) struct TestState {
    pub(crate) links: Links,
    pub(crate) ports: Ports,
    pub(crate) connections: Connections,
}

impl Fabric {
    /// Creates a network, and the task that delivers its packets in the present runtime.
    #[expect(clippy::disallowed_methods, reason = "the virtual clock of a test begins here")]
    pub(crate) fn start(seed: u64, conditions: Conditions) -> Arc<Self> {
        let state = TestState {
            links: Links::new(seed, conditions),
            ports: Ports::default(),
            connections: Connections::default(),
        };
        let epoch = tokio::time::Instant::now();
        let (state, earlier) = (Mutex::new(state), Notify::new());
        let fabric = Arc::new(Self { state, earlier, epoch });
        tokio::spawn(deliver(fabric.clone()));
        fabric
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, TestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + self.epoch.elapsed()
    }

    /// Changes the state, and wakes those whom the change concerns.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut TestState, Instant) -> R) -> R {
        let mut state = self.lock();
        let before = state.links.next_due();
        let result = change(&mut state, self.now());
        let woken = std::mem::take(&mut state.links.woken);
        let is_earlier = state.links.next_due() != before;
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        if is_earlier {
            self.earlier.notify_one();
        }
        result
    }
}

impl TestState {
    pub(crate) fn send(
        &mut self,
        now: Instant,
        port: SocketAddr,
        to: SocketAddr,
        datagram: &[u8],
    ) -> io::Result<()> {
        if self.links.unplugged.contains(&port.ip()) {
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
        let from = self.ports.seen(port);
        self.send_from(now, from, to, datagram);
        Ok(())
    }

    /// Sends a datagram to a port, or over the link to each member of a group but its sender.
    pub(crate) fn send_from(
        &mut self,
        now: Instant,
        from: SocketAddr,
        to: SocketAddr,
        datagram: &[u8],
    ) {
        let bytes = Bytes::copy_from_slice(datagram);
        if !to.ip().is_multicast() {
            let (route, packet) =
                (PacketRoute { from, to }, Packet::Datagram { bytes, group: None });
            return match self.ports.is_forgotten(to) {
                true => self.links.record(now, route, &packet, PacketFate::Cut),
                false => self.links.carry(now, route, &packet),
            };
        }
        let packet = Packet::Datagram { bytes, group: Some(to.ip()) };
        for to in self.ports.members(to).into_iter().filter(|member| *member != from) {
            self.links.carry(now, PacketRoute { from, to }, &packet);
        }
    }

    /// Delivers what is due.
    fn deliver(&mut self, now: Instant) {
        while let Some(due) = self.links.pop_due(now) {
            match due {
                AgendaEntry::Arrival { route, place, .. }
                    if self.links.unplugged.contains(&route.to.ip()) =>
                {
                    self.links.trace.cut_off(place);
                }
                AgendaEntry::Arrival {
                    route, packet: Packet::Datagram { bytes, group }, ..
                } => {
                    let datagram = WaitingDatagram { from: route.from, group, bytes };
                    self.links.woken.extend(self.ports.arrived(route.to, datagram));
                }
                AgendaEntry::Arrival { route, packet: Packet::Segment(end, segment), .. } => {
                    self.connections.arrived(now, &mut self.links, route, end, segment);
                }
                AgendaEntry::Again(end, number) => {
                    self.connections.again(now, &mut self.links, end, number);
                }
            }
        }
    }
}

/// Delivers packets for as long as the runtime exists.
async fn deliver(fabric: Arc<Fabric>) {
    loop {
        let earlier = fabric.earlier.notified();
        let (woken, next) = {
            let mut state = fabric.lock();
            state.deliver(fabric.now());
            (std::mem::take(&mut state.links.woken), state.links.next_due())
        };
        woken.into_iter().for_each(Waker::wake);
        match next {
            Some(at) => {
                let at = fabric.epoch + at.saturating_since(Instant::ZERO);
                let _ = tokio::time::timeout_at(at, earlier).await;
            }
            None => earlier.await,
        }
    }
}
