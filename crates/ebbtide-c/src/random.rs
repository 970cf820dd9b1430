//! Random numbers from one that the caller drew.

use core::convert::Infallible;
use rand_core::TryRng;

/// The finaliser of MurmurHash3 over a counter: enough to spread timeouts.
pub(crate) struct Drawn(pub(crate) u32);

impl TryRng for Drawn {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        let mixed = (self.0 ^ (self.0 >> 16)).wrapping_mul(0x85eb_ca6b);
        let mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
        Ok(mixed ^ (mixed >> 16))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from(self.try_next_u32()?) << 32 | u64::from(self.try_next_u32()?))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = self.try_next_u32()? as u8;
        }
        Ok(())
    }
}
