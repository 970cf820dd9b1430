//! The wall clock, used only to measure the duration of a simulation.

/// Measures an elapsed time. A web page has no clock that this crate could read, and shows no such time.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
#[derive(Debug)]
pub(crate) struct Stopwatch;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
impl Stopwatch {
    pub(crate) const fn start() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the same calls as elsewhere")]
    pub(crate) const fn seconds(&self) -> f64 {
        0.0
    }
}

/// Measures an elapsed time.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
#[derive(Debug)]
pub(crate) struct Stopwatch(std::time::Instant);

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
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

/// Measures the processor time of the current thread. Where the system does not report it, the elapsed time.
#[derive(Debug)]
pub struct ThreadTime {
    elapsed: Stopwatch,
    before_ns: Option<u64>,
}

impl ThreadTime {
    /// Begins to measure.
    pub fn start() -> Self {
        Self { elapsed: Stopwatch::start(), before_ns: Self::used_ns() }
    }

    /// The time since the start, s.
    pub fn seconds(&self) -> f64 {
        let used = self.before_ns.zip(Self::used_ns());
        used.map_or_else(
            || self.elapsed.seconds(),
            |(before, now)| now.saturating_sub(before) as f64 / 1e9,
        )
    }

    /// On Linux, the first number of this file.
    fn used_ns() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok()
    }
}
