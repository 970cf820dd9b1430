//! The exchanges of each phase of a run.

use super::fine_times::FineTimes;
use super::{ExchangeRecord, PhaseRecord};
use crate::histogram::{new_histogram, sparse};
use crate::scenario::Scenario;
use ebbtide_core::time::{Instant, Micros};
use hdrhistogram::Histogram;

/// Measurements of the exchanges that were asked for in each phase.
#[derive(Debug)]
pub(crate) struct PhaseTimes {
    phases: Vec<PhaseMeasures>,
    /// The deadline of each class, ns; 0 for none.
    deadlines: Vec<u64>,
    /// The phase of the exchange that ended last.
    last: Option<usize>,
}

#[derive(Debug)]
struct PhaseMeasures {
    from: Instant,
    record: PhaseRecord,
    rtt: Histogram<u32>,
    durations: Histogram<u32>,
    after: FineTimes,
}

impl PhaseTimes {
    /// The empty measurements of a scenario's phases; `None` if it has none.
    pub(super) fn new(scenario: &Scenario) -> Option<Box<Self>> {
        let phase = |phase: &crate::scenario::PhaseTable| PhaseMeasures {
            from: Instant::from_nanos(phase.from.0),
            record: PhaseRecord { name: phase.name.clone(), ..PhaseRecord::default() },
            rtt: new_histogram(),
            durations: new_histogram(),
            after: FineTimes::default(),
        };
        let deadline = |class: &crate::scenario::ClassView| class.scenario.workload.deadline.0;
        (!scenario.phase.is_empty()).then(|| {
            Box::new(Self {
                phases: scenario.phase.iter().map(phase).collect(),
                deadlines: scenario.classes().iter().map(deadline).collect(),
                last: None,
            })
        })
    }

    /// The phase of an exchange that is asked for at an instant.
    fn at(&mut self, asked: Instant) -> Option<&mut PhaseMeasures> {
        let later = self.phases.partition_point(|phase| phase.from <= asked);
        self.last = later.checked_sub(1);
        self.phases.get_mut(self.last?)
    }

    /// So many exchanges were refused by a full queue.
    pub(super) fn refused(&mut self, now: Instant, count: u32) {
        if let Some(phase) = self.at(now) {
            phase.record.asked += u64::from(count);
            phase.record.failed += u64::from(count);
        }
    }

    /// An exchange of a client of this class has ended.
    pub(super) fn ended(&mut self, class: usize, row: &ExchangeRecord) {
        let deadline = self.deadlines.get(class).copied().unwrap_or(0);
        let Some(phase) = self.at(row.asked) else { return };
        let record = &mut phase.record;
        record.asked += 1;
        record.transmissions += u64::from(row.transmissions);
        record.ended_ns = record.ended_ns.max(row.ended.as_nanos());
        let Some(ordinal) = row.answered else {
            record.failed += 1;
            return;
        };
        let copies = row.transmissions.saturating_sub(1);
        record.completed += 1;
        record.unnecessary += u64::from(copies.saturating_sub(ordinal.into()));
        let took = row.ended - row.asked;
        record.in_time += u64::from(deadline == 0 || took.as_nanos() <= u128::from(deadline));
        let copies = copies as usize;
        if copies >= record.by_retransmissions.len() {
            record.by_retransmissions.resize(copies + 1, 0);
        }
        record.by_retransmissions[copies] += 1;
        let micros = row.ended.micros_since(row.asked).as_micros();
        phase.durations.saturating_record(micros);
        phase.after.record(micros);
    }

    /// The round trip of the exchange that ended last.
    pub(super) fn round_trip(&mut self, rtt: Micros) {
        if let Some(phase) = self.last.and_then(|last| self.phases.get_mut(last)) {
            phase.rtt.saturating_record(rtt.as_micros());
        }
    }

    /// The records of the phases, in order.
    pub(crate) fn records(&self) -> Vec<PhaseRecord> {
        let record = |phase: &PhaseMeasures| PhaseRecord {
            from_ns: phase.from.as_nanos(),
            rtt: sparse(&phase.rtt),
            durations: sparse(&phase.durations),
            after: phase.after.sparse(),
            ..phase.record.clone()
        };
        self.phases.iter().map(record).collect()
    }
}
