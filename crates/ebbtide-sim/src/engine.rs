//! The event engine: a queue of events in the order of time. Events at the same time fire in the
//! order of scheduling.

use crate::growth::{push_back, room};
use ebbtide_core::time::Instant;
use smallvec::SmallVec;
use std::collections::VecDeque;

#[derive(Copy, Clone, Debug)]
struct Entry<E> {
    at: Instant,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    /// Time and scheduling order as one number, so that one comparison replaces two branches.
    #[inline]
    const fn key(&self) -> u128 {
        ((self.at.as_nanos() as u128) << 64) | self.sequence as u128
    }
}

/// Later than every event.
const NEVER: u128 = u128::MAX;

/// Identifies a lane of an [`Engine`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Lane(u32);

#[derive(Debug)]
struct LaneQueue<E> {
    /// The key of the first event; [`NEVER`] if there is none.
    first: u128,
    queue: VecDeque<Entry<E>>,
}

/// The distance from the end of its lane within which an event is inserted in the lane; other
/// events go into the heap.
const REACH: usize = 16;

/// The events to come.
///
/// A *lane* holds events that are scheduled nearly in the order of their time, such as deliveries
/// behind a first-in first-out queue. A queue of ten thousand packets then costs no more per event
/// than an empty one. An event that belongs far before the end of its lane goes into the heap
/// instead; lanes affect speed but never the order of events. There should be few lanes, because
/// all of them are examined for each event.
///
/// Events that are not in a lane wait in a *wheel* until their time is near, and only then go into the
/// heap. The timers of a hundred thousand clients then cost little more each than those of a hundred:
/// most of them are written once and read once, side by side with others of about the same time.
#[derive(Debug)]
pub struct Engine<E> {
    heap: Heap<E>,
    wheel: Wheel<E>,
    lanes: Vec<LaneQueue<E>>,
    sequence: u64,
    now: Instant,
    handled: u64,
}

impl<E: Copy> Engine<E> {
    /// Creates an engine at time zero with `lanes` lanes.
    #[must_use]
    pub fn new(lanes: u32) -> Self {
        let lane = |_| LaneQueue { first: NEVER, queue: VecDeque::new() };
        Self {
            heap: Heap { entries: Vec::new(), is_vacant: false },
            wheel: Wheel::new(),
            lanes: (0..lanes).map(lane).collect(),
            sequence: 0,
            now: Instant::ZERO,
            handled: 0,
        }
    }

    /// The lane with this number, which must be below the number of lanes of the engine.
    #[must_use]
    pub const fn lane(number: u32) -> Lane {
        Lane(number)
    }

    /// The time of the event that was returned last.
    #[inline]
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The number of events that have been returned.
    #[must_use]
    pub const fn handled(&self) -> u64 {
        self.handled
    }

    /// Schedules an event; an event in the past fires now.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: E) {
        let entry = self.entry(at, event);
        self.hold(entry);
    }

    /// Puts an entry into the wheel or, if its time is near, into the heap.
    #[inline]
    fn hold(&mut self, entry: Entry<E>) {
        if slot(entry.at) > self.wheel.turned {
            self.wheel.push(entry);
        } else {
            self.heap.push(entry);
        }
    }

    /// Schedules an event in a lane.
    #[inline]
    pub fn schedule_in(&mut self, lane: Lane, at: Instant, event: E) {
        let entry = self.entry(at, event);
        let Some(lane) = self.lanes.get_mut(lane.0 as usize) else {
            self.hold(entry);
            return;
        };
        match lane.queue.back() {
            None => lane.first = entry.key(),
            Some(last) if last.at <= entry.at => {}
            Some(_) => {
                let len = lane.queue.len();
                let nearest = lane.queue.iter().rev().take(REACH);
                let later = nearest.take_while(|other| other.at > entry.at).count();
                if later == REACH {
                    self.hold(entry);
                    return;
                }
                if later == len {
                    lane.first = entry.key();
                }
                lane.queue.insert(len - later, entry);
                return;
            }
        }
        push_back(&mut lane.queue, entry);
    }

    /// The time of the next event; `None` if there is none.
    pub fn next_at(&mut self) -> Option<Instant> {
        let lanes = self.lanes.iter().map(|lane| lane.first).min().unwrap_or(NEVER);
        let mut least = self.heap.first().min(lanes);
        if self.wheel.may_precede(least) {
            self.wheel.turn(&mut self.heap, least);
            least = self.heap.first().min(lanes);
        }
        // The upper half of a key is its time.
        (least != NEVER).then(|| Instant::from_nanos((least >> 64) as u64))
    }

    /// The next event; `None` if there is none.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let mut least = self.heap.first();
        let mut from = None;
        for (index, lane) in self.lanes.iter().enumerate() {
            if lane.first < least {
                least = lane.first;
                from = Some(index);
            }
        }
        if self.wheel.may_precede(least) {
            self.wheel.turn(&mut self.heap, least);
            if self.heap.first() < least {
                from = None;
            }
        }
        let entry = match from.and_then(|index| self.lanes.get_mut(index)) {
            None => self.heap.pop()?,
            Some(lane) => {
                let entry = lane.queue.pop_front()?;
                lane.first = lane.queue.front().map_or(NEVER, Entry::key);
                entry
            }
        };
        self.now = entry.at;
        self.handled += 1;
        Some((entry.at, entry.event))
    }

    #[inline]
    fn entry(&mut self, at: Instant, event: E) -> Entry<E> {
        self.sequence += 1;
        Entry { at: at.max(self.now), sequence: self.sequence, event }
    }
}

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
struct Wheel<E> {
    /// The first chunk of each slot: of this turn and of later ones.
    slots: Vec<u32>,
    chunks: Vec<Chunk<E>>,
    /// The first chunk without events.
    free: u32,
    /// The events of all slots up to this one are in the heap.
    turned: u64,
    len: usize,
}

#[derive(Debug)]
struct Chunk<E> {
    entries: SmallVec<[Entry<E>; CHUNK]>,
    /// The chunk that follows in the slot, or the next one without events.
    next: u32,
}

impl<E: Copy> Wheel<E> {
    fn new() -> Self {
        let slots = vec![NONE; SLOTS as usize];
        Self { slots, chunks: Vec::new(), free: NONE, turned: 0, len: 0 }
    }

    fn push(&mut self, entry: Entry<E>) {
        self.len += 1;
        let slot = (slot(entry.at) % SLOTS) as usize;
        let first = self.slots[slot];
        if let Some(chunk) = self.chunks.get_mut(first as usize)
            && chunk.entries.len() < CHUNK
        {
            chunk.entries.push(entry);
            return;
        }
        if self.free == NONE {
            let more = room(self.chunks.len(), self.chunks.capacity());
            self.chunks.reserve_exact(more);
            // As many as fit in memory, far below 2^32.
            self.free = self.chunks.len() as u32;
            self.chunks.push(Chunk { entries: SmallVec::new(), next: NONE });
        }
        self.slots[slot] = self.free;
        let chunk = &mut self.chunks[self.free as usize];
        self.free = std::mem::replace(&mut chunk.next, first);
        chunk.entries.push(entry);
    }

    /// Moves the events of the slot that was turned to into the heap, except those of later turns.
    fn empty_slot(&mut self, heap: &mut Heap<E>) {
        let place = (self.turned % SLOTS) as usize;
        let mut at = std::mem::replace(&mut self.slots[place], NONE);
        while let Some(chunk) = self.chunks.get_mut(at as usize) {
            let entries = std::mem::take(&mut chunk.entries);
            let next = std::mem::replace(&mut chunk.next, self.free);
            self.free = at;
            at = next;
            self.len -= entries.len();
            for entry in entries {
                if slot(entry.at) > self.turned {
                    self.push(entry);
                } else {
                    heap.push(entry);
                }
            }
        }
    }

    /// Whether there may be an event before the one with this key.
    #[inline]
    fn may_precede(&self, key: u128) -> bool {
        self.len > 0 && slot_of(key) > self.turned
    }

    /// Moves events into the heap until every event that precedes `key` and the heap's first event is
    /// there.
    #[inline(never)]
    fn turn(&mut self, heap: &mut Heap<E>, key: u128) {
        let mut steps = 0;
        while self.len > 0 && slot_of(heap.first().min(key)) > self.turned {
            if steps == SLOTS {
                // There was nothing for a whole turn: the rest of the gap is skipped.
                let all = self.chunks.iter().flat_map(|chunk| &chunk.entries);
                let nearest = all.map(|entry| slot(entry.at)).min();
                let next = nearest.unwrap_or(self.turned).min(slot_of(key));
                self.turned = self.turned.max(next.saturating_sub(1));
                steps = 0;
            }
            steps += 1;
            self.turned += 1;
            if self.slots[(self.turned % SLOTS) as usize] == NONE {
                continue;
            }
            self.empty_slot(heap);
            heap.shrink();
        }
    }
}

/// The slot of the time in a key; beyond all others for [`NEVER`].
#[inline]
const fn slot_of(key: u128) -> u64 {
    (key >> (64 + SLOT_BITS)) as u64
}

/// Children of a node: four need half as many levels as two.
const ARITY: usize = 4;

/// A heap whose first place stays vacant after a removal. A timer that fires is usually armed
/// again; the new entry then sinks from the first place, at the cost of one of the two operations.
#[derive(Debug)]
struct Heap<E> {
    entries: Vec<Entry<E>>,
    is_vacant: bool,
}

impl<E: Copy> Heap<E> {
    /// The key of the first entry; [`NEVER`] if there is none.
    #[inline]
    fn first(&mut self) -> u128 {
        if self.is_vacant {
            self.close_vacancy();
        }
        self.entries.first().map_or(NEVER, Entry::key)
    }

    /// Removes the first entry.
    #[inline]
    fn pop(&mut self) -> Option<Entry<E>> {
        if self.is_vacant {
            self.close_vacancy();
        }
        let first = *self.entries.first()?;
        self.is_vacant = true;
        Some(first)
    }

    fn push(&mut self, entry: Entry<E>) {
        if self.is_vacant {
            self.is_vacant = false;
            self.sink(entry);
            return;
        }
        let mut at = self.entries.len();
        let more = room(self.entries.len(), self.entries.capacity());
        if more > 0 {
            self.entries.reserve_exact(more);
        }
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent].key() <= entry.key() {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    /// Gives back the memory of many entries that are gone.
    fn shrink(&mut self) {
        if self.entries.capacity() > 4096 + 4 * self.entries.len() {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }

    fn close_vacancy(&mut self) {
        self.is_vacant = false;
        if let Some(last) = self.entries.pop()
            && !self.entries.is_empty()
        {
            self.sink(last);
        }
    }

    /// Puts an entry into the first place, or below it where it belongs.
    fn sink(&mut self, entry: Entry<E>) {
        let mut at = 0;
        loop {
            let below = at * ARITY + 1;
            let end = (below + ARITY).min(self.entries.len());
            let Some(children) = self.entries.get(below..end) else { break };
            let mut least = (entry.key(), at);
            for (offset, child) in children.iter().enumerate() {
                if child.key() < least.0 {
                    least = (child.key(), below + offset);
                }
            }
            if least.1 == at {
                break;
            }
            self.entries[at] = self.entries[least.1];
            at = least.1;
        }
        self.entries[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The unit of times, ns: much less than a slot of the wheel, about one, a part of a turn, and
    /// several turns.
    fn unit() -> impl Strategy<Value = u64> {
        prop::sample::select(vec![1, 5_000_000, 400_000_000, 70_000_000_000])
    }

    proptest! {
        #[test]
        fn events_come_by_time_then_by_scheduling_whatever_lane_they_are_in(
            events in prop::collection::vec((0u64..100, 0u32..4), 1..300),
            unit in unit(),
        ) {
            let mut engine = Engine::new(3);
            let events: Vec<(u64, u32)> =
                events.into_iter().map(|(at, lane)| (at * unit, lane)).collect();
            for (index, (at, lane)) in events.iter().enumerate() {
                let at = Instant::from_nanos(*at);
                if *lane < 3 {
                    engine.schedule_in(Engine::<usize>::lane(*lane), at, index);
                } else {
                    engine.schedule(at, index);
                }
            }
            let mut expected: Vec<(u64, usize)> =
                events.iter().enumerate().map(|(index, (at, _))| (*at, index)).collect();
            expected.sort_unstable();
            let mut got = Vec::new();
            while let Some((at, index)) = engine.pop() {
                got.push((at.as_nanos(), index));
            }
            prop_assert_eq!(got, expected);
        }
    }

    proptest! {
        #[test]
        fn handling_and_scheduling_in_turn_keep_the_order(
            steps in prop::collection::vec((0u64..50, 0u32..6), 1..400),
            unit in unit(),
        ) {
            let mut engine = Engine::new(3);
            let mut model: Vec<(u64, usize)> = Vec::new();
            let mut now = 0;
            for (index, (after, lane)) in steps.into_iter().enumerate() {
                let after = after * unit;
                let at = Instant::from_nanos(now + after);
                match lane {
                    0..3 => engine.schedule_in(Engine::<usize>::lane(lane), at, index),
                    3 => engine.schedule(at, index),
                    _ => {
                        model.sort_unstable();
                        let expected = (!model.is_empty()).then(|| model.remove(0));
                        let got = engine.pop().map(|(at, index)| (at.as_nanos(), index));
                        prop_assert_eq!(got, expected);
                        now = got.map_or(now, |(at, _)| at);
                        continue;
                    }
                }
                model.push((now + after, index));
            }
        }
    }

    #[test]
    fn an_event_in_the_past_happens_now() {
        let mut engine = Engine::new(0);
        engine.schedule(Instant::from_nanos(10), "first");
        assert!(engine.pop().is_some());
        engine.schedule(Instant::from_nanos(3), "late");
        assert_eq!(engine.pop(), Some((Instant::from_nanos(10), "late")));
    }
}
