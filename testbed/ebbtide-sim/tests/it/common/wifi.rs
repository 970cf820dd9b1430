//! Stations of IEEE 802.11b that always have something to send.

use ebbtide_core::time::Instant;
use ebbtide_sim::engine::Engine;
use ebbtide_sim::medium::wifi::{Dcf, Mac, WifiEvent};
use ebbtide_sim::medium::{Air, AirPath, FrameCounts, Indication, MacFrame};
use ebbtide_sim::random::Streams;

/// Stations on a line, and where each of them sends to.
pub(crate) struct Cell {
    mac: Mac,
    engine: Engine<WifiEvent>,
    dcf: Dcf,
    /// Frames that arrived at each station.
    pub(crate) arrived: Vec<u64>,
    /// Where a station sends to without end.
    routes: Vec<Option<u32>>,
    bytes: u32,
    /// Whether frames are acknowledged.
    pub(crate) confirmed: bool,
    /// When each frame arrived.
    pub(crate) arrivals: Vec<Instant>,
}

impl Cell {
    /// Stations at these places (m) on a line, which hear each other up to `range`.
    pub(crate) fn new(places: &[f64], range: f64, dcf: Dcf, seed: u64) -> Self {
        let count = places.len();
        let mut paths = Vec::new();
        for from in places {
            paths.extend(places.iter().map(|to| {
                let distance = (from - to).abs();
                AirPath { audible: distance <= range, distance_squared: distance * distance }
            }));
        }
        let fading = (0..count * count).map(|_| None).collect();
        let air = Air::new(count, paths, fading, None);
        Self {
            mac: Mac::new(air, count as u32, dcf, &Streams::new(seed, 0)),
            engine: Engine::new(0),
            dcf,
            arrived: vec![0; count],
            routes: vec![None; count],
            bytes: 0,
            confirmed: true,
            arrivals: Vec::new(),
        }
    }

    /// `senders` stations and one that all of them send to, at one place.
    pub(crate) fn saturated(senders: u32, dcf: Dcf, seed: u64) -> Self {
        let mut cell = Self::new(&vec![0.0; senders as usize + 1], 1.0, dcf, seed);
        (1..=senders).for_each(|station| cell.route(station, 0));
        cell
    }

    /// A station has frames without end for another.
    pub(crate) fn route(&mut self, from: u32, to: u32) {
        self.routes[from as usize] = Some(to);
    }

    /// Lets `seconds` pass with IP packets of `bytes`.
    pub(crate) fn run(&mut self, seconds: u64, bytes: u32) {
        self.bytes = self.dcf.frame_bytes(bytes);
        let end = Instant::from_nanos(seconds * 1_000_000_000);
        for station in 0..self.routes.len() as u32 {
            self.offer(Instant::ZERO, station);
        }
        while let Some((now, event)) = self.engine.pop() {
            if now > end {
                break;
            }
            self.mac.handle(now, event, &mut self.engine);
            while let Some(indication) = self.mac.poll() {
                match indication {
                    Indication::Arrived(frame) => {
                        self.arrived[frame.to as usize] += 1;
                        self.arrivals.push(now);
                    }
                    Indication::Done(frame, _) => self.offer(now, frame.from),
                }
            }
        }
    }

    fn offer(&mut self, now: Instant, from: u32) {
        let Some(to) = self.routes[from as usize] else { return };
        let confirmed = self.confirmed;
        let frame = MacFrame { from, to, bytes: self.bytes, token: 0, more: false, confirmed };
        self.mac.send(now, frame, &mut self.engine);
    }

    /// The frames of a station by what became of them.
    pub(crate) fn counts(&self, station: u32) -> FrameCounts {
        self.mac.counts(station)
    }

    /// The frames of all stations.
    pub(crate) fn total(&self) -> FrameCounts {
        let mut total = FrameCounts::default();
        for station in 0..self.routes.len() as u32 {
            total += self.counts(station);
        }
        total
    }
}
