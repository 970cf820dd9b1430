//! The sender's sequence numbers, reserved before they are used (RFC 8613 sections 3.2.2 and 7.2.1, appendix B.1.1).

use super::error::ProtectError;

/// The greatest sequence number (RFC 8613 section 7.2.1: it has 40 bits).
pub const MAX_SEQUENCE_NUMBER: u64 = (1 << 40) - 1;

/// How many numbers the first reservation covers. Each later one covers twice as many, so that a
/// busy sender rarely waits for its store, and a restart loses at most 64 numbers more than were
/// used since the last one.
const AHEAD: u16 = 64;
/// How many numbers a reservation covers at most.
const MAX_AHEAD: u16 = 4096;

/// Keeps a context's reservations where they outlive the program.
pub trait SequenceStore {
    /// Stores that all numbers below `limit` may have been used, and returns whether a restart from
    /// now on would find this. Nothing is sent if not.
    fn reserve(&mut self, limit: u64) -> bool;
}

/// Stores nothing: for contexts that end with the program, and for tests.
#[derive(Copy, Clone, Debug, Default)]
pub struct Volatile;

impl SequenceStore for Volatile {
    fn reserve(&mut self, _: u64) -> bool {
        true
    }
}

impl<S: SequenceStore + ?Sized> SequenceStore for &mut S {
    fn reserve(&mut self, limit: u64) -> bool {
        (**self).reserve(limit)
    }
}

#[cfg(feature = "alloc")]
impl<S: SequenceStore + ?Sized> SequenceStore for alloc::boxed::Box<S> {
    fn reserve(&mut self, limit: u64) -> bool {
        (**self).reserve(limit)
    }
}

/// Whether a context was used before.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// It never was: numbers begin at 0, and no request can be a copy of an earlier one.
    #[default]
    Fresh,
    /// It was, and all numbers below this one may have been used: the latest limit that was
    /// [reserved](SequenceStore::reserve). Which requests were accepted is not known any more.
    Resumed(u64),
}

/// The numbers of a sender.
#[derive(Copy, Clone, Debug)]
pub(super) struct SenderNumbers {
    next: u64,
    /// How many numbers are reserved, from the next one on.
    reserved: u16,
    /// How many the next reservation covers.
    ahead: u16,
}

impl SenderNumbers {
    pub(super) const fn new(numbering: Numbering) -> Self {
        let next = match numbering {
            Numbering::Fresh => 0,
            Numbering::Resumed(limit) => limit,
        };
        Self { next, reserved: 0, ahead: AHEAD }
    }

    /// Takes the next number.
    pub(super) fn take(&mut self, store: &mut impl SequenceStore) -> Result<u64, ProtectError> {
        let number = self.next;
        if number > MAX_SEQUENCE_NUMBER {
            return Err(ProtectError::Exhausted);
        }
        if self.reserved == 0 {
            if !store.reserve(number + u64::from(self.ahead)) {
                return Err(ProtectError::NotReserved);
            }
            self.reserved = self.ahead;
            self.ahead = (2 * self.ahead).min(MAX_AHEAD);
        }
        self.reserved -= 1;
        self.next = number + 1;
        Ok(number)
    }
}
