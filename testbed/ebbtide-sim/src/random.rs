//! Named streams of randomness.
//!
//! Every component that draws has a stream of its own, named by its path (`"link/down/loss"`,
//! `"client/17"`), so that a draw added in one place does not change any other. The name of the
//! congestion control is not part of the key, so compared controls draw the same values.

mod frugal;

pub(crate) use frugal::CompactChaCha;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The replication and experiment: the part of the key that all streams of a replication share.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
    replication: u32,
}

impl Streams {
    /// The streams of one replication.
    pub const fn new(seed: u64, replication: u32) -> Self {
        Self { seed, replication }
    }

    /// The stream of the component at `path`: ChaCha8 keyed by seed, replication and path.
    pub fn stream(&self, path: &str) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.key(path))
    }

    /// The stream of [`Self::stream`] in less memory.
    pub(crate) fn frugal(&self, path: &str) -> CompactChaCha {
        CompactChaCha::from_seed(self.key(path))
    }

    fn key(&self, path: &str) -> [u8; 32] {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..12].copy_from_slice(&self.replication.to_le_bytes());
        key[16..].copy_from_slice(&fnv1a_128(path.as_bytes()).to_le_bytes());
        key
    }
}

/// FNV-1a in 128 bits: names to keys, the same on every machine and in every version.
pub(crate) fn fnv1a_128(bytes: &[u8]) -> u128 {
    Fnv::default().and(bytes).0
}

/// The state of [`fnv1a_128`] after some bytes, with which a common prefix is hashed only once.
#[derive(Copy, Clone)]
pub(crate) struct Fnv(pub(crate) u128);

impl Default for Fnv {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    /// The state after these bytes.
    pub(crate) fn and(self, bytes: &[u8]) -> Self {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let each = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
        Self(bytes.iter().fold(self.0, each))
    }
}

/// A number drawn uniformly from `[low, high]`, both included; `low` if `high` is smaller.
pub fn uniform(rng: &mut impl Rng, low: u64, high: u64) -> u64 {
    let Some(width) = high.checked_sub(low) else { return low };
    // Multiply-shift over 64 bits; the bias is below 2^-64 times the width.
    let draw = (u128::from(rng.next_u64()) * (u128::from(width) + 1)) >> 64;
    low + u64::try_from(draw).unwrap_or(width)
}

/// A probability as a multiple of 2^-32, so that a comparison of integers decides.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Probability {
    /// From a share, which is clamped to `[0, 1]`; NaN becomes 0.
    pub fn new(share: f64) -> Self {
        // Rounded to a multiple of 2^-32. The cast saturates and maps NaN to 0.
        Self((share.clamp(0.0, 1.0) * 4_294_967_296.0).round() as u64)
    }

    /// Returns true with this probability.
    #[inline]
    pub fn draw(self, rng: &mut impl Rng) -> bool {
        u64::from(rng.next_u32()) < self.0
    }
}

/// A number drawn uniformly from `[0, 1)`, a multiple of 2^-53.
pub fn unit(rng: &mut impl Rng) -> f64 {
    // 53 bits fit in the fraction of a double.
    (rng.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
}

/// An exponentially distributed span with the given mean, by von Neumann's comparison method. It
/// needs no logarithm, whose last bit differs between machines.
pub fn exponential(rng: &mut impl Rng, mean_ns: u64) -> u64 {
    let mut whole: u64 = 0;
    loop {
        let first = rng.next_u32();
        let mut previous = first;
        let mut falling = 1u32;
        loop {
            let next = rng.next_u32();
            if next >= previous {
                break;
            }
            previous = next;
            falling += 1;
        }
        if falling % 2 == 1 {
            let units = (u128::from(whole) << 32) | u128::from(first);
            let span = (units * u128::from(mean_ns)) >> 32;
            return u64::try_from(span).unwrap_or(u64::MAX);
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_each_part_of_their_key_and_repeat() {
        let draw =
            |seed, replication, path: &str| Streams::new(seed, replication).stream(path).next_u64();
        let base = draw(1, 0, "link/down/loss");
        assert_eq!(base, draw(1, 0, "link/down/loss"));
        for other in
            [draw(2, 0, "link/down/loss"), draw(1, 1, "link/down/loss"), draw(1, 0, "link/up/loss")]
        {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn exponential_spans_have_the_mean_and_the_spread_of_the_law() {
        let mut rng = Streams::new(7, 0).stream("test");
        let n = 200_000;
        let spans: Vec<f64> = (0..n).map(|_| exponential(&mut rng, 1_000_000) as f64).collect();
        let mean = spans.iter().sum::<f64>() / f64::from(n);
        let above = spans.iter().filter(|span| **span > 2_000_000.0).count() as f64 / f64::from(n);
        assert!((mean - 1e6).abs() < 1e4, "mean {mean}");
        // exp(-2) of them are longer than twice the mean.
        assert!((above - 0.135_335).abs() < 0.003, "share above twice the mean {above}");
    }

    #[test]
    fn uniform_includes_both_ends_and_nothing_else() {
        let mut rng = Streams::new(7, 0).stream("test");
        let mut seen = [false; 3];
        for _ in 0..1000 {
            let n = uniform(&mut rng, 5, 7);
            seen[usize::try_from(n - 5).unwrap()] = true;
        }
        assert_eq!(seen, [true; 3]);
        assert_eq!(uniform(&mut rng, 5, 4), 5);
    }
}
