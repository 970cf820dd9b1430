//! Delivers the messages of bursts in the order in which they were sent.

use super::call::Call;
use crate::message::{BurstMark, Response};
use bytes::Bytes;
use ebbtide_core::PeerId;
use ebbtide_core::wire::Code;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// The maximum number of bursts with messages in order. Beyond it, the burst that has been idle for
/// longest is forgotten, and its later messages are delivered as they arrive.
const BURSTS: usize = 64;

/// The maximum number of waiting bytes of all bursts: 255 messages of 1 kB in each. A message that
/// arrived in blocks or over TCP may be far longer than a datagram; beyond the limit bursts are
/// forgotten as well.
const BYTES: usize = 16 << 20;

/// A message as [`in_order`] delivers it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Delivery<'d> {
    /// The address of the sender.
    pub remote: SocketAddr,
    /// The position in its burst; `None` if it arrived without a mark.
    pub mark: Option<BurstMark>,
    /// The payload of the message.
    pub payload: &'d [u8],
}

/// A handler that delivers the messages of each burst ([`Client::burst`](crate::Client::burst))
/// once and in the order in which they were sent. It answers 2.04 (Changed) as soon as a message
/// has arrived.
///
/// A message that overtook others waits for them: at most 255 messages of each of 64 bursts, and 16
/// MiB in all. Beyond that, the burst that has been idle for longest is forgotten: its waiting
/// messages are delivered, later ones are delivered as they arrive, and a late copy may be
/// delivered again. A message that its sender has given up is left out, which the sequence numbers
/// show. Messages without a mark are delivered as they arrive. An application that does not need
/// the order reads the sequence number from [`Call::burst`] instead. `deliver` must not block.
///
/// ```
/// use ebbtide::server::{Router, in_order, post};
/// let router: Router = Router::new().route("/log", post(in_order(|message| {
///     println!("{:?}: {} bytes", message.mark, message.payload.len());
/// })));
/// ```
pub fn in_order(
    deliver: impl FnMut(Delivery<'_>) + Send + 'static,
) -> impl Fn(&Call<'_>) -> Response + Send + Sync + 'static {
    let state = Mutex::new((deliver, Bursts::default()));
    move |call| {
        // A `deliver` that panicked has lost that message; the ones after it follow now.
        let (deliver, bursts) = &mut *state.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = Sender { peer: call.peer_id(), remote: call.remote() };
        let payload = call.payload();
        match call.burst() {
            None => deliver(Delivery { remote: sender.remote, mark: None, payload }),
            Some(mark) => {
                bursts.take(sender, mark, payload);
                while let Some(Ordered { remote, mark, payload }) = bursts.ready.pop_front() {
                    deliver(Delivery { remote, mark: Some(mark), payload: &payload });
                }
            }
        }
        Response::new(Code::CHANGED)
    }
}

/// The sender of a message.
#[derive(Copy, Clone, Debug)]
struct Sender {
    /// The key of its bursts. A datagram with a forged address is not part of the burst that a session or a connection
    /// with that address brings.
    peer: PeerId,
    remote: SocketAddr,
}

/// A message that is delivered next.
#[derive(Debug)]
struct Ordered {
    remote: SocketAddr,
    mark: BurstMark,
    payload: Bytes,
}

/// A burst of a sender, by its number.
type BurstKey = (PeerId, u32);

/// The bursts of all senders.
#[derive(Debug, Default)]
struct Bursts {
    by_sender: BTreeMap<BurstKey, Reorder>,
    /// In the order of each burst's most recent message.
    heard: VecDeque<BurstKey>,
    /// Waiting payload bytes of all bursts.
    bytes: usize,
    /// Messages that are ready to be delivered, in order.
    ready: VecDeque<Ordered>,
}

/// One burst.
#[derive(Debug)]
struct Reorder {
    remote: SocketAddr,
    /// The number of the next message to deliver.
    next: u32,
    /// Messages that overtook it: at most as many as a mark can be behind.
    waiting: BTreeMap<u32, (BurstMark, Bytes)>,
}

impl Bursts {
    /// Takes a message, and moves messages that are now in order to `ready`.
    fn take(&mut self, sender: Sender, mark: BurstMark, payload: &[u8]) {
        let Sender { peer, remote } = sender;
        let key = (peer, mark.burst);
        if let Some(at) = self.heard.iter().rposition(|heard| *heard == key) {
            self.heard.remove(at);
        } else if self.heard.len() >= BURSTS {
            self.forget_oldest();
        }
        self.heard.push_back(key);
        let burst = self.by_sender.entry(key).or_insert_with(|| Reorder::new(remote));
        self.bytes -= burst.bytes();
        burst.take(mark, payload, |mark, payload| {
            self.ready.push_back(Ordered { remote, mark, payload });
        });
        self.bytes += burst.bytes();
        while self.bytes > BYTES {
            self.forget_oldest();
        }
    }

    /// Forgets the burst that has been idle for longest. Its waiting messages have been answered,
    /// so they are delivered.
    fn forget_oldest(&mut self) {
        let Some(oldest) = self.heard.pop_front() else { return };
        let Some(burst) = self.by_sender.remove(&oldest) else { return };
        self.bytes -= burst.bytes();
        let waiting = burst.waiting.into_values();
        let remote = burst.remote;
        self.ready.extend(waiting.map(|(mark, payload)| Ordered { remote, mark, payload }));
    }
}

impl Reorder {
    const fn new(remote: SocketAddr) -> Self {
        Self { remote, next: 0, waiting: BTreeMap::new() }
    }

    /// Waiting payload bytes.
    fn bytes(&self) -> usize {
        self.waiting.values().map(|(_, payload)| payload.len()).sum()
    }

    /// Takes a message and returns the messages that are now in order.
    fn take(&mut self, mark: BurstMark, payload: &[u8], mut give: impl FnMut(BurstMark, Bytes)) {
        let sequence = mark.sequence;
        // Messages before this one are here or will not arrive.
        let first_open = mark.first_open();
        if self.next < first_open {
            let still_open = self.waiting.split_off(&first_open);
            for (mark, payload) in core::mem::replace(&mut self.waiting, still_open).into_values() {
                give(mark, payload);
            }
            self.next = first_open;
        }
        if sequence > self.next {
            let copy = || (mark, Bytes::copy_from_slice(payload));
            self.waiting.entry(sequence).or_insert_with(copy);
        } else if sequence == self.next {
            give(mark, Bytes::copy_from_slice(payload));
            self.next = self.next.saturating_add(1);
        }
        // Otherwise it is a copy of a delivered message.
        while let Some((mark, payload)) = self.waiting.remove(&self.next) {
            give(mark, payload);
            self.next = self.next.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_core::SessionKey;

    /// The sequence numbers that are delivered if these messages arrive, each (sequence, behind).
    fn delivered(messages: &[(u32, u8)]) -> Vec<u32> {
        let mut reorder = Reorder::new(remote());
        let mut got = Vec::new();
        for &(sequence, behind) in messages {
            let mark = BurstMark { burst: 1, behind, sequence };
            reorder.take(mark, &sequence.to_be_bytes(), |mark, payload| {
                assert_eq!(*payload, mark.sequence.to_be_bytes());
                got.push(mark.sequence);
            });
            assert!(reorder.waiting.len() <= 255);
        }
        got
    }

    #[test]
    fn messages_in_order_are_delivered_at_once() {
        assert_eq!(delivered(&[(0, 0), (1, 1), (2, 0)]), [0, 1, 2]);
    }

    #[test]
    fn a_message_that_overtakes_waits_and_copies_are_not_delivered() {
        let got = delivered(&[(2, 2), (1, 1), (1, 1), (0, 0), (0, 0), (3, 3), (2, 2)]);
        assert_eq!(got, [0, 1, 2, 3]);
    }

    #[test]
    fn messages_that_the_sender_gave_up_are_left_out() {
        // 1 never comes; 4 says that nothing before 2 does.
        assert_eq!(delivered(&[(0, 0), (2, 1), (3, 2)]), [0]);
        assert_eq!(delivered(&[(0, 0), (2, 1), (3, 2), (4, 2)]), [0, 2, 3, 4]);
        // 3 is still on its way, 4 waits for it.
        assert_eq!(delivered(&[(0, 0), (2, 1), (4, 2)]), [0, 2]);
        assert_eq!(delivered(&[(0, 0), (2, 1), (4, 2), (3, 1)]), [0, 2, 3, 4]);
    }

    #[test]
    fn a_burst_that_was_forgotten_goes_on_from_where_it_is() {
        assert_eq!(delivered(&[(500, 2), (498, 0), (499, 1)]), [498, 499, 500]);
        assert_eq!(delivered(&[(u32::MAX, 1), (u32::MAX - 1, 0)]), [u32::MAX - 1, u32::MAX]);
    }

    fn remote() -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], 5683))
    }

    fn sender() -> Sender {
        Sender { peer: PeerId::Address(remote()), remote: remote() }
    }

    #[test]
    fn bursts_are_bounded_and_apart() {
        let mut bursts = Bursts::default();
        let mut got = Vec::new();
        for burst in 0..1000 {
            // The second message of each, so that it waits until its burst is forgotten.
            let mark = BurstMark { burst, behind: 1, sequence: 1 };
            bursts.take(sender(), mark, b"x");
            got.extend(bursts.ready.drain(..).map(|ordered| ordered.mark.burst));
            assert!(bursts.by_sender.len() <= BURSTS && bursts.heard.len() <= BURSTS);
        }
        assert_eq!(got, (0..1000 - BURSTS as u32).collect::<Vec<_>>());
        got.clear();
        let mark = BurstMark { burst: 999, behind: 0, sequence: 0 };
        bursts.take(sender(), mark, b"x");
        got.extend(bursts.ready.drain(..).map(|ordered| ordered.mark.sequence));
        assert_eq!(got, [0, 1]);
        assert_eq!(bursts.bytes, BURSTS - 1);
    }

    #[test]
    fn a_datagram_from_the_address_of_a_session_is_not_part_of_its_burst() {
        let mut bursts = Bursts::default();
        let mark = BurstMark { burst: 1, behind: 1, sequence: 1 };
        let session = Sender { peer: SessionKey::new(0, 7).into(), remote: remote() };
        let connection = Sender { peer: PeerId::Connection(remote()), remote: remote() };
        for sender in [session, connection] {
            bursts.take(sender, mark, b"genuine");
        }
        bursts.take(sender(), BurstMark { burst: 1, behind: 0, sequence: 0 }, b"forged");
        let delivered: Vec<_> = bursts.ready.iter().map(|ordered| &*ordered.payload).collect();
        assert_eq!(delivered, [b"forged"], "the others wait for a message of their own");
    }

    #[test]
    fn a_burst_that_goes_on_is_not_forgotten_for_short_ones_that_began_later() {
        let mut bursts = Bursts::default();
        let mut got = Vec::new();
        let mut take = |burst, sequence| {
            let mark = BurstMark { burst, behind: 0, sequence };
            bursts.take(sender(), mark, b"x");
            got.extend(bursts.ready.drain(..).filter(|ordered| ordered.mark.burst == 0));
        };
        for n in 0..1000 {
            take(0, n);
            take(n + 1, 0);
        }
        // A late copy.
        take(0, 500);
        let sequences: Vec<u32> = got.iter().map(|ordered| ordered.mark.sequence).collect();
        assert_eq!(sequences, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn long_messages_that_wait_are_bounded_and_delivered_when_there_is_no_room() {
        let mut bursts = Bursts::default();
        let long = vec![0; BYTES / 4];
        let mut got = Vec::new();
        for (burst, sequence) in [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)] {
            let mark = BurstMark { burst, behind: sequence as u8, sequence };
            bursts.take(sender(), mark, &long);
            got.extend(
                bursts.ready.drain(..).map(|ordered| (ordered.mark.burst, ordered.mark.sequence)),
            );
            assert!(bursts.bytes <= BYTES);
        }
        assert_eq!(got, [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]);
        assert_eq!(bursts.bytes, 2 * long.len());
    }

    /// A POST of this message of burst 1.
    fn post(behind: u8, sequence: u8) -> [u8; 13] {
        let option = BurstMark::OPTION.0 - 269;
        let [high, low] = option.to_be_bytes();
        [0x50, 2, 0, sequence, 0xe6, high, low, 0, 0, 0, 1, behind, sequence]
    }

    #[test]
    fn a_delivery_that_panics_loses_that_message_and_no_other() {
        let got = std::sync::Arc::new(Mutex::new(Vec::new()));
        let told = got.clone();
        let handler = in_order(move |message| {
            let sequence = message.mark.map(|mark| mark.sequence);
            assert!(sequence != Some(0), "this one panics");
            told.lock().unwrap().push(sequence);
        });
        let take = |behind, sequence| {
            let bytes = post(behind, sequence);
            let message = ebbtide_core::wire::Message::parse(&bytes).unwrap();
            let origin = super::super::origin::Origin::unreachable(remote());
            let payload = b"x";
            let params = super::super::call::Params::NONE;
            let (names, rest) = (&[][..], None);
            let call = super::super::call::Borrowed {
                origin: &origin,
                message,
                payload,
                names,
                params: &params,
                rest,
                arriving: None,
                if_none_match: false,
            };
            let call = Call::from(call);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| handler(&call))).is_ok()
        };
        assert!(take(1, 1) && take(2, 2));
        assert!(!take(0, 0));
        assert!(take(0, 3));
        assert_eq!(*got.lock().unwrap(), [Some(1), Some(2), Some(3)]);
    }
}
