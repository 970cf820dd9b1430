//! The configuration of a device's endpoint.

use crate::scenario::{Scenario, SecurityMode, units::Time};
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{EndpointConfig, Measurement};
use ebbtide_core::params::Parameters;
use ebbtide_core::testbed::StudySettings;
use ebbtide_core::time::Micros;

/// The endpoint of a device in a scenario under a control.
pub fn endpoint_config(scenario: &Scenario, control: ControlConfig) -> EndpointConfig {
    let coap = &scenario.coap;
    let micros = |time: Time| Micros::from_nanos(time.0);
    let params = Parameters {
        ack_timeout: micros(coap.ack_timeout),
        // Checked to lie in 1..=10; thousandths are exact enough for a factor.
        ack_random_permille: (coap.ack_random_factor * 1000.0).round() as u32,
        max_retransmit: coap.max_retransmit,
        nstart: coap.nstart,
        ..Parameters::DEFAULT
    };
    let places = control.settings.places(&params);
    let config = EndpointConfig {
        params,
        control,
        token_length: coap.token_length,
        measurement: (coap.pm_block > 0).then_some(Measurement::new(coap.pm_block)),
        oscore: scenario.security.mode == SecurityMode::Oscore,
        // The server is this program's: it answers each copy with that copy's marks.
        study: StudySettings::DEFAULT.trusting_marks(true).being_patient(coap.patience),
        // The testbed sees both ends and counts for itself.
        count_per_control: false,
        ..EndpointConfig::default()
    };
    let mut config = device_config(config, places);
    if let Some(flow) = scenario.workload.flow() {
        config.limits.queue_per_peer = flow.queue;
        config.limits.exchanges += usize::from(flow.queue);
    }
    config
}

/// Limits of a simulated endpoint: those of a device, not of a server farm, so that a thousand of
/// them fit where one would otherwise be.
pub(crate) fn device_config(mut config: EndpointConfig, window: u16) -> EndpointConfig {
    config.limits.peers = 4;
    config.limits.exchanges = usize::from(window) + 64;
    config.limits.queue_per_peer = 64;
    config.limits.message_bytes = 65_535;
    config
}
