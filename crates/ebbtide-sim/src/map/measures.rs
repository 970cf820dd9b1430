//! The measurements of one control in one network.

use super::network::Network;
use crate::record::{ClientRecord, RunRecord};
use crate::stats::quantile;
use serde::{Deserialize, Serialize};

/// The figures of a control in a network, over all replications. They are whole numbers, so that
/// figures read from a file equal those that were computed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measures {
    /// Requested exchanges.
    pub asked: u64,
    /// Exchanges that received their response.
    pub delivered: u64,
    /// Transmissions of messages by clients, copies included.
    pub messages: u64,
    /// Probes.
    pub probes: u64,
    /// The median of the clients' completion times, µs.
    pub median_us: u64,
    /// Their 90th percentile, µs.
    pub p90_us: u64,
    /// The longest of them, µs.
    pub longest_us: u64,
    /// Goodput over capacity, in thousandths: the data received until nine of ten clients were
    /// done, divided by the data that the bottleneck can carry in that time.
    pub goodput: u64,
}

impl Measures {
    /// The figures of these replications.
    #[must_use]
    pub fn of(network: &Network, records: &[RunRecord]) -> Self {
        let clients = || records.iter().flat_map(|record| &record.clients);
        let sum = |field: &dyn Fn(&ClientRecord) -> u64| clients().map(field).sum::<u64>();
        let mut times: Vec<f64> = clients().map(seconds).collect();
        times.sort_unstable_by(f64::total_cmp);
        let micros = |share: f64| (quantile(&times, share) * 1e6).round() as u64;
        let delivered = sum(&|client| client.completed.into());
        // A request that was rejected by the client's own full queue was never sent.
        let ended = sum(&|client| u64::from(client.completed) + u64::from(client.failed));
        let goodput = records.iter().map(|record| goodput(network, record)).sum::<f64>();
        Self {
            asked: clients().count() as u64 * u64::from(network.scenario.workload.exchanges),
            delivered,
            messages: ended + sum(&|client| client.retransmissions.into()),
            probes: sum(&|client| client.probes.into()),
            median_us: micros(0.5),
            p90_us: micros(0.9),
            longest_us: micros(1.0),
            goodput: (1000.0 * goodput / records.len().max(1) as f64).round() as u64,
        }
    }

    /// The share of the exchanges that received their response, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.delivered as f64 / self.asked.max(1) as f64
    }

    /// Datagrams that clients sent, probes included, per delivered exchange.
    #[must_use]
    pub fn cost(&self) -> f64 {
        (self.messages + self.probes) as f64 / self.delivered.max(1) as f64
    }

    /// Whether goodput stays above half of the capacity that link errors leave; `None` if the
    /// clients request less than the capacity.
    #[must_use]
    pub fn is_safe(&self, network: &Network) -> Option<bool> {
        let carried = 1.0 - network.scenario.average_loss();
        (network.load() >= 1.0).then_some(self.goodput as f64 >= 500.0 * carried)
    }
}

fn seconds(client: &ClientRecord) -> f64 {
    client.fct.as_nanos() as f64 / 1e9
}

/// Goodput over capacity until nine of ten clients were done.
fn goodput(network: &Network, record: &RunRecord) -> f64 {
    let mut times: Vec<f64> = record.clients.iter().map(seconds).collect();
    times.sort_unstable_by(f64::total_cmp);
    // The time of a client that finished; of two clients it is the last one.
    let until = times.get((times.len() * 9).div_ceil(10).saturating_sub(1)).copied().unwrap_or(0.0);
    let done = record.clients.iter().filter(|client| seconds(client) <= until);
    let delivered: u64 = done.map(|client| u64::from(client.completed)).sum();
    delivered as f64 * network.exchange_s / until.max(1e-9)
}
