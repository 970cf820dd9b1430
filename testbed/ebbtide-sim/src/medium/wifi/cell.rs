//! A Wi-Fi cell between the clients and the bottleneck: an access point, a station per client, and
//! the packets that wait for the channel.

use super::mac::{Mac, WifiEvent, WifiTimers};
use super::record::{StationRecord, WifiRecord};
use super::settings::Wifi;
use crate::medium::{Air, AirPath, Crossing, Fading, Indication, MacFrame};
use crate::net::{Direction, Loss, LossModel};
use crate::random::{Probability, Streams};
use ebbtide_core::time::Instant;
use std::collections::VecDeque;

/// The access point's number; client `n` is station `n + 1`.
const ACCESS_POINT: u32 = 0;

/// The cell.
pub(crate) struct WifiCell {
    mac: Mac,
    stations: Vec<CellStation>,
    settings: Wifi,
}

#[derive(Debug, Default)]
struct CellStation {
    /// Packets that wait: whom each is for, its place in the pool, its length.
    queue: VecDeque<(u32, u32, u32)>,
    /// Whether the one in the MAC's hand has arrived.
    has_arrived: bool,
    overflows: u64,
    peak: usize,
}

impl WifiCell {
    pub(crate) fn new(settings: &Wifi, clients: u32, streams: &Streams) -> Self {
        let stations = clients + 1;
        let place = |station: u32| match station {
            ACCESS_POINT => 0.0,
            odd if odd % 2 == 1 => settings.distance,
            _ => -settings.distance,
        };
        let pairs = || (0..stations).flat_map(|from| (0..stations).map(move |to| (from, to)));
        let path = |(from, to)| {
            let distance: f64 = place(from) - place(to);
            AirPath {
                audible: distance.abs() <= settings.range,
                distance_squared: distance * distance,
            }
        };
        let fading = |(from, to)| {
            let audible = path((from, to)).audible;
            (settings.frame_loss > 0.0 && audible).then(|| {
                let stream = |what| streams.stream(&format!("wifi/{from}/{to}/{what}"));
                Box::new(Fading {
                    reception: Probability::new(1.0 - settings.frame_loss),
                    rng: stream("fading"),
                    bursts: Loss::new(LossModel::None, stream("bursts"), stream("states")),
                })
            })
        };
        let paths = pairs().map(path).collect();
        let fading = pairs().map(fading).collect();
        let air = Air::new(stations as usize, paths, fading, None);
        Self {
            mac: Mac::new(air, stations, settings.dcf, streams),
            stations: (0..stations).map(|_| CellStation::default()).collect(),
            settings: settings.clone(),
        }
    }

    /// A packet of `bytes` at `place` is to go from a client to the access point or back. Whether
    /// there was room for it.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        client: u32,
        direction: Direction,
        place: u32,
        bytes: u32,
        timers: &mut WifiTimers,
    ) -> bool {
        let station = client + 1;
        let (from, to) = direction.select((station, ACCESS_POINT), (ACCESS_POINT, station));
        let sender = &mut self.stations[from as usize];
        if sender.queue.len() >= self.settings.queue as usize {
            sender.overflows += 1;
            return false;
        }
        sender.queue.push_back((to, place, bytes));
        sender.peak = sender.peak.max(sender.queue.len());
        self.next(now, from, timers);
        true
    }

    /// How many packets wait at a client or, of all clients, at the access point.
    pub(crate) fn waiting(&self, client: u32, direction: Direction) -> usize {
        let station = direction.select(client + 1, ACCESS_POINT);
        self.stations[station as usize].queue.len()
    }

    /// An event of the cell has come; [`Self::poll`] says what came of it.
    pub(crate) fn handle(&mut self, now: Instant, event: WifiEvent, timers: &mut WifiTimers) {
        self.mac.handle(now, event, timers);
    }

    /// Returns the next packet that arrived or was given up; `None` if there is no further one.
    pub(crate) fn poll(&mut self, now: Instant, timers: &mut WifiTimers) -> Option<Crossing> {
        loop {
            match self.mac.poll()? {
                Indication::Arrived(frame) => {
                    self.stations[frame.from as usize].has_arrived = true;
                    return Some(match frame.to {
                        ACCESS_POINT => Crossing::Up(frame.token),
                        _ => Crossing::Down(frame.token),
                    });
                }
                Indication::Done(frame, _) => {
                    let station = &mut self.stations[frame.from as usize];
                    let has_arrived = std::mem::take(&mut station.has_arrived);
                    self.next(now, frame.from, timers);
                    if !has_arrived {
                        let is_up = frame.to == ACCESS_POINT;
                        let direction = if is_up { Direction::Up } else { Direction::Down };
                        return Some(Crossing::Lost { token: frame.token, direction });
                    }
                }
            }
        }
    }

    /// Hands the next packet to the MAC, if it takes one.
    fn next(&mut self, now: Instant, from: u32, timers: &mut WifiTimers) {
        if !self.mac.is_idle(from) {
            return;
        }
        let Some((to, token, bytes)) = self.stations[from as usize].queue.pop_front() else {
            return;
        };
        let bytes = self.settings.dcf.frame_bytes(bytes);
        let frame = MacFrame { from, to, bytes, token, more: false, confirmed: true };
        self.mac.send(now, frame, timers);
    }

    /// Returns the measurements of the cell.
    pub(crate) fn record(&self) -> WifiRecord {
        let record = |(number, station): (usize, &CellStation)| StationRecord {
            frames: self.mac.counts(number as u32),
            overflows: station.overflows,
            peak_queue: u32::try_from(station.peak).unwrap_or(u32::MAX),
        };
        WifiRecord {
            stations: self.stations.iter().enumerate().map(record).collect(),
            busy_ns: self.mac.busy_ns(ACCESS_POINT),
        }
    }
}
