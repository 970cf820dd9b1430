//! Random numbers for tests. A product takes them from the hardware instead.

use core::convert::Infallible;
use rand_core::TryRng;

/// SplitMix64: the same seed gives the same run.
#[derive(Debug)]
pub struct SplitMix(pub u64);

impl TryRng for SplitMix {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|number| number as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Ok(mixed ^ (mixed >> 31))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = self.try_next_u64()? as u8;
        }
        Ok(())
    }
}

// DTLS asks for it. It is not true: the programs here are tests.
#[cfg(feature = "dtls")]
impl rand_core::TryCryptoRng for SplitMix {}
