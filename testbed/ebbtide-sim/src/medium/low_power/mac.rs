//! The stations' state machine.

use super::Csma;
use super::duty_cycle::{DutyCycle, LEAD, LISTEN, STROBE_GAP, WAKE_UP};
use super::phase::{GUARD, KNOWN_STROBES, PhaseLock, WakePhase};
use super::timing::{
    ACK_BYTES, ACK_WAIT, ASSESSMENT, BACKOFF_UNIT, TURNAROUND, airtime, interframe_spacing,
};
use crate::medium::{
    Air, FrameCounts, FrameOutcome, Indication, MacFrame, RadioTime, Reception, Timers, schedule,
};
use crate::random::{Streams, uniform};
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// An event of a station's frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LowPowerEvent {
    /// The step of its transmission.
    pub step: LowPowerStep,
    /// The number of the station that sends the data frame.
    pub station: u32,
}

/// The timers of a MAC.
pub type LowPowerTimers = dyn Timers<LowPowerEvent>;

/// A step of a data frame's transmission.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LowPowerStep {
    /// The channel assessment after a backoff ends.
    Assessed,
    /// A transmission begins.
    Begin,
    /// A transmission ends.
    End,
    /// The receiver begins to acknowledge.
    AckBegin,
    /// The acknowledgement ends.
    AckEnd,
    /// No acknowledgement arrived in time.
    Expired,
    /// The wait before a retransmission, or before the next frame for a neighbour, has ended.
    Repeat,
}

impl LowPowerStep {
    pub(crate) const fn at_station(self, station: u32) -> LowPowerEvent {
        LowPowerEvent { step: self, station }
    }
}

/// A frame that waits for its retransmission.
#[derive(Copy, Clone, Debug)]
struct Waiting {
    until: Instant,
    frame: MacFrame,
    retries: u8,
    has_arrived: bool,
}

#[derive(Debug)]
struct Station {
    /// The current frame.
    frame: Option<MacFrame>,
    /// NB and BE of section 7.5.1.4.
    backoffs: u8,
    exponent: u8,
    retries: u8,
    /// Whether the current frame has arrived; further copies of it have a known sequence number.
    has_arrived: bool,
    /// Earlier frames that wait for their retransmission. The station accepts other frames
    /// meanwhile.
    waiting: Vec<Waiting>,
    /// A data frame was received and its acknowledgement is not over yet.
    owes_ack: bool,
    /// The interframe spacing after the last frame ends.
    ready: Instant,
    /// The end of the strobes under way.
    strobes_until: Option<Instant>,
    /// When the last of them began.
    strobed: Instant,
    /// The first wake-up of the radio.
    phase: u64,
    /// The station received a frame whose sender has more to send.
    awake_until: Instant,
    rng: ChaCha8Rng,
    counts: FrameCounts,
    time: RadioTime,
}

/// IEEE 802.15.4 stations on one channel.
#[derive(Debug)]
pub struct Mac {
    air: Air,
    csma: Csma,
    duty: Option<DutyCycle>,
    stations: Vec<Station>,
    /// Each station's memory of the phase of each other one, row by row.
    phases: Vec<WakePhase>,
    indications: VecDeque<Indication>,
}

impl Mac {
    /// Idle stations over `air`.
    pub fn new(
        air: Air,
        stations: u32,
        csma: Csma,
        duty: Option<DutyCycle>,
        streams: &Streams,
    ) -> Self {
        let stations: Vec<Station> = (0..stations)
            .map(|number| {
                let mut rng = streams.stream(&format!("mac/{number}"));
                let phase = duty.map_or(0, |duty| uniform(&mut rng, 0, duty.period - 1));
                Station {
                    frame: None,
                    backoffs: 0,
                    exponent: csma.min_be,
                    retries: 0,
                    has_arrived: false,
                    waiting: Vec::new(),
                    owes_ack: false,
                    ready: Instant::ZERO,
                    strobes_until: None,
                    strobed: Instant::ZERO,
                    phase,
                    awake_until: Instant::ZERO,
                    rng,
                    counts: FrameCounts::default(),
                    time: RadioTime::default(),
                }
            })
            .collect();
        let pairs = stations.len() * stations.len();
        let phases = vec![WakePhase::default(); pairs];
        Self { air, csma, duty, stations, phases, indications: VecDeque::new() }
    }

    /// Whether a station accepts a frame.
    pub fn is_idle(&self, station: u32) -> bool {
        self.stations[station as usize].frame.is_none()
    }

    /// Hands a frame to an idle station; [`Indication::Done`] follows when it is finished.
    pub fn send(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let station = &mut self.stations[frame.from as usize];
        debug_assert!(station.frame.is_none(), "a station handles one frame at a time");
        station.frame = Some(frame);
        station.counts.accepted += 1;
        station.retries = 0;
        station.has_arrived = false;
        let start = now.max(station.ready);
        self.contend(start, frame, timers);
    }

    /// The current frame of a station.
    pub fn in_hand(&self, station: u32) -> Option<MacFrame> {
        self.stations[station as usize].frame
    }

    /// The next indication since the last call.
    pub fn poll(&mut self) -> Option<Indication> {
        self.indications.pop_front()
    }

    /// The frames of a station.
    pub fn counts(&self, station: u32) -> FrameCounts {
        self.stations[station as usize].counts
    }

    /// How long a station's radio was on until `now`.
    pub fn radio_time(&self, station: u32, now: Instant) -> RadioTime {
        let time = self.stations[station as usize].time;
        let elapsed = now.as_nanos();
        let listen_ns = match self.duty {
            None => elapsed.saturating_sub(time.transmit_ns),
            Some(duty) => time.listen_ns + elapsed / duty.period * WAKE_UP,
        };
        RadioTime { listen_ns, ..time }
    }

    /// Handles a scheduled event.
    pub fn handle(&mut self, now: Instant, event: LowPowerEvent, timers: &mut LowPowerTimers) {
        let number = event.station;
        if event.step == LowPowerStep::Repeat {
            self.take_up(now, number, timers);
            return;
        }
        let Some(frame) = self.stations[number as usize].frame else { return };
        match event.step {
            LowPowerStep::Assessed => self.assessed(now, frame, timers),
            LowPowerStep::Begin => self.begin(now, frame, timers),
            LowPowerStep::End => self.end(now, frame, timers),
            LowPowerStep::AckBegin => {
                self.air.begin(now, frame.to, frame.from, true);
                let airtime = airtime(ACK_BYTES);
                self.stations[frame.to as usize].time.transmit_ns += airtime;
                self.stations[number as usize].counts.acks += 1;
                schedule(timers, now, airtime, LowPowerStep::AckEnd.at_station(number));
            }
            LowPowerStep::AckEnd => self.ack_end(now, frame, timers),
            LowPowerStep::Expired => self.expired(now, frame, timers),
            LowPowerStep::Repeat => {}
        }
    }

    /// Begins CSMA/CA for a frame (section 7.5.1.4, steps 1 and 2), at `now` or when its receiver is
    /// about to wake up.
    fn contend(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let mut start = now;
        if let Some(duty) = self.duty
            && let Some(met) = self.phases[self.pair(frame)].met()
            && self.stations[frame.to as usize].awake_until < now
        {
            start = match duty.phase_lock {
                PhaseLock::Off => now,
                PhaseLock::Exact => {
                    duty.departure(self.stations[frame.to as usize].phase, LEAD, now)
                }
                PhaseLock::Contiki => duty.departure(met.as_nanos() % duty.period, GUARD, now),
            };
        }
        let station = &mut self.stations[frame.from as usize];
        station.backoffs = 0;
        station.exponent = self.csma.min_be;
        station.strobes_until = None;
        self.back_off(start, frame, timers);
    }

    fn back_off(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let station = &mut self.stations[frame.from as usize];
        let units = uniform(&mut station.rng, 0, (1 << station.exponent) - 1);
        schedule(
            timers,
            now,
            units * BACKOFF_UNIT + ASSESSMENT,
            LowPowerStep::Assessed.at_station(frame.from),
        );
    }

    /// Steps 3 to 5: transmits if the channel is idle; otherwise backs off longer or gives up.
    fn assessed(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let since = Instant::from_nanos(now.as_nanos().saturating_sub(ASSESSMENT));
        let heard = self.air.was_busy(frame.from, since, now);
        let csma = self.csma;
        let station = &mut self.stations[frame.from as usize];
        station.counts.assessments += 1;
        station.time.listen_ns += ASSESSMENT;
        if !heard && !station.owes_ack {
            schedule(timers, now, TURNAROUND, LowPowerStep::Begin.at_station(frame.from));
            return;
        }
        station.counts.busy += 1;
        station.backoffs += 1;
        station.exponent = (station.exponent + 1).min(csma.max_be);
        if station.backoffs > csma.max_backoffs {
            match csma.retry_interval.0 {
                0 => self.done(now, frame, FrameOutcome::ChannelAccessFailure, timers),
                _ => self.lay_aside(now, frame, timers),
            }
        } else {
            self.back_off(now, frame, timers);
        }
    }

    fn begin(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let airtime = airtime(frame.bytes);
        let is_awake = self.is_awake(now, frame.to);
        self.air.begin(now, frame.from, frame.to, is_awake);
        if let Some(duty) = self.duty {
            self.overhear(now, frame.from, airtime);
            let is_known = self.phases[self.pair(frame)].met().is_some();
            let longest = match duty.phase_lock {
                PhaseLock::Contiki if is_known => KNOWN_STROBES,
                _ => duty.period + LISTEN,
            };
            let station = &mut self.stations[frame.from as usize];
            station.strobes_until.get_or_insert(now + Duration::from_nanos(longest));
            station.strobed = now;
        }
        let station = &mut self.stations[frame.from as usize];
        station.counts.transmitted += 1;
        station.time.transmit_ns += airtime;
        schedule(timers, now, airtime, LowPowerStep::End.at_station(frame.from));
    }

    fn end(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let reception = self.air.end(now, frame.from);
        let is_duty_cycled = self.duty.is_some();
        let station = &mut self.stations[frame.from as usize];
        station.ready = now + Duration::from_nanos(interframe_spacing(frame.bytes));
        station.counts.ended(reception, station.has_arrived);
        if !frame.confirmed {
            if reception == Reception::Received && !station.has_arrived {
                station.has_arrived = true;
                self.indications.push_back(Indication::Arrived(frame));
            }
            match station.strobes_until {
                Some(until) if now < until => {
                    schedule(timers, now, STROBE_GAP, LowPowerStep::Begin.at_station(frame.from));
                }
                _ => self.done(now, frame, FrameOutcome::Sent, timers),
            }
            return;
        }
        if reception != Reception::Received {
            let wait = if is_duty_cycled { STROBE_GAP } else { ACK_WAIT };
            station.time.listen_ns += wait;
            schedule(timers, now, wait, LowPowerStep::Expired.at_station(frame.from));
            return;
        }
        if !station.has_arrived {
            station.has_arrived = true;
            self.indications.push_back(Indication::Arrived(frame));
        }
        let receiver = &mut self.stations[frame.to as usize];
        receiver.owes_ack = true;
        // The next transmission, possibly of this very datagram, comes after the acknowledgement.
        let acknowledged = now + Duration::from_nanos(TURNAROUND + airtime(ACK_BYTES));
        receiver.ready = receiver.ready.max(acknowledged);
        if frame.more {
            receiver.awake_until = now + Duration::from_nanos(2 * LISTEN);
        }
        schedule(timers, now, TURNAROUND, LowPowerStep::AckBegin.at_station(frame.from));
    }

    fn ack_end(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let reception = self.air.end(now, frame.to);
        self.stations[frame.to as usize].owes_ack = false;
        if reception == Reception::Received {
            let pair = self.pair(frame);
            self.phases[pair].hit(self.stations[frame.from as usize].strobed);
            let spacing = Duration::from_nanos(interframe_spacing(frame.bytes));
            self.stations[frame.from as usize].ready = now + spacing;
            self.done(now, frame, FrameOutcome::Sent, timers);
            return;
        }
        self.stations[frame.from as usize].counts.acks_lost += 1;
        let waited = TURNAROUND + airtime(ACK_BYTES);
        let rest = if self.duty.is_some() { 0 } else { ACK_WAIT - waited };
        schedule(timers, now, rest, LowPowerStep::Expired.at_station(frame.from));
    }

    /// No acknowledgement arrived: the next strobe follows, or CSMA/CA again, or the end (section
    /// 7.5.6.4.3).
    fn expired(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let csma = self.csma;
        let station = &mut self.stations[frame.from as usize];
        if station.strobes_until.is_some_and(|until| now < until) {
            // The station may owe an acknowledgement to one that it heard between two strobes.
            let wait = if station.owes_ack { STROBE_GAP } else { 0 };
            let event = if wait == 0 {
                LowPowerStep::Begin.at_station(frame.from)
            } else {
                LowPowerStep::Expired.at_station(frame.from)
            };
            schedule(timers, now, wait, event);
            return;
        }
        let is_last = station.retries == csma.max_retries;
        if self.duty.is_some_and(|duty| duty.phase_lock == PhaseLock::Contiki) {
            let pair = self.pair(frame);
            self.phases[pair].miss(now);
        }
        if is_last {
            self.done(now, frame, FrameOutcome::NoAck, timers);
            return;
        }
        self.repeat(now, frame, timers);
    }

    /// Retransmits a frame, at once or after a wait.
    fn repeat(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        self.stations[frame.from as usize].retries += 1;
        match self.csma.retry_interval.0 {
            0 => self.contend(now, frame, timers),
            _ => self.lay_aside(now, frame, timers),
        }
    }

    /// Puts the current frame aside, and continues with another one that is due.
    fn lay_aside(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let interval = self.csma.retry_interval.0;
        let station = &mut self.stations[frame.from as usize];
        let most = u64::from(station.retries + 1).min(3);
        let wait = uniform(&mut station.rng, interval, interval * (1 + most));
        let (retries, has_arrived) = (station.retries, station.has_arrived);
        let until = now + Duration::from_nanos(wait);
        station.waiting.push(Waiting { until, frame, retries, has_arrived });
        station.frame = None;
        schedule(timers, now, wait, LowPowerStep::Repeat.at_station(frame.from));
        self.take_up(now, frame.from, timers);
    }

    /// A station without a current frame continues with the one that has waited longest, if one is
    /// due.
    fn take_up(&mut self, now: Instant, number: u32, timers: &mut LowPowerTimers) {
        let station = &mut self.stations[number as usize];
        if station.frame.is_some() {
            return;
        }
        let due = station.waiting.iter().enumerate().filter(|(_, waiting)| waiting.until <= now);
        let Some((index, _)) = due.min_by_key(|(_, waiting)| waiting.until) else { return };
        let Waiting { frame, retries, has_arrived, .. } = station.waiting.swap_remove(index);
        station.frame = Some(frame);
        (station.retries, station.has_arrived) = (retries, has_arrived);
        let start = now.max(station.ready);
        self.contend(start, frame, timers);
    }

    fn done(
        &mut self,
        now: Instant,
        frame: MacFrame,
        outcome: FrameOutcome,
        timers: &mut LowPowerTimers,
    ) {
        let station = &mut self.stations[frame.from as usize];
        station.frame = None;
        station.ready = station.ready.max(now);
        station.counts.done(outcome);
        self.indications.push_back(Indication::Done(frame, outcome));
        self.take_up(now, frame.from, timers);
    }

    fn is_awake(&self, now: Instant, station: u32) -> bool {
        let Some(duty) = self.duty else { return true };
        let station = &self.stations[station as usize];
        now <= station.awake_until || duty.listens(station.phase, now)
    }

    /// Nodes that are awake and in range listen to a transmission.
    fn overhear(&mut self, now: Instant, from: u32, airtime: u64) {
        for listener in 0..self.stations.len() as u32 {
            if listener != from && self.air.hears(listener, from) && self.is_awake(now, listener) {
                self.stations[listener as usize].time.listen_ns += airtime;
            }
        }
    }

    fn pair(&self, frame: MacFrame) -> usize {
        frame.from as usize * self.stations.len() + frame.to as usize
    }
}
