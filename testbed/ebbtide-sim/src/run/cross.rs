//! UDP traffic of others on single links.

use super::event::NetEvent;
use super::topology::{BOTTLENECK, DirectedLink};
use crate::engine::Engine;
use crate::net::Fate;
use crate::random::{Streams, exponential};
use crate::record::CrossRecord;
use crate::scenario::{Cross, Scenario};
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;

/// The sources of such traffic.
#[derive(Default)]
pub(super) struct Sources {
    all: Vec<CrossSource>,
    /// Whether the clients are done.
    pub(super) is_over: bool,
}

/// A packet of such traffic.
pub(super) struct CrossPacket<'s> {
    /// The link that it goes onto.
    pub(super) side: DirectedLink,
    pub(super) payload: &'s [u8],
}

struct CrossSource {
    settings: Cross,
    link: u16,
    /// Since when it sends without a pause, and how many packets it has sent since.
    since: u64,
    packets: u64,
    /// When the next pause begins.
    until: u64,
    rng: ChaCha8Rng,
    /// The payload of a packet.
    payload: Vec<u8>,
    record: CrossRecord,
}

impl Sources {
    /// The sources of a scenario, whose first events are scheduled.
    pub(super) fn new(
        scenario: &Scenario,
        streams: &Streams,
        engine: &mut Engine<NetEvent>,
    ) -> Self {
        let source = |(index, cross): (usize, &Cross)| {
            let links = scenario.link.iter();
            let place = links.map(|link| &link.name).position(|name| *name == cross.link);
            let start = cross.start.0;
            engine.schedule(Instant::from_nanos(start), NetEvent::Cross(index as u16));
            CrossSource {
                // At most 1000 links and as many sources.
                link: place.map_or(BOTTLENECK, |place| place as u16 + 1),
                since: start,
                packets: 0,
                until: start,
                rng: streams.stream(&format!("cross/{}", cross.name)),
                payload: vec![0; (cross.packet - scenario.network.header) as usize],
                record: CrossRecord {
                    name: cross.name.clone(),
                    is_at_bottleneck: place.is_none(),
                    ..CrossRecord::default()
                },
                settings: cross.clone(),
            }
        };
        Self { all: scenario.cross.iter().enumerate().map(source).collect(), is_over: false }
    }

    /// The measurements of each source.
    pub(super) fn records(&self) -> Vec<CrossRecord> {
        self.all.iter().map(|source| source.record.clone()).collect()
    }

    /// A source is due: schedules its next turn, and returns the packet that leaves now, if one does.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        index: u16,
        engine: &mut Engine<NetEvent>,
    ) -> Option<CrossPacket<'_>> {
        if self.is_over {
            return None;
        }
        let source = self.all.get_mut(usize::from(index))?;
        let (sends, next) = source.turn(now.as_nanos());
        if let Some(next) = next {
            engine.schedule(Instant::from_nanos(next), NetEvent::Cross(index));
        }
        sends.then(|| {
            source.record.sent += 1;
            source.record.bytes += u64::from(source.settings.packet);
            let side = DirectedLink { link: source.link, direction: source.settings.direction };
            CrossPacket { side, payload: &source.payload }
        })
    }

    /// A packet of a source has this fate.
    pub(super) fn decided(&mut self, index: usize, fate: Fate) {
        let Some(source) = self.all.get_mut(index) else { return };
        let record = &mut source.record;
        match fate {
            Fate::Delivered { .. } => record.delivered += 1,
            Fate::Dropped => record.dropped_queue += 1,
            Fate::Lost { .. } => record.lost_link += 1,
        }
    }
}

impl CrossSource {
    /// Whether a packet leaves now, and when the source is due again.
    fn turn(&mut self, now: u64) -> (bool, Option<u64>) {
        let (on, off) = (self.settings.on.0, self.settings.off.0);
        if self.settings.stop.0 > 0 && now >= self.settings.stop.0 {
            return (false, None);
        }
        if on > 0 && now >= self.until {
            // It begins with a pause, and one follows each time for which it sends.
            let resume = now.saturating_add(exponential(&mut self.rng, off));
            self.until = resume.saturating_add(exponential(&mut self.rng, on).max(1));
            (self.since, self.packets) = (resume, 0);
            return (false, Some(resume));
        }
        self.packets += 1;
        let bits = u128::from(self.packets) * u128::from(self.settings.packet) * 8;
        let after = bits * 1_000_000_000 / u128::from(self.settings.rate.0.max(1));
        let next = self.since.saturating_add(u64::try_from(after).unwrap_or(u64::MAX));
        (true, Some(next))
    }
}
