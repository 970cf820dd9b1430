//! The gateways, and how each of them hears the frames on the air.

use super::adr::LinkParameters;
use super::settings::Lora;
use super::signal::{self, GATEWAY_GAIN, required_snr};
use crate::random::{Probability, Streams};
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::ops::Range;

/// By how much a frame must be stronger than another one of its channel and spreading factor to be read nevertheless,
/// thousandths of a decibel (Bor et al., "Do LoRa low-power wide-area networks scale?", MSWiM 2016, section 4.2).
const CAPTURE: i32 = 6_000;

/// Why a frame is not read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// It is too weak.
    Weak,
    /// It met another one.
    Collided,
    /// The gateway was transmitting.
    Deaf,
    /// For another reason.
    Faded,
}

/// A device's frame at a gateway: the one on the air, or the last one.
#[derive(Copy, Clone, Debug)]
struct Reception {
    /// The signal of the device at full power above the noise, thousandths of a decibel.
    level: i32,
    /// The signal of the frame above the noise.
    snr: i32,
    obstacle: Option<Obstacle>,
}

/// The transmitter of a gateway.
#[derive(Copy, Clone, Debug, Default)]
struct Transmitter {
    /// Until when it transmits, ns. The gateway hears nothing meanwhile.
    busy_until: u64,
    /// From when on its duty cycles allow a transmission in first and in second windows, ns.
    allowed: [u64; 2],
}

/// A transmission of a gateway.
#[derive(Copy, Clone, Debug)]
pub(super) struct Downlink {
    pub(super) gateway: usize,
    pub(super) window: usize,
    pub(super) start: u64,
    /// Its time on the air, ns.
    pub(super) time: u64,
    /// From when on the duty cycle allows the next one, ns.
    pub(super) allowed: u64,
}

/// All gateways.
#[derive(Debug)]
pub(super) struct Gateways {
    transmitters: Vec<Transmitter>,
    /// Device by device, gateway by gateway.
    receptions: Vec<Reception>,
    /// The standard deviation of frames' signals, thousandths of a decibel, and its draws.
    fading: (i64, ChaCha8Rng),
    unreadable: (Probability, ChaCha8Rng),
}

impl Gateways {
    pub(super) fn new(settings: &Lora, devices: u32, streams: &Streams) -> Self {
        let levels = signal::levels(settings, devices, streams);
        let reception = |level| Reception { level, snr: level, obstacle: None };
        Self {
            transmitters: vec![Transmitter::default(); settings.gateways as usize],
            receptions: levels.into_iter().map(reception).collect(),
            // At most 20 dB.
            fading: ((settings.fading * 1000.0).round() as i64, streams.stream("lora/signals")),
            unreadable: (Probability::new(settings.frame_loss), streams.stream("lora/fading")),
        }
    }

    fn of(&self, device: u32) -> Range<usize> {
        let count = self.transmitters.len();
        let first = device as usize * count;
        first..first + count
    }

    fn fades(&mut self) -> i32 {
        let (deviation, rng) = &mut self.fading;
        if *deviation == 0 { 0 } else { signal::normal(rng, *deviation) }
    }

    /// A device begins a frame.
    pub(super) fn begins(&mut self, device: u32, start: u64, link: LinkParameters) {
        for (place, gateway) in self.of(device).zip(0..) {
            let level = self.receptions[place].level;
            let snr = level - link.reduced_by() + self.fades();
            let is_deaf = start < self.transmitters[gateway].busy_until;
            let obstacle = is_deaf.then_some(Obstacle::Deaf);
            self.receptions[place] = Reception { level, snr, obstacle };
        }
    }

    /// The frames of two devices meet on their channel with the same spreading factor: at each
    /// gateway the weaker one is spoiled, and the stronger one too unless it is much stronger.
    pub(super) fn meet(&mut self, one: u32, other: u32) {
        for (one, other) in self.of(one).zip(self.of(other)) {
            for (own, against) in [(one, other), (other, one)] {
                let against = self.receptions[against].snr;
                let own = &mut self.receptions[own];
                if own.snr < against + CAPTURE {
                    own.obstacle.get_or_insert(Obstacle::Collided);
                }
            }
        }
    }

    /// The frame of a device ends: returns its signal at the gateway that reads it best, or why the gateway with the
    /// strongest signal cannot read it.
    pub(super) fn ends(&mut self, device: u32, spreading_factor: u8) -> Result<i32, Obstacle> {
        let own = self.of(device);
        let own = &mut self.receptions[own];
        for one in &mut *own {
            if one.snr < required_snr(spreading_factor) {
                one.obstacle = Some(Obstacle::Weak);
            }
        }
        let arrives = own.iter().any(|one| one.obstacle.is_none());
        // Drawn once for the frame, so that the share does not depend on the number of gateways: what differs between
        // gateways is `fading`.
        if arrives && self.unreadable.0.draw(&mut self.unreadable.1) {
            for one in &mut *own {
                one.obstacle.get_or_insert(Obstacle::Faded);
            }
        }
        let strongest = |read: bool| {
            own.iter().filter(|one| one.obstacle.is_none() == read).max_by_key(|one| one.snr)
        };
        match (strongest(true), strongest(false)) {
            (Some(best), _) => Ok(best.snr),
            (None, best) => Err(best.and_then(|best| best.obstacle).unwrap_or(Obstacle::Weak)),
        }
    }

    /// The gateway that is to answer a device: of those that read its frame and may transmit now, the one that heard it
    /// best.
    pub(super) fn answering(&self, device: u32, start: u64, window: usize) -> Option<usize> {
        let own = self.receptions[self.of(device)].iter().zip(&self.transmitters).enumerate();
        let may = own.filter(|(_, (reception, transmitter))| {
            let is_free = start >= transmitter.busy_until && start >= transmitter.allowed[window];
            reception.obstacle.is_none() && is_free
        });
        may.min_by_key(|(_, (reception, _))| Reverse(reception.snr)).map(|(gateway, _)| gateway)
    }

    /// A gateway transmits, and hears none of the devices that are sending.
    pub(super) fn transmits(&mut self, downlink: Downlink, sending: &[u32]) {
        let own = &mut self.transmitters[downlink.gateway];
        own.busy_until = downlink.start + downlink.time;
        own.allowed[downlink.window] = downlink.allowed;
        for device in sending {
            let place = self.of(*device).start + downlink.gateway;
            self.receptions[place].obstacle.get_or_insert(Obstacle::Deaf);
        }
    }

    /// Whether a device reads a frame of a gateway, and if not, why.
    pub(super) fn reaches(
        &mut self,
        device: u32,
        downlink: Downlink,
        spreading_factor: u8,
    ) -> Result<(), Obstacle> {
        let place = self.of(device).start + downlink.gateway;
        let level = self.receptions[place].level + GATEWAY_GAIN[downlink.window];
        if level + self.fades() < required_snr(spreading_factor) {
            return Err(Obstacle::Weak);
        }
        let is_faded = self.unreadable.0.draw(&mut self.unreadable.1);
        if is_faded { Err(Obstacle::Faded) } else { Ok(()) }
    }
}
