//! Low-power networks: nodes of a [medium](crate::medium) that forward datagrams for each other.
//!
//! Datagrams are compressed and fragmented as 6LoWPAN does, queue, cross the air frame by frame along the
//! routes that RPL converges to, and are put together again at each hop. Like a MAC, the network has a driver,
//! which calls `send` and `handle` and fetches the fates of datagrams with `poll`.

mod bytes;
mod network;
mod reassembly;
mod routes;

pub use crate::record::{Causes, MeshRecord, Messages, NodeRecord};
pub use crate::scenario::mesh_topology::Topology;
pub(crate) use network::{Cause, Datagram, Ended, Network};
pub use routes::Routes;
