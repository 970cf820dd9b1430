//! Peers with a session that use it against us: they renegotiate, and wear out its sequence numbers.

use super::{Endpoint, Event, Output, SendError, SessionId};
use crate::failure::Failure;
use crate::record::{ContentType, MAX_SEQUENCE};
use crate::shared::Arc;
use crate::{Config, Credentials, Psk, Timing};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const NOW: Instant = Instant::from_nanos(1_000_000_000);

struct Pair {
    client: Endpoint,
    server: Endpoint,
    session: SessionId,
    events: Vec<Event>,
    heard: Vec<Vec<u8>>,
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 5684))
}

impl Pair {
    fn new() -> Self {
        let endpoint =
            |seed| Endpoint::new(Config::default(), Box::new(ChaCha8Rng::seed_from_u64(seed)));
        let (mut client, mut server) = (endpoint(1), endpoint(2));
        let psk = || Psk::new(b"secret").unwrap();
        server.accept(Box::new(move |_: &[u8]| Some(psk())));
        let credentials =
            Credentials { identity: Arc::from(&b"device"[..]), psk: psk(), saved: None };
        let session = client.connect(NOW, address(2), credentials, Timing::default());
        let mut pair = Self { client, server, session, events: Vec::new(), heard: Vec::new() };
        pair.run();
        assert_eq!(pair.server.sessions(), 1);
        pair
    }

    /// Until both have said everything. Returns the datagrams of the server.
    fn run(&mut self) -> usize {
        let mut answers = 0;
        loop {
            let mut is_quiet = true;
            for at_client in [true, false] {
                let (one, other, from) = match at_client {
                    true => (&mut self.client, &mut self.server, address(1)),
                    false => (&mut self.server, &mut self.client, address(2)),
                };
                loop {
                    match one.poll_output() {
                        Output::Timeout(_) => break,
                        Output::Event(event) => self.events.push(event),
                        Output::Transmit { datagram, .. } => {
                            is_quiet = false;
                            answers += usize::from(!at_client);
                            let mut datagram = datagram.to_vec();
                            other.handle_datagram(NOW, from, &mut datagram, &mut |_, data| {
                                self.heard.push(data.to_vec());
                            });
                        }
                    }
                }
            }
            if is_quiet {
                return answers;
            }
        }
    }

    /// The client sends a record of any type.
    fn seal(&mut self, content: ContentType, body: &[u8]) {
        let index = self.client.table.find(self.session).unwrap();
        let session = self.client.table.get_mut(index).unwrap();
        let mut record = Vec::new();
        assert!(session.protection.as_mut().unwrap().seal(content, body, &mut record));
        self.server.handle_datagram(NOW, address(1), &mut record, &mut |_, _| {});
    }

    fn says(&mut self, data: &[u8]) {
        let mut record = Vec::new();
        self.client.send(NOW, self.session, data, &mut record).unwrap();
        let heard = &mut self.heard;
        self.server.handle_datagram(NOW, address(1), &mut record, &mut |_, data| {
            heard.push(data.to_vec());
        });
    }

    fn ended(&self) -> Vec<Failure> {
        let reason = |event: &Event| match event {
            Event::Ended { reason, .. } => Some(*reason),
            _ => None,
        };
        self.events.iter().filter_map(reason).collect()
    }
}

#[test]
fn a_hello_within_a_session_is_refused_by_one_warning_and_the_session_goes_on() {
    let mut pair = Pair::new();
    // The first message ends the server's last flight.
    pair.says(b"before");
    let mut hello = Vec::from([1, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 60, 0xfe, 0xfd]);
    hello.resize(72, 0);
    pair.seal(ContentType::Handshake, &hello);
    assert_eq!(pair.run(), 1, "no_renegotiation (RFC 5746 section 4.5)");
    pair.seal(ContentType::ChangeCipherSpec, &[1]);
    assert_eq!(pair.run(), 0);
    pair.says(b"after");
    assert_eq!(pair.heard, [b"before".to_vec(), b"after".to_vec()]);
    assert_eq!((pair.server.sessions(), pair.ended()), (1, Vec::new()));
    assert_eq!(pair.server.counters().signatures, 0);
}

#[test]
fn a_session_whose_sequence_numbers_are_used_up_ends_and_repeats_no_nonce() {
    let mut pair = Pair::new();
    let index = pair.client.table.find(pair.session).unwrap();
    let session = pair.client.table.get_mut(index).unwrap();
    session.protection.as_mut().unwrap().skip_to(MAX_SEQUENCE);
    pair.says(b"the last");
    let mut record = Vec::new();
    let refused = pair.client.send(NOW, pair.session, b"one more", &mut record);
    assert_eq!((refused, record.len()), (Err(SendError::SequenceNumbersUsedUp), 0));
    pair.run();
    assert_eq!(pair.ended(), [Failure::SequenceNumbersUsedUp]);
    // The peer's window is at its end as well: nothing older is taken, and nothing overflows.
    assert_eq!(pair.heard, [b"the last".to_vec()]);
    assert_eq!((pair.client.sessions(), pair.server.sessions()), (0, 1));
    pair.server.handle_timeout(NOW + Duration::from_secs(1));
}
