//! Books on a byte stream: which exchange each byte is for, and what crosses the network twice.

use super::segment::Segment;
use crate::host::Tag;
use ebbtide_core::time::{Duration, Instant};
use std::collections::VecDeque;

/// The bytes that one end sends.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The sequence number of the first byte of data, once a SYN has left.
    first: Option<u32>,
    /// SYNs that have left.
    syns: u8,
    fin: bool,
    /// Bytes of messages so far.
    written: u64,
    /// Bytes that have left at least once.
    highest: u64,
    /// The messages that are not acknowledged, in order.
    pieces: VecDeque<StreamMessage>,
    /// How much was acknowledged when something was last repeated, and when it was first repeated
    /// with no more than that acknowledged.
    repeating: Option<(u64, Instant)>,
}

/// A message in the stream.
#[derive(Copy, Clone, Debug)]
struct StreamMessage {
    /// Where it ends, in bytes of the stream.
    end: u64,
    /// The message to which it belongs; `None` for a signaling message.
    tag: Option<Tag>,
}

/// The contents of a departing segment.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DepartingSegment {
    /// Whether something in it has left before.
    pub(super) is_repeated: bool,
    /// Whether it begins with the earliest data that is not acknowledged.
    pub(super) is_earliest: bool,
    /// The tags of the first and the last message in it.
    pub(super) tags: Option<(Tag, Tag)>,
    /// How often it left before, if it is a SYN.
    pub(super) earlier: u8,
    /// For how long what it repeats has been repeated without an acknowledgement of anything; not
    /// of a SYN.
    pub(super) in_vain: Duration,
}

impl Sent {
    /// A message of `bytes` is the next in the stream.
    pub(super) fn write(&mut self, bytes: usize, tag: Option<Tag>) {
        self.written += bytes as u64;
        self.pieces.push_back(StreamMessage { end: self.written, tag });
    }

    /// A segment leaves at `now` while `unacknowledged` bytes of what was written are not
    /// acknowledged.
    pub(super) fn depart(
        &mut self,
        now: Instant,
        segment: &Segment,
        unacknowledged: u64,
    ) -> DepartingSegment {
        let earlier_syns = self.syns;
        if segment.syn {
            self.syns = self.syns.saturating_add(1);
            self.first = Some(segment.sequence.wrapping_add(1));
        }
        let repeats_fin = segment.fin && self.fin;
        self.fin |= segment.fin;
        let acknowledged = self.written - unacknowledged;
        while self.pieces.front().is_some_and(|piece| piece.end <= acknowledged) {
            self.pieces.pop_front();
        }
        let mut departure = DepartingSegment {
            is_repeated: repeats_fin || (segment.syn && earlier_syns > 0),
            earlier: if segment.syn { earlier_syns } else { 0 },
            ..DepartingSegment::default()
        };
        if segment.payload == 0 {
            departure.in_vain = self.in_vain(now, acknowledged, repeats_fin);
            return departure;
        }
        let start = acknowledged + u64::from(self.distance(segment.sequence, acknowledged));
        let end = start + u64::from(segment.payload);
        departure.is_repeated |= start < self.highest;
        departure.in_vain = self.in_vain(now, acknowledged, departure.is_repeated);
        departure.is_earliest = start == acknowledged;
        self.highest = self.highest.max(end);
        let mut before = acknowledged;
        for piece in &self.pieces {
            let overlaps = before < end && start < piece.end;
            before = piece.end;
            if let (true, Some(tag)) = (overlaps, piece.tag) {
                departure.tags = Some((departure.tags.map_or(tag, |(first, _)| first), tag));
            }
        }
        departure
    }

    /// For how long data or a FIN that leaves at `now` has been repeated in vain.
    fn in_vain(&mut self, now: Instant, acknowledged: u64, is_repeated: bool) -> Duration {
        if !is_repeated {
            return Duration::ZERO;
        }
        let began = self.repeating.filter(|known| known.0 == acknowledged);
        let (_, first) = *self.repeating.insert(began.unwrap_or((acknowledged, now)));
        now - first
    }

    /// How far a sequence number is beyond a byte of the stream, which is at most 2^32 before it.
    fn distance(&self, sequence: u32, from: u64) -> u32 {
        // The stream's position wraps as sequence numbers do.
        let from = self.first.unwrap_or_default().wrapping_add(from as u32);
        sequence.wrapping_sub(from)
    }
}

/// The bytes that have arrived at one end.
#[derive(Debug, Default)]
pub(super) struct ArrivedBytes {
    /// All sequence numbers before this one have.
    next: Option<u32>,
    /// Stretches beyond it; few, as the window is small.
    beyond: Vec<(u32, u32)>,
}

impl ArrivedBytes {
    /// A segment arrives. Whether all that it carries was here already: then it was repeated
    /// without need.
    pub(super) fn note(&mut self, segment: &Segment) -> bool {
        let length = segment.length();
        if length == 0 || segment.rst {
            return false;
        }
        let (start, end) = (segment.sequence, segment.sequence.wrapping_add(length));
        let Some(next) = self.next else {
            self.next = segment.syn.then_some(end);
            return false;
        };
        if is_not_after(end, next) {
            return true;
        }
        if !is_not_after(start, next) {
            let known =
                |&(from, to): &(u32, u32)| is_not_after(from, start) && is_not_after(end, to);
            if self.beyond.iter().any(known) {
                return true;
            }
            self.beyond.push((start, end));
            return false;
        }
        let mut next = end;
        while let Some(place) = self.beyond.iter().position(|(from, _)| is_not_after(*from, next)) {
            let (_, to) = self.beyond.swap_remove(place);
            next = if is_not_after(to, next) { next } else { to };
        }
        self.next = Some(next);
        false
    }
}

/// Sequence numbers are compared modulo 2^32 (RFC 9293 section 3.4).
fn is_not_after(one: u32, other: u32) -> bool {
    other.wrapping_sub(one).cast_signed() >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(sequence: u32, payload: u32) -> Segment {
        Segment { sequence, payload, ..Segment::default() }
    }

    fn syn(sequence: u32) -> Segment {
        Segment { sequence, syn: true, ..Segment::default() }
    }

    fn tag(exchange: u32) -> Tag {
        Tag { exchange, ordinal: 0, probe: false }
    }

    #[test]
    fn a_segment_names_the_messages_in_it_and_whether_it_was_sent_before() {
        let mut sent = Sent::default();
        assert!(!sent.depart(Instant::ZERO, &syn(u32::MAX - 4), 0).is_repeated);
        assert!(sent.depart(Instant::ZERO, &syn(u32::MAX - 4), 0).is_repeated);
        sent.write(7, None);
        sent.write(8, Some(tag(0)));
        sent.write(8, Some(tag(1)));
        // The CSM alone, then both requests, beyond the wrap of the sequence numbers.
        let csm = sent.depart(Instant::ZERO, &data(u32::MAX - 3, 7), 23);
        assert_eq!((csm.is_repeated, csm.is_earliest, csm.tags), (false, true, None));
        let both = sent.depart(Instant::ZERO, &data(3, 16), 23);
        assert_eq!((both.is_repeated, both.is_earliest), (false, false));
        assert_eq!(both.tags, Some((tag(0), tag(1))));
        // All of it again as one segment; then the first request is acknowledged.
        assert!(sent.depart(Instant::ZERO, &data(u32::MAX - 3, 23), 23).is_repeated);
        let last = sent.depart(Instant::ZERO, &data(11, 8), 8);
        assert_eq!(last.tags, Some((tag(1), tag(1))));
        assert!(last.is_repeated && last.is_earliest);
    }

    #[test]
    fn unsuccessful_repetitions_are_timed_from_the_first_until_an_acknowledgement() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut sent = Sent::default();
        sent.depart(at(0), &syn(0), 0);
        sent.write(7, None);
        sent.write(8, Some(tag(0)));
        let mut in_vain = |seconds, segment: Segment, unacknowledged| {
            sent.depart(at(seconds), &segment, unacknowledged).in_vain.as_secs()
        };
        let both = [0, 3, 9, 21].map(|seconds| in_vain(seconds, data(1, 15), 15));
        assert_eq!(both, [0, 0, 6, 18]);
        // The CSM is acknowledged, then the request; the FIN is repeated, too.
        assert_eq!([45, 93].map(|seconds| in_vain(seconds, data(8, 8), 8)), [0, 48]);
        let fin = Segment { fin: true, ..data(16, 0) };
        assert_eq!([94, 96, 100].map(|seconds| in_vain(seconds, fin, 0)), [0, 0, 4]);
    }

    #[test]
    fn repeated_bytes_are_distinguished_from_bytes_that_fill_a_gap() {
        let mut arrived = ArrivedBytes::default();
        let start = u32::MAX - 10;
        assert!(!arrived.note(&syn(start)));
        assert!(arrived.note(&syn(start)), "the SYN again");
        let at = |offset: u32, payload| data(start.wrapping_add(1 + offset), payload);
        assert!(!arrived.note(&at(0, 20)));
        assert!(arrived.note(&at(0, 20)));
        assert!(!arrived.note(&at(40, 20)), "after a gap");
        assert!(arrived.note(&at(40, 20)), "after the gap, again");
        assert!(!arrived.note(&at(20, 20)), "the gap");
        assert!(arrived.note(&at(20, 40)), "all of it");
        assert!(!arrived.note(&at(50, 20)), "half of it");
        assert!(!arrived.note(&data(start, 0)), "an acknowledgement carries nothing");
        let fin = Segment { fin: true, ..at(70, 0) };
        assert!(!arrived.note(&fin));
        assert!(arrived.note(&fin));
    }
}
