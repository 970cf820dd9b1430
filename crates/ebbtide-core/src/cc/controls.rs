//! The built-in controls: the table with everything that the crate knows of each but its code, and the dispatch to
//! their states, by enum, and to controls from outside, by trait object.

use super::{
    Admission, BasicRto, Cocoa, Cocoa01, CocoaCode, CocoaFullBackoff, CocoaStrong,
    CongestionControl, Context, Default, Ebb, Ecoap, EcoapRpl, Eifel, Expiry, Fasor, FullBackoff,
    InFlight, LinuxRto, Load, Marking, Metrics, Outcome, OutgoingMessage, PeakHopper, ProbeReply,
    Rcoap, Rfc6298, Sample, Settings, Slot, TimeoutSchedule, Transmission,
};
use crate::time::{Instant, Micros};
use core::fmt;

/// Defines [`Algorithm`] from a row for each control: its name, source and description; the keys of the settings that
/// it reads; the settings of its publication; and its state for a new scope.
macro_rules! controls {
    ($($variant:ident = $name:literal, $source:literal, $about:literal,
        $keys:expr, $settings:expr, $build:expr;)*) => {
        /// Every built-in congestion control, under the name that the command line, scenario
        /// files, results and Python use.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Algorithm {
            $(#[doc = concat!("`", $name, "`: ", $about, " (", $source, ").")] $variant,)*
        }

        impl Algorithm {
            /// All controls, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Their names, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// The control's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The publication that the control comes from.
            #[must_use]
            pub const fn source(self) -> &'static str {
                match self { $(Self::$variant => $source,)* }
            }

            /// A short description of the control.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }

            /// The keys of the settings that apply to this control.
            /// [`ControlConfig::set`](super::ControlConfig::set) refuses all others.
            #[must_use]
            pub const fn keys(self) -> &'static [&'static str] {
                match self { $(Self::$variant => $keys,)* }
            }

            /// The settings of its publication.
            #[must_use]
            pub const fn settings(self) -> Settings {
                match self { $(Self::$variant => $settings,)* }
            }

            /// A control without any knowledge, for a new scope.
            pub(super) fn build(self, settings: &Settings) -> Controller {
                match self { $(Self::$variant => {
                    let build: fn(&Settings) -> Controller = $build;
                    build(settings)
                })* }
            }
        }
    };
}

const DEFAULT: &[&str] = &["bound", "ack-timeout", "nstart"];
const TCP: &[&str] = &["floor", "bound", "initial-rto", "granularity", "nstart"];
const COCOA: &[&str] =
    &["bound", "ageing", "small-ageing-factor", "initial-rto", "granularity", "nstart"];
const COCOA_01: &[&str] =
    &["bound", "ageing", "small-ageing-factor", "history", "initial-rto", "granularity", "nstart"];
const COCOA_PLUS: &[&str] =
    &["code", "bound", "ageing", "small-ageing-factor", "initial-rto", "granularity", "nstart"];
const COCOA_STRONG: &[&str] = &["floor", "bound", "ageing", "initial-rto", "granularity", "nstart"];
const BASIC_RTO: &[&str] = &["floor", "bound", "initial-rto", "nstart"];
const EIFEL: &[&str] = &["bound", "initial-rto", "granularity", "nstart"];
const ECOAP_RPL: &[&str] = &["min", "max", "growth", "bound", "nstart"];
const FASOR: &[&str] = &["bound", "initial-rto", "granularity", "nstart"];
const RCOAP: &[&str] = &[
    "ipi-min",
    "start-interval",
    "in-flight",
    "nstart",
    "initial-rto",
    "floor",
    "bound",
    "ageing",
    "granularity",
];
const EBB: &[&str] = &[
    "mark",
    "copies",
    "probe-growth",
    "initial-rto",
    "margin",
    "dither",
    "ageing",
    "bound",
    "nstart",
    "granularity",
];

/// Californium's minimum of a first timeout.
const CALIFORNIUM_FLOOR: Micros = Micros::from_millis(500);

// Thesis19 sets a bound of 60 s for its FASOR variants: a property of its experiments, which the scenarios set.
controls! {
    Default = "default", "RFC 7252", "random initial timeout, doubled; learns nothing",
        DEFAULT, Settings::UNBOUNDED, |_| Controller::Default(Default);
    DefaultB = "default-b", "SOCNE14", "default with an ACK_TIMEOUT of 1 s",
        DEFAULT, Settings { ack_timeout: Some(Micros::from_millis(1_000)), ..Settings::UNBOUNDED },
        |_| Controller::Default(Default);
    DefaultFb1 = "default-fb1", "ANRW18", "default that keeps its backoff until an exchange needs no retransmission",
        DEFAULT, Settings::UNBOUNDED, |_| Controller::FullBackoff(FullBackoff::forgetting());
    DefaultFb2 = "default-fb2", "ANRW18", "default that keeps its backoff and halves it with each good exchange",
        DEFAULT, Settings::UNBOUNDED, |_| Controller::FullBackoff(FullBackoff::halving());
    Rfc6298 = "rfc6298", "RFC 6298", "TCP's retransmission timer as its RFC has it",
        TCP, Settings { initial_rto: Some(Micros::from_millis(1_000)), ..Settings::bounded(60_000) },
        |_| Controller::Rfc6298(Rfc6298::default());
    LinuxRto = "linux-rto", "RFC 6298, Linux", "TCP's retransmission timer over UDP, with Karn's algorithm",
        TCP, Settings::bounded(120_000), |_| Controller::LinuxRto(LinuxRto::default());
    PeakHopper = "peak-hopper", "Ekstrom and Ludwig 2004", "timer that hops to round-trip peaks and decays slowly",
        TCP, Settings::UNBOUNDED, |_| Controller::PeakHopper(PeakHopper::default());
    Cocoa01 = "cocoa-01", "SOCNE14", "CoCoA of draft 01 with its paper's optimisations",
        COCOA_01, Settings::bounded(60_000), |_| Controller::Cocoa01(Cocoa01::new());
    CocoaPlus = "cocoa-plus", "WiMob17, RCOAP21", "CoCoA+",
        COCOA_PLUS, Settings::bounded(60_000), |settings| Controller::Cocoa(match settings.cocoa.code {
            CocoaCode::Paper => Cocoa::plus(),
            CocoaCode::Contiki => Cocoa::contiki(),
        });
    Cocoa = "cocoa", "cocoa-03", "strong and weak round-trip estimates, variable backoff",
        COCOA, Settings::bounded(32_000), |_| Controller::Cocoa(Cocoa::draft03());
    CocoaFb1 = "cocoa-fb1", "ANRW18", "cocoa that keeps its backoff until an exchange needs no retransmission",
        COCOA, Settings::bounded(32_000), |_| Controller::CocoaFullBackoff(CocoaFullBackoff::fb1());
    CocoaFb2 = "cocoa-fb2", "ANRW18", "cocoa that keeps its backoff and backs off once more",
        COCOA, Settings::bounded(32_000), |_| Controller::CocoaFullBackoff(CocoaFullBackoff::fb2());
    CocoaStrong = "cocoa-strong", "Californium 3.14", "CoCoA without weak samples",
        COCOA_STRONG,
        Settings { floor: CALIFORNIUM_FLOOR, granularity: Micros::from_millis(100), ..Settings::bounded(60_000) },
        |_| Controller::CocoaStrong(CocoaStrong::new());
    BasicRto = "basic-rto", "Californium 3.14", "half more than the last round trip",
        BASIC_RTO, Settings { floor: CALIFORNIUM_FLOOR, ..Settings::bounded(60_000) },
        |_| Controller::BasicRto(BasicRto::new());
    Ecoap = "ecoap", "eCoAP 2018", "timeouts drawn anew from averaged round trips, growing with each try",
        DEFAULT, Settings::UNBOUNDED, |_| Controller::Ecoap(Ecoap::new());
    EcoapRpl = "ecoap-rpl", "eCoAP 2018", "timeouts drawn anew from a range that a controller chooses",
        ECOAP_RPL, Settings::UNBOUNDED, |_| Controller::EcoapRpl(EcoapRpl);
    GoCoap = "go-coap", "go-coap 3.5", "always the same timeout, without a dither",
        DEFAULT, Settings::UNBOUNDED, |_| Controller::Schedule(TimeoutSchedule::Constant);
    Wakaama = "wakaama", "Wakaama, go-coap 3.8", "doubled timeouts without a dither",
        DEFAULT, Settings::UNBOUNDED, |_| Controller::Schedule(TimeoutSchedule::Undithered);
    Gcoap = "gcoap", "RIOT, Mbed CoAP", "doubled timeouts, each drawn by itself",
        DEFAULT, Settings::UNBOUNDED, |_| Controller::Schedule(TimeoutSchedule::Redrawn);
    Nyoci = "nyoci", "libnyoci", "bursts of three copies",
        DEFAULT, Settings { ack_timeout: Some(Micros::from_millis(1_500)), ..Settings::bounded(14_000) },
        |_| Controller::Schedule(TimeoutSchedule::Bursts);
    CocoRed = "coco-red", "program of 2022", "the backoff of CoCo-RED: Fibonacci numbers",
        DEFAULT, Settings::UNBOUNDED, |_| Controller::Schedule(TimeoutSchedule::Fibonacci);
    EncocoRed = "encoco-red", "program of 2022", "the backoff of EnCoCo-RED: Fibonacci numbers up to 3",
        DEFAULT, Settings::UNBOUNDED, |_| Controller::Schedule(TimeoutSchedule::HeldFibonacci);
    Eifel = "eifel", "Ludwig and Sklower 2000", "the Eifel timer, whose variation only rises with the round trip",
        // Two ticks of Contiki's clock, 1/128 s each, are the least margin.
        EIFEL, Settings { granularity: Micros::new(7_812), ..Settings::UNBOUNDED },
        |_| Controller::Eifel(Eifel::new());
    Slow = "slow", "Thesis19 7.1", "FASOR's first variant: the slow timeout backs off",
        FASOR, Settings::UNBOUNDED, |_| Controller::Fasor(Fasor::slow());
    FastSlow = "fast-slow", "Thesis19 7.1", "FASOR's second variant: one fast try, then the slow timeout backs off",
        FASOR, Settings::UNBOUNDED, |_| Controller::Fasor(Fasor::fast_slow());
    FasorK4 = "fasor-k4", "Thesis19 8.1", "FASOR whose first sample gives three round trips",
        FASOR, Settings::UNBOUNDED, |_| Controller::Fasor(Fasor::k4());
    Fasor = "fasor", "Thesis19 7.2, fasor-02", "fast and slow timeouts and a state that orders them",
        FASOR, Settings::UNBOUNDED, |_| Controller::Fasor(Fasor::fast_slow_fast(Marking::None));
    FasorToken = "fasor-token", "Thesis19 7.3", "FASOR with the transmission's ordinal in the token",
        FASOR, Settings::UNBOUNDED, |_| Controller::Fasor(Fasor::fast_slow_fast(Marking::Token));
    FasorOption = "fasor-option", "Thesis19 7.3, fasor-02", "FASOR with the transmission's ordinal in an option",
        FASOR, Settings::UNBOUNDED, |_| Controller::Fasor(Fasor::fast_slow_fast(Marking::Option));
    Rcoap = "rcoap", "RCOAP21", "rate control for bursts: discovers, paces, several messages in flight",
        RCOAP, Settings { floor: Rcoap::FLOOR, in_flight: InFlight::Rate, ..Settings::DEFAULT },
        |_| Controller::Rcoap(Rcoap::new());
    Ebb = "ebb", "Ebbtide", "asks with a ping while it does not know the path, and marks every copy",
        EBB, Settings::UNBOUNDED, |settings| Controller::Ebb(Ebb::new(settings.ebb.mark));
}

impl Algorithm {
    /// The control of an endpoint that names none: the safest over the map of fleets
    /// (docs/controls/README.md, "The default").
    pub const DEFAULT: Self = Self::Ebb;
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The state of one scope's congestion control.
#[derive(Debug)]
pub enum Controller {
    /// `default`, `default-b`.
    Default(Default),
    /// `default-fb1`, `default-fb2`.
    FullBackoff(FullBackoff),
    /// `rfc6298`.
    Rfc6298(Rfc6298),
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
    /// `cocoa-strong`.
    CocoaStrong(CocoaStrong),
    /// `basic-rto`.
    BasicRto(BasicRto),
    /// `ecoap`.
    Ecoap(Ecoap),
    /// `ecoap-rpl`.
    EcoapRpl(EcoapRpl),
    /// `go-coap`, `wakaama`, `gcoap`, `nyoci`, `coco-red`, `encoco-red`.
    Schedule(TimeoutSchedule),
    /// `eifel`.
    Eifel(Eifel),
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
            Controller::Rfc6298($control) => $call,
            Controller::LinuxRto($control) => $call,
            Controller::PeakHopper($control) => $call,
            Controller::Cocoa($control) => $call,
            Controller::Cocoa01($control) => $call,
            Controller::CocoaFullBackoff($control) => $call,
            Controller::CocoaStrong($control) => $call,
            Controller::BasicRto($control) => $call,
            Controller::Ecoap($control) => $call,
            Controller::EcoapRpl($control) => $call,
            Controller::Schedule($control) => $call,
            Controller::Eifel($control) => $call,
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

    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        dispatch!(self, control => control.original_timeout(cx))
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
