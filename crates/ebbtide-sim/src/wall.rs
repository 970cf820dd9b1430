//! The wall clock, used only to measure the duration of a simulation.

/// Measures an elapsed time.
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "the cost of a run is measured, never used in it"
    )]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "see above")]
    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
