//! Reassembles fragments of handshake messages and puts messages in order, within limits (RFC 6347
//! section 4.2.3).

use crate::message::{Fragment, HandshakeType};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The number of messages that may be kept before the next one in order has arrived. A flight has
/// at most five.
const AHEAD: u16 = 5;
/// Bytes of the messages that are kept.
const MAX_BYTES: usize = 16_384;

/// A message in one piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: HandshakeType,
    pub(crate) sequence: u16,
    pub(crate) body: Vec<u8>,
}

/// The fate of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentOutcome {
    /// It is kept.
    Kept,
    /// Its message was processed before; the peer retransmits a flight.
    Repeated,
    /// It is too far ahead, or too much is kept.
    Dropped,
}

#[derive(Debug)]
pub(crate) struct Reassembly {
    /// The next message in order.
    next: u16,
    /// That message and those after it, as far as any of their fragments have arrived.
    slots: VecDeque<Option<Partial>>,
}

#[derive(Debug)]
struct Partial {
    kind: HandshakeType,
    body: Vec<u8>,
    /// One bit per received byte.
    received: Vec<u8>,
    missing: usize,
}

impl Reassembly {
    pub(crate) const fn new(next: u16) -> Self {
        Self { next, slots: VecDeque::new() }
    }

    pub(crate) fn add(&mut self, fragment: &Fragment<'_>) -> FragmentOutcome {
        // Message numbers do not wrap within a handshake.
        let Some(ahead) = fragment.sequence.checked_sub(self.next) else {
            return FragmentOutcome::Repeated;
        };
        if ahead >= AHEAD {
            return FragmentOutcome::Dropped;
        }
        let index = usize::from(ahead);
        let others = self.slots.iter().enumerate().filter(|(other, _)| *other != index);
        let kept: usize = others.filter_map(|(_, slot)| Some(slot.as_ref()?.body.len())).sum();
        // The next message in order always has room.
        if index > 0 && kept + fragment.total > MAX_BYTES {
            return FragmentOutcome::Dropped;
        }
        while self.slots.len() <= index {
            self.slots.push_back(None);
        }
        if let Some(slot) = self.slots.get_mut(index) {
            let fits = slot.as_ref().is_some_and(|partial| partial.fits(fragment));
            // The fragment belongs to another message with the same number, so one of the two was
            // forged, and the later one is as likely to be genuine. Complete messages are kept.
            if !fits && slot.as_ref().is_none_or(|partial| partial.missing > 0) {
                *slot = Some(Partial::new(fragment));
            }
            if let Some(partial) = slot.as_mut().filter(|partial| partial.fits(fragment)) {
                partial.add(fragment);
            }
        }
        FragmentOutcome::Kept
    }

    /// The next message in order, if it is complete.
    pub(crate) fn take(&mut self) -> Option<Message> {
        let due = self.slots.front_mut()?;
        if due.as_ref().is_none_or(|partial| partial.missing > 0) {
            return None;
        }
        let Partial { kind, body, .. } = due.take()?;
        Some(Message { kind, sequence: self.next, body })
    }

    /// The message that [`Self::take`] returned was valid, so the next one is due. Without this
    /// call its number stays due, and a copy is accepted.
    pub(crate) fn advance(&mut self) {
        self.slots.pop_front();
        self.next = self.next.saturating_add(1);
    }
}

impl Partial {
    fn new(fragment: &Fragment<'_>) -> Self {
        Self {
            kind: fragment.kind,
            body: alloc::vec![0; fragment.total],
            received: alloc::vec![0; fragment.total.div_ceil(8)],
            missing: fragment.total,
        }
    }

    fn fits(&self, fragment: &Fragment<'_>) -> bool {
        self.kind == fragment.kind && self.body.len() == fragment.total
    }

    fn add(&mut self, fragment: &Fragment<'_>) {
        for (offset, byte) in (fragment.offset..).zip(fragment.bytes) {
            let (Some(to), Some(bits)) =
                (self.body.get_mut(offset), self.received.get_mut(offset / 8))
            else {
                return;
            };
            let bit = 1 << (offset % 8);
            if *bits & bit == 0 {
                *bits |= bit;
                *to = *byte;
                self.missing -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(body: &[u8], sequence: u16, offset: usize, length: usize) -> Fragment<'_> {
        Fragment {
            kind: HandshakeType::ClientHello,
            total: body.len(),
            sequence,
            offset,
            bytes: &body[offset..offset + length],
        }
    }

    proptest! {
        #[test]
        fn fragments_in_any_order_with_overlaps_give_the_message(
            body in proptest::collection::vec(any::<u8>(), 1..200),
            cuts in proptest::collection::vec((0_usize..200, 1_usize..50), 0..40),
        ) {
            let mut reassembly = Reassembly::new(3);
            for (offset, length) in cuts {
                let offset = offset % body.len();
                let length = length.min(body.len() - offset);
                prop_assert_eq!(reassembly.add(&piece(&body, 3, offset, length)), FragmentOutcome::Kept);
            }
            reassembly.add(&piece(&body, 3, 0, body.len()));
            let message = reassembly.take().unwrap();
            prop_assert_eq!((&message.body, message.sequence), (&body, 3));
            reassembly.advance();
            prop_assert_eq!(reassembly.add(&piece(&body, 3, 0, 1)), FragmentOutcome::Repeated);
        }
    }

    #[test]
    fn a_message_too_far_ahead_is_dropped_and_one_ahead_waits() {
        let mut reassembly = Reassembly::new(0);
        let body = [1, 2, 3];
        assert_eq!(reassembly.add(&piece(&body, 5, 0, 3)), FragmentOutcome::Dropped);
        assert_eq!(reassembly.add(&piece(&body, 1, 0, 3)), FragmentOutcome::Kept);
        assert_eq!(reassembly.take(), None);
        reassembly.add(&piece(&body, 0, 0, 3));
        assert!(reassembly.take().is_some());
        reassembly.advance();
        assert_eq!(reassembly.take().unwrap().sequence, 1);
    }
}
