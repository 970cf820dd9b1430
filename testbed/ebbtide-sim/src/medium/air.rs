//! The air between nodes: which nodes hear each other, and which transmissions interfere.

use crate::net::Loss;
use crate::random::Probability;
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// The reception of one node's transmissions at another node.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct AirPath {
    /// Whether it is heard at all: an audible transmission makes the channel busy and interferes
    /// with what the other node receives at the same time.
    pub audible: bool,
    /// The square of the distance, for capture.
    pub distance_squared: f64,
}

/// The loss of frames without interference, on one path.
#[derive(Clone, Debug)]
pub struct Fading {
    /// The share of frames that can be received at this distance.
    pub reception: Probability,
    /// The generator of its draws.
    pub rng: ChaCha8Rng,
    /// Additional loss, in bursts or not.
    pub bursts: Loss<ChaCha8Rng>,
}

/// The fate of a transmission at its receiver.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It was received.
    Received,
    /// Another transmission that the receiver hears overlapped with it.
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
    /// The reason why it cannot be received; the first cause counts.
    spoilt: Option<Reception>,
}

/// The transmissions under way among a number of nodes. A node sends one frame at a time.
#[derive(Clone, Debug)]
pub struct Air {
    nodes: usize,
    /// The path from each node to each node, row by row.
    paths: Vec<AirPath>,
    /// The fading of each path; `None` on paths that lose no frames without a collision.
    fading: Vec<Option<Box<Fading>>>,
    /// The square of the ratio of distances, interferer to sender, from which on an interferer is
    /// harmless. `None`: every interferer in hearing range is harmful.
    capture: Option<f64>,
    on_air: Vec<Transmission>,
    /// Recently ended transmissions with their senders and times, for channel assessments that
    /// began before they ended.
    ended: VecDeque<(u32, Instant)>,
}

impl Air {
    /// Creates the air without transmissions. `paths` and `fading` have one entry for each ordered
    /// pair of nodes, with the sender as the row; `capture` is the ratio of distances from which
    /// on an interferer is harmless.
    pub fn new(
        nodes: usize,
        paths: Vec<AirPath>,
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
    pub fn hears(&self, listener: u32, from: u32) -> bool {
        self.paths[self.index(from, listener)].audible
    }

    /// Whether a node is transmitting.
    pub fn transmits(&self, node: u32) -> bool {
        self.on_air.iter().any(|other| other.from == node)
    }

    /// Whether `node` has heard anything between `since` and `now`; a transmission that begins at
    /// `now` does not count.
    pub fn was_busy(&mut self, node: u32, since: Instant, now: Instant) -> bool {
        self.forget(since);
        let begun = self.on_air.iter().filter(|transmission| transmission.began < now);
        let under_way = begun.map(|transmission| transmission.from);
        let before = self.ended.iter().map(|(from, _)| *from);
        under_way.chain(before).any(|from| from != node && self.hears(node, from))
    }

    /// Forgets transmissions that ended by `at`. [`Self::was_busy`] must not be called for an
    /// earlier instant afterwards.
    pub fn forget(&mut self, at: Instant) {
        while self.ended.front().is_some_and(|(_, ended)| *ended <= at) {
            self.ended.pop_front();
        }
    }

    /// `from` begins to transmit to `to`, whose radio is on or off. Overlapping transmissions
    /// interfere from now on.
    pub fn begin(&mut self, now: Instant, from: u32, to: u32, is_awake: bool) {
        let mut spoilt = (!is_awake).then_some(Reception::Asleep);
        if self.transmits(to) {
            spoilt.get_or_insert(Reception::Deaf);
        }
        for index in 0..self.on_air.len() {
            let other = self.on_air[index];
            if self.harms(other.from, from, to) {
                spoilt.get_or_insert(Reception::Collided);
            }
            let cause = if other.to == from {
                Some(Reception::Deaf)
            } else {
                self.harms(from, other.from, other.to).then_some(Reception::Collided)
            };
            if let Some(cause) = cause {
                self.on_air[index].spoilt.get_or_insert(cause);
            }
        }
        self.on_air.push(Transmission { from, to, began: now, spoilt });
    }

    /// Ends the transmission of `from` and returns its fate.
    pub fn end(&mut self, now: Instant, from: u32) -> Reception {
        let Some(index) = self.on_air.iter().position(|other| other.from == from) else {
            return Reception::Faded;
        };
        let Transmission { to, spoilt, .. } = self.on_air.swap_remove(index);
        self.ended.push_back((from, now));
        let place = self.index(from, to);
        // Drawn whether or not there is interference, so that loss by fading does not depend on
        // the other transmissions.
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
    fn harms(&self, interferer: u32, from: u32, to: u32) -> bool {
        let path = self.paths[self.index(interferer, to)];
        path.audible
            && interferer != to
            && self.capture.is_none_or(|ratio| {
                let own = self.paths[self.index(from, to)].distance_squared;
                path.distance_squared < ratio * own
            })
    }
}
