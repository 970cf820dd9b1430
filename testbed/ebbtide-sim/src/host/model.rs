//! Settings that devices of one kind share, stored once for all of them.

use super::{digits, endpoint_config};
use crate::scenario::{Control, QBlock, Scenario, Tcp};
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{Reliability, SharedConfig};
use std::sync::Arc;

/// The kind of a device: its transport, and what it has in common with others under its control.
pub(crate) enum Model {
    Udp(Arc<ClientModel>),
    Tcp(Tcp),
    QBlock(QBlock),
}

/// Configuration and request contents that clients share: a million clients store them once.
pub(crate) struct ClientModel {
    pub(crate) config: SharedConfig,
    /// Requests to one server before the next one is asked.
    pub(super) requests_each: u32,
    /// Whether the requests are Confirmable.
    pub(super) reliability: Reliability,
    /// The value of the requests' option Uri-Path.
    pub(super) path: Box<[u8]>,
    /// The payload of the requests.
    pub(super) payload: Box<[u8]>,
}

impl Model {
    /// The devices of a scenario under this control.
    pub(crate) fn new(scenario: &Scenario, control: Control) -> Self {
        match control {
            Control::Udp(config) => Self::Udp(ClientModel::new(scenario, config)),
            Control::Tcp(settings) => Self::Tcp(settings),
            Control::QBlock(settings) => Self::QBlock(settings),
        }
    }
}

impl ClientModel {
    /// The clients of a scenario under this control.
    pub(crate) fn new(scenario: &Scenario, control: ControlConfig) -> Arc<Self> {
        let workload = &scenario.workload;
        let servers = scenario.servers_in_turn();
        let mut config = endpoint_config(scenario, control);
        // One client may ask many servers in turn, and remembers all of them.
        config.limits.peers = config.limits.peers.max(servers as usize + 1);
        Arc::new(Self {
            config: config.into(),
            requests_each: if servers > 1 { workload.exchanges } else { u32::MAX },
            reliability: match workload.reliability {
                crate::scenario::Reliability::Confirmable => Reliability::Confirmable,
                crate::scenario::Reliability::NonConfirmable => Reliability::NonConfirmable,
            },
            path: workload.path.as_bytes().into(),
            payload: digits(match workload.is_notifying() {
                true => workload.response_payload,
                false => workload.request_payload,
            })
            .into(),
        })
    }
}
