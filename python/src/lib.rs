//! The native half of the Python package `ebbtide`. It has no logic of its own and calls the same
//! functions as the command line.

mod attended;
mod client;
mod errors;
mod message;
mod plan;
mod queue;
mod runtime;
mod server;

use pyo3::prelude::*;

/// The native half of `ebbtide`.
#[pymodule(gil_used = false)]
mod _ebbtide {
    #[pymodule_export]
    use crate::client::{Call, Client, Observation};
    #[pymodule_export]
    use crate::errors::{
        ConnectionLost, EbbtideError, NoAnswer, ProtocolError, ResetError, RunError, TooLargeError,
    };
    #[pymodule_export]
    use crate::message::Response;
    #[pymodule_export]
    use crate::plan::{
        Cancel, Plan, controls, quantity, run_chunk, scenario_of_json, scenario_of_name, scenarios,
    };
    #[pymodule_export]
    use crate::queue::Queue;
    #[pymodule_export]
    use crate::server::{Incoming, Server, Subject};

    #[pymodule_export]
    const VERSION: &str = ebbtide_sim::run::VERSION;
}
