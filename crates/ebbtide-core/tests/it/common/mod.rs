//! What tests of controls and endpoints share: randomness that is known, a scripted path for a
//! control, an endpoint whose every output is recorded, and two of them with a wire between.

pub(crate) mod ebb;
pub(crate) mod machine;
pub(crate) mod node;
pub(crate) mod oscore_machine;
pub(crate) mod pair;
pub(crate) mod path;
pub(crate) mod receiver;
pub(crate) mod server_session;
pub(crate) mod session;
pub(crate) mod split;
pub(crate) mod split_mix;
pub(crate) mod transfer;
pub(crate) mod wired;

use core::convert::Infallible;
use ebbtide_core::time::{Duration, Instant, Micros};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng, TryRng};

/// A named stream of randomness.
pub(crate) fn seeded(seed: u64) -> Box<dyn Rng + Send> {
    Box::new(ChaCha8Rng::seed_from_u64(seed))
}

/// `seconds` after the epoch.
pub(crate) fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_nanos((seconds * 1e9).round() as u64)
}

/// A span of this many seconds.
pub(crate) fn secs(seconds: f64) -> Micros {
    Micros::from_u64((seconds * 1e6).round() as u64)
}

/// The nearest float: equal to a literal of at most six decimals if the span is.
pub(crate) fn float(span: Micros) -> f64 {
    span.as_secs_f64()
}

/// Randomness in which every uniform draw of a span is its lowest, or its highest, value. Bytes
/// and 64-bit words count up, so that tokens still differ.
pub(crate) struct Constant {
    word: u32,
    count: u64,
}

impl Constant {
    pub(crate) fn lowest() -> Box<dyn Rng + Send> {
        Box::new(Self { word: 0, count: 0 })
    }

    pub(crate) fn highest() -> Box<dyn Rng + Send> {
        Box::new(Self { word: u32::MAX, count: 0 })
    }
}

impl TryRng for Constant {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.word)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.count += 1;
        Ok(self.count)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_be_bytes();
            chunk.copy_from_slice(&word[8 - chunk.len()..]);
        }
        Ok(())
    }
}
