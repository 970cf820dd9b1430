//! The measurements of one control in one network.

use super::network::DrawnNetwork;
use ebbtide_sim::record::{ClientRecord, RunRecord, SparseHistogram};
use ebbtide_sim::stats::quantile;
use serde::{Deserialize, Serialize};

/// A time that was not reached, µs.
pub const NEVER: u64 = u64::MAX;

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
    /// The median of the clients' completion times, µs. Where requests go by the clock: the time
    /// after which half of the exchanges had been delivered, each counted from its own request;
    /// [`NEVER`] if fewer were delivered. In a network with classes they are those of the last class,
    /// the alarms.
    pub median_us: u64,
    /// Their 90th percentile, µs.
    pub p90_us: u64,
    /// The longest of them, µs.
    pub longest_us: u64,
    /// Goodput over capacity, in thousandths: the data received until nine of ten clients were
    /// done, divided by the data that the bottleneck can carry in that time. Where requests go by
    /// the clock, and the bottleneck pauses: in the time that it worked.
    pub goodput: u64,
}

/// The figures of a control in a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Over all replications.
    #[serde(rename = "measures")]
    pub all: Measures,
    /// Those of each replication; the same place met the same luck under every control.
    pub runs: Vec<Measures>,
}

impl Measured {
    /// The figures of these replications.
    pub fn from_records(network: &DrawnNetwork, records: &[RunRecord]) -> Self {
        let runs = records.chunks(1).map(|one| Measures::from_records(network, one)).collect();
        Self { all: Measures::from_records(network, records), runs }
    }
}

impl Measures {
    /// The figures of these replications.
    pub fn from_records(network: &DrawnNetwork, records: &[RunRecord]) -> Self {
        let clients = || records.iter().flat_map(|record| &record.clients);
        let sum = |field: &dyn Fn(&ClientRecord) -> u64| clients().map(field).sum::<u64>();
        let is_clocked = network.scenario.workload.clocked().is_some();
        let asked = sum(&|client| client.asked.into());
        let times = if is_clocked { Times::since_due(records) } else { Times::of_flows(records) };
        let micros = |share: f64| times.quantile_us(share);
        let delivered = sum(&|client| client.completed.into());
        // A request that was rejected by the client's own full queue was never sent.
        let ended = sum(&|client| u64::from(client.completed) + u64::from(client.failed));
        let goodput = |record: &RunRecord| match is_clocked {
            true => useful_share(network, record),
            false => goodput(network, record),
        };
        let goodput = records.iter().map(goodput).sum::<f64>();
        Self {
            asked,
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
    pub fn share(&self) -> f64 {
        self.delivered as f64 / self.asked.max(1) as f64
    }

    /// Datagrams that clients sent, probes included, per delivered exchange.
    pub fn cost(&self) -> f64 {
        (self.messages + self.probes) as f64 / self.delivered.max(1) as f64
    }

    /// Whether goodput stays above half of the capacity that link errors leave; `None` if the
    /// clients request less than the capacity.
    pub fn is_safe(&self, network: &DrawnNetwork) -> Option<bool> {
        let carried = 1.0 - network.scenario.average_loss();
        (network.load() >= 1.0).then_some(self.goodput as f64 >= 500.0 * carried)
    }
}

/// The times that count in a network.
enum Times {
    /// Completion times of the clients in ascending order, s.
    Flows(Vec<f64>),
    /// From the request to the response, µs, of the exchanges that were delivered.
    SinceDue {
        after: SparseHistogram,
        /// The exchanges that were asked for.
        asked: u64,
    },
}

impl Times {
    fn of_flows(records: &[RunRecord]) -> Self {
        let clients = records.iter().flat_map(|record| &record.clients);
        let mut times: Vec<f64> = clients.map(seconds).collect();
        times.sort_unstable_by(f64::total_cmp);
        Self::Flows(times)
    }

    /// Those of all clients, or of the last class.
    fn since_due(records: &[RunRecord]) -> Self {
        let of = |record: &RunRecord| record.totals.classes.last().map_or(0, |class| class.first);
        let asked = |record: &RunRecord| {
            let counted = record.clients.iter().filter(|client| client.client >= of(record));
            counted.map(|client| u64::from(client.asked)).sum::<u64>()
        };
        let after = records.iter().map(|record| match record.totals.classes.last() {
            Some(class) => &class.delivery.after,
            None => &record.totals.delivery.after,
        });
        Self::SinceDue {
            after: SparseHistogram::together(after),
            asked: records.iter().map(asked).sum(),
        }
    }

    fn quantile_us(&self, share: f64) -> u64 {
        match self {
            Self::Flows(times) => (quantile(times, share) * 1e6).round() as u64,
            Self::SinceDue { after: SparseHistogram(counts), asked } => {
                let wanted = (*asked as f64 * share).ceil().max(1.0) as u64;
                let mut so_far = 0;
                let found = counts.iter().find(|(_, count)| {
                    so_far += count;
                    so_far >= wanted
                });
                found.map_or(NEVER, |(micros, _)| *micros)
            }
        }
    }
}

fn seconds(client: &ClientRecord) -> f64 {
    client.fct.as_nanos() as f64 / 1e9
}

/// Goodput over capacity until nine of ten clients were done.
fn goodput(network: &DrawnNetwork, record: &RunRecord) -> f64 {
    let mut times: Vec<f64> = record.clients.iter().map(seconds).collect();
    times.sort_unstable_by(f64::total_cmp);
    // The time of a client that finished; of two clients it is the last one.
    let until = times.get((times.len() * 9).div_ceil(10).saturating_sub(1)).copied().unwrap_or(0.0);
    let done = record.clients.iter().filter(|client| seconds(client) <= until);
    let delivered: u64 = done.map(|client| u64::from(client.completed)).sum();
    let window_s = network.scenario.clients.start_window.0 as f64 / 1e9;
    delivered as f64 * network.exchange_s / (until + window_s).max(1e-9)
}

/// The share of the bottleneck's work that delivered exchanges needed.
fn useful_share(network: &DrawnNetwork, record: &RunRecord) -> f64 {
    let delivered: u64 = record.clients.iter().map(|client| u64::from(client.completed)).sum();
    let (up, down) = (&record.totals.up, &record.totals.down);
    let side = if network.is_up { up } else { down };
    delivered as f64 * network.exchange_s / (side.busy_ns as f64 / 1e9).max(1e-9)
}
