//! Histograms of times: how they are counted, and in which form they are kept.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Values in microseconds with a resolution of 1 %, and how often each occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparseHistogram(pub Vec<(u64, u64)>);

/// The recorded values of a histogram.
pub(crate) fn sparse(histogram: &Histogram<u32>) -> SparseHistogram {
    let values = histogram.iter_recorded();
    SparseHistogram(
        values.map(|v| (v.value_iterated_to(), u64::from(v.count_at_value()))).collect(),
    )
}

impl SparseHistogram {
    /// The values of several histograms in ascending order, each once with how often it occurred.
    pub fn together<'h>(histograms: impl Iterator<Item = &'h Self>) -> Self {
        let mut all: Vec<(u64, u64)> = histograms.flat_map(|one| &one.0).copied().collect();
        all.sort_unstable_by_key(|(value, _)| *value);
        all.dedup_by(|(value, count), (kept, sum)| {
            let is_same = value == kept;
            *sum += if is_same { *count } else { 0 };
            is_same
        });
        Self(all)
    }
}

#[expect(clippy::expect_used, reason = "the bounds are constants that the crate accepts")]
pub(crate) fn new_histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, u64::from(u32::MAX), 2).expect("constant bounds are valid")
}
