//! The only code that reads a clock and the system's randomness.

use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;
#[cfg(feature = "dtls")]
use rand_chacha::ChaCha20Rng;
#[cfg(feature = "dtls")]
use rand_core::CryptoRng;
use rand_core::{Rng, SeedableRng};

/// A clock whose epoch is its creation. It is tokio's, which is the system's unless a test has paused it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Clock {
    epoch: tokio::time::Instant,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the driver's clock: all others are given instants"
    )]
    pub(crate) fn start() -> Self {
        Self { epoch: tokio::time::Instant::now() }
    }

    /// The time now.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        // 584 years of nanoseconds fit.
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// Its epoch on the clock of the standard library.
    #[cfg(feature = "dtls13")]
    pub(crate) fn epoch(self) -> std::time::Instant {
        self.epoch.into_std()
    }

    /// The same instant on tokio's clock.
    pub(crate) fn to_tokio(self, at: Instant) -> tokio::time::Instant {
        let since = at.saturating_since(Instant::ZERO);
        // A timer of a century has the same effect as none, and tokio cannot handle much longer
        // ones.
        let since = since.min(std::time::Duration::from_secs(3_000_000_000));
        self.epoch + since
    }
}

/// Fills `bytes` at random.
#[expect(clippy::disallowed_methods, reason = "the driver seeds everything below it")]
fn fill(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    #[cfg(feature = "test-net")]
    if super::seeded::fill(bytes) {
        return Ok(());
    }
    getrandom::fill(bytes)
}

/// A random number from 0 to 1.
pub(crate) fn fraction() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness, the whole span is as good as any part of it.
    let drawn = fill(&mut bytes);
    drawn.map_or(1.0, |()| f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

/// A random number that distinguishes this process's items from others of their kind; zero without
/// randomness.
pub(crate) fn distinct() -> u32 {
    let mut bytes = [0; 4];
    let drawn = fill(&mut bytes);
    drawn.map_or(0, |()| u32::from_le_bytes(bytes))
}

/// The system's randomness as a generator, for drivers that need little of it. It returns zeros if
/// the system provides none.
pub(crate) struct SystemRandom;

impl rand_core::TryRng for SystemRandom {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(distinct())
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(u64::from(distinct()) << 32 | u64::from(distinct()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        let _ = fill(bytes);
        Ok(())
    }
}

/// An unpredictable generator, seeded by the system (RFC 7252 section 11.4).
///
/// # Errors
///
/// Returns an error if the system provides no randomness.
pub(crate) fn seeded() -> std::io::Result<Box<dyn Rng + Send>> {
    let mut seed = [0; 32];
    fill(&mut seed).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(Box::new(ChaCha8Rng::from_seed(seed)))
}

/// A generator for secrets: keys, cookies, connection IDs.
///
/// # Errors
///
/// Returns an error if the system provides no randomness.
#[cfg(feature = "dtls")]
pub(crate) fn seeded_for_secrets() -> std::io::Result<Box<dyn CryptoRng + Send>> {
    let mut seed = [0; 32];
    fill(&mut seed).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(Box::new(ChaCha20Rng::from_seed(seed)))
}

/// Bytes for a key; `None` if the system provides no randomness.
#[expect(clippy::disallowed_methods, reason = "keys of one handshake, which no seed may give")]
pub(crate) fn secret_bytes<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok().map(|()| bytes)
}

/// Milliseconds of the system's clock, which continues over a restart.
pub(crate) fn unix_millis() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "the only clock that goes on after a restart")]
fn since_1970() -> std::time::Duration {
    #[cfg(feature = "test-net")]
    if let Some(shown) = super::seeded::system_clock() {
        return shown;
    }
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}
