//! Congestion control for CoAP: many controls behind one interface.
//!
//! CoAP does not transport a byte stream. A control decides when a *message* may leave, and how
//! long to wait for its answer before the message is repeated. There is one control per *scope*
//! (by default the remote transport address, draft-ietf-core-cocoa-03 section 3), called through
//! [`CongestionControl`]:
//!
//! ```text
//!   message ready ──► admit ──► Send ─────► on_transmit (ordinal 0) ── timeout ─► armed
//!                        │                        ▲                                 │
//!                        └► NotBefore / Blocked   │        expires                  │ answer
//!                                                 └── on_expire ◄───────────────────┤
//!                                                                                   ▼
//!                                                            on_feedback (a sample), on_close
//! ```
//!
//! A control may probe the path before it repeats a message. In the place of a retransmission
//! ([`Expiry::Probe`]), or of a message that is ready to leave ([`Admission::Probe`]), the
//! endpoint sends a CoAP ping and reports its answer with `on_probe`. A probe belongs to the
//! exchange for which it was sent and ends with it. A message whose probes all stay unanswered is
//! refused ([`Admission::GiveUp`]).
//!
//! No control reads a clock or generates randomness; a [`Context`] supplies both. Each control runs
//! in a [`Shell`], which enforces NSTART, MAX_RETRANSMIT and the bounds of a timeout. Within these
//! limits a faulty control can still overload a link.
//!
//! [`Algorithm`] lists the name and source of every control; [`ControlConfig`] selects and tunes a
//! control by text.

mod basic_rto;
mod cocoa;
mod cocoa_strong;
mod config;
mod config_error;
mod controls;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
mod custom;
mod default;
mod ebb;
mod ecoap;
mod eifel;
mod estimator;
mod fasor;
mod full_backoff;
mod interface;
mod keys;
mod linux_rto;
mod pace;
mod patience;
mod peak_hopper;
mod rcoap;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
mod registry;
mod rfc6298;
mod schedule;
mod settings;
mod shell;
mod span;
mod tcp_timer;
mod traffic;

pub use basic_rto::BasicRto;
pub use cocoa::{Cocoa, Cocoa01, CocoaFullBackoff};
pub use cocoa_strong::CocoaStrong;
pub use config::{ControlConfig, Selection};
pub use config_error::ConfigError;
#[cfg(feature = "alloc")]
pub use controls::DynControl;
pub use controls::{Algorithm, Controller};
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
pub use custom::{ControlFactory, Custom, SettingError};
pub use default::Default;
pub use ebb::Ebb;
pub use ecoap::{Ecoap, EcoapRpl};
pub use eifel::Eifel;
pub use estimator::{Estimator, Gains};
pub use fasor::Fasor;
pub use full_backoff::FullBackoff;
pub use interface::{Admission, CongestionControl, Context, Expiry, Metrics, Outcome, Slot};
pub use keys::SettingKey;
pub use linux_rto::{LinuxEstimate, LinuxRto};
pub(crate) use pace::{admit_non_at_interval, probing_instant};
pub use peak_hopper::{PeakHopper, PeakHopperEstimate};
pub use rcoap::Rcoap;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
pub use registry::{NameError, Registry};
pub use rfc6298::{Rfc6298, Rfc6298Estimate};
pub use schedule::TimeoutSchedule;
pub use settings::{
    CocoaCode, CocoaSettings, EbbSettings, EcoapSettings, InFlight, RcoapSettings, Settings,
};
pub use shell::Shell;
pub use tcp_timer::{RtoEstimate, TcpTimer};
pub use traffic::{
    Answered, Attempts, Kind, Load, Marking, OutgoingMessage, ProbeReply, Sample, Transmission,
};
