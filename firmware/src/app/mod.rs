//! What runs on the device. Each application reports figures, which the runner compares.

pub mod block_wise;
pub mod gets;
pub mod observing;
#[cfg(feature = "oscore")]
pub mod protected;
#[cfg(feature = "dtls")]
pub mod secure;
pub mod serving;

use crate::arguments::Arguments;
use crate::rng::SplitMix;
use crate::semihosting::report;
use crate::{link, memory};
use alloc::boxed::Box;
use core::net::SocketAddr;
use ebbtide_core::cc::{Algorithm, ControlConfig};
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Limits};

/// An endpoint with limits for a device. `seed` and `retransmit` (MAX_RETRANSMIT) are arguments.
#[must_use]
pub fn endpoint(arguments: &Arguments) -> Endpoint {
    let mut config = EndpointConfig {
        control: ControlConfig::new(Algorithm::FasorToken),
        count_per_control: false,
        oscore: cfg!(feature = "oscore"),
        limits: Limits::device(),
        ..EndpointConfig::default()
    };
    config.params.max_retransmit = arguments.number("retransmit", 4) as u8;
    Endpoint::new(config, Box::new(SplitMix(arguments.number("seed", 1).into())))
}

/// The server that a client asks: the host's port in the argument `port`.
#[must_use]
pub fn server(arguments: &Arguments) -> SocketAddr {
    link::host(arguments.number("port", 5683))
}

/// Reports what the endpoint counted, and the use of the heap.
pub fn report_figures(endpoint: &Endpoint) {
    let counters = endpoint.counters();
    report("sent", counters.sent as u32);
    report("retransmissions", counters.retransmissions as u32);
    report("malformed", counters.malformed as u32);
    report("heap_peak", memory::heap_peak());
    report("heap_used", memory::heap_used());
}
