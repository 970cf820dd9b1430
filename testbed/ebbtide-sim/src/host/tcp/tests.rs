//! Both ends of connections, without a network between them but time.

use super::TcpClient;
use super::segment::Segment;
use super::socket::{Setup, Socket};
use crate::host::{
    ArrivingPacket, ClientSetup, Host, ObservedHost, PORT, SERVER, ServerEnd, Tag, client_host,
};
use crate::net::Direction;
use crate::random::{Probability, Streams};
use crate::record::Discard;
use crate::scenario::units::Time;
use crate::scenario::{Override, Scenario, Tcp, load};
use ebbtide_core::time::{Duration, Instant};
use smoltcp::socket::tcp::State;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;

const ONE_WAY: Duration = Duration::from_millis(100);

/// A client with the server's ends, and the packets between them.
struct Pair {
    client: TcpClient,
    /// By time and order: its direction, the packet and its tag.
    under_way: BTreeMap<(Instant, u32), (Direction, Vec<u8>, Tag)>,
    packets: u32,
}

impl Pair {
    fn new(scenario: &Scenario, settings: Tcp) -> Self {
        let streams = Streams::new(1, 0);
        Self {
            client: TcpClient::new(setup(scenario, &streams), settings),
            under_way: BTreeMap::new(),
            packets: 0,
        }
    }

    /// Lets time pass until nothing is left to happen; packets for which `loses` are lost. Returns
    /// when that was.
    fn run(&mut self, mut loses: impl FnMut(Direction, &Segment) -> bool) -> Instant {
        let mut now = Instant::ZERO;
        self.client.act(now);
        loop {
            let mut sent: Vec<(Direction, Vec<u8>, Tag)> = Vec::new();
            let mut recorder = Discard::new();
            let client_at = loop {
                let (at, wants_to_act) =
                    self.client.drain(now, &mut recorder, &mut |_, packet, tag| {
                        sent.push((Direction::Up, packet.to_vec(), tag));
                    });
                if !wants_to_act || self.client.is_done() {
                    break at;
                }
                self.client.act(now);
            };
            let server_at = self.client.server.drain(now, &mut |packet, tag| {
                sent.push((Direction::Down, packet.to_vec(), tag));
            });
            for (direction, packet, tag) in sent {
                if !loses(direction, &Segment::parse(&packet).unwrap()) {
                    self.packets += 1;
                    self.under_way.insert((now + ONE_WAY, self.packets), (direction, packet, tag));
                }
            }
            let arrival = self.under_way.keys().next().map(|key| key.0);
            let Some(next) = arrival.into_iter().chain(client_at).chain(server_at).min() else {
                return now;
            };
            now = next;
            while let Some(entry) = self.under_way.first_entry().filter(|e| e.key().0 <= now) {
                let (direction, packet, tag) = entry.remove();
                if direction == Direction::Up {
                    self.client.server.receive(now, &packet, tag);
                } else if self.client.receive(now, arriving(&packet, tag), &mut recorder) {
                    self.client.act(now);
                }
            }
            self.client.handle_timeout(now);
            self.client.server.handle_timeout();
        }
    }
}

fn setup<'s>(scenario: &'s Scenario, streams: &'s Streams) -> ClientSetup<'s> {
    ClientSetup { number: 0, group: 0, scenario, streams }
}

const fn arriving(bytes: &[u8], tag: Tag) -> ArrivingPacket<'_> {
    ArrivingPacket { bytes, tag, is_marked: false }
}

fn scenario(settings: &[(&str, &str)]) -> Scenario {
    let set = |(key, value): &(&str, &str)| Override { key: (*key).into(), value: (*value).into() };
    let overrides: Vec<Override> = settings.iter().map(set).collect();
    load("nb-iot").unwrap().scenario(&overrides).unwrap()
}

#[test]
fn nothing_of_a_connection_is_left_after_the_last_exchange() {
    let scenario = scenario(&[("workload", "random"), ("exchanges", "40")]);
    let mut pair = Pair::new(&scenario, Tcp::default());
    let end = pair.run(|_, _| false);
    assert_eq!((pair.client.ledger.record.completed, pair.client.ledger.record.failed), (40, 0));
    assert!(!pair.client.is_connected() && !pair.client.server.is_connected());
    // The last thing is the end of the client's TIME-WAIT, 10 s after the server's FIN.
    let done = pair.client.ledger.record.fct;
    assert!(end > Instant::ZERO + done + Duration::from_secs(10));
    assert!(end < Instant::ZERO + done + Duration::from_secs(11));
}

#[test]
fn every_loss_is_repaired_and_nothing_is_left_either() {
    for seed in 0..8 {
        let scenario = scenario(&[("workload", "random"), ("exchanges", "40"), ("nstart", "3")]);
        let mut pair = Pair::new(&scenario, Tcp { syn_retries: 40, ..Tcp::default() });
        let (share, mut rng) = (Probability::new(0.3), Streams::new(seed, 0).stream("loss"));
        pair.run(|_, _| share.draw(&mut rng));
        let record = &pair.client.ledger.record;
        assert_eq!((record.completed, record.failed), (40, 0), "seed {seed}");
        assert!(!pair.client.is_connected() && !pair.client.server.is_connected(), "seed {seed}");
    }
}

/// A client with two exchanges, all of whose packets are lost from the instant on at which the n-th
/// packet of a kind leaves.
fn severed(
    settings: Tcp,
    from: usize,
    kind: impl Fn(Direction, &Segment) -> bool,
) -> (Pair, Vec<Segment>) {
    let scenario = scenario(&[("exchanges", "2")]);
    let mut pair = Pair::new(&scenario, settings);
    let (mut seen, mut syns) = (0, Vec::new());
    pair.run(|direction, segment| {
        seen += usize::from(kind(direction, segment));
        if direction == Direction::Up && segment.syn {
            syns.push(*segment);
        }
        seen >= from
    });
    (pair, syns)
}

#[test]
fn on_a_link_that_loses_everything_data_is_given_up_and_the_next_exchange_has_a_new_connection() {
    // The client's CSM, then its requests.
    let data =
        |direction: Direction, segment: &Segment| direction == Direction::Up && segment.payload > 0;
    let settings = Tcp { data_retries: 8, syn_retries: 2, ..Tcp::default() };
    let (pair, syns) = severed(settings, 2, data);
    assert_eq!((pair.client.ledger.record.completed, pair.client.ledger.record.failed), (0, 2));
    let ports: BTreeSet<u16> = syns.iter().map(|syn| syn.source).collect();
    assert_eq!((ports.len(), syns.len()), (2, 1 + 3), "the other one is given up by its SYN");
    assert!(!pair.client.is_connected());
}

#[test]
fn once_the_link_is_back_the_new_connection_goes_on_with_the_next_exchange() {
    let mut pair = Pair::new(&scenario(&[("exchanges", "5")]), Tcp::default());
    let (mut first, mut data) = (None, 0);
    let end = pair.run(|direction, segment| {
        data += u32::from(direction == Direction::Up && segment.payload > 0);
        let port = direction.select(segment.source, segment.destination);
        // From the client's second data on, until it connects again.
        data >= 2 && *first.get_or_insert(port) == port
    });
    assert_eq!((pair.client.ledger.record.completed, pair.client.ledger.record.failed), (4, 1));
    assert!(!pair.client.is_connected());
    // Linux's 15 retransmissions: 924.6 s; at the next of the timeouts, which are 60 s at most.
    let since = end - Instant::ZERO;
    assert!((Duration::from_secs(924)..Duration::from_secs(1010)).contains(&since), "{since:?}");
}

#[test]
fn a_response_that_never_comes_is_given_up_although_its_request_is_acknowledged() {
    // The acknowledgement of the request leaves before the first response.
    let response = |direction: Direction, segment: &Segment| {
        direction == Direction::Down && segment.payload > 40
    };
    let settings = Tcp { data_retries: 8, syn_retries: 2, ..Tcp::default() };
    let (pair, _) = severed(settings, 1, response);
    assert_eq!((pair.client.ledger.record.completed, pair.client.ledger.record.failed), (0, 2));
    assert!(!pair.client.is_connected() && !pair.client.server.is_connected());
}

#[test]
fn a_segment_of_no_connection_is_refused() {
    let scenario = scenario(&[("exchanges", "1")]);
    let mut pair = Pair::new(&scenario, Tcp::default());
    let (mut fins, mut resets) = (0, 0);
    let mut last_ack = 0;
    pair.run(|direction, segment| {
        resets += u32::from(direction == Direction::Up && segment.rst);
        fins += u32::from(direction == Direction::Down && segment.fin);
        // The acknowledgement of the server's FIN is lost until the client has forgotten it.
        let is_last = direction == Direction::Up && fins > 0 && !segment.rst;
        last_ack += u32::from(is_last);
        is_last
    });
    assert!(last_ack > 0 && fins > 3, "{last_ack} {fins}");
    assert_eq!(resets, 1);
    assert!(!pair.client.is_connected() && !pair.client.server.is_connected());
}

#[test]
fn a_client_that_is_told_of_nothing_keeps_its_books_empty() {
    let scenario = scenario(&[("exchanges", "1")]);
    let mut client = TcpClient::new(setup(&scenario, &Streams::new(1, 0)), Tcp::default());
    let packet = arriving(b"no packet", Tag::default());
    assert!(!client.receive(Instant::ZERO, packet, &mut Discard::new()));
    client.finish();
    let record = &client.ledger.record;
    assert_eq!((record.retransmissions, record.unnecessary), (0, 0));
}

/// The ends of a connection whose first `lost` SYNs are lost, when the client's is established.
fn opened(lost: u64) -> (Socket, Socket, Instant) {
    let socket = |seed| Setup {
        settings: Tcp { tick: Time(0), ..Tcp::default() },
        mtu: 296,
        buffer: 8192,
        seed,
    };
    let (here, there) =
        (SocketAddrV4::new(client_host(0), 50_000), SocketAddrV4::new(SERVER, PORT));
    let mut client = Socket::connect(Instant::ZERO, socket(1), here, there);
    let mut server = Socket::listen(Instant::ZERO, socket(2), there);
    let mut syns: Vec<Vec<u8>> = Vec::new();
    let mut now = Instant::ZERO;
    loop {
        client.serve(now);
        syns.extend(client.packets().map(<[u8]>::to_vec));
        client.clear_packets();
        if syns.len() as u64 > lost {
            break;
        }
        now = client.timeout(now).unwrap();
    }
    assert!(syns.windows(2).all(|pair| pair[0] == pair[1]), "the same SYN again");
    now = now + ONE_WAY;
    server.receive(now, &syns[0]);
    server.serve(now);
    let answer = server.packets().next().unwrap().to_vec();
    server.clear_packets();
    now = now + ONE_WAY;
    client.receive(now, &answer);
    client.serve(now);
    assert_eq!(client.state(), State::Established);
    client.clear_packets();
    (client, server, now)
}

#[test]
fn after_a_repeated_syn_data_begins_with_an_rto_of_3_s() {
    let rto = |lost| {
        let (mut client, _, now) = opened(lost);
        client.write(b"data");
        client.serve(now);
        assert_eq!(client.packets().count(), 1);
        client.timeout(now).unwrap() - now
    };
    // 200 ms measured: three times that, and at least 1 s.
    assert_eq!(rto(0), Duration::from_secs(1));
    // RFC 6298 section 5.7, however often.
    for lost in [1, 2, 5] {
        assert_eq!(rto(lost), Duration::from_secs(3), "{lost}");
    }
}
