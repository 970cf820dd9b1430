//! Congestion control: the built-in controls by name, and the trait for a control of your own.
//!
//! ```
//! use ebbtide::congestion::ControlConfig;
//! use ebbtide::{Client, ClientConfig};
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let control = ControlConfig::parse("cocoa:nstart=2")?;
//! let client = Client::with_config(ClientConfig::new().control(control));
//! # Ok(()) }
//! ```
//!
//! A control of your own implements [`CongestionControl`], and its [`ControlFactory`] gives it a name:
//! `examples/custom-control` shows one.

pub use ebbtide_core::cc::{
    Admission, Algorithm, Answered, Attempts, ConfigError, CongestionControl, Context,
    ControlConfig, ControlFactory, Custom, DynControl, Expiry, Kind, Load, Marking, Metrics,
    NameError, Outcome, OutgoingMessage, ProbeReply, Registry, Sample, SettingError, Settings,
    Slot, Transmission,
};
pub use ebbtide_core::endpoint::{Measured, Measurement, Scope};
pub use ebbtide_core::params::Parameters;
pub use ebbtide_core::time::{Instant, Micros};
