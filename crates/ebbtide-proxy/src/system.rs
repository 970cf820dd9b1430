//! The system's clock and randomness.

use tokio::time::Instant;

/// The present time.
#[expect(clippy::disallowed_methods, reason = "a gateway is a driver: it lives by the wall clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A number that clients cannot guess, or 0 if the system has none.
pub(crate) fn seed() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// The time of day in seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "what is stored must mean the same after a restart")]
pub(crate) fn unix_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
