//! Devices around a base station: connections, transmissions and sleep.

use super::access::{Occasion, Preamble, RandomAccess};
use super::counts::NbIotCounts;
use super::settings::NbIot;
use crate::growth::push_back;
use crate::medium::{Crossing, DeviceEvent, Timers, at_device};
use crate::net::Direction;
use crate::random::{Streams, uniform};
use ebbtide_core::time::Instant;
use std::collections::VecDeque;

/// An event of the cell.
pub type NbIotEvent = DeviceEvent<NbIotStep>;

/// The timers of the cell.
pub type NbIotTimers = dyn Timers<NbIotEvent>;

/// The steps of a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NbIotStep {
    /// The opportunity for preambles in which it is the first one is over, at this level.
    PreambleEnd(u8),
    /// It notices that its preamble has failed.
    Failed,
    /// It may send a preamble again.
    Retry,
    /// The network answers its preamble.
    Answer,
    /// The network's part of the signalling that sets its connection up is done.
    SetupHalf,
    /// Its connection is there.
    Connected,
    /// A packet of it is at the network.
    UplinkEnd,
    /// A packet for it has arrived.
    DownlinkEnd,
    /// Its connection may be released.
    Release,
    /// It listens for its paging.
    Paging,
    /// It falls asleep.
    Sleep,
}

/// The state of a device (TS 36.331; TS 24.301 section 5.3.11 for the power saving mode).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum DeviceState {
    /// It sleeps (PSM), or has not been needed yet.
    #[default]
    Asleep,
    /// RRC_IDLE: it listens for its paging.
    Idle,
    /// A random access is under way.
    Accessing,
    /// RRC_CONNECTED.
    Connected,
}

#[derive(Debug, Default)]
struct NbIotDevice {
    connection: DeviceState,
    /// Packets that wait here, and those that wait for this device in the network: tokens and bytes.
    up: VecDeque<(u32, u32)>,
    down: VecDeque<(u32, u32)>,
    /// Packets that are being carried, each way.
    carried_up: VecDeque<u32>,
    carried_down: VecDeque<u32>,
    /// The level of its random access or connection, from its own one on.
    level: usize,
    /// Preambles at this level.
    attempts: u32,
    /// When its random access began, ns.
    asked: u64,
    /// From when on it is in its state, ns.
    since: u64,
    /// When it last had traffic or entered [`DeviceState::Idle`], ns.
    last: u64,
    /// The instant in its paging cycle at which it listens, ns.
    paging: u64,
    /// Whether an event for its paging is scheduled.
    is_paging_due: bool,
}

impl NbIotDevice {
    /// Packets that wait one way, also for their time on the shared channel, without the first that is being carried.
    fn waiting(&self, direction: Direction) -> usize {
        let (queue, carried) = match direction {
            Direction::Up => (&self.up, &self.carried_up),
            Direction::Down => (&self.down, &self.carried_down),
        };
        queue.len() + carried.len().saturating_sub(1)
    }
}

/// The base station, with devices around it.
#[derive(Debug)]
pub struct NbIotCell {
    settings: NbIot,
    devices: Vec<NbIotDevice>,
    access: RandomAccess,
    /// Until when the shared channels of both directions carry something, ns.
    busy_until: [u64; 2],
    outcomes: VecDeque<Crossing>,
    counts: NbIotCounts,
}

impl NbIotCell {
    /// A cell of so many devices.
    pub fn new(settings: &NbIot, devices: u32, streams: &Streams) -> Self {
        let mut paging = streams.stream("nb_iot/paging");
        let first = match settings.active_time {
            None => DeviceState::Idle,
            Some(_) => DeviceState::Asleep,
        };
        let device = |_| NbIotDevice {
            connection: first,
            paging: uniform(&mut paging, 0, settings.paging_cycle.0 - 1),
            ..NbIotDevice::default()
        };
        Self {
            settings: settings.clone(),
            devices: (0..devices).map(device).collect(),
            access: RandomAccess::new(settings, streams),
            busy_until: [0; 2],
            outcomes: VecDeque::new(),
            counts: NbIotCounts::default(),
        }
    }

    /// The counts until `now`.
    pub fn counts(&self, now: Instant) -> NbIotCounts {
        let mut counts = self.counts;
        for device in &self.devices {
            let spent = now.as_nanos().saturating_sub(device.since);
            match device.connection {
                DeviceState::Asleep => {}
                DeviceState::Idle => counts.times.idle_ns += spent,
                DeviceState::Accessing | DeviceState::Connected => counts.times.listen_ns += spent,
            }
        }
        // What devices have yet to transmit is the rest of their channel's reservations, which leave no gap.
        let rest = self.busy_until[0].saturating_sub(now.as_nanos());
        counts.times.transmit_ns = counts.times.transmit_ns.saturating_sub(rest);
        counts.times.listen_ns = counts.times.listen_ns.saturating_sub(counts.times.transmit_ns);
        counts
    }

    /// Packets that wait at a device, or for it in the network, without the one that is being carried.
    pub fn waiting(&self, device: u32, direction: Direction) -> usize {
        self.devices[device as usize].waiting(direction)
    }

    /// The next outcome.
    pub fn poll(&mut self) -> Option<Crossing> {
        self.outcomes.pop_front()
    }

    /// A packet of `bytes` is to go from a device to the network or back. Returns whether there was room for it.
    pub fn send(
        &mut self,
        now: Instant,
        device: u32,
        direction: Direction,
        token: u32,
        bytes: u32,
        timers: &mut NbIotTimers,
    ) -> bool {
        let own = &mut self.devices[device as usize];
        if own.waiting(direction) >= self.settings.queue as usize {
            self.counts.overflows[direction as usize] += 1;
            return false;
        }
        let queue = direction.select(&mut own.up, &mut own.down);
        push_back(queue, (token, bytes));
        match own.connection {
            DeviceState::Connected => self.carry(now, device, timers),
            // What waits is carried when the connection is there.
            DeviceState::Accessing => {}
            DeviceState::Idle | DeviceState::Asleep if direction == Direction::Up => {
                self.ask(now, device, timers)
            }
            DeviceState::Idle => self.page(now, device, timers),
            // A device that sleeps is not reached until it sends.
            DeviceState::Asleep => {}
        }
        true
    }

    /// An event of the cell has come; [`Self::poll`] says what came of it.
    pub fn handle(
        &mut self,
        now: Instant,
        DeviceEvent { step, device }: NbIotEvent,
        timers: &mut NbIotTimers,
    ) {
        let own = &mut self.devices[device as usize];
        match step {
            NbIotStep::PreambleEnd(level) => self.preambles_end(now, usize::from(level), timers),
            NbIotStep::Failed => self.fails(now, device, timers),
            NbIotStep::Retry => self.send_preamble(now, device, timers),
            NbIotStep::Answer => {
                let (level, bytes) = (own.level, self.settings.setup_bytes);
                let at = self.reserve(now, level, Direction::Down, bytes);
                timers.schedule(at, at_device(NbIotStep::SetupHalf, device));
            }
            NbIotStep::SetupHalf => {
                let (level, bytes) = (own.level, self.settings.setup_bytes);
                let at = self.reserve(now, level, Direction::Up, bytes);
                timers.schedule(at, at_device(NbIotStep::Connected, device));
            }
            NbIotStep::Connected => self.connected(now, device, timers),
            NbIotStep::UplinkEnd => {
                let token = own.carried_up.pop_front();
                self.outcomes.extend(token.map(Crossing::Up));
                self.has_traffic(now, device, timers);
            }
            NbIotStep::DownlinkEnd => {
                let token = own.carried_down.pop_front();
                self.outcomes.extend(token.map(Crossing::Down));
                self.has_traffic(now, device, timers);
            }
            NbIotStep::Release => self.release(now, device, timers),
            NbIotStep::Paging => {
                own.is_paging_due = false;
                if own.connection == DeviceState::Idle && !own.down.is_empty() {
                    self.counts.paged += 1;
                    self.ask(now, device, timers);
                }
            }
            NbIotStep::Sleep => {
                let active = self.settings.active_time.map_or(0, |time| time.0);
                let is_due = own.last + active == now.as_nanos();
                if own.connection == DeviceState::Idle && is_due {
                    self.enter(now, device, DeviceState::Asleep);
                }
            }
        }
    }

    /// The device begins a random access.
    fn ask(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        self.enter(now, device, DeviceState::Accessing);
        self.counts.accesses += 1;
        let level = self.settings.level(device);
        let own = &mut self.devices[device as usize];
        own.asked = now.as_nanos();
        (own.level, own.attempts) = (level, 0);
        self.send_preamble(now, device, timers);
    }

    fn send_preamble(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        let own = &mut self.devices[device as usize];
        own.attempts += 1;
        let level = own.level;
        let time = self.settings.preamble_ns(level);
        self.counts.preambles += 1;
        let (occasion, is_first) = self.access.choose(now.as_nanos(), device, level);
        if is_first {
            // At most three levels.
            let step = NbIotStep::PreambleEnd(level as u8);
            let at = Instant::from_nanos(occasion.start + time);
            timers.schedule(at, at_device(step, device));
        }
    }

    fn preambles_end(&mut self, now: Instant, level: usize, timers: &mut NbIotTimers) {
        let time = self.settings.preamble_ns(level);
        let start = now.as_nanos() - time;
        let answer = now.as_nanos() + self.settings.answer_ns(level);
        for (device, preamble) in self.access.ends(Occasion { start, level }) {
            self.counts.times.transmit_ns += time;
            match preamble {
                Preamble::Heard => {
                    // The channel carries other things until then.
                    let event = at_device(NbIotStep::Answer, device);
                    timers.schedule(Instant::from_nanos(answer), event);
                }
                Preamble::Collided => {
                    self.counts.collided += 1;
                    // Both answer the network's answer, and neither is heard.
                    let at = answer + self.settings.contention_timer.0;
                    let event = at_device(NbIotStep::Failed, device);
                    timers.schedule(Instant::from_nanos(at), event);
                }
                Preamble::Missed => {
                    self.counts.missed += 1;
                    let event = at_device(NbIotStep::Failed, device);
                    timers.schedule(Instant::from_nanos(answer), event);
                }
            }
        }
    }

    /// A device notices that its preamble has failed.
    fn fails(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        let own = &mut self.devices[device as usize];
        if own.attempts >= self.settings.attempts {
            if own.level + 1 == self.settings.levels() {
                return self.gives_up(now, device, timers);
            }
            (own.level, own.attempts) = (own.level + 1, 0);
            self.counts.raised += 1;
        }
        let wait = self.access.backoff(self.settings.backoff.0);
        let retry = now.as_nanos().saturating_add(wait);
        timers.schedule(Instant::from_nanos(retry), at_device(NbIotStep::Retry, device));
    }

    /// No level is left: what waits at the device is lost, and what waits for it stays in the network.
    fn gives_up(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        self.counts.given_up += 1;
        let own = &mut self.devices[device as usize];
        let lost =
            own.up.drain(..).map(|(token, _)| Crossing::Lost { token, direction: Direction::Up });
        self.outcomes.extend(lost);
        let is_wanted = !own.down.is_empty();
        self.idles(now, device, timers);
        if is_wanted {
            self.page(now, device, timers);
        }
    }

    fn connected(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        self.counts.connections += 1;
        self.counts.access_ns += now.as_nanos() - self.devices[device as usize].asked;
        self.enter(now, device, DeviceState::Connected);
        self.has_traffic(now, device, timers);
        self.carry(now, device, timers);
    }

    /// Hands all packets of a device with a connection to the shared channels.
    fn carry(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        let level = self.devices[device as usize].level;
        while let Some((token, bytes)) = self.devices[device as usize].up.pop_front() {
            let at = self.reserve(now, level, Direction::Up, bytes);
            push_back(&mut self.devices[device as usize].carried_up, token);
            timers.schedule(at, at_device(NbIotStep::UplinkEnd, device));
        }
        while let Some((token, bytes)) = self.devices[device as usize].down.pop_front() {
            let at = self.reserve(now, level, Direction::Down, bytes);
            push_back(&mut self.devices[device as usize].carried_down, token);
            timers.schedule(at, at_device(NbIotStep::DownlinkEnd, device));
        }
    }

    /// Takes the next free time of a shared channel for so many bytes. Returns when it ends.
    fn reserve(&mut self, now: Instant, level: usize, direction: Direction, bytes: u32) -> Instant {
        let time = self.settings.transmission_ns(level, direction, bytes);
        let busy = &mut self.busy_until[direction as usize];
        *busy = now.as_nanos().max(*busy).saturating_add(time);
        if direction == Direction::Up {
            self.counts.times.transmit_ns += time;
        }
        Instant::from_nanos(*busy)
    }

    /// The connection is used now: it is released so much later.
    fn has_traffic(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        self.devices[device as usize].last = now.as_nanos();
        let at = Instant::from_nanos(now.as_nanos().saturating_add(self.settings.inactivity.0));
        timers.schedule(at, at_device(NbIotStep::Release, device));
    }

    fn release(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        let own = &mut self.devices[device as usize];
        let is_due = own.last.saturating_add(self.settings.inactivity.0) == now.as_nanos();
        let is_quiet = own.carried_up.is_empty() && own.carried_down.is_empty();
        if own.connection != DeviceState::Connected || !is_due || !is_quiet {
            return;
        }
        self.idles(now, device, timers);
    }

    /// A device listens for its paging from now on, and falls asleep after its active time.
    fn idles(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        self.devices[device as usize].last = now.as_nanos();
        self.enter(now, device, DeviceState::Idle);
        if let Some(active) = self.settings.active_time {
            let at = Instant::from_nanos(now.as_nanos().saturating_add(active.0));
            timers.schedule(at, at_device(NbIotStep::Sleep, device));
        }
    }

    /// Something waits for a device, which listens once in a paging cycle.
    fn page(&mut self, now: Instant, device: u32, timers: &mut NbIotTimers) {
        let (cycle, now) = (self.settings.paging_cycle.0, now.as_nanos());
        let own = &mut self.devices[device as usize];
        if std::mem::replace(&mut own.is_paging_due, true) {
            return;
        }
        let cycles = now.saturating_sub(own.paging).div_ceil(cycle);
        let at = Instant::from_nanos(own.paging.saturating_add(cycles.saturating_mul(cycle)));
        timers.schedule(at, at_device(NbIotStep::Paging, device));
    }

    /// A device enters a state; the time in the one before counts.
    fn enter(&mut self, now: Instant, device: u32, connection: DeviceState) {
        let own = &mut self.devices[device as usize];
        let spent = now.as_nanos().saturating_sub(own.since);
        let times = &mut self.counts.times;
        match own.connection {
            DeviceState::Asleep => {}
            DeviceState::Idle => times.idle_ns += spent,
            // Without what it transmits meanwhile, which `counts` takes away.
            DeviceState::Accessing | DeviceState::Connected => times.listen_ns += spent,
        }
        (own.connection, own.since) = (connection, now.as_nanos());
    }
}
