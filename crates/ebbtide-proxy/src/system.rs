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
