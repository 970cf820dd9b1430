//! The bounds that tables of a scenario share.

use super::units::Time;
use ebbtide_core::params::Parameters;

/// The maximum number of clients of one scenario, whose addresses are those of 10.0.0.0/8.
pub(crate) const MAX_CLIENTS: u64 = 1_000_000;
/// The maximum number of replications of a cell.
pub(super) const MOST_REPLICATIONS: u32 = 100_000;
/// The maximum length of a scenario's file, bytes.
pub(super) const MOST_TEXT: u64 = 1 << 20;
/// The maximum number of messages of the flows of one run, since the fate of each is kept.
pub(super) const MAX_MESSAGES: u64 = 10_000_000;
/// The name of `[network.up]` and `[network.down]` among the links.
pub(crate) const BOTTLENECK: &str = "bottleneck";
/// The longest delay and the longest timeout, which the message layer can measure and wait for.
pub(super) const LONGEST_SPAN: Time = Time(Parameters::LONGEST_SPAN.as_nanos());
