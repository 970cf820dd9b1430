//! Senders of many messages: streams and transfers, over UDP and over TCP.

use crate::common::{run, scenario};
use ebbtide_sim::record::{FlowRecord, RunRecord, Store};
use ebbtide_sim::run::{Campaign, CellResult, Results};
use ebbtide_sim::scenario::{Override, Scenario, load, parse_set};

/// A message of 106 bytes on the wire.
const MESSAGE: [(&str, &str); 2] =
    [("workload.request_payload", "67"), ("workload.response_payload", "0")];

fn flows(settings: &[(&str, &str)]) -> Scenario {
    scenario("nb-iot", &[&MESSAGE[..], settings].concat())
}

fn stream(settings: &[(&str, &str)]) -> Scenario {
    flows(&[&[("workload", "stream"), ("clients", "3")], settings].concat())
}

fn transfer(settings: &[(&str, &str)]) -> Scenario {
    flows(&[&[("workload", "transfer"), ("clients", "1")], settings].concat())
}

fn each(record: &RunRecord, field: fn(&FlowRecord) -> u64) -> Vec<u64> {
    record.totals.flows.iter().map(field).collect()
}

fn cell(workload: &str, sets: &[&str], cc: &str) -> CellResult {
    let fixed = [
        format!("workload={workload}"),
        "workload.request_payload=67".into(),
        "workload.response_payload=0".into(),
    ];
    let all = fixed.iter().map(String::as_str).chain(sets.iter().copied());
    let axes = all.map(|text| parse_set(text).unwrap()).collect();
    let source = load("nb-iot").unwrap();
    let campaign = Campaign::plan(source, axes, vec![cc.into()], Some(2), Some(1)).unwrap();
    campaign.run(None, None, &()).unwrap().cells.remove(0).1
}

#[test]
fn a_stream_over_an_idle_path_delivers_what_the_clock_offers_from_its_start_on() {
    let scenario = stream(&[("workload.flow.start", "[0 s,3 s,5 s]")]);
    let record = run(&scenario, "default:nstart=4", 1, 0);
    // One every 500 ms in 50, 47 and 45 s, each of which arrives in less than that.
    assert_eq!(each(&record, |flow| flow.offered), [100, 94, 90]);
    assert_eq!(each(&record, |flow| flow.delivered), [100, 94, 90]);
    assert_eq!(each(&record, |flow| flow.start_ns / 1_000_000), [0, 3000, 5000]);
    assert_eq!(each(&record, |flow| flow.refused + flow.given_up), [0; 3]);
}

#[test]
fn one_message_at_a_time_delivers_one_per_round_trip() {
    let record = run(&stream(&[]), "default", 1, 0);
    // Data of 106 bytes at 60 kbit/s and an acknowledgement of 33 at 30 kbit/s, 600 ms, twice 10 to
    // 20 ms: 650 ms on average.
    for delivered in each(&record, |flow| flow.delivered) {
        assert!((76..=78).contains(&delivered), "{delivered} in 50 s");
    }
}

#[test]
fn a_message_without_room_is_refused_and_counted() {
    let scenario = stream(&[("workload.flow.interval", "10 ms"), ("workload.flow.queue", "8")]);
    for cc in ["default", "fasor:nstart=4", "tcp"] {
        let record = run(&scenario, cc, 1, 0);
        for flow in &record.totals.flows {
            assert!(flow.refused > 0 || cc == "tcp", "{cc}: {flow:?}");
            let rest = flow.offered - flow.refused - flow.sent;
            assert!(rest <= 8, "{cc}: {rest} messages wait in a queue of 8");
            assert_eq!(flow.offered, 5000, "{cc}");
        }
    }
}

#[test]
fn where_there_is_always_one_more_the_control_alone_sets_the_pace() {
    let scenario = stream(&[("workload.flow.interval", "0 s")]);
    let record = run(&scenario, "default:nstart=4", 1, 0);
    for flow in &record.totals.flows {
        // Four per round trip of 650 ms.
        assert!((300..=316).contains(&flow.delivered), "{}", flow.delivered);
        assert_eq!(flow.refused, 0);
    }
}

#[test]
fn a_transfer_takes_the_messages_that_its_bytes_need_and_no_less_time_than_the_link() {
    for (cc, windows) in [("default", 150.0), ("default:nstart=4", 37.5), ("fasor:nstart=8", 18.75)]
    {
        let result = cell("transfer", &["clients=1", "workload.flow.bytes=10000"], cc);
        let flows = result.cell.flows.as_ref().unwrap();
        assert_eq!((flows.delivered.0, flows.retransmissions.0), (150.0, 0.0), "{cc}");
        // A window of messages per round trip of 650 ms.
        crate::common::assert_near(result.cell.fct.median, windows * 0.65, 0.06, cc);
        assert!(result.cell.multiple().unwrap() > 1.0, "{cc}");
    }
}

#[test]
fn over_tcp_a_transfer_comes_near_the_limit_of_the_link() {
    let result = cell("transfer", &["clients=1", "workload.flow.bytes=100000"], "tcp");
    assert_eq!(result.cell.flows.as_ref().unwrap().delivered.0, 1493.0);
    let multiple = result.cell.multiple().unwrap();
    assert!((1.0..1.2).contains(&multiple), "{multiple}");
}

#[test]
fn a_transfer_offers_again_what_was_given_up() {
    let lossy = [("errors", "high"), ("max_retransmit", "1"), ("workload.flow.bytes", "10000")];
    let record = run(&transfer(&lossy), "default:nstart=4", 1, 0);
    let flow = &record.totals.flows[0];
    assert!(flow.given_up > 0, "{flow:?}");
    assert_eq!(record.clients[0].completed, 150);
    assert_eq!(flow.offered, 150 + flow.given_up);
    assert!(flow.arrived < flow.transmissions);
}

#[test]
fn a_transfer_to_nobody_ends() {
    let lost = [("errors", "high"), ("max_retransmit", "0"), ("workload.flow.bytes", "1000")];
    let mut scenario = transfer(&lost);
    scenario
        .errors
        .insert("high".into(), ebbtide_sim::scenario::Errors::Independent { average: 1.0 });
    let record = run(&scenario, "default:nstart=8", 1, 0);
    assert_eq!(record.clients[0].completed, 0);
    assert!((1000..1100).contains(&record.totals.flows[0].given_up));
}

#[test]
fn clients_take_their_sizes_and_controls_in_turn() {
    let bytes = [("clients", "2"), ("workload.flow.bytes", "[20000,5000]")];
    let record = run(&transfer(&bytes), "default:nstart=8+fasor", 1, 0);
    assert_eq!(each(&record, |flow| flow.delivered), [299, 75]);
    assert_eq!(record.clients[1].group, 1);
}

#[test]
fn flows_are_kept_in_the_files_of_results() {
    let axes = vec![parse_set("workload=stream").unwrap(), parse_set("clients=2").unwrap()];
    let axes = [axes, vec![parse_set("workload.request_payload=67").unwrap()]].concat();
    let source = load("nb-iot").unwrap();
    let campaign = Campaign::plan(source, axes, vec!["default".into()], Some(1), None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let run = || campaign.run(Some(&store), None, &()).unwrap();
    let (computed, read) = (run(), run());
    assert_eq!(read.reused, 1);
    assert!(computed.cells[0].1.cell.flows.is_some());
    // As text: a single replication has no interval, and no number is not equal to itself.
    let text = |results: &Results| format!("{:?}", results.cells[0].1.cell);
    assert!(text(&computed) == text(&read));
}

#[test]
fn impossible_flows_are_refused_by_their_key() {
    let refused = |settings: &[(&str, &str)]| {
        let overrides: Vec<Override> = settings
            .iter()
            .map(|(key, value)| Override { key: (*key).into(), value: (*value).into() })
            .collect();
        load("nb-iot").unwrap().scenario(&overrides).unwrap_err().to_string()
    };
    let stream = ("workload", "stream");
    let sized = ("workload.request_payload", "67");
    for (settings, key) in [
        (vec![stream], "workload"),
        (vec![stream, sized, ("workload.flow.interval", "10 us")], "workload.flow.interval"),
        (vec![stream, sized, ("workload.flow.queue", "0")], "workload.flow.queue"),
        (vec![stream, sized, ("workload.flow.duration", "0 s")], "workload.flow.duration"),
        (
            vec![("workload", "transfer"), sized, ("workload.flow.bytes", "0")],
            "workload.flow.bytes",
        ),
        (vec![stream, sized, ("workload.flow.start", "[]")], "workload.flow.start"),
    ] {
        let message = refused(&settings);
        assert!(message.contains(key), "{message}");
    }
}

#[test]
fn clients_over_tcp_whose_buffers_do_not_fit_are_refused_with_the_number_that_does() {
    let plan = |sets: &[&str], cc: &str| {
        let axes = sets.iter().map(|text| parse_set(text).unwrap()).collect();
        let plan =
            Campaign::plan(load("nb-iot").unwrap(), axes, vec![cc.to_owned()], Some(1), Some(1));
        plan.map(|_| ()).map_err(|error| error.to_string())
    };
    // Four buffers of 8192 bytes a client, 4 GiB in all.
    assert_eq!(plan(&["clients=131072"], "tcp"), Ok(()));
    let error = plan(&["clients=262144"], "tcp").unwrap_err();
    assert!(error.contains("needs 8.0 GiB for the buffers of TCP, at most 4 GiB"), "{error}");
    assert!(error.contains("lower clients.count to 131072"), "{error}");
    // Half of the clients; and none of them.
    assert_eq!(plan(&["clients=262144"], "default+tcp"), Ok(()));
    assert_eq!(plan(&["clients=1000000"], "default"), Ok(()));
    // Of 65535 bytes in a flow.
    let transfer = ["workload=transfer", "workload.request_payload=67", "workload.flow.bytes=67"];
    let many = |clients| plan(&[&transfer[..], &[clients]].concat(), "tcp");
    assert_eq!(many("clients=16384"), Ok(()));
    assert!(many("clients=16400").unwrap_err().contains("to 16384"));
}
