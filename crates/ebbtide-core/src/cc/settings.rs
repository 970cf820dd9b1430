//! The settings of the congestion controls.

use super::Marking;
use crate::params::Parameters;
use crate::time::Micros;

/// The settings of the controls. Each control reads those that its documentation page names.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The maximum of backed-off timeouts; `None` for no maximum. It does not hold below what the path
    /// needs: see [`Context::bounded`](super::Context::bounded).
    pub bound: Option<Micros>,
    /// The minimum RTO of `linux-rto` and `peak-hopper` (RFC 6298 section 2.4: 1 s).
    pub floor: Micros,
    /// The RTO before the first sample; `None` for ACK_TIMEOUT, of which `ebb` takes a fifth.
    pub initial_rto: Option<Micros>,
    /// ACK_TIMEOUT for this control; `None` for the endpoint's value.
    pub ack_timeout: Option<Micros>,
    /// NSTART for this control; `None` for the endpoint's value.
    pub nstart: Option<u16>,
    /// G, the clock's granularity: the minimum margin above a smoothed round trip (RFC 6298).
    pub granularity: Micros,
    /// Whether CoCoA's estimates age (Thesis19 turns it off).
    pub ageing: bool,
    /// The factor by which a small CoCoA estimate grows when it ages: 2; SOCNE14 prints 16.
    pub small_ageing_factor: u32,
    /// Which description of CoCoA+ `cocoa-plus` follows.
    pub code: CocoaCode,
    /// The number of values over which `cocoa-01` smooths its overall RTO: 1 (off) to 4.
    pub history: u8,
    /// How transmissions of `ebb` are marked.
    pub mark: Marking,
    /// How often `ebb` repeats a message after the same short timeout while there is no queue.
    pub copies: u8,
    /// The interval after `ebb`'s probe, over the base of its intervals while nothing is known of the
    /// path.
    pub probe_growth: u8,
    /// The minimum margin of `ebb`'s timeout above SRTT, in percent of SRTT.
    pub margin_percent: u8,
    /// The width over which `ebb`'s timeout is spread, in percent of SRTT.
    pub dither_percent: u8,
    /// IPI_min of `rcoap`, the minimum time between two messages; the maximum rate is its inverse.
    pub ipi_min: Micros,
    /// The initial time between messages of `rcoap`, 1/R_start; `None` to estimate it from the
    /// spacing of the first answers.
    pub start_interval: Option<Micros>,
    /// The limit on messages in flight.
    pub in_flight: InFlight,
}

/// Descriptions of CoCoA+.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum CocoaCode {
    /// WiMob17's text.
    #[default]
    Paper,
    /// Its authors' code for Contiki (2015, draft-bormann-core-cocoa-02), which differs from the text:
    /// timeouts are not dithered; an estimate below one second that is idle for 16 times its length
    /// becomes one second; weak samples come from any number of retransmissions and weigh 3/4; after more
    /// than three retransmissions without a strong sample the strong estimator starts again; the backoff
    /// factors are 2.5, 2 and 1.5.
    Contiki,
}

/// The limit on unacknowledged Confirmable messages of a scope.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// NSTART (RFC 7252 section 4.7).
    Nstart,
    /// The number of messages that fill the path, R x RTT rounded up, as a pacing control
    /// estimates it; at most NSTART if the control has a value of its own, and at most
    /// [`InFlight::MAX`].
    Rate,
    /// A fixed number of messages.
    Messages(u16),
}

impl InFlight {
    /// The maximum number of messages in flight at any rate.
    pub const MAX: u16 = 1024;
}

impl Settings {
    /// The RTO before the first sample.
    #[inline]
    #[must_use]
    pub fn initial_rto(&self, params: &Parameters) -> Micros {
        self.initial_rto.unwrap_or(params.ack_timeout)
    }

    /// ACK_TIMEOUT as it applies to this control.
    #[inline]
    #[must_use]
    pub fn ack_timeout(&self, params: &Parameters) -> Micros {
        self.ack_timeout.unwrap_or(params.ack_timeout)
    }

    /// The first timeout as it is set, for this control or for the endpoint: what the user says of the
    /// length of the path.
    #[inline]
    #[must_use]
    pub fn first_timeout(&self, params: &Parameters) -> Micros {
        // None is shorter than any span.
        self.initial_rto.max(self.ack_timeout).unwrap_or(params.ack_timeout)
    }

    /// NSTART as it applies to this control, at least 1.
    #[inline]
    #[must_use]
    pub fn nstart(&self, params: &Parameters) -> u16 {
        self.nstart.unwrap_or(params.nstart).max(1)
    }

    /// The maximum number of open Confirmable exchanges, at least 1: NSTART, or the limit on
    /// messages in flight of a control that keeps a rate (RFC 7252 section 4.7 allows a larger
    /// NSTART to an endpoint with a congestion control of its own).
    #[inline]
    #[must_use]
    pub fn places(&self, params: &Parameters) -> u16 {
        match self.in_flight {
            InFlight::Nstart => self.nstart(params),
            InFlight::Rate => self.nstart.unwrap_or(InFlight::MAX).clamp(1, InFlight::MAX),
            InFlight::Messages(most) => most.clamp(1, InFlight::MAX),
        }
    }
}
