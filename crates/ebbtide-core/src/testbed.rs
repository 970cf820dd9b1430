//! Functions and switches for a testbed with very many endpoints, and for studies of controls. A program on a network
//! needs none of them, and they may change with any version.

use crate::endpoint::Endpoint;
pub use crate::endpoint::{MemoryPart, OutputBuffers, StudySettings};

/// Reads a part of the state of the endpoint's first peer and first exchange, and changes nothing. The result
/// has no meaning; hand it to [`core::hint::black_box`], so that the compiler keeps the reads.
///
/// With a hundred thousand endpoints the state of one is in no cache when its turn comes, and is found
/// pointer by pointer, each of which takes an access to memory. A program that knows which endpoints
/// are next can call this for several of them, and for the next part of each only when it has read this part of all:
/// the accesses of such a round do not depend on each other, so that the processor makes them at the same time.
#[must_use]
pub fn read_ahead(endpoint: &Endpoint, part: MemoryPart) -> u64 {
    endpoint.read_ahead(part)
}

/// Swaps the endpoint's buffers with others. It has no effect while output waits in either of them.
#[inline]
pub fn swap_buffers(endpoint: &mut Endpoint, other: &mut OutputBuffers) {
    endpoint.swap_buffers(other);
}
