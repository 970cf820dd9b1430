//! The bounds that checks of a scenario share, and the failure of a check.

use super::Network;
use super::units::Time;
use ebbtide_core::params::Parameters;

/// The maximum number of clients of one scenario, whose addresses are those of 10.0.0.0/8.
pub(crate) const MAX_CLIENTS: u32 = 1_000_000;
/// A simulated century. Longer spans are mistakes and would overflow sums.
pub(super) const LONGEST: Time = Time(3_155_760_000_000_000_000);

/// The longest delay and the longest timeout, which the message layer can measure and wait for.
pub(super) const LONGEST_SPAN: Time = Time(Parameters::LONGEST_SPAN.as_nanos());

/// The outcome of a check: the key at fault and the remedy.
pub(super) type Check = Result<(), (String, String)>;

/// Fails unless a value lies within its range.
pub(super) fn range(ok: bool, key: &str, message: &str) -> Check {
    if ok { Ok(()) } else { Err((key.to_owned(), message.to_owned())) }
}

/// A TCP segment must hold at least 48 bytes (the smallest MSS that it accepts) in addition to its
/// options.
pub(super) fn room_for_tcp(network: &Network) -> Result<(), String> {
    // The 28 bytes of IPv4 and UDP become 40 of IPv4 and TCP.
    let least = network.header + 12 + 12 + 48;
    if network.mtu >= least {
        return Ok(());
    }
    let mtu = network.mtu;
    Err(format!("needs packets of {least} bytes at least, and network.mtu is {mtu}"))
}
