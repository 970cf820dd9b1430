//! Datagrams that wait for the driver to fetch them.

use crate::peer::PeerId;
use alloc::vec::Vec;

/// A queue of datagrams in one reused buffer, so that sending does not allocate once the buffer
/// has grown.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    bytes: Vec<u8>,
    /// Those that were fetched as well, until all are.
    queue: Vec<QueuedDatagram<T>>,
    fetched: usize,
}

#[derive(Debug)]
struct QueuedDatagram<T> {
    to: PeerId,
    start: usize,
    end: usize,
    what: T,
}

impl<T: Copy> Outbox<T> {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), queue: Vec::new(), fetched: 0 }
    }

    /// Queues the bytes that `write` appends to the buffer. Returns false and queues nothing if
    /// the buffer has `max_bytes`, which cannot happen to a driver that fetches after every call.
    pub(crate) fn push(
        &mut self,
        max_bytes: usize,
        to: PeerId,
        what: T,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        if self.is_empty() {
            self.bytes.clear();
            self.queue.clear();
            self.fetched = 0;
        }
        let start = self.bytes.len();
        if start >= max_bytes || !write(&mut self.bytes) {
            self.bytes.truncate(start);
            return false;
        }
        if self.queue.capacity() == 0 {
            // A device that fetches each datagram at once needs one place.
            self.queue.reserve_exact(1);
        }
        self.queue.push(QueuedDatagram { to, start, end: self.bytes.len(), what });
        true
    }

    /// The oldest datagram.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(PeerId, T, &[u8])> {
        let &QueuedDatagram { to, start, end, what } = self.queue.get(self.fetched)?;
        self.fetched += 1;
        Some((to, what, self.bytes.get(start..end).unwrap_or_default()))
    }

    /// The newest datagram.
    pub(crate) fn newest(&self) -> Option<&[u8]> {
        let newest = self.queue.get(self.fetched..)?.last()?;
        self.bytes.get(newest.start..newest.end)
    }

    /// Destination and bytes of the oldest datagram.
    pub(crate) fn first(&self) -> Option<(PeerId, &[u8])> {
        let first = self.queue.get(self.fetched)?;
        Some((first.to, self.bytes.get(first.start..first.end)?))
    }

    /// Whether the queue is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.fetched == self.queue.len()
    }
}
