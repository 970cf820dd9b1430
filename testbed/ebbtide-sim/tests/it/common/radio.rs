//! Stations of IEEE 802.15.4 that always have something to send.

use ebbtide_core::time::{Duration, Instant};
use ebbtide_sim::engine::Engine;
use ebbtide_sim::medium::low_power::{Csma, DutyCycle, LowPowerEvent, Mac};
use ebbtide_sim::medium::{Air, AirPath, FrameCounts, Indication, MacFrame};
use ebbtide_sim::random::Streams;

/// What happens next.
#[derive(Copy, Clone)]
enum What {
    Mac(LowPowerEvent),
    /// A paced station has a new frame.
    Due(u32),
}

impl From<LowPowerEvent> for What {
    fn from(event: LowPowerEvent) -> Self {
        Self::Mac(event)
    }
}

/// Stations on a line, 10 m apart or all at one place, and the frames that arrived at each.
pub(crate) struct Radio {
    mac: Mac,
    engine: Engine<What>,
    pub(crate) stations: u32,
    /// Frames that arrived at each station.
    pub(crate) arrived: Vec<u64>,
    /// Where a station sends to, once it has something.
    route: Vec<Option<u32>>,
    /// Frames that wait at each station; `None` is without end.
    waiting: Vec<Option<u64>>,
    bytes: u32,
    /// The time between the frames of station 0, if it is paced.
    pub(crate) pace: Option<u64>,
    /// Whether frames are acknowledged.
    pub(crate) confirmed: bool,
}

impl Radio {
    /// Stations at these places (m) on a line, which hear each other up to `range`.
    pub(crate) fn new(
        places: &[f64],
        range: f64,
        capture: Option<f64>,
        duty: Option<DutyCycle>,
    ) -> Self {
        let count = places.len();
        let mut paths = Vec::new();
        for from in places {
            paths.extend(places.iter().map(|to| {
                let distance = (from - to).abs();
                AirPath { audible: distance <= range, distance_squared: distance * distance }
            }));
        }
        let fading = (0..count * count).map(|_| None).collect();
        let air = Air::new(count, paths, fading, capture);
        let stations = count as u32;
        let mac = Mac::new(air, stations, Csma::default(), duty, &Streams::new(7, 0));
        Self {
            mac,
            engine: Engine::new(0),
            stations,
            arrived: vec![0; count],
            route: vec![None; count],
            waiting: vec![Some(0); count],
            bytes: 127,
            pace: None,
            confirmed: true,
        }
    }

    /// A way for the frames of a station; with `saturated` it has frames without end.
    pub(crate) fn route(&mut self, from: u32, to: u32, saturated: bool) {
        self.route[from as usize] = Some(to);
        self.waiting[from as usize] = if saturated { None } else { Some(0) };
    }

    /// Lets `seconds` pass with frames of `bytes`.
    pub(crate) fn run(&mut self, seconds: u64, bytes: u32) {
        self.bytes = bytes;
        let end = Instant::from_nanos(seconds * 1_000_000_000);
        for station in 0..self.stations {
            self.offer(Instant::ZERO, station);
        }
        if self.pace.is_some() {
            self.due(Instant::ZERO, 0);
        }
        while let Some((now, event)) = self.engine.pop() {
            if now > end {
                break;
            }
            match event {
                What::Mac(event) => self.mac.handle(now, event, &mut self.engine),
                What::Due(station) => self.due(now, station),
            }
            while let Some(indication) = self.mac.poll() {
                match indication {
                    Indication::Arrived(frame) => {
                        let to = frame.to as usize;
                        self.arrived[to] += 1;
                        if self.route[to].is_some() {
                            self.one_more(now, frame.to);
                        }
                    }
                    Indication::Done(frame, _) => self.offer(now, frame.from),
                }
            }
        }
    }

    fn due(&mut self, now: Instant, station: u32) {
        let Some(pace) = self.pace else { return };
        self.one_more(now, station);
        self.engine.schedule(now + Duration::from_nanos(pace), What::Due(station));
    }

    fn one_more(&mut self, now: Instant, station: u32) {
        if let Some(waiting) = &mut self.waiting[station as usize] {
            // As large a queue as a mote has.
            *waiting = (*waiting + 1).min(8);
            self.offer(now, station);
        }
    }

    fn offer(&mut self, now: Instant, from: u32) {
        let Some(to) = self.route[from as usize] else { return };
        if !self.mac.is_idle(from) {
            return;
        }
        match &mut self.waiting[from as usize] {
            Some(0) => return,
            Some(waiting) => *waiting -= 1,
            None => {}
        }
        let frame = MacFrame {
            from,
            to,
            bytes: self.bytes,
            token: 0,
            more: false,
            confirmed: self.confirmed,
        };
        self.mac.send(now, frame, &mut self.engine);
    }

    /// The frames of a station by what became of them.
    pub(crate) fn counts(&self, station: u32) -> FrameCounts {
        self.mac.counts(station)
    }

    /// The frames of all stations.
    pub(crate) fn total(&self) -> FrameCounts {
        let mut total = FrameCounts::default();
        for station in 0..self.stations {
            total += self.counts(station);
        }
        total
    }

    pub(crate) fn mac(&self) -> &Mac {
        &self.mac
    }
}
