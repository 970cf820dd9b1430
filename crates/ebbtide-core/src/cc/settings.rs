//! What can be set of a control.

use super::Marking;
use crate::params::Parameters;
use crate::time::Micros;

/// The settings of the controls. Each control reads those that its documentation names.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The bound on backed-off timeouts; `None` for none.
    pub bound: Option<Micros>,
    /// The least RTO of `linux-rto` and `peak-hopper` (RFC 6298 section 2.4: 1 s).
    pub floor: Micros,
    /// The RTO before any sample; `None` for ACK_TIMEOUT.
    pub initial_rto: Option<Micros>,
    /// ACK_TIMEOUT of this control in place of the endpoint's.
    pub ack_timeout: Option<Micros>,
    /// NSTART of this control in place of the endpoint's.
    pub nstart: Option<u16>,
    /// G, the clock's granularity: the least margin above a smoothed round trip (RFC 6298).
    pub granularity: Micros,
    /// Whether CoCoA's estimates age (Thesis19 turns it off).
    pub ageing: bool,
    /// What a small CoCoA estimate is multiplied with when it ages: 2; SOCNE14 prints 16.
    pub small_ageing_factor: u32,
    /// Over how many values `cocoa-01` smooths its overall RTO: 1 (off) to 4.
    pub history: u8,
    /// How transmissions of `ebb` are marked.
    pub mark: Marking,
    /// How often `ebb` repeats a message after the same short timeout while no queue stands.
    pub copies: u8,
    /// By what `ebb`'s first interval is multiplied after its first probe, while nothing is known.
    pub probe_growth: u8,
    /// The least margin of `ebb`'s timeout above SRTT, in percent of SRTT.
    pub margin_percent: u8,
    /// Over how much `ebb`'s timeout is spread, in percent of SRTT.
    pub dither_percent: u8,
    /// IPI_min of `rcoap`, the least time between two messages; the largest rate is its inverse.
    pub ipi_min: Micros,
    /// The time between messages that `rcoap` starts with, 1/R_start; `None` to estimate it from
    /// the spacing of the first answers.
    pub start_interval: Option<Micros>,
    /// What bounds the messages in flight.
    pub in_flight: InFlight,
}

/// How many Confirmable messages of a scope may be unacknowledged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// NSTART (RFC 7252 section 4.7).
    Nstart,
    /// What a control that paces takes for the path's content, R x RTT rounded up; at most NSTART if
    /// the control was given one of its own, and [`InFlight::MOST`].
    Rate,
    /// So many.
    Messages(u16),
}

impl InFlight {
    /// The most messages in flight, whatever the rate.
    pub const MOST: u16 = 1024;
}

impl Settings {
    /// The RTO before any sample.
    #[inline]
    #[must_use]
    pub fn initial_rto(&self, params: &Parameters) -> Micros {
        self.initial_rto.unwrap_or(params.ack_timeout)
    }

    /// ACK_TIMEOUT as this control sees it.
    #[inline]
    #[must_use]
    pub fn ack_timeout(&self, params: &Parameters) -> Micros {
        self.ack_timeout.unwrap_or(params.ack_timeout)
    }

    /// NSTART as this control sees it, at least 1.
    #[inline]
    #[must_use]
    pub fn nstart(&self, params: &Parameters) -> u16 {
        self.nstart.unwrap_or(params.nstart).max(1)
    }

    /// The most Confirmable exchanges that may be open at once, at least 1: NSTART, or the bound on
    /// what is in flight of a control that keeps a rate (RFC 7252 section 4.7 allows a larger NSTART
    /// to one that has a congestion control of its own).
    #[inline]
    #[must_use]
    pub fn places(&self, params: &Parameters) -> u16 {
        match self.in_flight {
            InFlight::Nstart => self.nstart(params),
            InFlight::Rate => self.nstart.unwrap_or(InFlight::MOST).clamp(1, InFlight::MOST),
            InFlight::Messages(most) => most.clamp(1, InFlight::MOST),
        }
    }
}
