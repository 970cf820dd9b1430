//! Expensive work that waits for its turn, with a budget and a share for each source.
//!
//! Some datagrams cost a thousand times what others cost: a ClientHello that is answered with a
//! certificate needs a signature. Such work does not run where it arrives. It waits here, and the
//! driver of an endpoint takes it out one piece at a time, between other work. The source that has used
//! least of its budget is the next, and none has more than its budget, however much it asks for.

use crate::peer::{is_fair, sharing_prefix};
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::net::IpAddr;

/// The limits of [`Turns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Pieces of work that a source may have done in a second.
    pub per_second: u32,
    /// Pieces that a source which asked for none may have done at once.
    pub at_once: u32,
    /// Pieces that wait; a source has at most as many places as are free to others.
    pub waiting: usize,
    /// Sources whose budget is remembered. At the limit, the one that used least of its budget is
    /// forgotten, which is to its advantage.
    pub sources: usize,
}

impl TurnLimits {
    /// The time in which a source earns one piece.
    fn interval(&self) -> Duration {
        Duration::from_secs(1) / self.per_second.max(1)
    }

    /// How far ahead of the clock a source may be.
    fn ahead(&self) -> Duration {
        self.interval() * self.at_once.saturating_sub(1)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Turns<T> {
    limits: TurnLimits,
    /// Only sources that have work waiting, or have used more of their budget than they have earned since.
    sources: BTreeMap<IpAddr, SourceWork<T>>,
    /// Those with work, by the time up to which they have used their budget.
    ready: BTreeSet<(Instant, IpAddr)>,
    /// Those without, in the same order.
    idle: BTreeSet<(Instant, IpAddr)>,
    waiting: usize,
}

#[derive(Debug)]
struct SourceWork<T> {
    /// The time up to which the budget is used: each piece moves it on by an interval, and it is never before
    /// the time of the last piece.
    used: Instant,
    work: VecDeque<T>,
}

impl<T> Turns<T> {
    /// Nothing waits.
    #[must_use]
    pub const fn new(limits: TurnLimits) -> Self {
        Self {
            limits,
            sources: BTreeMap::new(),
            ready: BTreeSet::new(),
            idle: BTreeSet::new(),
            waiting: 0,
        }
    }

    /// The pieces that wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.waiting
    }

    /// Whether nothing waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether a source has room for one piece of work more.
    #[must_use]
    pub fn has_room(&self, from: IpAddr) -> bool {
        let own = self.sources.get(&sharing_prefix(from)).map_or(0, |source| source.work.len());
        is_fair(own, 1, self.limits.waiting.saturating_sub(self.waiting))
    }

    /// Adds a piece of work of a source.
    ///
    /// # Errors
    ///
    /// Returns the work if the source has its share of the places, or there is none left.
    pub fn push(&mut self, now: Instant, from: IpAddr, work: T) -> Result<(), T> {
        if !self.has_room(from) {
            return Err(work);
        }
        let from = sharing_prefix(from);
        if !self.sources.contains_key(&from) {
            self.forget(now);
            self.sources.insert(from, SourceWork { used: now, work: VecDeque::new() });
        }
        if let Some(source) = self.sources.get_mut(&from) {
            if source.work.is_empty() {
                self.idle.remove(&(source.used, from));
                self.ready.insert((source.used, from));
            }
            source.work.push_back(work);
            self.waiting += 1;
        }
        Ok(())
    }

    /// Whether some work that waits fulfils a condition, of this source.
    pub fn any_of(&self, from: IpAddr, is: impl FnMut(&T) -> bool) -> bool {
        self.sources.get(&sharing_prefix(from)).is_some_and(|source| source.work.iter().any(is))
    }

    /// When [`Self::pop`] returns the next piece; `None` if nothing waits.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let (used, _) = self.ready.first()?;
        let nanos = self.limits.ahead().as_nanos();
        Some(Instant::from_nanos(
            used.as_nanos().saturating_sub(u64::try_from(nanos).unwrap_or(u64::MAX)),
        ))
    }

    /// The next piece of the source that has used least of its budget, if it has any left.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        let (used, from) = *self.ready.first()?;
        if used > now + self.limits.ahead() {
            return None;
        }
        self.ready.pop_first();
        let source = self.sources.get_mut(&from)?;
        let work = source.work.pop_front()?;
        self.waiting -= 1;
        source.used = source.used.max(now) + self.limits.interval();
        let order = if source.work.is_empty() {
            source.work = VecDeque::new();
            &mut self.idle
        } else {
            &mut self.ready
        };
        order.insert((source.used, from));
        Some(work)
    }

    /// Uses a piece of a source's budget for work that does not wait. Returns false if it has none left.
    pub fn spend(&mut self, now: Instant, from: IpAddr) -> bool {
        let from = sharing_prefix(from);
        if !self.sources.contains_key(&from) {
            self.forget(now);
            self.sources.insert(from, SourceWork { used: now, work: VecDeque::new() });
        }
        let Some(source) = self.sources.get_mut(&from) else { return false };
        let may = source.used <= now + self.limits.ahead();
        let order = if source.work.is_empty() { &mut self.idle } else { &mut self.ready };
        order.remove(&(source.used, from));
        if may {
            source.used = source.used.max(now) + self.limits.interval();
        }
        order.insert((source.used, from));
        may
    }

    /// Forgets the sources that have their whole budget again, and one more if there are too many.
    fn forget(&mut self, now: Instant) {
        while let Some((used, from)) = self.idle.first().copied() {
            if used > now && self.sources.len() < self.limits.sources.max(1) {
                break;
            }
            self.idle.pop_first();
            self.sources.remove(&from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TurnLimits = TurnLimits { per_second: 10, at_once: 5, waiting: 100, sources: 50 };

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(1000) + Duration::from_millis(millis)
    }

    fn host(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    /// Takes out what may be done until `end`, a millisecond at a time, and counts it by source.
    fn done(
        turns: &mut Turns<u8>,
        end: u64,
        mut push: impl FnMut(u64, &mut Turns<u8>),
    ) -> [u32; 4] {
        let mut count = [0; 4];
        for millis in 0..end {
            push(millis, turns);
            while let Some(n) = turns.pop(at(millis)) {
                count[usize::from(n)] += 1;
            }
        }
        count
    }

    #[test]
    fn a_source_gets_its_budget_and_no_more_however_much_it_asks_for() {
        let mut turns = Turns::new(LIMITS);
        let count = done(&mut turns, 1000, |millis, turns| {
            for _ in 0..4 {
                let _ = turns.push(at(millis), host(0), 0);
            }
        });
        assert_eq!(count[0], 5 + 9);
        assert_eq!(turns.len(), 50, "half of the places");
    }

    #[test]
    fn work_that_does_not_wait_has_the_same_budget() {
        let mut turns: Turns<u8> = Turns::new(LIMITS);
        let spent = |turns: &mut Turns<u8>, millis, n| {
            (0..20).filter(|_| turns.spend(at(millis), host(n))).count()
        };
        assert_eq!(spent(&mut turns, 0, 0), 5, "at once");
        assert_eq!(spent(&mut turns, 299, 0), 2, "one more each 100 ms");
        assert_eq!(spent(&mut turns, 300, 0), 1);
        assert_eq!(spent(&mut turns, 300, 1), 5, "another source has its own");
        // What waits shares the budget.
        assert_eq!(turns.push(at(300), host(1), 1), Ok(()));
        assert_eq!((turns.pop(at(399)), turns.pop(at(400))), (None, Some(1)));
        assert_eq!(spent(&mut turns, 10_000, 0), 5, "a source that rests has all of it again");
    }

    #[test]
    fn a_newcomer_is_next_and_has_a_place_beside_a_flood() {
        let mut turns = Turns::new(TurnLimits { at_once: 1000, ..LIMITS });
        while turns.push(at(0), host(0), 0).is_ok() {}
        for _ in 0..10 {
            assert_eq!(turns.pop(at(0)), Some(0));
        }
        assert_eq!(turns.push(at(0), host(1), 1), Ok(()));
        assert_eq!(turns.pop(at(0)), Some(1));
    }

    #[test]
    fn nothing_is_due_before_the_budget_allows_it() {
        let mut turns = Turns::new(LIMITS);
        assert_eq!(turns.due(), None);
        for n in 0..7 {
            assert_eq!(turns.push(at(0), host(0), n), Ok(()));
        }
        let mut last = at(0);
        for n in 0..7 {
            let due = turns.due().unwrap().max(last);
            assert_eq!(turns.pop(due), Some(n));
            last = due;
        }
        assert_eq!(last, at(200), "five at once, and one more each 100 ms");
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_share_one_budget() {
        let mut turns = Turns::new(LIMITS);
        for n in 0..20_u16 {
            let from = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n]);
            assert_eq!(turns.push(at(0), from, 0), Ok(()));
        }
        let mut count = 0;
        while turns.pop(at(0)).is_some() {
            count += 1;
        }
        assert_eq!(count, 5);
    }

    #[test]
    fn very_many_sources_take_no_more_memory_than_the_limit() {
        let mut turns = Turns::new(LIMITS);
        for n in 0..10_000_u32 {
            let _ = turns.spend(at(0), IpAddr::from((0x0b00_0000 + n).to_be_bytes()));
            let _ = turns.push(at(0), IpAddr::from((0x0a00_0000 + n).to_be_bytes()), ());
            assert_eq!(turns.pop(at(0)), Some(()));
        }
        assert!(turns.sources.len() <= LIMITS.sources, "{}", turns.sources.len());
        assert_eq!(turns.idle.len(), turns.sources.len());
    }
}
