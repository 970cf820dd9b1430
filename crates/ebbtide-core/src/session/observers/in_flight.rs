//! Fair shares of the Confirmable notifications in flight: a source whose observers do not acknowledge waits for
//! itself, and not everyone for it.

use super::ObserverId;
use crate::peer::{Source, is_fair};
use alloc::collections::{BTreeMap, VecDeque};
use core::ops::Bound;

/// The shortest queue of waiting observers that is searched for removed ones.
pub(super) const MIN_SWEPT: usize = 64;

/// How far an observer is trusted. Each tier has a limit, against which those of less trust count as well.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// It has acknowledged a notification.
    Proven,
    /// Its address was verified when it registered.
    Verified,
    /// Its address may be forged.
    Unverified,
}

impl Tier {
    pub(super) const ALL: [Self; 3] = [Self::Proven, Self::Verified, Self::Unverified];

    /// The maximum number of Confirmable notifications in flight from one socket. A change with very many observers
    /// must neither take all exchanges nor overflow queues on the path. A client that registers the addresses of
    /// others must not delay real observers.
    const fn max(self) -> usize {
        match self {
            Self::Proven => 4096,
            Self::Verified => 1024,
            Self::Unverified => 512,
        }
    }

    /// The tiers against whose limits it counts.
    fn limiting(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |tier| *tier <= self)
    }
}

/// Numbers of notifications in flight.
#[derive(Copy, Clone, Debug, Default)]
struct Counts {
    all: usize,
    /// Of these, to observers that are not proven.
    unproven: usize,
    /// Of these, to addresses that may be forged.
    unverified: usize,
}

impl Counts {
    /// The number that counts against the limit of a tier.
    const fn of(self, tier: Tier) -> usize {
        match tier {
            Tier::Proven => self.all,
            Tier::Verified => self.unproven,
            Tier::Unverified => self.unverified,
        }
    }

    fn add(&mut self, tier: Tier) {
        self.all += 1;
        self.unproven += usize::from(tier != Tier::Proven);
        self.unverified += usize::from(tier == Tier::Unverified);
    }

    fn remove(&mut self, tier: Tier) {
        self.all -= 1;
        self.unproven -= usize::from(tier != Tier::Proven);
        self.unverified -= usize::from(tier == Tier::Unverified);
    }
}

/// The observers of one source and tier that wait for its share.
#[derive(Debug)]
struct Line {
    waiting: VecDeque<ObserverId>,
    head: Head,
}

/// The state of the first one in a line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Head {
    /// It waits until its source gives a place back. There is one in flight.
    Waits,
    /// There may be a place for it.
    Called,
    /// It has left the line, and has its turn soon.
    Left,
}

/// The notifications in flight by source, and the observers of sources that have their share.
#[derive(Debug, Default)]
pub(super) struct SharesInFlight {
    all: Counts,
    /// Sources with notifications in flight.
    own: BTreeMap<Source, Counts>,
    lines: BTreeMap<(Tier, Source), Line>,
    called: VecDeque<(Tier, Source)>,
    /// The line that was called last because another source gave a place back.
    last: Option<(Tier, Source)>,
}

impl SharesInFlight {
    /// Whether another notification to an observer of this tier may be in flight.
    pub(super) fn has_place(&self, tier: Tier) -> bool {
        tier.limiting().all(|tier| self.all.of(tier) < tier.max())
    }

    fn own(&self, source: Source, tier: Tier) -> usize {
        self.own.get(&source.sharing()).map_or(0, |own| own.of(tier))
    }

    /// Whether another one is within the share of its source.
    pub(super) fn is_fair(&self, source: Source, tier: Tier) -> bool {
        is_fair(self.own(source, tier), 1, tier.max().saturating_sub(self.all.of(tier)))
    }

    /// Whether others of the source wait, so that a newcomer takes no place before them.
    pub(super) fn has_line(&self, source: Source, tier: Tier) -> bool {
        self.lines.contains_key(&(tier, source.sharing()))
    }

    pub(super) fn add(&mut self, source: Source, tier: Tier) {
        self.all.add(tier);
        self.own.entry(source.sharing()).or_default().add(tier);
    }

    pub(super) fn remove(&mut self, source: Source, tier: Tier) {
        let source = source.sharing();
        self.all.remove(tier);
        if let Some(own) = self.own.get_mut(&source) {
            own.remove(tier);
            if own.all == 0 {
                self.own.remove(&source);
            }
        }
        if self.lines.is_empty() {
            return;
        }
        tier.limiting().for_each(|tier| self.call((tier, source)));
        // What is free to all has grown, so the shares of others have: one after the other finds out.
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.lines.range((after, Bound::Unbounded)).next();
        self.last = next.or_else(|| self.lines.first_key_value()).map(|(line, _)| *line);
        self.last.into_iter().for_each(|line| self.call(line));
    }

    /// There may be a place for the first one in a line.
    fn call(&mut self, name: (Tier, Source)) {
        if let Some(line) = self.lines.get_mut(&name)
            && line.head == Head::Waits
        {
            line.head = Head::Called;
            self.called.push_back(name);
        }
    }

    /// An observer waits until its source has its share. `is_there` is false of removed ones.
    pub(super) fn wait(
        &mut self,
        source: Source,
        tier: Tier,
        observer: ObserverId,
        is_there: impl Fn(ObserverId) -> bool,
    ) {
        push_swept(&mut self.line(source, tier).waiting, observer, is_there);
        self.call((tier, source.sharing()));
    }

    /// An observer that left the line of its source found no place.
    pub(super) fn wait_again(&mut self, source: Source, tier: Tier, observer: ObserverId) {
        let line = self.line(source, tier);
        line.waiting.push_front(observer);
        line.head = Head::Waits;
    }

    fn line(&mut self, source: Source, tier: Tier) -> &mut Line {
        let new = || Line { waiting: VecDeque::new(), head: Head::Waits };
        self.lines.entry((tier, source.sharing())).or_insert_with(new)
    }

    /// The observer that left this line has had its turn, or needs none any more: the next one may follow.
    pub(super) fn follow(&mut self, source: Source, tier: Tier) {
        let name = (tier, source.sharing());
        let Some(line) = self.lines.get_mut(&name) else { return };
        line.head = Head::Waits;
        if line.waiting.is_empty() {
            self.lines.remove(&name);
        } else {
            self.call(name);
        }
    }

    /// The observers that wait.
    pub(super) fn waiting(&self) -> usize {
        self.lines.values().map(|line| line.waiting.len()).sum()
    }

    /// Whether [`Self::pop`] may return an observer.
    pub(super) fn has_called(&self) -> bool {
        !self.called.is_empty()
    }

    /// The next observer that leaves its line, and the tier of the line.
    pub(super) fn pop(
        &mut self,
        is_there: impl Fn(ObserverId) -> bool,
    ) -> Option<(Tier, ObserverId)> {
        while let Some(name) = self.called.pop_front() {
            let (tier, source) = name;
            // If it has none in flight, nothing would call the line again: the observer waits for its turn instead.
            let may = self.own(source, tier) == 0 || self.is_fair(source, tier);
            let Some(line) = self.lines.get_mut(&name) else { continue };
            line.head = Head::Waits;
            if !may {
                continue;
            }
            let next =
                core::iter::from_fn(|| line.waiting.pop_front()).find(|next| is_there(*next));
            if let Some(next) = next {
                line.head = Head::Left;
                return Some((tier, next));
            }
            self.lines.remove(&name);
        }
        None
    }
}

/// Adds an observer to those that wait. Removed ones leave their identifiers behind, which are removed from time
/// to time.
pub(super) fn push_swept(
    waiting: &mut VecDeque<ObserverId>,
    observer: ObserverId,
    is_there: impl Fn(ObserverId) -> bool,
) {
    if waiting.len() >= MIN_SWEPT && waiting.len().is_power_of_two() {
        waiting.retain(|observer| is_there(*observer));
    }
    waiting.push_back(observer);
}
