//! Addresses as keys of hash tables.

use core::hash::{Hash, Hasher};
use core::net::SocketAddr;

/// An address that is hashed as one or two integers. The standard library hashes it byte string by
/// byte string, which costs more than the rest of a look-up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hashed(pub(crate) SocketAddr);

impl Hash for Hashed {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            SocketAddr::V4(v4) => {
                state.write_u64((u64::from(v4.ip().to_bits()) << 16) | u64::from(v4.port()));
            }
            // Not folded into one number: whoever owns a prefix must not be able to choose
            // addresses and ports that collide. Flow label and scope are left to the comparison.
            SocketAddr::V6(v6) => {
                state.write_u128(v6.ip().to_bits());
                state.write_u16(v6.port());
            }
        }
    }
}
