//! The event engine: a queue of events in the order of time, ties in the order of scheduling.

use ebbtide_core::time::Instant;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

#[derive(Copy, Clone, Debug)]
struct Entry<E> {
    at: Instant,
    sequence: u64,
    lane: u32,
    event: E,
}

impl<E> Entry<E> {
    const fn key(&self) -> (Instant, u64) {
        (self.at, self.sequence)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Names a lane of an [`Engine`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Lane(u32);

const NO_LANE: u32 = u32::MAX;

/// Events to come.
///
/// A *lane* holds events that are scheduled in the order of their time, as deliveries behind a
/// first-in first-out queue are: only the first of a lane is in the heap, so that a queue of ten
/// thousand packets costs no more per event than an empty one. An event that would break the order
/// of its lane goes into the heap by itself; a lane is a matter of speed, never of meaning.
#[derive(Debug)]
pub struct Engine<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    lanes: Vec<VecDeque<Entry<E>>>,
    sequence: u64,
    now: Instant,
    handled: u64,
}

impl<E: Copy> Engine<E> {
    /// An engine at time zero with `lanes` lanes.
    #[must_use]
    pub fn new(lanes: u32) -> Self {
        Self {
            heap: BinaryHeap::new(),
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            sequence: 0,
            now: Instant::ZERO,
            handled: 0,
        }
    }

    /// The lane of this number, below the number of lanes that the engine was made with.
    #[must_use]
    pub const fn lane(number: u32) -> Lane {
        Lane(number)
    }

    /// The time of the event that was handled last.
    #[inline]
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// How many events have been handled.
    #[must_use]
    pub const fn handled(&self) -> u64 {
        self.handled
    }

    /// Schedules an event; one in the past happens now.
    #[inline]
    pub fn schedule(&mut self, at: Instant, event: E) {
        let entry = self.entry(at, NO_LANE, event);
        self.heap.push(Reverse(entry));
    }

    /// Schedules an event in a lane.
    #[inline]
    pub fn schedule_in(&mut self, lane: Lane, at: Instant, event: E) {
        let entry = self.entry(at, lane.0, event);
        let Some(queue) = self.lanes.get_mut(lane.0 as usize) else {
            self.heap.push(Reverse(Entry { lane: NO_LANE, ..entry }));
            return;
        };
        match queue.back() {
            Some(last) if last.at > entry.at => {
                self.heap.push(Reverse(Entry { lane: NO_LANE, ..entry }));
            }
            Some(_) => queue.push_back(entry),
            None => {
                queue.push_back(entry);
                self.heap.push(Reverse(entry));
            }
        }
    }

    /// The next event; `None` when nothing is left to happen.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let Reverse(entry) = self.heap.pop()?;
        if entry.lane != NO_LANE {
            let queue = &mut self.lanes[entry.lane as usize];
            queue.pop_front();
            if let Some(first) = queue.front() {
                self.heap.push(Reverse(*first));
            }
        }
        self.now = entry.at;
        self.handled += 1;
        Some((entry.at, entry.event))
    }

    #[inline]
    fn entry(&mut self, at: Instant, lane: u32, event: E) -> Entry<E> {
        self.sequence += 1;
        Entry { at: at.max(self.now), sequence: self.sequence, lane, event }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_by_time_then_by_scheduling_whatever_lane_they_are_in(
            events in prop::collection::vec((0u64..100, 0u32..4), 1..300),
        ) {
            let mut engine = Engine::new(3);
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

    #[test]
    fn an_event_in_the_past_happens_now() {
        let mut engine = Engine::new(0);
        engine.schedule(Instant::from_nanos(10), "first");
        assert!(engine.pop().is_some());
        engine.schedule(Instant::from_nanos(3), "late");
        assert_eq!(engine.pop(), Some((Instant::from_nanos(10), "late")));
    }
}
