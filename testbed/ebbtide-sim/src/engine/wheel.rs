//! The wheel, in which events wait until their time is near.

use super::ScheduledEvent;
use crate::growth::room;
use ebbtide_core::time::Instant;

/// Nanoseconds of a slot of the wheel, as a power of two: 17 ms.
const SLOT_BITS: u32 = 24;
/// Slots of the wheel, which turns once in 17 s. An event that is further away stays for another turn.
const SLOTS: u64 = 1024;
/// Events of a chunk.
const CHUNK: usize = 8;
/// The end of a list of chunks.
const NONE: u32 = u32::MAX;

/// The slot to which a time belongs, counted from time zero.
#[inline]
const fn slot(at: Instant) -> u64 {
    at.as_nanos() >> SLOT_BITS
}

/// Events whose time is not near, by slot and within a slot in no order. A slot is a list of chunks, which
/// take no more memory than their events whatever slots these are in.
#[derive(Debug)]
pub(super) struct Wheel<E> {
    /// The slots of this turn, which hold events of later turns as well.
    slots: Vec<Slot>,
    chunks: Vec<Chunk<E>>,
    /// The first chunk without events.
    free: u32,
    /// The events of all slots up to this one have left the wheel.
    turned: u64,
    len: usize,
}

/// The events of a slot.
#[derive(Copy, Clone, Debug)]
struct Slot {
    first: u32,
    /// The events of the first chunk; all others are full. It is here because a slot is in the cache
    /// more often than its chunk, to which an event is then written without a look at it.
    len: u32,
}

const EMPTY: Slot = Slot { first: NONE, len: 0 };

#[derive(Debug)]
struct Chunk<E> {
    entries: [ScheduledEvent<E>; CHUNK],
    /// The chunk that follows in the slot, or the next one without events.
    next: u32,
}

impl<E: Copy> Wheel<E> {
    pub(super) fn new() -> Self {
        let slots = vec![EMPTY; SLOTS as usize];
        Self { slots, chunks: Vec::new(), free: NONE, turned: 0, len: 0 }
    }

    /// Whether an event at this time is to wait in the wheel, because its time is not near.
    #[inline]
    pub(super) const fn takes(&self, at: Instant) -> bool {
        slot(at) > self.turned
    }

    pub(super) fn push(&mut self, entry: ScheduledEvent<E>) {
        self.len += 1;
        let slot = &mut self.slots[(slot(entry.at) % SLOTS) as usize];
        if slot.first != NONE && (slot.len as usize) < CHUNK {
            self.chunks[slot.first as usize].entries[slot.len as usize] = entry;
            slot.len += 1;
            return;
        }
        let next = slot.first;
        let first = if self.free == NONE {
            let more = room(self.chunks.len(), self.chunks.capacity());
            self.chunks.reserve_exact(more);
            self.chunks.push(Chunk { entries: [entry; CHUNK], next });
            // As many as fit in memory, far below 2^32.
            (self.chunks.len() - 1) as u32
        } else {
            let free = self.free;
            let chunk = &mut self.chunks[free as usize];
            self.free = std::mem::replace(&mut chunk.next, next);
            chunk.entries[0] = entry;
            free
        };
        *slot = Slot { first, len: 1 };
    }

    /// Moves the events of the slot that was turned to into `near`, except those of later turns.
    fn empty_slot(&mut self, near: &mut Vec<ScheduledEvent<E>>) {
        let place = (self.turned % SLOTS) as usize;
        let Slot { first: mut at, len } = std::mem::replace(&mut self.slots[place], EMPTY);
        let mut len = len as usize;
        while let Some(chunk) = self.chunks.get_mut(at as usize) {
            let entries = chunk.entries;
            let next = std::mem::replace(&mut chunk.next, self.free);
            self.free = at;
            at = next;
            self.len -= len;
            for entry in entries.into_iter().take(len) {
                if slot(entry.at) > self.turned {
                    self.push(entry);
                } else {
                    near.push(entry);
                }
            }
            len = CHUNK;
        }
    }

    /// Whether there may be an event before the one with this key.
    #[inline]
    pub(super) fn may_precede(&self, key: u128) -> bool {
        self.len > 0 && slot_of(key) > self.turned
    }

    /// Moves events into `near`, which is empty, until there are some or all others come after `key`.
    pub(super) fn turn(&mut self, near: &mut Vec<ScheduledEvent<E>>, key: u128) {
        let mut steps = 0;
        while near.is_empty() && self.may_precede(key) {
            if steps == SLOTS {
                // There was nothing for a whole turn: the rest of the gap is skipped.
                let next = self.nearest().min(slot_of(key));
                self.turned = self.turned.max(next.saturating_sub(1));
                steps = 0;
            }
            steps += 1;
            self.turned += 1;
            if self.slots[(self.turned % SLOTS) as usize].first != NONE {
                self.empty_slot(near);
            }
        }
    }

    /// The slot of the first event; beyond all others if there is none.
    fn nearest(&self) -> u64 {
        let mut nearest = u64::MAX;
        for &Slot { first: mut at, len } in &self.slots {
            let mut len = len as usize;
            while let Some(chunk) = self.chunks.get(at as usize) {
                let slots = chunk.entries.iter().take(len).map(|entry| slot(entry.at));
                nearest = slots.fold(nearest, u64::min);
                (at, len) = (chunk.next, CHUNK);
            }
        }
        nearest
    }
}

/// The slot of the time in a key; beyond all others for [`NEVER`].
#[inline]
const fn slot_of(key: u128) -> u64 {
    (key >> (64 + SLOT_BITS)) as u64
}
