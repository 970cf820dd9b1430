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
        let entries = (self.queue.len() + 1) * size_of::<(SocketAddr, usize, usize)>();
        if start + datagram.len() + entries <= self.max_bytes {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_and_their_entries_fill_the_queue_up_to_its_bound() {
        let to = SocketAddr::from(([192, 0, 2, 1], 5684));
        let each = 15 + size_of::<(SocketAddr, usize, usize)>();
        for (max_bytes, fit) in [(3 * each - 1, 2), (3 * each, 3)] {
            let mut outbox = Outbox::new(max_bytes);
            for _ in 0..10 {
                outbox.push(to, &[21; 15]);
            }
            let popped = core::iter::from_fn(|| outbox.pop().map(|(to, bytes)| (to, bytes.len())));
            assert!(popped.eq([(to, 15)].repeat(fit)));
            // Once it is empty there is room again.
            outbox.push(to, &[21; 15]);
            assert!(!outbox.is_empty());
        }
    }
}
