//! Low-power networks: nodes of a [medium](crate::medium) that forward datagrams for each other.
//!
//! Real endpoints sit on the nodes, or behind the wired side of the border router; their datagrams
//! are compressed and fragmented as 6LoWPAN does, queue, cross the air frame by frame along the
//! routes that RPL converges to, and are put together again at each hop.

mod bytes;
mod network;
mod reassembly;
mod requester;
mod routes;
mod simulation;
mod wire;
mod workload;

pub use crate::record::{Causes, MeshRecord, Messages, NodeRecord};
pub use crate::scenario::mesh_topology::Topology;
pub use routes::Routes;
pub(crate) use simulation::simulate;
