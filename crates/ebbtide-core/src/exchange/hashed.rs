//! Addresses as keys of hash tables.

use core::hash::{Hash, Hasher};
use core::net::SocketAddr;

/// An address that is hashed as one or two integers. The standard library hashes it as byte
/// strings, which costs more than the rest of a look-up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hashed(pub(crate) SocketAddr);

impl Hash for Hashed {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            SocketAddr::V4(v4) => {
                state.write_u64((u64::from(v4.ip().to_bits()) << 16) | u64::from(v4.port()));
            }
            // The parts are not folded into one number, because the owner of a prefix must not be
            // able to choose colliding addresses and ports. Flow label and scope are left to the
            // comparison.
            SocketAddr::V6(v6) => {
                state.write_u128(v6.ip().to_bits());
                state.write_u16(v6.port());
            }
        }
    }
}
