//! Randomness by a seed, for tests that repeat.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::cell::RefCell;
use std::marker::PhantomData;

thread_local! {
    static GENERATOR: RefCell<Option<ChaCha8Rng>> = const { RefCell::new(None) };
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
