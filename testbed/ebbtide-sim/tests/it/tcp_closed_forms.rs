//! CoAP over TCP against what can be worked out by hand.

use crate::common::{controls, scenario};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_sim::net::{Direction, Fate};
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::run::{Details, Recorder, Transport, simulate_with};
use ebbtide_sim::scenario::{Scenario, Source};

/// What is handed to the links: when, its direction, bytes of the IPv4 packet, whether it got
/// through.
#[derive(Default)]
struct Seen(Vec<(Instant, Direction, usize, bool)>);

impl Recorder for Seen {
    fn at_link(&mut self, now: Instant, packet: &Details<'_>) {
        assert_eq!(packet.transport, Transport::Tcp);
        let delivered = matches!(packet.fate, Fate::Delivered { .. });
        self.0.push((now, packet.direction, packet.datagram.len(), delivered));
    }
}

impl Seen {
    fn lengths(&self, direction: Direction) -> Vec<usize> {
        self.0.iter().filter(|packet| packet.1 == direction).map(|packet| packet.2).collect()
    }

    /// When packets of this length left a client.
    fn left(&self, bytes: usize) -> Vec<Instant> {
        self.0
            .iter()
            .filter(|packet| packet.1 == Direction::Up && packet.2 == bytes)
            .map(|p| p.0)
            .collect()
    }
}

/// One client on a path whose delays do not vary.
fn still(settings: &[(&str, &str)]) -> Scenario {
    let mut all = vec![
        ("clients", "1"),
        ("network.up.delay", "200 ms"),
        ("network.up.beyond", "10 ms"),
        ("network.down.delay", "400 ms"),
        ("network.down.beyond", "10 ms"),
    ];
    all.extend(settings);
    scenario("nb-iot", &all)
}

/// With timers that expire when they are due.
fn observe(scenario: &Scenario, cc: &str) -> (RunRecord, Seen) {
    let cc = cc.replacen("tcp", "tcp:tick=off", 1);
    simulate_with(scenario, &controls(scenario, &cc), 1, 0, Seen::default()).unwrap()
}

fn seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e9
}

#[track_caller]
fn assert_exact(measured: f64, expected: f64) {
    // A round trip rounds twice, and smoltcp counts microseconds.
    assert!((measured - expected).abs() < 1e-5, "measured {measured}, expected {expected}");
}

/// Up and down the path without a queue, s.
fn round_trip(up: f64, down: f64) -> f64 {
    0.2 + 0.01 + up * 8.0 / 60e3 + 0.01 + down * 8.0 / 30e3 + 0.4
}

/// From the SYN until a request can leave: the handshake, then the CSMs, which wait behind the
/// acknowledgements before them. The server's CSM and the acknowledgement of the client's leave it
/// one after the other; the request waits for the latter (Nagle).
fn opening() -> f64 {
    round_trip(52.0, 52.0) + round_trip(40.0, 47.0 + 40.0)
}

/// The requests of one connection. The server answers the first one behind its acknowledgement, which
/// leaves at once: it has not answered before.
fn exchanges(count: f64) -> f64 {
    count * round_trip(48.0, 105.0) + 40.0 * 8.0 / 30e3
}

#[test]
fn packets_have_the_sizes_of_the_papers() {
    let (record, seen) = observe(&still(&[]), "tcp");
    assert_eq!(record.clients[0].completed, 50);
    // SYN; ACK, CSM, ACK of the CSM; requests; FIN, ACK of the FIN.
    let mut up = vec![52, 40, 47, 40];
    up.extend([48; 50]);
    up.extend([40, 40]);
    assert_eq!(seen.lengths(Direction::Up), up);
    // SYN-ACK; CSM, ACK of the CSM; ACK of the first request; responses; FIN.
    let mut down = vec![52, 47, 40, 40];
    down.extend([105; 50]);
    down.push(40);
    assert_eq!(seen.lengths(Direction::Down), down);
    assert_eq!(record.totals.up.bytes, up.iter().sum::<usize>() as u64);
}

#[test]
fn a_continuous_clients_handshake_is_not_timed() {
    let (record, seen) = observe(&still(&[]), "tcp");
    assert_exact(seconds(seen.left(48)[0] - Instant::ZERO), opening());
    assert_exact(seconds(record.clients[0].fct), exchanges(50.0));
    assert_exact(record.totals.done_ns as f64 / 1e9, opening() + exchanges(50.0));
}

#[test]
fn a_random_clients_handshakes_are_timed() {
    let fct = |batch: &str| {
        let scenario = still(&[("workload", "random"), ("workload.batch", batch)]);
        let (record, seen) = observe(&scenario, "tcp");
        assert_eq!(record.clients[0].completed, 50);
        (seconds(record.clients[0].fct), seen.left(52).len())
    };
    let one = fct("[50, 50]");
    assert_eq!(one.1, 1);
    assert_exact(one.0, opening() + exchanges(50.0));
    // Ten connections; each SYN but the first one waits behind the FIN before it.
    let (ten, connections) = fct("[5, 5]");
    assert_eq!(connections, 10);
    let more = ten - one.0;
    assert!((more - 9.0 * (opening() + exchanges(0.0))).abs() < 9.0 * 0.02, "{more}");
}

#[test]
fn an_acknowledgement_waits_200_ms_for_a_request_to_go_with() {
    // The client thinks for half a second: too long.
    let slow = still(&[("clients.processing", "500 ms"), ("exchanges", "3")]);
    let (_, seen) = observe(&slow, "tcp");
    let requests = seen.left(48);
    let arrival = requests[0] + Duration::from_secs_f64(exchanges(1.0));
    let acknowledged = |seen: &Seen| {
        let pure = seen.left(40).into_iter().find(|at| *at > requests[0]).unwrap();
        seconds(pure - arrival)
    };
    assert_exact(acknowledged(&seen), 0.2);
    assert_exact(acknowledged(&observe(&slow, "tcp:delayed-ack=300ms").1), 0.3);
    assert_exact(acknowledged(&observe(&slow, "tcp:delayed-ack=off").1), 0.0);
    let quick = still(&[("clients.processing", "150 ms"), ("exchanges", "3")]);
    let between = |seen: &Seen| {
        let (first, last) = (seen.left(48)[0], seen.left(48)[2]);
        seen.left(40).iter().filter(|at| first < **at && **at < last).count()
    };
    assert_eq!(between(&observe(&quick, "tcp").1), 0, "the next request takes it along");
    assert_eq!(between(&seen), 2);
}

#[test]
fn the_server_acknowledges_what_it_is_slow_to_answer() {
    let (_, seen) = observe(&still(&[("server.processing", "1 s"), ("exchanges", "2")]), "tcp");
    // After the handshake: an acknowledgement before each response.
    assert_eq!(seen.lengths(Direction::Down)[3..], [40, 105, 40, 105, 40]);
}

#[test]
fn without_nagle_the_first_request_follows_the_csm() {
    let scenario = still(&[("workload", "random"), ("workload.batch", "[50, 50]")]);
    let first = |cc| seconds(observe(&scenario, cc).1.left(48)[0] - Instant::ZERO);
    assert_exact(first("tcp"), opening());
    assert_exact(first("tcp:nagle=off"), round_trip(52.0, 52.0));
}

#[test]
fn a_syn_is_repeated_at_doubled_intervals_and_each_vain_connection_fails_a_request() {
    let text =
        ebbtide_sim::scenario::BUILTIN[0].toml.replace("errors = \"none\"", "errors = \"severed\"")
            + "\n[errors.severed]\nkind = \"independent\"\naverage = 1.0\n";
    let source = Source::new("test", text);
    let sets = ["clients=2", "exchanges=2"].map(|s| ebbtide_sim::scenario::parse_set(s).unwrap());
    let scenario = source.scenario(&ebbtide_sim::scenario::combinations(&sets)[0]).unwrap();
    let cc = "tcp:initial-rto=2s:syn-rto-max=5s:syn-retries=4";
    let (record, seen) = observe(&scenario, cc);
    assert!(record.clients.iter().all(|client| (client.completed, client.failed) == (0, 2)));
    let at: Vec<u64> = seen.left(52).iter().map(|at| at.as_nanos() / 1_000_000_000).collect();
    let once = [0, 2, 6, 11, 16];
    let expected: Vec<u64> =
        once.iter().chain(&once.map(|at| at + 21)).flat_map(|at| [*at, *at]).collect();
    assert_eq!(at, expected);
    assert_eq!(record.clients[0].timeouts, 8);
}

#[test]
fn a_lost_segment_is_repeated_and_what_was_there_already_is_counted() {
    let scenario = still(&[("errors", "low"), ("exchanges", "2000")]);
    let (record, seen) = observe(&scenario, "tcp:quick-ack=off");
    let client = &record.clients[0];
    assert_eq!((client.completed, client.failed), (2000, 0));
    let lost = |direction, bytes| {
        seen.0.iter().filter(|p| p.1 == direction && p.2 == bytes && !p.3).count()
    };
    let (requests, responses) = (lost(Direction::Up, 48), lost(Direction::Down, 105));
    assert!(requests > 20 && responses > 20, "{requests} {responses}");
    // Each is sent again. With a request the acknowledgement of the last response is lost, so the
    // server repeats that; with a response the acknowledgement of its request, so the client does.
    let lost = (requests + responses) as f64;
    let repeated: u64 = record.totals.by_retransmissions.iter().skip(1).sum();
    assert!((repeated as f64 / lost - 1.0).abs() < 0.1, "{repeated} of {lost}");
    let unnecessary = f64::from(client.unnecessary) / lost;
    assert!((0.8..1.2).contains(&unnecessary), "{} of {lost}", client.unnecessary);
    assert!(client.retransmissions >= client.unnecessary);
}

#[test]
fn a_repeated_segment_and_the_next_are_acknowledged_at_once() {
    let scenario = still(&[("errors", "low"), ("exchanges", "500")]);
    let pure = |cc| {
        let (record, seen) = observe(&scenario, cc);
        assert_eq!(record.clients[0].completed, 500);
        seen.lengths(Direction::Down).iter().filter(|bytes| **bytes == 40).count()
    };
    // With every acknowledgement that waits for the answer goes one that tells of the repetition.
    let (quick, patient) = (pure("tcp"), pure("tcp:quick-ack=off"));
    assert!(quick > patient * 3 / 2, "{quick} and {patient}");
}

#[test]
fn timers_expire_together_on_linuxs_wheel() {
    let scenario = scenario("nb-iot", &[("clients", "20"), ("errors", "high")]);
    let repeats = |cc: &str| {
        let (_, seen) =
            simulate_with(&scenario, &controls(&scenario, cc), 1, 0, Seen::default()).unwrap();
        // A SYN leaves again after 2 s and more.
        seen.left(52).into_iter().filter(|at| *at > Instant::ZERO).collect::<Vec<_>>()
    };
    let on = |at: &Instant, grid: u64| at.as_nanos().is_multiple_of(grid * 1_000_000);
    let at = repeats("tcp");
    // 32 ms apart while the timeout is below 2.016 s, 256 ms below 16.128 s.
    assert!(at.len() > 5 && at.iter().all(|at| on(at, 32)), "{at:?}");
    assert!(at.iter().filter(|at| at.as_nanos() > 3_000_000_000).all(|at| on(at, 256)), "{at:?}");
    assert!(repeats("tcp:tick=off").iter().all(|at| on(at, 2000)));
}

#[test]
fn half_of_the_clients_may_use_tcp() {
    let scenario = scenario("nb-iot", &[("clients", "6"), ("workload", "mixed")]);
    let controls = controls(&scenario, "tcp+fasor");
    let record = ebbtide_sim::run::simulate(&scenario, &controls, 1, 0, false).unwrap();
    assert!(record.clients.iter().all(|client| client.completed == 50));
    let groups: Vec<u8> = record.clients.iter().map(|client| client.group).collect();
    assert_eq!(groups, [0, 1, 0, 1, 0, 1]);
}

#[test]
fn a_periodic_client_keeps_its_connection() {
    let settings = [("workload", "periodic"), ("workload.period", "5 s"), ("exchanges", "10")];
    let (record, seen) = observe(&still(&settings), "tcp");
    assert_eq!(record.clients[0].completed, 10);
    assert_eq!(seen.left(52).len(), 1);
    assert_eq!(seen.left(48).len(), 10);
}
