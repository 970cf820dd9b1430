//! Times that are measured in low-power networks only: timeouts of originals, round trips with and without
//! retransmissions, and when exchanges were completed.

use super::recorder::Tagged;
use super::{ExchangeRecord, MeshRecord};
use crate::histogram::{new_histogram, sparse};
use crate::scenario::Scenario;
use ebbtide_core::time::Micros;
use hdrhistogram::Histogram;

/// Parts of the time in which completed exchanges are counted.
const PARTS: u64 = 200;

/// The times of all exchanges of a replication, µs.
#[derive(Debug)]
pub(crate) struct LowPowerTimes {
    first_timeouts: Histogram<u32>,
    strong: Histogram<u32>,
    weak: Histogram<u32>,
    /// Exchanges completed in each part of the time; empty for a workload that ends when it is done.
    completions: Vec<u64>,
    /// The length of the replication, ns.
    duration: u64,
}

impl LowPowerTimes {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ends =
            scenario.classes().iter().filter_map(|class| class.scenario.workload.ends()).max();
        Self {
            first_timeouts: new_histogram(),
            strong: new_histogram(),
            weak: new_histogram(),
            completions: vec![0; if ends.is_some() { PARTS as usize } else { 0 }],
            duration: ends.map_or(1, |end| end.0.max(1)),
        }
    }

    /// A timeout was armed for a transmission.
    pub(super) fn armed(&mut self, tagged: Tagged, timeout: Micros) {
        if tagged.ordinal == 0 {
            self.first_timeouts.saturating_record(timeout.as_micros());
        }
    }

    /// An exchange has ended.
    pub(super) fn ended(&mut self, row: &ExchangeRecord) {
        let (Some(_), Some(sent)) = (row.answered, row.first_sent) else { return };
        let round_trips = if row.transmissions <= 1 { &mut self.strong } else { &mut self.weak };
        round_trips.saturating_record(row.ended.micros_since(sent).as_micros());
        let part = row.ended.as_nanos().saturating_mul(PARTS) / self.duration;
        let last = self.completions.len().saturating_sub(1);
        if let Some(count) = self.completions.get_mut((part as usize).min(last)) {
            *count += 1;
        }
    }

    /// Writes the times into the record of the network.
    pub(crate) fn write(&self, mesh: &mut MeshRecord) {
        mesh.first_timeouts = sparse(&self.first_timeouts);
        mesh.strong_rtt = sparse(&self.strong);
        mesh.weak_rtt = sparse(&self.weak);
        mesh.completions.clone_from(&self.completions);
    }
}
