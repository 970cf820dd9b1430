//! Devices around gateways: pure ALOHA upwards on a few channels, downlinks in the two receive windows.
//! Sections are those of the LoRaWAN 1.0.3 specification.

use super::adr::{AdaptingServer, AdaptiveDevice, LinkParameters};
use super::airtime::Modulation;
use super::counts::LoraCounts;
use super::reception::{Downlink, Gateways};
use super::settings::Lora;
use crate::growth::push_back;
use crate::medium::{Crossing, DeviceEvent, Timers, at_device};
use crate::net::Direction;
use crate::random::{Streams, uniform};
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// RECEIVE_DELAY1 and RECEIVE_DELAY2 after the end of an uplink (Regional Parameters 1.0.3, section 2.2.8).
const WINDOWS: [u64; 2] = [1_000_000_000, 2_000_000_000];
/// Bytes of LinkADRReq and LinkADRAns, which go in the header of a frame (section 5.2).
const REQUEST: u32 = 5;
const ANSWER: u32 = 2;
/// Symbols for which a device listens in a window in which nothing begins: as many as a preamble has.
const LISTENING: u64 = 8;

/// An event of the cell.
pub type LoraEvent = DeviceEvent<LoraStep>;

/// The timers of the cell.
pub type LoraTimers = dyn Timers<LoraEvent>;

/// The steps of a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LoraStep {
    /// It may transmit again.
    Wake,
    /// Its transmission ends.
    UplinkEnd,
    /// Its receive window, the first (0) or the second (1), opens.
    Window(u8),
    /// The transmission of a gateway to it ends.
    DownlinkEnd,
}

/// The state of a device's radio.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum RadioState {
    /// Asleep: it may transmit if its duty cycle allows.
    #[default]
    Idle,
    Sending,
    /// It waits for its windows to pass, and may not transmit before (section 3.3.4).
    Waiting,
    Receiving,
}

#[derive(Debug)]
struct LoraDevice {
    radio: RadioState,
    /// Packets that wait here, and those that wait for this device at the network server: tokens and bytes.
    up: VecDeque<(u32, u32)>,
    down: VecDeque<(u32, u32)>,
    /// Whether the network announced a further packet, so that an empty frame asks for it (section 4.3.1.4).
    polls: bool,
    /// From when on the duty cycle allows a transmission, ns.
    allowed: u64,
    /// When it will be woken.
    wakes: Option<u64>,
    /// When its last transmission ended, from which its windows count, ns.
    ended: u64,
    /// The packet in the frame on the air, from or to the device; an empty frame has none.
    on_air: Option<u32>,
    /// The channel of its frame.
    channel: u64,
    /// The frame to it that is on the air, and what that asks for.
    downlink: Option<(Downlink, Option<LinkParameters>)>,
    adaptive: AdaptiveDevice,
    server: AdaptingServer,
}

impl LoraDevice {
    fn new(spreading_factor: u8) -> Self {
        Self {
            radio: RadioState::Idle,
            up: VecDeque::new(),
            down: VecDeque::new(),
            polls: false,
            allowed: 0,
            wakes: None,
            ended: 0,
            on_air: None,
            channel: 0,
            downlink: None,
            adaptive: AdaptiveDevice::new(spreading_factor),
            server: AdaptingServer::default(),
        }
    }

    const fn spreading_factor(&self) -> u8 {
        self.adaptive.link.spreading_factor
    }
}

/// Gateways with a network server, and devices around them.
#[derive(Debug)]
pub struct LoraCell {
    settings: Lora,
    devices: Vec<LoraDevice>,
    /// Devices whose frames are on the air.
    sending: Vec<u32>,
    gateways: Gateways,
    /// The margin of the adaptive data rate, thousandths of a decibel.
    margin: Option<i32>,
    outcomes: VecDeque<Crossing>,
    channels: ChaCha8Rng,
    counts: LoraCounts,
}

impl LoraCell {
    /// A cell of so many devices.
    pub fn new(settings: &Lora, devices: u32, streams: &Streams) -> Self {
        Self {
            settings: settings.clone(),
            devices: (0..devices)
                .map(|device| LoraDevice::new(settings.spreading_factor(device)))
                .collect(),
            sending: Vec::new(),
            gateways: Gateways::new(settings, devices, streams),
            // At most 30 dB.
            margin: settings.adr_margin.map(|margin| (margin * 1000.0).round() as i32),
            outcomes: VecDeque::new(),
            channels: streams.stream("lora/channels"),
            counts: LoraCounts { gateways: settings.gateways, ..LoraCounts::default() },
        }
    }

    /// The frames so far.
    pub const fn counts(&self) -> LoraCounts {
        self.counts
    }

    /// Packets that wait at a device, or for it at the network server, without the one on the air.
    pub fn waiting(&self, device: u32, direction: Direction) -> usize {
        let device = &self.devices[device as usize];
        direction.select(device.up.len(), device.down.len())
    }

    /// The next outcome.
    pub fn poll(&mut self) -> Option<Crossing> {
        self.outcomes.pop_front()
    }

    /// A packet of `bytes` is to go from a device to the network server or back. Returns whether there was room for it.
    pub fn send(
        &mut self,
        now: Instant,
        device: u32,
        direction: Direction,
        token: u32,
        bytes: u32,
        timers: &mut LoraTimers,
    ) -> bool {
        let own = &mut self.devices[device as usize];
        let queue = direction.select(&mut own.up, &mut own.down);
        if queue.len() >= self.settings.queue as usize {
            self.counts.frames.overflows[direction as usize] += 1;
            return false;
        }
        push_back(queue, (token, bytes));
        if direction == Direction::Up {
            self.transmit(now, device, timers);
        }
        // A packet for the device waits for the windows after its next uplink.
        true
    }

    /// An event of the cell has come; [`Self::poll`] says what came of it.
    pub fn handle(
        &mut self,
        now: Instant,
        DeviceEvent { step, device }: LoraEvent,
        timers: &mut LoraTimers,
    ) {
        match step {
            LoraStep::Wake => {
                let own = &mut self.devices[device as usize];
                // Only the event that was scheduled last counts.
                if own.wakes != Some(now.as_nanos()) {
                    return;
                }
                own.wakes = None;
                if own.radio == RadioState::Waiting {
                    own.radio = RadioState::Idle;
                }
                self.transmit(now, device, timers);
            }
            LoraStep::UplinkEnd => self.uplink_end(now, device, timers),
            LoraStep::Window(window) => {
                self.window(now, device, usize::from(window), timers);
            }
            LoraStep::DownlinkEnd => self.downlink_end(now, device, timers),
        }
    }

    /// The device transmits its first packet, or asks for one, if it may.
    fn transmit(&mut self, now: Instant, device: u32, timers: &mut LoraTimers) {
        let own = &mut self.devices[device as usize];
        if own.radio != RadioState::Idle || (own.up.is_empty() && !own.polls) {
            return;
        }
        let start = now.as_nanos();
        if start < own.allowed {
            let at = own.allowed;
            return self.wake(device, at, timers);
        }
        if self.margin.is_some() {
            own.adaptive.transmits();
        }
        let link = own.adaptive.link;
        let options = if own.adaptive.confirms { ANSWER } else { 0 };
        let modulation = Lora::uplink(link.spreading_factor);
        let packet = first_beside(options, modulation, &mut own.up);
        let time = Lora::frame_ns(modulation, packet.map(|(_, bytes)| bytes), options);
        own.radio = RadioState::Sending;
        own.polls = false;
        own.on_air = packet.map(|(token, _)| token);
        own.allowed = start + off_time(time, self.settings.duty_cycle);
        own.channel = uniform(&mut self.channels, 1, u64::from(self.settings.channels));
        self.counts.frames.uplinks += 1;
        self.counts.frames.polls += u64::from(packet.is_none());
        self.counts.transmitted(link, time);
        self.gateways.begins(device, start, link);
        self.collide(device);
        self.sending.push(device);
        timers.schedule(Instant::from_nanos(start + time), at_device(LoraStep::UplinkEnd, device));
    }

    /// Frames of the same spreading factor on the same channel meet; those of different factors do not.
    fn collide(&mut self, device: u32) {
        let mine = &self.devices[device as usize];
        for other in &self.sending {
            let theirs = &self.devices[*other as usize];
            let meets = mine.channel == theirs.channel
                && mine.spreading_factor() == theirs.spreading_factor();
            if meets {
                self.gateways.meet(device, *other);
            }
        }
    }

    fn uplink_end(&mut self, now: Instant, device: u32, timers: &mut LoraTimers) {
        self.sending.retain(|other| *other != device);
        let own = &mut self.devices[device as usize];
        own.radio = RadioState::Waiting;
        own.ended = now.as_nanos();
        let packet = own.on_air.take();
        let heard = self.gateways.ends(device, own.spreading_factor());
        match (heard, self.margin) {
            (Ok(snr), Some(margin)) => own.server.hears(&own.adaptive, snr, margin),
            (Ok(_), None) => {}
            (Err(obstacle), _) => self.counts.frames.lost(obstacle),
        }
        own.adaptive.confirms = false;
        let is_read = heard.is_ok();
        if let Some(token) = packet {
            let lost = Crossing::Lost { token, direction: Direction::Up };
            push_back(&mut self.outcomes, if is_read { Crossing::Up(token) } else { lost });
        }
        let end = now.as_nanos();
        // Without the frame the network does not know when the windows are.
        for window in 0..2 {
            self.counts.radio.listen_ns += self.listening(device, usize::from(window));
            if is_read {
                let at = Instant::from_nanos(end + WINDOWS[usize::from(window)]);
                timers.schedule(at, at_device(LoraStep::Window(window), device));
            }
        }
        self.wake(device, end + WINDOWS[1] + self.listening(device, 1), timers);
    }

    /// A window opens: a gateway uses it if there is something to send and it may transmit.
    fn window(&mut self, now: Instant, device: u32, window: usize, timers: &mut LoraTimers) {
        let start = now.as_nanos();
        let listening: u64 = (0..2).map(|one| self.listening(device, one)).skip(window).sum();
        let own = &mut self.devices[device as usize];
        // A device that has received a frame in the first window does not open the second one.
        let is_open = own.radio == RadioState::Waiting && start == own.ended + WINDOWS[window];
        let request = own.server.request;
        let is_needed = !own.down.is_empty() || request.is_some() || own.server.owes_downlink;
        if !is_open || !is_needed {
            return;
        }
        let Some(gateway) = self.gateways.answering(device, start, window) else { return };
        let modulation = self.settings.downlink(own.spreading_factor(), window);
        let options = if request.is_some() { REQUEST } else { 0 };
        let packet = first_beside(options, modulation, &mut own.down);
        own.radio = RadioState::Receiving;
        own.on_air = packet.map(|(token, _)| token);
        own.server.owes_downlink = false;
        let time = Lora::frame_ns(modulation, packet.map(|(_, bytes)| bytes), options);
        let duty_cycle = [self.settings.duty_cycle, self.settings.second_window_duty_cycle][window];
        let allowed = start + off_time(time, duty_cycle);
        let downlink = Downlink { gateway, window, start, time, allowed };
        own.downlink = Some((downlink, request));
        self.counts.frames.downlinks[window] += 1;
        self.counts.downlink_ns[window] += time;
        // It receives in place of what it would have listened from now on.
        self.counts.radio.listen_ns += time;
        self.counts.radio.listen_ns -= listening;
        self.gateways.transmits(downlink, &self.sending);
        timers
            .schedule(Instant::from_nanos(start + time), at_device(LoraStep::DownlinkEnd, device));
    }

    fn downlink_end(&mut self, now: Instant, device: u32, timers: &mut LoraTimers) {
        let own = &mut self.devices[device as usize];
        let Some((downlink, request)) = own.downlink.take() else { return };
        let factor =
            self.settings.downlink(own.spreading_factor(), downlink.window).spreading_factor;
        let reached = self.gateways.reaches(device, downlink, factor);
        match reached {
            Ok(()) => {
                own.adaptive.receives(request);
                self.counts.frames.adapted += u64::from(request.is_some());
            }
            Err(obstacle) => self.counts.frames.lost(obstacle),
        }
        let is_read = reached.is_ok();
        own.radio = RadioState::Idle;
        own.wakes = None;
        own.polls = is_read && !own.down.is_empty();
        if let Some(token) = own.on_air.take() {
            let lost = Crossing::Lost { token, direction: Direction::Down };
            push_back(&mut self.outcomes, if is_read { Crossing::Down(token) } else { lost });
        }
        self.transmit(now, device, timers);
    }

    fn wake(&mut self, device: u32, at: u64, timers: &mut LoraTimers) {
        self.devices[device as usize].wakes = Some(at);
        timers.schedule(Instant::from_nanos(at), at_device(LoraStep::Wake, device));
    }

    /// How long a device listens in a window in which nothing begins, ns.
    fn listening(&self, device: u32, window: usize) -> u64 {
        let factor = self.devices[device as usize].spreading_factor();
        LISTENING * Modulation::symbol_ns(self.settings.downlink(factor, window))
    }
}

/// Takes the first packet that waits, unless it finds no room in a frame with so many bytes of options, which then goes
/// without it.
fn first_beside(
    options: u32,
    modulation: Modulation,
    waiting: &mut VecDeque<(u32, u32)>,
) -> Option<(u32, u32)> {
    let (_, bytes) = waiting.front()?;
    let fits = options == 0 || bytes + options <= Lora::longest_in(modulation.spreading_factor);
    if fits { waiting.pop_front() } else { None }
}

/// The time from the start of a transmission until the next one is allowed: the sender is silent for
/// `airtime / duty cycle - airtime` (section 7.2 of LoRaWAN 1.0.1), ns.
fn off_time(airtime: u64, duty_cycle: f64) -> u64 {
    // Rounded up to a nanosecond; the cast saturates.
    (airtime as f64 / duty_cycle).ceil() as u64
}
