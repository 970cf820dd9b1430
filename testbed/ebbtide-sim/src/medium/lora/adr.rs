//! Adaptive data rate: requests of the network server, and what a device does that hears nothing.
//!
//! The server's part is not in LoRaWAN's specification. It is Semtech's "LoRaWAN - simple rate adaptation recommended
//! algorithm" (2016), which The Things Network and ChirpStack have taken over; repetitions of frames (NbTrans) are left
//! out. The device's part is section 4.3.1.1 of LoRaWAN 1.0.4 with its table 9: the full power is restored before the
//! spreading factor rises, and a device asks at SF12 and full power too. (1.0.3 does neither.)

use super::signal::required_snr;
use std::collections::VecDeque;

/// The uplinks whose best signal decides.
const HISTORY: usize = 20;
/// A step of the algorithm, thousandths of a decibel.
const STEP: i32 = 3_000;
/// The steps by which the power is reduced at most.
pub(super) const LEAST_POWER: u8 = 4;
/// ADR_ACK_LIMIT and ADR_ACK_DELAY (LoRaWAN Regional Parameters 1.0.3, section 2.2.8).
const ACK_LIMIT: u32 = 64;
const ACK_DELAY: u32 = 32;

/// Spreading factor and power of a transmission.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LinkParameters {
    /// The spreading factor, 7 to 12.
    pub spreading_factor: u8,
    /// By how many steps of 3 dB the power is below the full one, at most 4.
    pub reduction: u8,
}

impl LinkParameters {
    /// The power below the full one, thousandths of a decibel.
    pub(super) const fn reduced_by(self) -> i32 {
        STEP * self.reduction as i32
    }

    /// The parameters that the network server wants, given the best signal-to-noise ratio of the last uplinks and the
    /// margin that it keeps, both in thousandths of a decibel. It never raises a spreading factor.
    pub fn adapted(self, best_snr: i32, margin: i32) -> Self {
        let spare = best_snr - required_snr(self.spreading_factor) - margin;
        // Division rounds towards zero, as the algorithm does.
        let steps = spare / STEP;
        let mut wanted = self;
        for _ in 0..steps {
            if wanted.spreading_factor > 7 {
                wanted.spreading_factor -= 1;
            } else if wanted.reduction < LEAST_POWER {
                wanted.reduction += 1;
            }
        }
        for _ in steps..0 {
            wanted.reduction = wanted.reduction.saturating_sub(1);
        }
        wanted
    }
}

/// The part of a device.
#[derive(Debug)]
pub(super) struct AdaptiveDevice {
    /// Spreading factor and power of its transmissions.
    pub(super) link: LinkParameters,
    /// Uplinks since the last downlink (ADR_ACK_CNT).
    unanswered: u32,
    /// Whether its next or current uplink answers a request (LinkADRAns).
    pub(super) confirms: bool,
}

impl AdaptiveDevice {
    pub(super) const fn new(spreading_factor: u8) -> Self {
        let link = LinkParameters { spreading_factor, reduction: 0 };
        Self { link, unanswered: 0, confirms: false }
    }

    /// It transmits. After a long silence of the network it first raises its power to the full one, then its
    /// spreading factor step by step.
    pub(super) fn transmits(&mut self) {
        self.unanswered += 1;
        let overdue = self.unanswered.saturating_sub(ACK_LIMIT);
        if overdue == 0 || !overdue.is_multiple_of(ACK_DELAY) {
            return;
        }
        if self.link.reduction > 0 {
            self.link.reduction = 0;
        } else if self.link.spreading_factor < 12 {
            self.link.spreading_factor += 1;
        }
    }

    /// Whether its uplink asks for any downlink (ADRACKReq).
    pub(super) const fn asks(&self) -> bool {
        self.unanswered >= ACK_LIMIT
    }

    /// It has received a frame, maybe with a request (LinkADRReq).
    pub(super) fn receives(&mut self, request: Option<LinkParameters>) {
        self.unanswered = 0;
        if let Some(link) = request {
            self.link = link;
            self.confirms = true;
        }
    }
}

/// The part of the network server, for one device.
#[derive(Debug, Default)]
pub(super) struct AdaptingServer {
    /// The signal-to-noise ratios of the last uplinks, each at the gateway that heard it best.
    history: VecDeque<i32>,
    /// The parameters of these uplinks.
    measured: Option<LinkParameters>,
    /// The request (LinkADRReq) of the next downlink.
    pub(super) request: Option<LinkParameters>,
    /// Whether the device asked for any downlink.
    pub(super) owes_downlink: bool,
}

impl AdaptingServer {
    /// An uplink of the device was read, with this ratio at the gateway that heard it best. The server knows the
    /// parameters of every uplink that it hears.
    pub(super) fn hears(&mut self, device: &AdaptiveDevice, snr: i32, margin: i32) {
        // What was measured with other parameters says nothing of these. The uplink with the answer (LinkADRAns) may
        // have been lost.
        if self.measured.replace(device.link) != Some(device.link) {
            self.history.clear();
        }
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(snr);
        self.owes_downlink = device.asks();
        let best = self.history.iter().max().filter(|_| self.history.len() == HISTORY);
        let wanted = best.map(|best| device.link.adapted(*best, margin));
        self.request = wanted.filter(|wanted| *wanted != device.link);
    }
}
