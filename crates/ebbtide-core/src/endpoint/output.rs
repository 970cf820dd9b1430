//! The output of an endpoint for its driver: datagrams to be sent, and events.

use super::Endpoint;
use super::types::{Event, Output, Sent, Transmit};
use crate::exchange::mark::with_option;
use crate::exchange::outbox::Outbox;
use crate::peer::PeerId;
use crate::wire::{Code, OptionNumber};
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
    /// The datagram that left last with the option PM.
    measured: Vec<u8>,
}

impl OutputBuffers {
    #[inline]
    fn queues(&mut self) -> &mut Queues {
        let queues =
            || Queues { outbox: Outbox::new(), events: VecDeque::new(), measured: Vec::new() };
        self.0.get_or_insert_with(|| Box::new(queues()))
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

    /// The datagram that was queued last, if it was not fetched yet.
    pub(super) fn newest(&self) -> Option<&[u8]> {
        self.0.as_deref()?.outbox.newest()
    }

    pub(super) fn report(&mut self, event: Event) {
        self.queues().events.push_back(event);
    }

    /// Destination and code of the message that [`Self::pop`] returns next, if it is a message.
    pub(super) fn next_message(&self) -> Option<(PeerId, Code)> {
        let (to, datagram) = self.0.as_deref()?.outbox.first()?;
        Some((to, Code(*datagram.get(1)?)))
    }

    /// The next datagram, with this value of the option PM if there is one, or the next event if there is no datagram.
    #[inline]
    pub(super) fn pop(&mut self, pm: Option<u8>) -> Option<Output<'_>> {
        let queues = self.0.as_deref_mut()?;
        if queues.outbox.is_empty() {
            return queues.events.pop_front().map(Output::Event);
        }
        let (to, what, datagram) = queues.outbox.pop()?;
        let datagram = match pm {
            None => datagram,
            Some(value) => with_measurement(datagram, value, &mut queues.measured),
        };
        Some(Output::Transmit(Transmit { to, datagram, what }))
    }
}

/// The datagram with this value of the option PM, written to `measured`.
#[inline(never)]
fn with_measurement<'m>(datagram: &[u8], value: u8, measured: &'m mut Vec<u8>) -> &'m [u8] {
    measured.clear();
    with_option(datagram, OptionNumber::PM, &[value], measured);
    measured
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
