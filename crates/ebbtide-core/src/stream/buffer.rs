//! Bytes on their way in and out.

use crate::wire::{Content, EncodeError, Framing, Token};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Bytes that wait for the transport to take them: many messages, one write.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// Those before this one have been taken.
    taken: usize,
    /// Where each message ends, if the transport must know.
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
        token: Token,
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

    /// What the transport may take now: of a stream all that waits, else one message.
    pub(super) fn next(&self) -> &[u8] {
        let end = match &self.ends {
            Some(ends) => ends.front().copied().unwrap_or(self.taken),
            None => self.bytes.len(),
        };
        self.bytes.get(self.taken..end).unwrap_or_default()
    }

    /// The transport took `len` bytes of that.
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
            // Each byte is moved at most once for one that was taken.
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

/// Bytes that must have been taken before the rest is moved to the front.
const COMPACT: usize = 16 << 10;
/// Bytes of room that an empty buffer keeps: there are as many as connections.
const KEEP: usize = 2 << 10;

/// Bytes that were read from a byte stream and not yet taken: a helper for drivers.
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
    /// Those before this one have been taken.
    taken: usize,
    /// Those before this one have been read.
    filled: usize,
}

/// Bytes that are read at once, unless a longer message is expected.
const READ: usize = 16 << 10;

impl Input {
    /// Room to read into, never empty, for a message that is expected to have `expected` bytes in
    /// all. What is not taken yet stays in front of it.
    pub fn room(&mut self, expected: usize) -> &mut [u8] {
        if self.taken == self.filled {
            self.taken = 0;
            self.filled = 0;
            if self.bytes.len() > READ && expected <= READ {
                self.bytes.truncate(READ);
                self.bytes.shrink_to_fit();
            }
        } else if self.taken > 0 {
            // A part of one message: few bytes, or it has room behind it for many.
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

    /// `len` bytes have been read into that room.
    pub fn filled(&mut self, len: usize) {
        self.filled = (self.filled + len).min(self.bytes.len());
    }

    /// What was read and not taken.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        self.bytes.get(self.taken..self.filled).unwrap_or_default()
    }

    /// `len` bytes of that have been taken.
    pub fn take(&mut self, len: usize) {
        self.taken = (self.taken + len).min(self.filled);
    }

    /// Takes the room of `spare`, unless it has as much of its own; what is unread moves into it. So
    /// that a driver of many connections needs room only for those that it reads from.
    pub fn borrow_room(&mut self, spare: &mut Self) {
        if self.bytes.len() >= READ {
            return;
        }
        let rest = self.unread();
        if spare.bytes.len() < READ {
            spare.bytes.resize(READ, 0);
        }
        // It is shorter than the room.
        if let Some(front) = spare.bytes.get_mut(..rest.len()) {
            front.copy_from_slice(rest);
        }
        (spare.taken, spare.filled) = (0, rest.len());
        core::mem::swap(self, spare);
    }

    /// Gives its room to `spare`, and keeps no more than what is unread, unless that is so much that
    /// moving it would cost more than the room.
    pub fn return_room(&mut self, spare: &mut Self) {
        if self.unread().len() > READ / 2 {
            return;
        }
        let bytes = self.unread().to_vec();
        let rest = Self { taken: 0, filled: bytes.len(), bytes };
        *spare = core::mem::replace(self, rest);
        (spare.taken, spare.filled) = (0, 0);
    }

    /// Bytes that it holds.
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
        // What stays small keeps its room.
        let kept = output.bytes.as_ptr();
        output.bytes.extend_from_slice(&[7; 100]);
        output.take(100);
        assert_eq!(output.bytes.as_ptr(), kept);
    }
}
