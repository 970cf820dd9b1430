//! Handshake datagrams and alerts that wait for the driver to fetch them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

#[derive(Debug)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    queue: VecDeque<(SocketAddr, usize, usize)>,
    max_bytes: usize,
}

impl Outbox {
    pub(crate) const fn new(max_bytes: usize) -> Self {
        Self { bytes: Vec::new(), queue: VecDeque::new(), max_bytes }
    }

    /// Queues a datagram. A datagram that does not fit is dropped, as if the network had lost it;
    /// that cannot happen to a driver that fetches after every call.
    pub(crate) fn push(&mut self, to: SocketAddr, datagram: &[u8]) {
        if self.queue.is_empty() {
            self.bytes.clear();
        }
        let start = self.bytes.len();
        if start + datagram.len() <= self.max_bytes {
            self.bytes.extend_from_slice(datagram);
            self.queue.push_back((to, start, self.bytes.len()));
        }
    }

    pub(crate) fn pop(&mut self) -> Option<(SocketAddr, &[u8])> {
        let (to, start, end) = self.queue.pop_front()?;
        Some((to, self.bytes.get(start..end).unwrap_or_default()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
