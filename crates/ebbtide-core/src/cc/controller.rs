//! Dispatch: the built-in controls by enum, others by trait object.

use super::{
    Admission, Cocoa, Cocoa01, CocoaFullBackoff, CongestionControl, Context, Default, Ebb, Expiry,
    Fasor, FullBackoff, LinuxRto, Load, Marking, Metrics, Outcome, OutgoingMessage, PeakHopper,
    ProbeReply, Rcoap, Sample, Slot, Transmission,
};
use crate::time::{Instant, Micros};

/// The state of one scope's congestion control.
#[derive(Debug)]
pub enum Controller {
    /// `default`, `default-b`.
    Default(Default),
    /// `default-fb1`, `default-fb2`.
    FullBackoff(FullBackoff),
    /// `linux-rto`.
    LinuxRto(LinuxRto),
    /// `peak-hopper`.
    PeakHopper(PeakHopper),
    /// `cocoa`, `cocoa-plus`.
    Cocoa(Cocoa),
    /// `cocoa-01`.
    Cocoa01(Cocoa01),
    /// `cocoa-fb1`, `cocoa-fb2`.
    CocoaFullBackoff(CocoaFullBackoff),
    /// `fasor` and its variants.
    Fasor(Fasor),
    /// `ebb`.
    Ebb(Ebb),
    /// `rcoap`.
    Rcoap(Rcoap),
    /// A control from outside this crate.
    #[cfg(feature = "alloc")]
    Other(alloc::boxed::Box<dyn DynControl>),
}

/// The bounds that a control from outside this crate must satisfy to be used in an endpoint.
#[cfg(feature = "alloc")]
pub trait DynControl: CongestionControl + Send + core::fmt::Debug {}
#[cfg(feature = "alloc")]
impl<T: CongestionControl + Send + core::fmt::Debug> DynControl for T {}

/// Calls the same method on the control, whichever it is.
macro_rules! dispatch {
    ($self:ident, $control:ident => $call:expr) => {
        match $self {
            Controller::Default($control) => $call,
            Controller::FullBackoff($control) => $call,
            Controller::LinuxRto($control) => $call,
            Controller::PeakHopper($control) => $call,
            Controller::Cocoa($control) => $call,
            Controller::Cocoa01($control) => $call,
            Controller::CocoaFullBackoff($control) => $call,
            Controller::Fasor($control) => $call,
            Controller::Ebb($control) => $call,
            Controller::Rcoap($control) => $call,
            #[cfg(feature = "alloc")]
            Controller::Other($control) => $call,
        }
    };
}

impl CongestionControl for Controller {
    #[inline]
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        dispatch!(self, control => control.admit(message, load, cx))
    }

    #[inline]
    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        dispatch!(self, control => control.on_transmit(transmission, slot, cx))
    }

    #[inline]
    fn on_expire(&mut self, slot: &Slot, cx: &mut Context<'_>) -> Expiry {
        dispatch!(self, control => control.on_expire(slot, cx))
    }

    #[inline]
    fn on_probe(
        &mut self,
        slot: &mut Slot,
        reply: &ProbeReply,
        cx: &mut Context<'_>,
    ) -> Option<Micros> {
        dispatch!(self, control => control.on_probe(slot, reply, cx))
    }

    #[inline]
    fn on_feedback(&mut self, slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        dispatch!(self, control => control.on_feedback(slot, sample, cx));
    }

    #[inline]
    fn on_close(
        &mut self,
        slot: &Slot,
        outcome: Outcome,
        retransmissions: u8,
        cx: &mut Context<'_>,
    ) {
        dispatch!(self, control => control.on_close(slot, outcome, retransmissions, cx));
    }

    fn on_congestion_experienced(&mut self, cx: &mut Context<'_>) -> Micros {
        dispatch!(self, control => control.on_congestion_experienced(cx))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        dispatch!(self, control => control.poll_timeout())
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        dispatch!(self, control => control.handle_timeout(cx));
    }

    #[inline]
    fn marking(&self) -> Marking {
        dispatch!(self, control => control.marking())
    }

    fn metrics(&self) -> Metrics {
        dispatch!(self, control => control.metrics())
    }
}
