//! The stations' state machine.

use super::Dcf;
use super::contention::{Contention, HeardTransmission};
use crate::medium::{
    Air, FrameCounts, FrameOutcome, Indication, MacFrame, Reception, Timers, schedule,
};
use crate::random::{Streams, uniform};
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// An event of a station that sends a data frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WifiEvent {
    /// The step that is due.
    pub step: WifiStep,
    /// The number of the station.
    pub station: u32,
}

/// The timers of a MAC.
pub type WifiTimers = dyn Timers<WifiEvent>;

/// A step of a data frame's transmission.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WifiStep {
    /// The backoff may be over.
    Due,
    /// A data frame ends.
    End,
    /// The receiver begins to acknowledge.
    AckBegin,
    /// The acknowledgement ends.
    AckEnd,
    /// No acknowledgement arrived in time.
    Expired,
}

impl WifiStep {
    const fn at_station(self, station: u32) -> WifiEvent {
        WifiEvent { step: self, station }
    }
}

#[derive(Debug)]
struct DcfStation {
    /// The current frame.
    frame: Option<MacFrame>,
    /// Whether it has been transmitted and its fate is unknown.
    is_sent: bool,
    /// Whether it has arrived; further copies carry a sequence number that the receiver knows
    /// (section 9.2.9).
    has_arrived: bool,
    /// How often it has failed.
    failures: u8,
    /// CW of section 9.2.4.
    window: u16,
    contention: Contention,
    rng: ChaCha8Rng,
    counts: FrameCounts,
}

/// IEEE 802.11b stations on one channel.
#[derive(Debug)]
pub struct Mac {
    air: Air,
    dcf: Dcf,
    stations: Vec<DcfStation>,
    /// The stations that hear each station, itself included.
    hearers: Vec<Vec<u32>>,
    indications: VecDeque<Indication>,
}

impl Mac {
    /// Idle stations over `air`.
    pub fn new(air: Air, stations: u32, dcf: Dcf, streams: &Streams) -> Self {
        let hearers = |from| {
            let hears = |number: &u32| *number == from || air.hears(*number, from);
            (0..stations).filter(hears).collect()
        };
        let hearers = (0..stations).map(hearers).collect();
        let stations = (0..stations).map(|number| DcfStation {
            frame: None,
            is_sent: false,
            has_arrived: false,
            failures: 0,
            window: dcf.cw_min,
            contention: Contention::new(),
            rng: streams.stream(&format!("wifi/{number}")),
            counts: FrameCounts::default(),
        });
        let stations = stations.collect();
        Self { air, dcf, stations, hearers, indications: VecDeque::new() }
    }

    /// Whether a station accepts a frame.
    pub fn is_idle(&self, station: u32) -> bool {
        self.stations[station as usize].frame.is_none()
    }

    /// Hands a frame to an idle station; [`Indication::Done`] follows when it is finished.
    pub fn send(&mut self, now: Instant, frame: MacFrame, timers: &mut WifiTimers) {
        let dcf = self.dcf;
        let station = &mut self.stations[frame.from as usize];
        debug_assert!(station.frame.is_none(), "a station handles one frame at a time");
        station.frame = Some(frame);
        station.has_arrived = false;
        station.failures = 0;
        station.counts.accepted += 1;
        if station.contention.needs_backoff(now, &dcf) {
            station.back_off(now, &dcf);
        }
        self.resume(now, frame.from, timers);
    }

    /// The next indication since the last call.
    pub fn poll(&mut self) -> Option<Indication> {
        self.indications.pop_front()
    }

    /// The frames of a station. A station senses the channel all the time: it counts no assessments.
    pub fn counts(&self, station: u32) -> FrameCounts {
        self.stations[station as usize].counts
    }

    /// How long a station has heard a transmission, its own included, ns, until it last was
    /// silent.
    pub fn busy_ns(&self, station: u32) -> u64 {
        self.stations[station as usize].contention.busy_ns()
    }

    /// Handles a scheduled event.
    pub fn handle(&mut self, now: Instant, event: WifiEvent, timers: &mut WifiTimers) {
        let number = event.station;
        let Some(frame) = self.stations[number as usize].frame else {
            // A backoff after the previous frame.
            self.stations[number as usize].contention.is_through(now);
            return;
        };
        match event.step {
            WifiStep::Due => self.due(now, frame, timers),
            WifiStep::End => self.end(now, frame, timers),
            WifiStep::AckBegin => {
                self.begin(now, frame.to, frame.from);
                self.stations[number as usize].counts.acks += 1;
                schedule(timers, now, self.dcf.ack_airtime(), WifiStep::AckEnd.at_station(number));
            }
            WifiStep::AckEnd => self.ack_end(now, frame, timers),
            WifiStep::Expired => self.expired(now, frame, timers),
        }
    }

    /// Unless the backoff was suspended, it has ended and the frame is sent.
    fn due(&mut self, now: Instant, frame: MacFrame, timers: &mut WifiTimers) {
        let station = &mut self.stations[frame.from as usize];
        if !station.contention.is_through(now) {
            return;
        }
        station.is_sent = true;
        station.counts.transmitted += 1;
        self.begin(now, frame.from, frame.to);
        schedule(
            timers,
            now,
            self.dcf.data_airtime(frame.bytes),
            WifiStep::End.at_station(frame.from),
        );
    }

    /// Begins a transmission; stations that hear it find the channel busy.
    fn begin(&mut self, now: Instant, from: u32, to: u32) {
        self.air.begin(now, from, to, true);
        for number in &self.hearers[from as usize] {
            self.stations[*number as usize].contention.begin(now, &self.dcf);
        }
    }

    /// Ends a transmission and returns its fate. Stations that heard it may find the channel idle.
    fn silence(
        &mut self,
        now: Instant,
        from: u32,
        to: u32,
        is_data: bool,
        timers: &mut WifiTimers,
    ) -> Reception {
        let reception = self.air.end(now, from);
        self.air.forget(now);
        for index in 0..self.hearers[from as usize].len() {
            let number = self.hearers[from as usize][index];
            let how = match reception {
                _ if number == from => HeardTransmission::Plain,
                Reception::Received if number == to => HeardTransmission::Plain,
                _ if number == to => HeardTransmission::Unreadable,
                _ if is_data => HeardTransmission::Reserves,
                _ => HeardTransmission::Plain,
            };
            self.stations[number as usize].contention.end(now, how, &self.dcf);
            self.resume(now, number, timers);
        }
        reception
    }

    fn end(&mut self, now: Instant, frame: MacFrame, timers: &mut WifiTimers) {
        let reception = self.silence(now, frame.from, frame.to, frame.confirmed, timers);
        let station = &mut self.stations[frame.from as usize];
        station.counts.ended(reception, station.has_arrived);
        if reception == Reception::Received && !station.has_arrived {
            station.has_arrived = true;
            self.indications.push_back(Indication::Arrived(frame));
        }
        if !frame.confirmed {
            self.done(now, frame, FrameOutcome::Sent, timers);
        } else if reception == Reception::Received {
            schedule(timers, now, self.dcf.sifs.0, WifiStep::AckBegin.at_station(frame.from));
        } else {
            schedule(timers, now, self.dcf.ack_wait(), WifiStep::Expired.at_station(frame.from));
        }
    }

    fn ack_end(&mut self, now: Instant, frame: MacFrame, timers: &mut WifiTimers) {
        if self.silence(now, frame.to, frame.from, false, timers) == Reception::Received {
            self.done(now, frame, FrameOutcome::Sent, timers);
        } else {
            self.stations[frame.from as usize].counts.acks_lost += 1;
            self.expired(now, frame, timers);
        }
    }

    /// No acknowledgement arrived: the frame is sent again after a longer backoff, or given up
    /// (sections 9.2.4 and 9.2.5.3).
    fn expired(&mut self, now: Instant, frame: MacFrame, timers: &mut WifiTimers) {
        let dcf = self.dcf;
        let station = &mut self.stations[frame.from as usize];
        station.failures += 1;
        if station.failures >= dcf.retry_limit {
            self.done(now, frame, FrameOutcome::NoAck, timers);
            return;
        }
        station.is_sent = false;
        station.window = station.window.saturating_mul(2).saturating_add(1).min(dcf.cw_max);
        station.back_off(now, &dcf);
        self.resume(now, frame.from, timers);
    }

    fn done(
        &mut self,
        now: Instant,
        frame: MacFrame,
        outcome: FrameOutcome,
        timers: &mut WifiTimers,
    ) {
        let dcf = self.dcf;
        let station = &mut self.stations[frame.from as usize];
        station.counts.done(outcome);
        station.frame = None;
        station.is_sent = false;
        station.window = dcf.cw_min;
        station.back_off(now, &dcf);
        self.resume(now, frame.from, timers);
        self.indications.push_back(Indication::Done(frame, outcome));
    }

    /// Lets a station continue its countdown if it may.
    fn resume(&mut self, now: Instant, number: u32, timers: &mut WifiTimers) {
        let station = &mut self.stations[number as usize];
        if station.is_sent {
            return;
        }
        let has_frame = station.frame.is_some();
        if let Some(due) = station.contention.resume(now, has_frame, &self.dcf) {
            timers.schedule(due, WifiStep::Due.at_station(number));
        }
    }
}

impl DcfStation {
    /// Draws a backoff of 0 to CW slots (section 9.2.4).
    fn back_off(&mut self, now: Instant, dcf: &Dcf) {
        let slots = uniform(&mut self.rng, 0, self.window.into());
        // At most CW, which has 16 bits.
        self.contention.back_off(now, slots as u32, dcf);
    }
}
