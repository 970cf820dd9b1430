//! The course of a cell over time: what its replications have in common in each step.

use crate::record::{OverTime, TimeStep};
use crate::stats::summary;
use serde::{Deserialize, Serialize};

/// Steps of a course at most.
const MOST_STEPS: usize = 600;

/// A cell over time, on a regular grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// The replications behind it.
    pub reps: u32,
    /// The length of a step, s.
    pub step_s: f64,
    /// The quantities, each with a point for every step.
    pub quantities: Vec<CourseQuantity>,
}

/// A quantity over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CourseQuantity {
    /// Its name, as the column of the series has it.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Step by step.
    pub points: Vec<CoursePoint>,
}

/// A quantity in one step, over replications.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoursePoint {
    /// The 10th percentile.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The 90th percentile.
    pub high: f64,
}

/// One replication in few steps: sums of counts, and means of states.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoarseTime {
    step_ns: u64,
    /// For each step, the quantities in the order of [`QUANTITIES`].
    steps: Vec<[f64; 7]>,
}

/// The name and unit of each quantity, and whether it is a count, which is shown per second.
const QUANTITIES: [(&str, &str, QuantityKind); 7] = [
    ("queue_up", "B", QuantityKind::State),
    ("queue_down", "B", QuantityKind::State),
    ("in_flight", "exchanges", QuantityKind::State),
    ("sent", "1/s", QuantityKind::Count),
    ("delivered", "1/s", QuantityKind::Count),
    ("timeouts", "1/s", QuantityKind::Count),
    ("unnecessary", "1/s", QuantityKind::Count),
];

#[derive(Copy, Clone, PartialEq, Eq)]
enum QuantityKind {
    State,
    Count,
}

impl CoarseTime {
    pub(crate) fn new(over_time: &OverTime) -> Self {
        let quantities = |(step, queues): (&TimeStep, &(u64, u64))| {
            let counts = [step.sent, step.delivered, step.timeouts, step.unnecessary];
            let [sent, delivered, timeouts, unnecessary] = counts.map(f64::from);
            let (up, down) = (queues.0 as f64, queues.1 as f64);
            [up, down, step.in_flight.into(), sent, delivered, timeouts, unnecessary]
        };
        let steps = over_time.all.iter().zip(&over_time.queues).map(quantities).collect();
        let mut coarse = Self { step_ns: over_time.step_ns, steps };
        while coarse.steps.len() > MOST_STEPS {
            coarse.double();
        }
        coarse
    }

    /// Makes each step twice as long.
    fn double(&mut self) {
        let pair = |pair: &[[f64; 7]]| {
            std::array::from_fn(|place| {
                let sum: f64 = pair.iter().map(|step| step[place]).sum();
                // A state is that of the whole step, of whose second half nothing may be known any more: zero.
                if QUANTITIES[place].2 == QuantityKind::State { sum / 2.0 } else { sum }
            })
        };
        self.steps = self.steps.chunks(2).map(pair).collect();
        self.step_ns = self.step_ns.saturating_mul(2);
    }
}

impl Course {
    /// The course that replications have in common; `None` without any.
    pub fn new(mut runs: Vec<CoarseTime>) -> Option<Self> {
        let step_ns = runs.iter().map(|run| run.step_ns).max()?;
        for run in &mut runs {
            while run.step_ns < step_ns {
                run.double();
            }
        }
        let length = runs.iter().map(|run| run.steps.len()).max().unwrap_or(0);
        let step_s = step_ns as f64 / 1e9;
        let quantity = |(place, (name, unit, kind)): (usize, &(&str, &str, QuantityKind))| {
            let scale = if *kind == QuantityKind::Count { step_s } else { 1.0 };
            let point = |step: usize| {
                let value =
                    |run: &CoarseTime| run.steps.get(step).map_or(0.0, |one| one[place] / scale);
                let over = summary(&mut runs.iter().map(value).collect::<Vec<f64>>());
                CoursePoint { low: over.p10, median: over.median, high: over.p90 }
            };
            CourseQuantity {
                name: (*name).to_owned(),
                unit: (*unit).to_owned(),
                points: (0..length).map(point).collect(),
            }
        };
        let quantities = QUANTITIES.iter().enumerate().map(quantity).collect();
        Some(Self { reps: runs.len() as u32, step_s, quantities })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(step_ns: u64, sent: &[u32]) -> CoarseTime {
        let step = |sent: &u32| TimeStep { sent: *sent, in_flight: *sent, ..TimeStep::default() };
        let all: Vec<TimeStep> = sent.iter().map(step).collect();
        let queues = vec![(8, 0); all.len()];
        CoarseTime::new(&OverTime { step_ns, all, queues, clients: Vec::new() })
    }

    #[test]
    fn replications_of_different_lengths_and_steps_meet_on_one_grid() {
        let course = Course::new(vec![
            run(1_000_000_000, &[4, 0, 2]),
            run(2_000_000_000, &[4]),
            run(2_000_000_000, &[8, 6]),
        ]);
        let course = course.unwrap();
        assert_eq!((course.reps, course.step_s), (3, 2.0));
        let medians = |name: &str| -> Vec<f64> {
            let own = course.quantities.iter().find(|quantity| quantity.name == name).unwrap();
            own.points.iter().map(|point| point.median).collect()
        };
        // Per second: 2, 2, 4 in the first step; 1, 0, 3 in the second.
        assert_eq!(medians("sent"), [2.0, 1.0]);
        assert_eq!(medians("in_flight"), [4.0, 1.0]);
        assert_eq!(medians("queue_up"), [8.0, 4.0]);
        assert_eq!(Course::new(Vec::new()), None);
    }

    #[test]
    fn a_long_replication_has_few_steps_with_all_that_happened() {
        let long = run(1_000_000_000, &vec![1; 5000]);
        assert!(long.steps.len() <= MOST_STEPS);
        assert_eq!(long.steps.iter().map(|step| step[3]).sum::<f64>(), 5000.0);
    }
}
