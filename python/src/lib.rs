//! The native half of the Python package `ebbtide`. It has no logic of its own and calls the same
//! functions as the command line.

mod attended;
mod client;
mod control;
mod control_args;
mod errors;
mod fit;
mod incoming;
mod map;
mod message;
mod names;
mod oscore;
mod plan;
mod pool;
mod queue;
mod runtime;
mod security;
mod server;
mod settings;

use pyo3::prelude::*;

/// The native half of `ebbtide`.
///
/// It does not need the interpreter lock to be correct: all classes are frozen, and what several
/// threads may change is behind a mutex or atomic. A free-threaded Python therefore stays without
/// the lock when it imports this module.
#[pymodule(gil_used = false)]
mod _ebbtide {
    #[pymodule_export]
    use crate::client::{Call, Client, Observation};
    #[pymodule_export]
    use crate::control::PythonControl;
    #[pymodule_export]
    use crate::control_args::{
        Context, Load, OutgoingMessage, ProbeReply, Sample, Slot, Transmission,
    };
    #[pymodule_export]
    use crate::errors::{
        ConnectionLost, EbbtideError, NoAnswer, ProtocolError, ResetError, RunError, TooLargeError,
    };
    #[pymodule_export]
    use crate::fit::fit;
    #[pymodule_export]
    use crate::incoming::Incoming;
    #[pymodule_export]
    use crate::map::MapPlan;
    #[pymodule_export]
    use crate::message::Response;
    #[pymodule_export]
    use crate::names::{controls, quantity, scenario_of_json, scenario_of_name, scenarios};
    #[pymodule_export]
    use crate::plan::{Plan, run_chunk};
    #[pymodule_export]
    use crate::pool::Cancel;
    #[pymodule_export]
    use crate::queue::Queue;
    #[pymodule_export]
    use crate::server::{Server, Subject};

    #[pymodule_export]
    const VERSION: &str = ebbtide_sim::run::VERSION;
}
