//! Low-power networks: nodes of a [medium](crate::medium) that forward datagrams for each other.
//!
//! Real endpoints sit on the nodes, or behind the wired side of the border router; their datagrams
//! are compressed and fragmented as 6LoWPAN does, queue, cross the air frame by frame along the
//! routes that RPL converges to, and are put together again at each hop.

mod bytes;
mod lowpan;
mod network;
mod reassembly;
mod record;
mod requester;
mod routes;
mod simulation;
mod topology;
mod workload;

pub use lowpan::{ElidedAddresses, Fragments, LARGEST_DATAGRAM, compressed_header, fragments};
pub use record::{Causes, MeshRecord, Messages, NodeRecord};
pub use routes::Routes;
pub(crate) use simulation::simulate;
pub use topology::{Topology, check};
