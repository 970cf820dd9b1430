//! Kinds of traffic: when messages leave, who sends them, and what counts as delivered.

use crate::common::{assert_near, controls, run};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message, OptionNumber, Type};
use ebbtide_sim::net::Fate;
use ebbtide_sim::run::{Details, Recorder, simulate_with};
use ebbtide_sim::scenario::{Override, Scenario, Source};

/// A fast network with this workload; `rest` are more tables.
fn scenario(clients: u32, workload: &str, rest: &str) -> Scenario {
    source(clients, workload, rest).scenario(&[]).unwrap()
}

fn source(clients: u32, workload: &str, rest: &str) -> Source {
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n[clients]\ncount = {clients}\n[workload]\n{workload}\n\
         [network.up]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"infinite\"\n\
         [network.down]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"infinite\"\n{rest}"
    );
    Source::new("x.toml", text)
}

/// What leaves, with its instant in s: client, upwards, the bytes.
#[derive(Default)]
struct Sent {
    from_clients: Vec<(f64, u32, Vec<u8>)>,
    from_server: Vec<(f64, u32, Vec<u8>)>,
    dropped: usize,
}

fn seconds(now: Instant) -> f64 {
    now.as_nanos() as f64 / 1e9
}

impl Recorder for Sent {
    fn client_sent(&mut self, now: Instant, packet: &Details<'_>) {
        let one = (seconds(now), packet.tagged.client, packet.datagram.to_vec());
        self.from_clients.push(one);
    }

    fn server_sent(&mut self, now: Instant, packet: &Details<'_>) {
        let one = (seconds(now), packet.tagged.client, packet.datagram.to_vec());
        self.from_server.push(one);
    }

    fn at_link(&mut self, _: Instant, packet: &Details<'_>) {
        self.dropped += usize::from(!matches!(packet.fate, Fate::Delivered { .. }));
    }
}

fn sent(scenario: &Scenario) -> Sent {
    let controls = controls(scenario, "default");
    simulate_with(scenario, &controls, 1, 0, Sent::default()).unwrap().1
}

/// The instants at which one client sends.
fn times(sent: &Sent, client: u32) -> Vec<f64> {
    sent.from_clients.iter().filter(|one| one.1 == client).map(|one| one.0).collect()
}

fn steps(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn poisson_requests_have_exponential_times_between_them() {
    let sent = sent(&scenario(4, "kind = \"poisson\"\nperiod = \"10 s\"\nexchanges = 5000", ""));
    for client in 0..4 {
        let steps = steps(&times(&sent, client));
        let mean = steps.iter().sum::<f64>() / steps.len() as f64;
        assert_near(mean, 10.0, 0.04, "mean");
        // exp(-2) of them are longer than twice the mean.
        let long = steps.iter().filter(|step| **step > 20.0).count() as f64 / steps.len() as f64;
        assert_near(long, 0.135_335, 0.12, "share above twice the mean");
    }
}

#[test]
fn jitter_moves_a_request_within_its_bound_and_not_those_that_follow() {
    let workload = "kind = \"periodic\"\nperiod = \"10 s\"\njitter = \"2 s\"\nexchanges = 400";
    let sent = sent(&scenario(3, workload, ""));
    for client in 0..3 {
        let times = times(&sent, client);
        assert!((0.0..=10.0).contains(&times[0]));
        let late = times.iter().enumerate().map(|(n, at)| at - times[0] - 10.0 * n as f64);
        let late: Vec<f64> = late.skip(1).collect();
        assert!(late.iter().all(|late| (0.0..=2.0).contains(late)), "{late:?}");
        assert_near(late.iter().sum::<f64>() / late.len() as f64, 1.0, 0.12, "mean jitter");
    }
}

#[test]
fn a_burst_leaves_at_once_as_far_as_nstart_lets_it() {
    let workload = "kind = \"bursts\"\nperiod = \"60 s\"\nburst = 8\nexchanges = 40";
    let burst = sent(&scenario(2, workload, "[coap]\nnstart = 8\n"));
    for client in 0..2 {
        let times = times(&burst, client);
        assert_eq!(times.len(), 40);
        for (n, eight) in times.chunks(8).enumerate() {
            assert_eq!(eight[0], eight[7]);
            assert_near(eight[0] - times[0] + 1.0, 60.0 * n as f64 + 1.0, 1e-9, "burst");
        }
    }
    // With NSTART 1 the others of a burst wait their turn: 20 ms and the transmissions each.
    let one = sent(&scenario(1, workload, ""));
    let spread = times(&one, 0)[7] - times(&one, 0)[0];
    assert!((0.14..0.16).contains(&spread), "{spread}");
}

#[test]
fn synchronised_devices_send_at_the_same_time_within_their_window() {
    let workload = "kind = \"synchronised\"\nperiod = \"1 h\"\nexchanges = 3";
    let together = sent(&scenario(20, workload, ""));
    for client in 0..20 {
        assert_eq!(times(&together, client), [0.0, 3600.0, 7200.0]);
    }
    let mut spread = scenario(20, workload, "");
    spread.clients.start_window.0 = 5_000_000_000;
    let spread = sent(&spread);
    let second: Vec<f64> = (0..20).map(|client| times(&spread, client)[1]).collect();
    assert!(second.iter().all(|at| (3600.0..=3605.0).contains(at)), "{second:?}");
    assert!(second.iter().any(|at| *at > 3602.5) && second.iter().any(|at| *at < 3602.5));
}

#[test]
fn devices_whose_first_requests_are_spread_act_together_afterwards() {
    let workload = "kind = \"synchronised\"\nperiod = \"1 h\"\nspread = \"1 h\"\nexchanges = 3";
    let sent = sent(&scenario(20, workload, ""));
    let all: Vec<Vec<f64>> = (0..20).map(|client| times(&sent, client)).collect();
    assert!(all.iter().all(|own| own[0] < 3600.0 && own[1..] == [3600.0, 7200.0]), "{all:?}");
    let late = all.iter().filter(|own| own[0] > 1800.0).count();
    assert!((4..=16).contains(&late), "{late} of 20 are in the second half");
}

#[test]
fn non_confirmable_requests_are_sent_once_and_a_lost_one_is_not_delivered() {
    // A lost one keeps its place (NSTART) for a while: the next one comes later than that.
    let workload = "kind = \"periodic\"\nperiod = \"60 s\"\nexchanges = 500\n\
        request_payload = 10\nreliability = \"non-confirmable\"";
    let rest = "[errors.some]\nkind = \"independent\"\naverage = 0.1\n[coap]\ntoken_length = 4\n";
    let mut scenario = scenario(1, workload, rest);
    scenario.network.errors = "some".into();
    let sent = sent(&scenario);
    let kinds = sent.from_clients.iter().map(|one| Message::parse(&one.2).unwrap().kind());
    assert!(kinds.into_iter().all(|kind| kind == Type::NonConfirmable));
    assert_eq!(sent.from_clients.len(), 500);
    let record = run(&scenario, "default", 1, 0);
    let client = record.clients[0];
    assert_eq!((client.retransmissions, client.completed + client.failed), (0, 500));
    // Both ways must succeed.
    assert_near(f64::from(client.completed), 500.0 * 0.81, 0.08, "delivered");
    let error = scenario.control_config("tcp").unwrap_err().to_string();
    assert!(
        error.contains("non-confirmable messages needs a congestion control over UDP"),
        "{error}"
    );
}

#[test]
fn commands_go_from_the_server_to_each_device_which_responds() {
    let workload = "kind = \"periodic\"\nperiod = \"5 s\"\nexchanges = 10\nrequest_payload = 30\n\
        response_payload = 4\nrequester = \"server\"";
    let scenario = scenario(7, workload, "");
    let sent = sent(&scenario);
    assert_eq!((sent.from_server.len(), sent.from_clients.len()), (70, 70));
    for (_, client, bytes) in &sent.from_server {
        let message = Message::parse(bytes).unwrap();
        assert_eq!((message.code(), message.payload().len()), (Code::PUT, 30), "to {client}");
    }
    for (_, _, bytes) in &sent.from_clients {
        let message = Message::parse(bytes).unwrap();
        assert_eq!((message.code(), message.payload().len()), (Code::CHANGED, 4));
    }
    let record = run(&scenario, "fasor", 1, 0);
    assert!(record.clients.iter().all(|client| (client.completed, client.arrived) == (10, 10)));
    assert_eq!((record.totals.delivery.transmissions, record.totals.delivery.replies), (70, 70));
}

#[test]
fn notifications_reach_all_observers_and_are_acknowledged() {
    let workload =
        "kind = \"notifications\"\nperiod = \"20 s\"\nexchanges = 5\nresponse_payload = 40";
    let rest = "[errors.some]\nkind = \"independent\"\naverage = 0.1\n";
    let mut scenario = scenario(50, workload, rest);
    let alone = sent(&scenario);
    assert_eq!((alone.from_server.len(), alone.from_clients.len()), (250, 250));
    for (at, client, bytes) in &alone.from_server {
        let message = Message::parse(bytes).unwrap();
        assert_eq!((message.code(), message.kind()), (Code::CONTENT, Type::Confirmable));
        assert_eq!(message.payload().len(), 40);
        // The number of the notification, which counts up.
        let number = message.option(OptionNumber::OBSERVE).unwrap();
        assert_eq!(f64::from(number.value[2]), at / 20.0, "to {client}");
    }
    for (_, _, bytes) in &alone.from_clients {
        let message = Message::parse(bytes).unwrap();
        assert_eq!((message.kind(), message.code()), (Type::Acknowledgement, Code::EMPTY));
    }
    scenario.network.errors = "some".into();
    let record = run(&scenario, "default", 1, 0);
    let sum = |field: fn(&ebbtide_sim::record::ClientRecord) -> u32| -> u32 {
        record.clients.iter().map(field).sum()
    };
    assert_eq!(sum(|client| client.completed) + sum(|client| client.failed), 250);
    assert!(sum(|client| client.completed) >= 249);
    // A tenth is lost each way, so 23 % of the transmissions in flight are repeated.
    assert_near(f64::from(sum(|client| client.retransmissions)), 250.0 * 0.234, 0.3, "repeated");
}

#[test]
fn firmware_is_downloaded_block_by_block_by_all_devices() {
    let workload = "kind = \"firmware\"\nexchanges = 25\nresponse_payload = 512\npath = \"fw\"";
    let mut scenario =
        scenario(6, workload, "[errors.some]\nkind = \"independent\"\naverage = 0.1\n");
    let alone = sent(&scenario);
    assert_eq!(alone.from_clients.len(), 6 * 25);
    for client in 0..6 {
        let blocks: Vec<u32> = alone
            .from_server
            .iter()
            .filter(|one| one.1 == client)
            .map(|one| {
                let message = Message::parse(&one.2).unwrap();
                assert_eq!(message.payload().len(), 512);
                message.option(OptionNumber::BLOCK2).unwrap().as_uint().unwrap() >> 4
            })
            .collect();
        assert_eq!(blocks, (0..25).collect::<Vec<u32>>());
    }
    scenario.network.errors = "some".into();
    for cc in ["default", "cocoa", "fasor"] {
        let record = run(&scenario, cc, 1, 0);
        for client in &record.clients {
            assert_eq!((client.completed, client.asked), (25, 25), "{cc}");
            assert_eq!(client.payload_bytes, 25 * 512, "{cc}");
        }
    }
}

/// The kinds together in one network, by class.
#[test]
fn classes_mix_kinds_of_traffic() {
    let class = |name: &str, workload: &str| {
        format!("[[class]]\nname = \"{name}\"\ncount = 4\n[class.workload]\n{workload}\n")
    };
    let rest = class("reports", "kind = \"poisson\"\nperiod = \"5 s\"\n")
        + &class("updates", "kind = \"firmware\"\nresponse_payload = 64\nexchanges = 30")
        + &class("alarms", "kind = \"bursts\"\nperiod = \"30 s\"\nburst = 3\nexchanges = 6")
        + &class("switches", "kind = \"synchronised\"\nperiod = \"9 s\"\nrequester = \"server\"")
        + &class("displays", "kind = \"notifications\"\nperiod = \"7 s\"\n");
    let text = source(1, "kind = \"continuous\"\nexchanges = 12", &rest).text;
    let text = text.replace("[clients]\ncount = 1\n", "");
    let scenario = Source::new("x.toml", text).scenario(&[]).unwrap();
    let record = run(&scenario, "default", 1, 0);
    let done: Vec<u32> = record.clients.iter().map(|client| client.completed).collect();
    let expected: Vec<u32> = [12, 30, 6, 12, 12].into_iter().flat_map(|n| [n; 4]).collect();
    assert_eq!(done, expected);
    assert_eq!(record, run(&scenario, "default", 1, 0));
}

#[test]
fn an_impossible_traffic_kind_is_refused() {
    for (workload, expected) in [
        (
            "kind = \"continuous\"\njitter = \"1 s\"",
            "x.toml:7: workload.jitter: is for the workload periodic",
        ),
        ("kind = \"bursts\"\nburst = 65", "workload.burst: must be from 1 to 64"),
        (
            "kind = \"poisson\"\nspread = \"1 s\"",
            "workload.spread: is for the workload synchronised",
        ),
        (
            "kind = \"synchronised\"\nspread = \"61 s\"",
            "workload.spread: contradicts workload.period",
        ),
        (
            "kind = \"firmware\"\nresponse_payload = 100",
            "workload.response_payload: is the size of a block",
        ),
        (
            "kind = \"firmware\"\nresponse_payload = 64\nrequest_payload = 3",
            "workload.request_payload: must be 0",
        ),
        (
            "kind = \"transfer\"\nrequest_payload = 9\nreliability = \"non-confirmable\"",
            "workload.reliability",
        ),
        ("kind = \"stream\"\nrequest_payload = 9\nrequester = \"server\"", "workload.requester"),
        (
            "kind = \"poisson\"\nreliability = \"non-confirmable\"",
            "coap.token_length: must be from 4",
        ),
        ("kind = \"poison\"", "did you mean 'poisson'?"),
    ] {
        let error = source(1, workload, "").scenario(&[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A scenario of a folder with this log.
fn logged(clients: u32, log: &str, rest: &str) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("requests.csv"), log).unwrap();
    let workload = "kind = \"log\"\nlog = \"requests.csv\"";
    let text = source(clients, workload, rest).text;
    let place = folder.path().join("x.toml").to_string_lossy().into_owned();
    Source::new(place, text).scenario(&[]).map_err(|error| error.to_string())
}

#[test]
fn the_requests_of_a_log_are_made_when_they_were() {
    let log =
        "seconds,device\n1000.5,meter 7\n1004,gate\n1001,meter 7\n1003,gate\n1009.25,meter 7\n";
    let scenario = logged(5, log, "").unwrap();
    let sent = sent(&scenario);
    // The log is used again by the third and the fifth device, and by the fourth one.
    for client in 0..5 {
        let expected = if client % 2 == 0 { vec![0.0, 0.5, 8.75] } else { vec![2.5, 3.5] };
        assert_eq!(times(&sent, client), expected, "client {client}");
    }
    assert_eq!(sent.dropped, 0);
    // 3 + 2 + 3 + 2 + 3 requests; rounded up, a device makes three, each 8.75 s / 3 after the one before.
    let workload = &scenario.workload;
    assert_eq!((workload.exchanges_of(0..5), workload.exchanges), (13.0, 3));
    assert_eq!(workload.interval_ns(), Some(2_916_666_666));
    let record = run(&scenario, "default", 1, 0);
    let asked: Vec<u32> = record.clients.iter().map(|client| client.asked).collect();
    assert_eq!(asked, [3, 2, 3, 2, 3]);
}

#[test]
fn a_class_has_its_own_log_and_a_window_moves_its_devices_and_not_their_intervals() {
    let classes = "[[class]]\nname = \"a\"\ncount = 2\nstart_window = \"100 s\"\n[class.workload]\n\
                   kind = \"log\"\nlog = \"requests.csv\"\n[[class]]\nname = \"b\"\ncount = 1\n";
    let log = "0,a\n7,a\n0,b\n7,b\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("requests.csv"), log).unwrap();
    let text = source(1, "kind = \"periodic\"\nexchanges = 4", classes)
        .text
        .replace("count = 1\n[work", "[work");
    let place = folder.path().join("x.toml").to_string_lossy().into_owned();
    let sent = sent(&Source::new(place, text).scenario(&[]).unwrap());
    for client in 0..2 {
        let times = times(&sent, client);
        assert!(times[0] > 0.0 && times[0] < 100.0);
        assert_near(times[1] - times[0], 7.0, 1e-9, "interval");
        assert_eq!(times.len(), 2);
    }
    assert_eq!(times(&sent, 2).len(), 4);
}

#[test]
fn a_log_is_part_of_the_identity_of_a_scenario_and_its_faults_are_named() {
    let text = |log: &str| serde_json::to_string(&logged(1, log, "").unwrap()).unwrap();
    assert_ne!(text("0,a\n"), text("0,a\n1,a\n"));
    for (clients, log, says) in [
        (1, "0,a\n1,b\n", "clients.count: must be at least 2"),
        (1, "x\ny\n", "line 2"),
        (1, "", "no requests"),
    ] {
        let error = logged(clients, log, "").unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    let without = source(1, "kind = \"log\"", "").scenario(&[]).unwrap_err().to_string();
    assert!(without.contains("workload.log: must name a file"), "{without}");
    let missing = source(1, "kind = \"log\"\nlog = \"none.csv\"", "").scenario(&[]);
    let missing = missing.unwrap_err().to_string();
    assert!(
        missing.contains("workload.log: none.csv") && missing.contains("cannot be read"),
        "{missing}"
    );
    assert!(
        !serde_json::to_string(&scenario(1, "kind = \"periodic\"", "")).unwrap().contains("log")
    );
}

#[test]
fn a_log_is_refused_where_the_workload_would_not_read_it() {
    let refused = |source: Source, key: &str| {
        let error = source.scenario(&[]).unwrap_err().to_string();
        assert!(error.contains(&format!("{key}: is for the workload log")), "{error}");
    };
    refused(source(1, "kind = \"periodic\"\nlog = \"requests.csv\"", ""), "workload.log");
    let class = |rest: &str| {
        format!("[[class]]\nname = \"a\"\ncount = 1\n[class.workload]\nkind = \"poisson\"\n{rest}")
    };
    let own = source(1, "kind = \"periodic\"", &class("log = \"requests.csv\"\n"));
    refused(
        Source { text: own.text.replace("count = 1\n[work", "[work"), ..own },
        "class.a.workload.log",
    );
    let change = |key: &str, value: &str| Override { key: key.into(), value: value.into() };
    let logged = source(1, "kind = \"log\"\nlog = \"requests.csv\"", "");
    let other_kind = change("workload.kind", "poisson");
    let error = logged.scenario(std::slice::from_ref(&other_kind)).unwrap_err().to_string();
    assert!(error.contains("workload.log"), "{error}");
    logged.scenario(&[other_kind, change("workload.log", "")]).unwrap();
    // A class of another kind has nothing to do with the log of the others.
    let other = class("") + "[[class]]\nname = \"b\"\ncount = 1\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("requests (1).csv"), "0,a\n7,a\n").unwrap();
    let text = source(1, "kind = \"log\"\nlog = \"requests (1).csv\"", &other).text;
    let place = folder.path().join("x.toml").to_string_lossy().into_owned();
    let text = text.replace("count = 1\n[work", "[work");
    let sent = sent(&Source::new(place, text).scenario(&[]).unwrap());
    assert_eq!(times(&sent, 1), [0.0, 7.0]);
    assert!(times(&sent, 0).len() > 1);
}
