//! Randomness by a seed and a system clock that can be set, for tests that repeat.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::time::Duration;
use tokio::time::Instant;

thread_local! {
    static GENERATOR: RefCell<Option<ChaCha8Rng>> = const { RefCell::new(None) };
    /// When the system's clock was set, and what it showed then.
    static SYSTEM_CLOCK: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// Sets what the servers of this thread take for the system's clock, as the time since 1970. It
/// goes on with tokio's clock, and ends with the thread's [`SeededRandomness`].
#[expect(clippy::disallowed_methods, reason = "the clock of a test")]
pub fn set_system_clock(since_1970: Duration) {
    SYSTEM_CLOCK.set(Some((Instant::now(), since_1970)));
}

/// The time since 1970, if this thread has a clock of its own.
pub(super) fn system_clock() -> Option<Duration> {
    SYSTEM_CLOCK.get().map(|(set, shown)| shown + set.elapsed())
}

/// While it exists, the clients and servers of this thread draw tokens, message IDs and keys from a seed instead of the
/// system's randomness. A peer that knows the seed knows them, so this is for tests only.
#[derive(Debug)]
pub struct SeededRandomness(PhantomData<*const ()>);

impl SeededRandomness {
    /// Begins with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        GENERATOR.set(Some(ChaCha8Rng::seed_from_u64(seed)));
        Self(PhantomData)
    }
}

impl Drop for SeededRandomness {
    fn drop(&mut self) {
        GENERATOR.set(None);
        SYSTEM_CLOCK.set(None);
    }
}

/// Fills `bytes` if this thread has a seed.
pub(super) fn fill(bytes: &mut [u8]) -> bool {
    GENERATOR.with_borrow_mut(|generator| match generator {
        Some(generator) => {
            generator.fill_bytes(bytes);
            true
        }
        None => false,
    })
}
