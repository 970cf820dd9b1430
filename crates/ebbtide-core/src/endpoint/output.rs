//! The output of an endpoint for its driver: datagrams to be sent, and events.

use super::Endpoint;
use super::types::{Event, Output, Sent, Transmit};
use crate::exchange::outbox::Outbox;
use crate::peer::PeerId;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The buffers in which output waits for the driver. An endpoint makes its own when it needs them. A
/// program with many endpoints that fetches all output of one before it calls the next can let them
/// take turns with the same: see [`swap_buffers`](crate::testbed::swap_buffers).
#[derive(Default)]
pub struct OutputBuffers(Option<Box<Queues>>);

struct Queues {
    outbox: Outbox<Sent>,
    events: VecDeque<Event>,
}

impl OutputBuffers {
    #[inline]
    fn queues(&mut self) -> &mut Queues {
        let new = || Box::new(Queues { outbox: Outbox::new(), events: VecDeque::new() });
        self.0.get_or_insert_with(new)
    }

    /// Whether there are buffers at all.
    #[inline]
    pub(super) const fn is_allocated(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        let is_empty = |queues: &Queues| queues.outbox.is_empty() && queues.events.is_empty();
        self.0.as_deref().is_none_or(is_empty)
    }

    /// Queues the bytes that `write` appends, as [`Outbox::push`] does.
    pub(super) fn push(
        &mut self,
        max_bytes: usize,
        to: PeerId,
        what: Sent,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        self.queues().outbox.push(max_bytes, to, what, write)
    }

    pub(super) fn report(&mut self, event: Event) {
        self.queues().events.push_back(event);
    }

    /// The next datagram or, if there is none, the next event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Output<'_>> {
        let queues = self.0.as_deref_mut()?;
        if queues.outbox.is_empty() {
            return queues.events.pop_front().map(Output::Event);
        }
        let (to, what, datagram) = queues.outbox.pop()?;
        Some(Output::Transmit(Transmit { to, datagram, what }))
    }
}

impl Endpoint {
    /// See [`crate::testbed::swap_buffers`].
    #[inline]
    pub(crate) fn swap_buffers(&mut self, other: &mut OutputBuffers) {
        if self.output.is_empty() && other.is_empty() {
            core::mem::swap(&mut self.output, other);
        }
    }
}

impl core::fmt::Debug for OutputBuffers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OutputBuffers").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}
