//! Devices around a gateway: pure ALOHA upwards on a few channels, downlinks in the two receive windows.
//! Sections are those of the LoRaWAN 1.0.3 specification.

use super::airtime::Modulation;
use super::counts::LoraCounts;
use super::settings::Lora;
use crate::engine::Engine;
use crate::growth::push_back;
use crate::medium::Crossing;
use crate::random::{Probability, Streams, uniform};
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// RECEIVE_DELAY1 and RECEIVE_DELAY2 after the end of an uplink (Regional Parameters 1.0.3, section 2.2.8).
const WINDOWS: [u64; 2] = [1_000_000_000, 2_000_000_000];
/// Symbols for which a device listens in a window in which nothing begins: as many as a preamble has.
const LISTENING: u64 = 8;

/// An event of the cell.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LoraEvent {
    /// The step.
    pub step: LoraStep,
    /// The device to which it happens.
    pub device: u32,
}

/// The steps of a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LoraStep {
    /// It may transmit again.
    Wake,
    /// Its transmission ends.
    UplinkEnd,
    /// Its receive window, the first (0) or the second (1), opens.
    Window(u8),
    /// The transmission of the gateway to it ends.
    DownlinkEnd,
}

impl LoraStep {
    const fn at_device(self, device: u32) -> LoraEvent {
        LoraEvent { step: self, device }
    }
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

/// Why the gateway cannot read a frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Spoiled {
    Collided,
    Deaf,
}

#[derive(Debug, Default)]
struct LoraDevice {
    radio: RadioState,
    /// Packets that wait here, and those that wait for this device at the gateway: tokens and bytes.
    up: VecDeque<(u32, u32)>,
    down: VecDeque<(u32, u32)>,
    /// Whether the gateway announced a further packet, so that an empty frame asks for it (section 4.3.1.4).
    polls: bool,
    /// From when on the duty cycle allows a transmission, ns.
    allowed: u64,
    /// When it will be woken.
    wakes: Option<u64>,
    /// When its last transmission ended, from which its windows count, ns.
    ended: u64,
    /// The packet in the frame on the air, from or to the device; an empty frame has none.
    on_air: Option<u32>,
    /// The channel of its frame, and what spoiled that.
    channel: u64,
    spoiled: Option<Spoiled>,
}

/// The gateway, with devices around it.
#[derive(Debug)]
pub struct LoraCell {
    settings: Lora,
    devices: Vec<LoraDevice>,
    /// Devices whose frames are on the air.
    sending: Vec<u32>,
    /// Until when the gateway transmits, ns. It has one transmitter, and hears nothing meanwhile.
    busy_until: u64,
    /// From when on its duty cycles allow a transmission in first and in second windows, ns.
    allowed: [u64; 2],
    outcomes: VecDeque<Crossing>,
    channels: ChaCha8Rng,
    fading: (Probability, ChaCha8Rng),
    counts: LoraCounts,
}

impl LoraCell {
    /// A cell of so many devices.
    #[must_use]
    pub fn new(settings: &Lora, devices: u32, streams: &Streams) -> Self {
        Self {
            settings: settings.clone(),
            devices: (0..devices).map(|_| LoraDevice::default()).collect(),
            sending: Vec::new(),
            busy_until: 0,
            allowed: [0; 2],
            outcomes: VecDeque::new(),
            channels: streams.stream("lora/channels"),
            fading: (Probability::new(settings.frame_loss), streams.stream("lora/fading")),
            counts: LoraCounts::default(),
        }
    }

    /// The frames so far.
    #[must_use]
    pub const fn counts(&self) -> LoraCounts {
        self.counts
    }

    /// Packets that wait at a device, or for it at the gateway, without the one on the air.
    #[must_use]
    pub fn waiting(&self, device: u32, upwards: bool) -> usize {
        let device = &self.devices[device as usize];
        if upwards { device.up.len() } else { device.down.len() }
    }

    /// The next outcome.
    pub fn poll(&mut self) -> Option<Crossing> {
        self.outcomes.pop_front()
    }

    /// A packet of `bytes` is to go from a device to the gateway or back. Returns whether there was room for it.
    pub fn send<E: From<LoraEvent> + Copy>(
        &mut self,
        now: Instant,
        device: u32,
        upwards: bool,
        token: u32,
        bytes: u32,
        engine: &mut Engine<E>,
    ) -> bool {
        let own = &mut self.devices[device as usize];
        let queue = if upwards { &mut own.up } else { &mut own.down };
        if queue.len() >= self.settings.queue as usize {
            self.counts.frames.overflows[usize::from(!upwards)] += 1;
            return false;
        }
        push_back(queue, (token, bytes));
        if upwards {
            self.transmit(now, device, engine);
        }
        // A packet for the device waits for the windows after its next uplink.
        true
    }

    /// An event of the cell has come; [`Self::poll`] says what came of it.
    pub fn handle<E: From<LoraEvent> + Copy>(
        &mut self,
        now: Instant,
        LoraEvent { step, device }: LoraEvent,
        engine: &mut Engine<E>,
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
                self.transmit(now, device, engine);
            }
            LoraStep::UplinkEnd => self.uplink_end(now, device, engine),
            LoraStep::Window(window) => {
                self.window(now, device, usize::from(window), engine);
            }
            LoraStep::DownlinkEnd => self.downlink_end(now, device, engine),
        }
    }

    /// The device transmits its first packet, or asks for one, if it may.
    fn transmit<E: From<LoraEvent> + Copy>(
        &mut self,
        now: Instant,
        device: u32,
        engine: &mut Engine<E>,
    ) {
        let own = &mut self.devices[device as usize];
        if own.radio != RadioState::Idle || (own.up.is_empty() && !own.polls) {
            return;
        }
        let start = now.as_nanos();
        if start < own.allowed {
            let at = own.allowed;
            return self.wake(device, at, engine);
        }
        let packet = own.up.pop_front();
        let time = Lora::frame_ns(self.settings.uplink(device), packet.map(|(_, bytes)| bytes));
        own.radio = RadioState::Sending;
        own.polls = false;
        own.on_air = packet.map(|(token, _)| token);
        own.allowed = start + off_time(time, self.settings.duty_cycle);
        own.channel = uniform(&mut self.channels, 1, u64::from(self.settings.channels));
        own.spoiled = (start < self.busy_until).then_some(Spoiled::Deaf);
        self.counts.frames.uplinks += 1;
        self.counts.frames.polls += u64::from(packet.is_none());
        self.counts.radio.transmit_ns += time;
        self.collide(device);
        self.sending.push(device);
        engine.schedule(
            Instant::from_nanos(start + time),
            LoraStep::UplinkEnd.at_device(device).into(),
        );
    }

    /// Frames of the same spreading factor on the same channel spoil each other, however strong they are: no
    /// capture. Those of different factors do not.
    fn collide(&mut self, device: u32) {
        let mine = device as usize;
        for other in &self.sending {
            let theirs = *other as usize;
            let meets = self.devices[mine].channel == self.devices[theirs].channel
                && self.settings.spreading_factor(device) == self.settings.spreading_factor(*other);
            if meets {
                self.devices[mine].spoiled.get_or_insert(Spoiled::Collided);
                self.devices[theirs].spoiled.get_or_insert(Spoiled::Collided);
            }
        }
    }

    fn uplink_end<E: From<LoraEvent> + Copy>(
        &mut self,
        now: Instant,
        device: u32,
        engine: &mut Engine<E>,
    ) {
        self.sending.retain(|other| *other != device);
        let own = &mut self.devices[device as usize];
        own.radio = RadioState::Waiting;
        own.ended = now.as_nanos();
        let (packet, spoiled) = (own.on_air.take(), own.spoiled.take());
        match spoiled {
            Some(Spoiled::Collided) => self.counts.frames.collided += 1,
            Some(Spoiled::Deaf) => self.counts.frames.deaf += 1,
            None => {}
        }
        let is_read = spoiled.is_none() && !self.fades();
        if let Some(token) = packet {
            let lost = Crossing::Lost { token, upwards: true };
            push_back(&mut self.outcomes, if is_read { Crossing::Up(token) } else { lost });
        }
        let end = now.as_nanos();
        // Without the frame the gateway does not know when the windows are.
        for window in 0..2 {
            self.counts.radio.listen_ns += self.listening(device, usize::from(window));
            if is_read {
                let at = Instant::from_nanos(end + WINDOWS[usize::from(window)]);
                engine.schedule(at, LoraStep::Window(window).at_device(device).into());
            }
        }
        self.wake(device, end + WINDOWS[1] + self.listening(device, 1), engine);
    }

    /// A window opens: the gateway uses it if there is a packet and it may transmit.
    fn window<E: From<LoraEvent> + Copy>(
        &mut self,
        now: Instant,
        device: u32,
        window: usize,
        engine: &mut Engine<E>,
    ) {
        let start = now.as_nanos();
        let is_free = start >= self.busy_until && start >= self.allowed[window];
        let listening: u64 = (0..2).map(|one| self.listening(device, one)).skip(window).sum();
        let own = &mut self.devices[device as usize];
        // A device that has received a frame in the first window does not open the second one.
        let is_open = own.radio == RadioState::Waiting && start == own.ended + WINDOWS[window];
        if !is_free || !is_open {
            return;
        }
        let Some((token, bytes)) = own.down.pop_front() else { return };
        own.radio = RadioState::Receiving;
        own.on_air = Some(token);
        let time = Lora::frame_ns(self.settings.downlink(device, window), Some(bytes));
        let duty_cycle = [self.settings.duty_cycle, self.settings.second_window_duty_cycle][window];
        self.busy_until = start + time;
        self.allowed[window] = start + off_time(time, duty_cycle);
        self.counts.frames.downlinks[window] += 1;
        self.counts.downlink_ns[window] += time;
        // It receives in place of what it would have listened from now on.
        self.counts.radio.listen_ns += time;
        self.counts.radio.listen_ns -= listening;
        for other in &self.sending {
            self.devices[*other as usize].spoiled.get_or_insert(Spoiled::Deaf);
        }
        engine.schedule(
            Instant::from_nanos(start + time),
            LoraStep::DownlinkEnd.at_device(device).into(),
        );
    }

    fn downlink_end<E: From<LoraEvent> + Copy>(
        &mut self,
        now: Instant,
        device: u32,
        engine: &mut Engine<E>,
    ) {
        let is_read = !self.fades();
        let own = &mut self.devices[device as usize];
        own.radio = RadioState::Idle;
        own.wakes = None;
        own.polls = is_read && !own.down.is_empty();
        if let Some(token) = own.on_air.take() {
            let lost = Crossing::Lost { token, upwards: false };
            push_back(&mut self.outcomes, if is_read { Crossing::Down(token) } else { lost });
        }
        self.transmit(now, device, engine);
    }

    fn wake<E: From<LoraEvent> + Copy>(&mut self, device: u32, at: u64, engine: &mut Engine<E>) {
        self.devices[device as usize].wakes = Some(at);
        engine.schedule(Instant::from_nanos(at), LoraStep::Wake.at_device(device).into());
    }

    fn fades(&mut self) -> bool {
        let fades = self.fading.0.draw(&mut self.fading.1);
        self.counts.frames.faded += u64::from(fades);
        fades
    }

    /// How long a device listens in a window in which nothing begins, ns.
    fn listening(&self, device: u32, window: usize) -> u64 {
        LISTENING * Modulation::symbol_ns(self.settings.downlink(device, window))
    }
}

/// The time from the start of a transmission until the next one is allowed: the sender is silent for
/// `airtime / duty cycle - airtime` (section 7.2 of LoRaWAN 1.0.1), ns.
fn off_time(airtime: u64, duty_cycle: f64) -> u64 {
    // Rounded up to a nanosecond; the cast saturates.
    (airtime as f64 / duty_cycle).ceil() as u64
}
