//! Input and output buffers of a connection.

use crate::wire::{Content, EncodeError, Framing};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Bytes that wait for the transport: one write can take many messages.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// The transport has taken the bytes before this one.
    taken: usize,
    /// The end of each message, if the transport needs message boundaries.
    ends: Option<VecDeque<usize>>,
}

impl Output {
    pub(super) fn new(framing: Framing) -> Self {
        let ends = (framing == Framing::WebSocket).then(VecDeque::new);
        Self { bytes: Vec::new(), taken: 0, ends }
    }

    /// Appends a message.
    pub(super) fn push(
        &mut self,
        content: &Content<'_>,
        framing: Framing,
        token: &[u8],
        len: usize,
    ) -> Result<(), EncodeError> {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        let room = self.bytes.get_mut(start..).unwrap_or_default();
        let written = content.encode_framed(room, framing, token);
        if written.is_err() {
            self.bytes.truncate(start);
        } else if let Some(ends) = &mut self.ends {
            ends.push_back(self.bytes.len());
        }
        written.map(|_| ())
    }

    /// The bytes that the transport may take now: everything that waits on a byte stream,
    /// otherwise one message.
    pub(super) fn next(&self) -> &[u8] {
        let end = match &self.ends {
            Some(ends) => ends.front().copied().unwrap_or(self.taken),
            None => self.bytes.len(),
        };
        self.bytes.get(self.taken..end).unwrap_or_default()
    }

    /// The transport took `len` of those bytes.
    pub(super) fn take(&mut self, len: usize) {
        self.taken = (self.taken + len).min(self.bytes.len());
        if let Some(ends) = &mut self.ends {
            while ends.front().is_some_and(|&end| end <= self.taken) {
                ends.pop_front();
            }
        }
        if self.taken == self.bytes.len() {
            self.clear();
        } else if self.taken >= COMPACT && self.taken * 2 >= self.bytes.len() {
            // Each byte is moved at most once for each byte that was taken.
            self.bytes.drain(..self.taken);
            for end in self.ends.iter_mut().flatten() {
                *end -= self.taken;
            }
            self.taken = 0;
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.taken = 0;
        if let Some(ends) = &mut self.ends {
            ends.clear();
        }
        if self.bytes.capacity() > KEEP {
            // Not shrunk in its place: many allocators could not use the rest for another connection's
            // burst, and of ten thousand such rests nothing would come back.
            self.bytes = Vec::with_capacity(KEEP);
        }
    }

    pub(super) const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) const fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The number of taken bytes from which on the rest is moved to the front.
const COMPACT: usize = 16 << 10;
/// The capacity that an empty buffer keeps, in bytes. There is one such buffer for each
/// connection.
const KEEP: usize = 2 << 10;

/// Bytes that were read from a byte stream and not processed yet; a helper for drivers.
///
/// ```
/// # use ebbtide_core::{stream::{Config, Connection, Input}, time::Instant, wire::Framing};
/// # let mut connection = Connection::new(Instant::ZERO, Framing::Stream, Config::default());
/// # let now = Instant::ZERO;
/// # let mut read = |room: &mut [u8]| { room[0] = 0; room[1] = 0; 2 };
/// let mut input = Input::default();
/// let len = read(input.room(connection.expects()));
/// input.filled(len);
/// while let Some(taken) = connection.handle_input(now, input.unread()) {
///     let bytes = taken.bytes; // and do something about `taken.received`
///     input.take(bytes);
/// }
/// ```
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    /// Bytes before this one have been processed.
    taken: usize,
    /// Bytes before this one have been read.
    filled: usize,
}

/// The number of bytes to read at once, unless a longer message is expected.
const READ: usize = 16 << 10;

impl Input {
    /// Space to read into, never empty, for a message that is expected to have `expected` bytes in
    /// all. Bytes that are not processed yet stay in front of it.
    pub fn room(&mut self, expected: usize) -> &mut [u8] {
        if self.taken == self.filled {
            self.taken = 0;
            self.filled = 0;
            if self.bytes.len() > READ && expected <= READ {
                self.bytes.truncate(READ);
                self.bytes.shrink_to_fit();
            }
        } else if self.taken > 0 {
            // The rest is a part of one message: it is short, or it leaves enough space behind it.
            self.bytes.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        let wanted = expected.max(READ).max(self.filled + 1);
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        self.bytes.get_mut(self.filled..).unwrap_or_default()
    }

    /// Records that `len` bytes were read into that space.
    pub fn filled(&mut self, len: usize) {
        self.filled = (self.filled + len).min(self.bytes.len());
    }

    /// The bytes that were read and not processed yet.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        self.bytes.get(self.taken..self.filled).unwrap_or_default()
    }

    /// Marks `len` of those bytes as processed.
    pub fn take(&mut self, len: usize) {
        self.taken = (self.taken + len).min(self.filled);
    }

    /// Borrows the space of `spare`, unless this buffer has as much of its own, and moves the
    /// unprocessed bytes into it. A driver of many connections then needs space only for those
    /// from which it reads.
    pub fn borrow_room(&mut self, spare: &mut Self) {
        if self.bytes.len() >= READ {
            return;
        }
        let rest = self.unread();
        if spare.bytes.len() < READ {
            spare.bytes.resize(READ, 0);
        }
        // The rest is shorter than the space.
        if let Some(front) = spare.bytes.get_mut(..rest.len()) {
            front.copy_from_slice(rest);
        }
        (spare.taken, spare.filled) = (0, rest.len());
        core::mem::swap(self, spare);
    }

    /// Returns the space to `spare` and keeps only the unprocessed bytes. If there are so many
    /// that moving them would cost more than the space, this buffer keeps the space.
    pub fn return_room(&mut self, spare: &mut Self) {
        if self.unread().len() > READ / 2 {
            return;
        }
        let bytes = self.unread().to_vec();
        let rest = Self { taken: 0, filled: bytes.len(), bytes };
        *spare = core::mem::replace(self, rest);
        (spare.taken, spare.filled) = (0, 0);
    }

    /// The capacity in bytes.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_buffer_gives_the_room_of_a_burst_back_as_a_whole() {
        let mut output = Output::new(Framing::Stream);
        output.bytes.resize(64 << 10, 7);
        let burst = output.bytes.as_ptr();
        output.take(64 << 10);
        assert!(output.is_empty());
        assert!(output.capacity() <= 2 * KEEP, "{}", output.capacity());
        assert_ne!(output.bytes.as_ptr(), burst, "shrunk in its place");
        // A buffer that stays small keeps its memory.
        let kept = output.bytes.as_ptr();
        output.bytes.extend_from_slice(&[7; 100]);
        output.take(100);
        assert_eq!(output.bytes.as_ptr(), kept);
    }
}
