//! Datagrams that wait for the driver to fetch them.

use crate::peer::PeerId;
use alloc::vec::Vec;

/// A queue of datagrams in one reused buffer, so that sending does not allocate once the buffer
/// has grown.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    bytes: Vec<u8>,
    /// The datagrams, of which the first `fetched` ones were fetched: they leave the list together, so that
    /// fetching moves nothing.
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
    /// buffer and list have `max_bytes`, which cannot happen to a driver that fetches after every call.
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
        } else if self.fetched > self.queue.len() / 2 {
            self.queue.drain(..self.fetched);
            self.fetched = 0;
        }
        let start = self.bytes.len();
        // The shortest datagrams take less than their entries.
        let held = start + size_of_val(self.queue.as_slice());
        if held >= max_bytes || !write(&mut self.bytes) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::SocketAddr;

    fn remote(n: u8) -> PeerId {
        PeerId::Address(SocketAddr::from(([10, 0, 0, n], 5683)))
    }

    fn push(outbox: &mut Outbox<u8>, n: u8) -> bool {
        outbox.push(1000, remote(n), n, |bytes| {
            bytes.extend_from_slice(&[n; 4]);
            true
        })
    }

    #[test]
    fn the_first_and_the_newest_datagram_are_those_that_wait() {
        let mut outbox = Outbox::new();
        assert!(outbox.first().is_none() && outbox.newest().is_none());
        for n in 1..=3 {
            assert!(push(&mut outbox, n));
        }
        assert_eq!(outbox.pop(), Some((remote(1), 1, &[1; 4][..])));
        assert_eq!(outbox.first(), Some((remote(2), &[2; 4][..])));
        assert_eq!(outbox.newest(), Some(&[3; 4][..]));
        assert_eq!(outbox.pop(), Some((remote(2), 2, &[2; 4][..])));
        // Those that were fetched leave the list.
        assert!(push(&mut outbox, 4));
        assert_eq!(outbox.first(), Some((remote(3), &[3; 4][..])));
        assert_eq!(outbox.newest(), Some(&[4; 4][..]));
        assert_eq!(outbox.pop(), Some((remote(3), 3, &[3; 4][..])));
        assert_eq!(outbox.pop(), Some((remote(4), 4, &[4; 4][..])));
        assert!(outbox.is_empty() && outbox.first().is_none() && outbox.newest().is_none());
    }

    #[test]
    fn datagrams_and_their_entries_fill_the_queue_up_to_its_bound() {
        let each = 4 + size_of::<QueuedDatagram<u8>>();
        let accepted = |max_bytes: usize| {
            let mut outbox = Outbox::new();
            let push = |n| {
                outbox.push(max_bytes, remote(1), n, |bytes| {
                    bytes.extend_from_slice(&[n; 4]);
                    true
                })
            };
            (0..10).map(push).take_while(|accepted| *accepted).count()
        };
        // The last one may go beyond it.
        assert_eq!([3 * each, 3 * each + 1].map(accepted), [3, 4]);
    }

    #[test]
    fn the_list_stays_short_while_a_datagram_waits() {
        let mut outbox = Outbox::new();
        assert!(push(&mut outbox, 0));
        for n in 1..200 {
            assert!(push(&mut outbox, n));
            assert_eq!(outbox.pop(), Some((remote(n - 1), n - 1, &[n - 1; 4][..])));
            assert!(outbox.queue.len() <= 3, "{} entries", outbox.queue.len());
        }
    }
}
