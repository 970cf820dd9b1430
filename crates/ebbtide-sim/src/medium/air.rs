//! The air between nodes: who hears whom, and which transmissions spoil which.

use crate::net::Loss;
use crate::random::Probability;
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// How one node is heard by another.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Whether it is heard at all: a heard transmission makes the channel busy and spoils what
    /// the other receives meanwhile.
    pub audible: bool,
    /// The square of the distance, for capture.
    pub distance_squared: f64,
}

/// Loss of frames that nothing else spoils, on one path.
#[derive(Clone, Debug)]
pub struct Fading {
    /// The share of frames that can be received, by distance.
    pub reception: Probability,
    /// Draws it.
    pub rng: ChaCha8Rng,
    /// Loss on top, in bursts or not.
    pub bursts: Loss<ChaCha8Rng>,
}

/// The fate of a transmission at its receiver.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It was received.
    Received,
    /// Another transmission that the receiver hears overlapped it.
    Collided,
    /// It was too weak.
    Faded,
    /// The receiver was transmitting.
    Deaf,
    /// The receiver's radio was off.
    Asleep,
}

#[derive(Copy, Clone, Debug)]
struct Transmission {
    from: u32,
    to: u32,
    began: Instant,
    /// Why it cannot be received; the first cause counts.
    spoilt: Option<Reception>,
}

/// The transmissions under way among a number of nodes. A node transmits one at a time.
#[derive(Clone, Debug)]
pub struct Air {
    nodes: usize,
    /// From each node to each node, row by row.
    paths: Vec<Path>,
    /// Where frames are lost without a collision; `None` on paths that lose none.
    fading: Vec<Option<Box<Fading>>>,
    /// How many times as far as the sender an interferer must be to do no harm, squared. `None`:
    /// every interferer in hearing range does harm.
    capture: Option<f64>,
    on_air: Vec<Transmission>,
    /// Senders whose transmission ended lately, and when, for channel assessments that began before.
    ended: VecDeque<(u32, Instant)>,
}

impl Air {
    /// Silence. `paths` and `fading` have one entry per ordered pair of nodes, the sender's row
    /// first; `capture` is the ratio of distances from which on an interferer does no harm.
    #[must_use]
    pub fn new(
        nodes: usize,
        paths: Vec<Path>,
        fading: Vec<Option<Box<Fading>>>,
        capture: Option<f64>,
    ) -> Self {
        let capture = capture.map(|ratio| ratio * ratio);
        Self { nodes, paths, fading, capture, on_air: Vec::new(), ended: VecDeque::new() }
    }

    fn index(&self, from: u32, to: u32) -> usize {
        from as usize * self.nodes + to as usize
    }

    /// Whether `listener` hears transmissions of `from`.
    #[must_use]
    pub fn hears(&self, listener: u32, from: u32) -> bool {
        self.paths[self.index(from, listener)].audible
    }

    /// Whether a node transmits.
    #[must_use]
    pub fn transmits(&self, node: u32) -> bool {
        self.on_air.iter().any(|other| other.from == node)
    }

    /// Whether `node` has heard anything between `since` and `now`; what begins at `now` it has not.
    pub fn was_busy(&mut self, node: u32, since: Instant, now: Instant) -> bool {
        self.forget(since);
        let begun = self.on_air.iter().filter(|transmission| transmission.began < now);
        let under_way = begun.map(|transmission| transmission.from);
        let before = self.ended.iter().map(|(from, _)| *from);
        under_way.chain(before).any(|from| from != node && self.hears(node, from))
    }

    /// Forgets transmissions that ended by `at`. [`Self::was_busy`] is never called for an earlier instant.
    pub fn forget(&mut self, at: Instant) {
        while self.ended.front().is_some_and(|(_, ended)| *ended <= at) {
            self.ended.pop_front();
        }
    }

    /// `from` begins to transmit to `to`, whose radio is on or off. Whatever overlaps from now on
    /// spoils what it is heard by.
    pub fn begin(&mut self, now: Instant, (from, to): (u32, u32), is_awake: bool) {
        let mut spoilt = (!is_awake).then_some(Reception::Asleep);
        if self.transmits(to) {
            spoilt.get_or_insert(Reception::Deaf);
        }
        for index in 0..self.on_air.len() {
            let other = self.on_air[index];
            if self.harms(other.from, (from, to)) {
                spoilt.get_or_insert(Reception::Collided);
            }
            let cause = if other.to == from {
                Some(Reception::Deaf)
            } else {
                self.harms(from, (other.from, other.to)).then_some(Reception::Collided)
            };
            if let Some(cause) = cause {
                self.on_air[index].spoilt.get_or_insert(cause);
            }
        }
        self.on_air.push(Transmission { from, to, began: now, spoilt });
    }

    /// The transmission of `from` ends: what became of it.
    pub fn end(&mut self, now: Instant, from: u32) -> Reception {
        let Some(index) = self.on_air.iter().position(|other| other.from == from) else {
            return Reception::Faded;
        };
        let Transmission { to, spoilt, .. } = self.on_air.swap_remove(index);
        self.ended.push_back((from, now));
        let place = self.index(from, to);
        // Drawn whether or not it is spoilt, so that what is lost to fading does not depend on who
        // else transmits.
        let fades = match &mut self.fading[place] {
            None => !self.paths[place].audible,
            Some(fading) => {
                let weak = !fading.reception.draw(&mut fading.rng);
                fading.bursts.loses(now) || weak
            }
        };
        match spoilt {
            Some(cause) => cause,
            None if fades => Reception::Faded,
            None => Reception::Received,
        }
    }

    /// Whether a transmission of `interferer` makes one from `from` to `to` unreadable.
    fn harms(&self, interferer: u32, (from, to): (u32, u32)) -> bool {
        let path = self.paths[self.index(interferer, to)];
        path.audible
            && interferer != to
            && self.capture.is_none_or(|ratio| {
                let own = self.paths[self.index(from, to)].distance_squared;
                path.distance_squared < ratio * own
            })
    }
}
