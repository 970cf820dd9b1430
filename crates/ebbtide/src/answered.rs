//! Counters of a server's answers to requests: by method and code, and how long they took.
//!
//! Counting takes no lock, since it is done for every request of every thread.

use ebbtide_core::endpoint::Histogram;
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::wire::Code;
use std::sync::atomic::{AtomicU64, Ordering};

/// The methods with counters of their own; all others share some.
const METHODS: [Code; 7] =
    [Code::GET, Code::POST, Code::PUT, Code::DELETE, Code::FETCH, Code::PATCH, Code::IPATCH];

/// The number of codes.
const CODES: usize = 256;

#[derive(Debug)]
pub(crate) struct AnswerTally {
    /// By method, then by code.
    counts: Box<[AtomicU64]>,
    spans: [AtomicU64; Histogram::BUCKETS],
    micros: AtomicU64,
}

impl Default for AnswerTally {
    fn default() -> Self {
        Self {
            counts: (0..(METHODS.len() + 1) * CODES).map(|_| AtomicU64::new(0)).collect(),
            spans: std::array::from_fn(|_| AtomicU64::new(0)),
            micros: AtomicU64::new(0),
        }
    }
}

impl AnswerTally {
    pub(crate) fn count(&self, method: Code, answer: Code) {
        let method = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len());
        if let Some(count) = self.counts.get(method * CODES + usize::from(answer.0)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records how long handlers took for so many answers, from the arrival of the requests.
    pub(crate) fn record(&self, answers: u32, arrived: Instant, answered: Instant) {
        let span = Micros::from_duration(answered.saturating_since(arrived));
        // Most handlers take less than the first bound.
        let is_short = Histogram::BOUNDS.first().is_some_and(|bound| span.as_micros() <= *bound);
        let bucket = if is_short { 0 } else { Histogram::bucket(span) };
        if let Some(bucket) = self.spans.get(bucket) {
            bucket.fetch_add(answers.into(), Ordering::Relaxed);
        }
        self.micros.fetch_add(span.as_micros() * u64::from(answers), Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> AnswerCounts {
        let rows = self.counts.chunks_exact(CODES).enumerate();
        let by_code = rows.flat_map(|(method, counts)| {
            let method = METHODS.get(method).and_then(|method| method.name()).unwrap_or("other");
            counts
                .iter()
                .enumerate()
                .map(move |(code, n)| (method, Code(code as u8), n.load(Ordering::Relaxed)))
        });
        let spans = self.spans.each_ref().map(|n| n.load(Ordering::Relaxed));
        AnswerCounts {
            by_code: by_code.filter(|(.., n)| *n > 0).collect(),
            spans: Histogram::from_counts(spans, self.micros.load(Ordering::Relaxed)),
        }
    }
}

/// A server's answers to requests, those of its own that refuse a request included. See `docs/metrics.md`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AnswerCounts {
    /// The method, the code of the answer, and how often it was given; without zeros. Methods that are not registered
    /// are `other`.
    pub by_code: Vec<(&'static str, Code, u64)>,
    /// How long handlers took, from the arrival of the request to the answer.
    pub spans: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_method_and_code_and_unknown_methods_together() {
        let tally = AnswerTally::default();
        for (method, answer) in [
            (Code::GET, Code::CONTENT),
            (Code::GET, Code::CONTENT),
            (Code::GET, Code::NOT_FOUND),
            (Code(30), Code::METHOD_NOT_ALLOWED),
            (Code(31), Code::METHOD_NOT_ALLOWED),
        ] {
            tally.count(method, answer);
        }
        tally.record(2, Instant::from_nanos(1_000), Instant::from_nanos(3_001_000));
        let counts = tally.counts();
        let expected = [
            ("GET", Code::CONTENT, 2),
            ("GET", Code::NOT_FOUND, 1),
            ("other", Code::METHOD_NOT_ALLOWED, 2),
        ];
        assert_eq!(counts.by_code, expected);
        assert_eq!((counts.spans.count(), counts.spans.sum_micros()), (2, 6_000));
    }
}
