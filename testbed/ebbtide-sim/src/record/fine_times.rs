//! Times to 0.1 %, by which controls are compared.

use crate::histogram::SparseHistogram;

/// The bits of a value behind its first one that count: 0.1 %.
const BITS: u32 = 10;
/// The places of an octave.
const OCTAVE: usize = 1 << BITS;
/// Up to 2^41 µs, which are 25 days. Longer times count as this.
const PLACES: usize = 32 * OCTAVE;

/// How often times occurred, in µs.
///
/// It has the places of a high dynamic range histogram with three significant digits. Every replication
/// has one and most have few times in it, so it is as long as the longest time needs, and a scan passes
/// over places without times quickly.
#[derive(Clone, Debug, Default)]
pub(crate) struct FineTimes {
    counts: Vec<u32>,
}

impl FineTimes {
    /// Adds a time.
    #[inline]
    pub(crate) fn record(&mut self, micros: u64) {
        let place = place_of(micros);
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        let count = &mut self.counts[place];
        *count = count.saturating_add(1);
    }

    /// The times that occurred, each as the longest of its place.
    pub(crate) fn sparse(&self) -> SparseHistogram {
        const BLOCK: usize = 32;
        let mut values = Vec::new();
        for (block, counts) in self.counts.chunks(BLOCK).enumerate() {
            if counts.iter().fold(0, |any, count| any | count) == 0 {
                continue;
            }
            let occurred = (block * BLOCK..).zip(counts).filter(|(_, count)| **count > 0);
            values.extend(occurred.map(|(place, count)| (longest_at(place), u64::from(*count))));
        }
        SparseHistogram(values)
    }
}

/// The number of bits of a value that do not count.
#[inline]
const fn blurred(micros: u64) -> u32 {
    (u64::BITS - micros.leading_zeros()).saturating_sub(BITS + 1)
}

#[inline]
fn place_of(micros: u64) -> usize {
    let blurred = blurred(micros);
    // The shifted value is below two octaves.
    let place = blurred as usize * OCTAVE + (micros >> blurred) as usize;
    place.min(PLACES - 1)
}

fn longest_at(place: usize) -> u64 {
    let blurred = (place / OCTAVE).saturating_sub(1);
    let shown = (place - blurred * OCTAVE) as u64;
    ((shown + 1) << blurred) - 1
}

#[cfg(test)]
mod tests {
    use super::FineTimes;
    use crate::histogram::SparseHistogram;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    /// The times as a histogram of the crate gives them.
    fn by_the_crate(times: &[u64]) -> SparseHistogram {
        let mut histogram = Histogram::<u32>::new_with_bounds(1, 1 << 40, 3).unwrap();
        times.iter().for_each(|time| histogram.saturating_record(*time));
        crate::record::sparse(&histogram)
    }

    fn recorded(times: &[u64]) -> SparseHistogram {
        let mut fine = FineTimes::default();
        times.iter().for_each(|time| fine.record(*time));
        fine.sparse()
    }

    proptest! {
        #[test]
        fn times_are_those_of_a_high_dynamic_range_histogram(
            times in prop::collection::vec((23u32..64, any::<u64>()), 0..200),
        ) {
            // As many short ones as long ones, below 2^41.
            let times: Vec<u64> = times.into_iter().map(|(bits, time)| time >> bits).collect();
            prop_assert_eq!(recorded(&times), by_the_crate(&times));
        }
    }

    #[test]
    fn the_ends_of_octaves_are_in_their_places() {
        let powers = (0..41).map(|bits| 1u64 << bits);
        let times: Vec<u64> = powers.flat_map(|power| [power - 1, power, power + 1]).collect();
        assert_eq!(recorded(&times), by_the_crate(&times));
        assert_eq!(recorded(&[]), SparseHistogram::default());
    }

    #[test]
    fn times_beyond_the_last_place_count_there() {
        let longest = (1 << 41) - 1;
        assert_eq!(recorded(&[longest, 1 << 41, u64::MAX]), SparseHistogram(vec![(longest, 3)]));
    }
}
