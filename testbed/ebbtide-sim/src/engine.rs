//! The event engine: a queue of events in the order of time. Events at the same time fire in the
//! order of scheduling.

mod wheel;

use crate::growth::{push_back, room};
use ebbtide_core::time::Instant;
use std::cmp::Reverse;
use std::collections::VecDeque;
use wheel::Wheel;

#[derive(Copy, Clone, Debug)]
struct ScheduledEvent<E> {
    at: Instant,
    sequence: u64,
    event: E,
}

impl<E> ScheduledEvent<E> {
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

impl Lane {
    /// The lane of the events that were scheduled without one and whose time is near. An event that is
    /// scheduled in it is scheduled without a lane.
    pub const NEAR: Self = Self(u32::MAX);

    /// Its number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug)]
struct LaneQueue<E> {
    /// The key of the first event; [`NEVER`] if there is none.
    first: u128,
    queue: VecDeque<ScheduledEvent<E>>,
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
/// Events that are not in a lane wait in a *wheel* until their time is near. Those of about the same time
/// are then sorted into a lane of their own, the *near* one; only events that are scheduled for a time that
/// is near already go into the heap. The timers of a hundred thousand clients then cost little more each
/// than those of a hundred: most of them are written once and read once, side by side with others.
#[derive(Debug)]
pub struct Engine<E> {
    heap: Heap<E>,
    wheel: Wheel<E>,
    lanes: Vec<LaneQueue<E>>,
    /// [`Lane::NEAR`], the first event last: a `Vec` is a shorter path to it than a `VecDeque`.
    near: Vec<ScheduledEvent<E>>,
    sequence: u64,
    now: Instant,
    handled: u64,
}

impl<E: Copy> Engine<E> {
    /// Creates an engine at time zero with `lanes` lanes.
    pub fn new(lanes: u32) -> Self {
        let lane = |_| LaneQueue { first: NEVER, queue: VecDeque::new() };
        Self {
            heap: Heap { entries: Vec::new(), is_vacant: false },
            wheel: Wheel::new(),
            lanes: (0..lanes).map(lane).collect(),
            near: Vec::new(),
            sequence: 0,
            now: Instant::ZERO,
            handled: 0,
        }
    }

    /// The lane with this number, which must be below the number of lanes of the engine.
    pub const fn lane(number: u32) -> Lane {
        Lane(number)
    }

    /// The events of a lane, in their order.
    pub fn coming(&self, lane: Lane) -> impl Iterator<Item = E> {
        let near = if lane == Lane::NEAR { self.near.as_slice() } else { &[] };
        let lane = self.lanes.get(lane.0 as usize);
        let queue = lane.into_iter().flat_map(|lane| &lane.queue);
        queue.chain(near.iter().rev()).map(|entry| entry.event)
    }

    /// The time of the event that was returned last.
    #[inline]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The number of events that have been returned.
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
    fn hold(&mut self, entry: ScheduledEvent<E>) {
        if self.wheel.takes(entry.at) {
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
        let mut least = self.heap.first().min(lanes).min(self.first_near());
        if self.wheel.may_precede(least) {
            least = self.turn(least).min(least);
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
        let is_near =
            self.first_near() < least || self.wheel.may_precede(least) && self.turn(least) < least;
        let entry = if is_near {
            self.near.pop()?
        } else if let Some(lane) = from.and_then(|index| self.lanes.get_mut(index)) {
            let entry = lane.queue.pop_front()?;
            lane.first = lane.queue.front().map_or(NEVER, ScheduledEvent::key);
            entry
        } else {
            self.heap.pop()?
        };
        self.now = entry.at;
        self.handled += 1;
        Some((entry.at, entry.event))
    }

    /// The key of the first near event; [`NEVER`] if there is none.
    #[inline]
    fn first_near(&self) -> u128 {
        self.near.last().map_or(NEVER, ScheduledEvent::key)
    }

    /// Turns the wheel until every event in it comes after `key`, which is that of the first event
    /// elsewhere, or after the near ones, of which there were none. The key of the first of these.
    #[inline(never)]
    fn turn(&mut self, key: u128) -> u128 {
        self.wheel.turn(&mut self.near, key);
        // The same as the heap does: memory of many events that are gone is given back.
        self.heap.shrink();
        if self.near.capacity() > 4096 + 4 * self.near.len() {
            self.near.shrink_to(2 * self.near.len());
        }
        self.near.sort_unstable_by_key(|entry| Reverse(entry.key()));
        self.first_near()
    }

    #[inline]
    fn entry(&mut self, at: Instant, event: E) -> ScheduledEvent<E> {
        self.sequence += 1;
        ScheduledEvent { at: at.max(self.now), sequence: self.sequence, event }
    }
}

/// Children of a node: four need half as many levels as two.
const ARITY: usize = 4;

/// A heap whose first place stays vacant after a removal. A timer that fires is usually armed
/// again; the new entry then sinks from the first place, at the cost of one of the two operations.
#[derive(Debug)]
struct Heap<E> {
    entries: Vec<ScheduledEvent<E>>,
    is_vacant: bool,
}

impl<E: Copy> Heap<E> {
    /// The key of the first entry; [`NEVER`] if there is none.
    #[inline]
    fn first(&mut self) -> u128 {
        if self.is_vacant {
            self.close_vacancy();
        }
        self.entries.first().map_or(NEVER, ScheduledEvent::key)
    }

    /// Removes the first entry.
    #[inline]
    fn pop(&mut self) -> Option<ScheduledEvent<E>> {
        if self.is_vacant {
            self.close_vacancy();
        }
        let first = *self.entries.first()?;
        self.is_vacant = true;
        Some(first)
    }

    fn push(&mut self, entry: ScheduledEvent<E>) {
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
    fn sink(&mut self, entry: ScheduledEvent<E>) {
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
            steps in prop::collection::vec((0u64..50, 0u32..7), 1..400),
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
                    4 => {
                        let first = model.iter().map(|(at, _)| *at).min();
                        prop_assert_eq!(engine.next_at().map(Instant::as_nanos), first);
                        continue;
                    }
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
    fn the_events_of_a_lane_can_be_seen_before_they_come() {
        let mut engine = Engine::new(1);
        let (lane, near) = (Engine::<u32>::lane(0), Lane::NEAR);
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        for (ms, event) in [(10, 1), (30, 3), (20, 2)] {
            engine.schedule_in(lane, at(ms), event);
        }
        for (ms, event) in [(1001, 5), (1002, 6), (1000, 4)] {
            engine.schedule(at(ms), event);
        }
        let seen = |engine: &Engine<u32>, lane| engine.coming(lane).collect::<Vec<_>>();
        assert_eq!(seen(&engine, lane), [1, 2, 3]);
        assert_eq!(engine.pop(), Some((at(10), 1)));
        assert_eq!(seen(&engine, lane), [2, 3]);
        assert!(seen(&engine, near).is_empty(), "their time is not near");
        assert_eq!([(); 3].map(|()| engine.pop().map(|(_, event)| event)), [2, 3, 4].map(Some));
        assert_eq!(seen(&engine, near), [5, 6]);
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
