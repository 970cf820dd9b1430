//! Any traffic in a low-power network: classes of devices on its motes, links behind its border router, and
//! errors for what does not fit.

use crate::common::run;
use ebbtide_sim::record::{MeshRecord, RunRecord};
use ebbtide_sim::scenario::{Scenario, Source};

const WIRE: &str = r#"
[network.up]
rate = "1 Mbit/s"
delay = "10 ms"
buffer = "infinite"
[network.down]
rate = "1 Mbit/s"
delay = "10 ms"
buffer = "infinite"
"#;

/// A 3 x 3 grid without losses: eight motes around the border router. `rest` are further tables.
fn source(rest: &str) -> Source {
    let text = format!(
        r#"name = "mine"
title = "Mine"
[network]
header = 48
[network.mesh.topology]
kind = "grid"
n = 3
spacing = 10.0
[network.mesh.radio]
reliable = 15.0
reach = 16.0
interference = 30.0
{rest}"#
    );
    Source::new("mine.toml", text)
}

fn scenario(rest: &str) -> Scenario {
    source(rest).scenario(&[]).unwrap()
}

fn mesh(record: &RunRecord) -> &MeshRecord {
    record.totals.mesh.as_ref().unwrap()
}

#[track_caller]
fn assert_refused(rest: &str, parts: &[&str]) {
    let message = source(rest).scenario(&[]).unwrap_err().to_string();
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn every_kind_of_traffic_crosses_the_mesh_with_and_without_a_wire_behind_it() {
    let kinds = [
        "kind = \"continuous\"",
        "kind = \"continuous\"\nrequest_payload = 150",
        "kind = \"random\"",
        "kind = \"periodic\"\nperiod = \"20 s\"",
        "kind = \"poisson\"\nperiod = \"20 s\"",
        "kind = \"bursts\"\nburst = 2\nperiod = \"20 s\"",
        "kind = \"synchronised\"\nperiod = \"20 s\"",
        "kind = \"notifications\"\nperiod = \"20 s\"",
        "kind = \"firmware\"\nresponse_payload = 64",
        "kind = \"periodic\"\nperiod = \"20 s\"\nrequester = \"server\"",
        "kind = \"poisson\"\nperiod = \"20 s\"\nreliability = \"non-confirmable\"",
    ];
    for (wire, kind) in ["", WIRE].iter().flat_map(|wire| kinds.map(|kind| (wire, kind))) {
        let coap = "[coap]\ntoken_length = 4\n";
        let text = format!("{wire}[workload]\nexchanges = 6\n{kind}\n{coap}[clients]\ncount = 5\n");
        let record = run(&scenario(&text), "default", 1, 0);
        assert_eq!(record.clients.len(), 5, "{kind}");
        let lossless = !kind.contains("non-confirmable");
        for client in &record.clients {
            let share = f64::from(client.completed) / f64::from(client.asked);
            assert!(client.asked == 6 && share > if lossless { 0.99 } else { 0.6 }, "{kind}{wire}");
        }
        let m = mesh(&record);
        // The border router, node 4, has no device.
        assert_eq!(m.client_nodes, [0, 1, 2, 3, 5], "{kind}");
        let lost = m.lost.queue + m.lost.retries + m.lost.access + m.lost.reassembly;
        assert_eq!(m.datagrams, m.arrived + lost, "{kind}: nothing is left in an idle network");
        let (up, down) = (record.totals.up, record.totals.down);
        assert!(up.sent >= 30 && up.delivered + up.dropped_queue + up.lost_link == up.sent);
        assert!(down.delivered + down.dropped_queue + down.lost_link == down.sent, "{kind}");
    }
}

#[test]
fn classes_on_motes_are_measured_one_by_one() {
    let text = format!(
        "{WIRE}[workload]\nkind = \"periodic\"\nperiod = \"30 s\"\nexchanges = 20\n\
        [workload.mesh]\nduration = \"15 min\"\nload = \"50 bit/s\"\n\
        [[class]]\nname = \"meters\"\ncount = 3\ncontrol = \"cocoa-plus\"\nworkload = {{ request_payload = 40 }}\n\
        [[class]]\nname = \"valves\"\ncount = 2\nworkload = {{ requester = \"server\", period = \"60 s\", exchanges = 5 }}\n\
        [[class]]\nname = \"sensors\"\ncount = 2\nworkload = {{ kind = \"monitoring\" }}\n"
    );
    let scenario = scenario(&text);
    let record = run(&scenario, "default", 1, 0);
    let m = mesh(&record);
    // Neither at the border router nor at the sink, node 0.
    assert_eq!(m.client_nodes, [1, 2, 3, 5, 6, 7, 8]);
    let classes = &record.totals.classes;
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["meters", "valves", "sensors"]);
    let completed = |clients: std::ops::Range<usize>| -> u32 {
        record.clients[clients].iter().map(|client| client.completed).sum()
    };
    assert_eq!((completed(0..3), completed(3..5)), (60, 10));
    // 96 bytes of each of two sensors at 50 bit/s: one each 30.72 s, of three blocks.
    let sensors = &m.messages[5..];
    assert!(sensors.iter().all(|one| (28..=30).contains(&one.offered)), "{sensors:?}");
    assert!(sensors.iter().all(|one| one.delivered + 2 >= one.offered), "{sensors:?}");
    assert!(m.messages[..5].iter().all(|one| one.offered == 0));
    assert!((160..=180).contains(&completed(5..7)), "{}", completed(5..7));
    // Its exchanges, by class.
    let of_class = |index: usize| classes[index].by_retransmissions.iter().sum::<u64>();
    assert_eq!((of_class(0), of_class(1)), (60, 10));
    assert_eq!(of_class(2), u64::from(completed(5..7)));
    assert_eq!(run(&scenario, "default", 1, 0).clients, record.clients);
}

#[test]
fn classes_with_workloads_of_their_own_need_none_of_the_scenario() {
    let text = "[workload]\nkind = \"many-to-many\"\nexchanges = 3\n[[class]]\nname = \"a\"\ncount = 8\n\
        workload = { kind = \"continuous\" }\n";
    let record = run(&scenario(text), "default", 1, 0);
    assert!(record.clients.len() == 8 && record.clients.iter().all(|one| one.completed == 3));
}

#[test]
fn a_link_behind_the_border_router_adds_its_delay_both_ways() {
    let median = |link: &str, place: &str| {
        let text = format!(
            "{WIRE}[workload]\nkind = \"continuous\"\nexchanges = 10\n\
            [clients]\ncount = 1\n{place}{link}"
        );
        let record = run(&scenario(&text), "default", 1, 0);
        assert_eq!(record.clients[0].completed, 10);
        if !link.is_empty() {
            let links = &record.totals.links;
            assert_eq!((links[0].name.as_str(), links[0].up.delivered), ("backhaul", 10));
            assert_eq!(links[0].down.delivered, 10);
        }
        let rtt = &record.totals.rtt.0;
        rtt[rtt.len() / 2].0 as f64
    };
    let backhaul = "[[link]]\nname = \"backhaul\"\nto = \"bottleneck\"\nrate = \"1 Gbit/s\"\n\
        delay = \"200 ms\"\nbuffer = \"infinite\"\n";
    let more = median(backhaul, "link = \"backhaul\"\n") - median("", "");
    assert!((more - 400_000.0).abs() < 12_000.0, "{more} us");
}

#[test]
fn the_wired_side_of_a_border_router_can_fail_for_a_while() {
    let outage = "[[network.up.schedule]]\nat = \"20 s\"\nrate = \"0 bit/s\"\n\
        [[network.up.schedule]]\nat = \"60 s\"\nrate = \"1 Mbit/s\"\n";
    let longest = |outage: &str| {
        let text = format!(
            "{WIRE}{outage}[workload]\nkind = \"periodic\"\nperiod = \"10 s\"\nexchanges = 12\n"
        );
        let record = run(&scenario(&text), "default", 1, 0);
        assert_eq!(record.clients.len(), 8, "without a number, there is a device on each mote");
        record.totals.durations.0.last().unwrap().0
    };
    assert!(longest("") < 5_000_000);
    assert!((30_000_000..60_000_000).contains(&longest(outage)));
}

#[test]
fn packets_that_the_wired_side_drops_or_marks_are_counted_from_end_to_end() {
    let wire = WIRE.replacen("\"infinite\"", "\"200 B\"", 1).replacen("1 Mbit", "2 kbit", 1);
    let text = "[workload]\nkind = \"synchronised\"\nperiod = \"60 s\"\nexchanges = 5\n";
    let up = run(&scenario(&format!("{wire}{text}")), "default", 1, 0).totals.up;
    assert!(up.dropped_queue > 5, "{up:?}");
    assert_eq!(up.delivered + up.dropped_queue + up.lost_link, up.sent);
    let queue = "[network.down]\nqueue = { kind = \"red\", ecn = true, min = 60, max = 900, probability = 1.0, weight = 1.0 }\n";
    let wire = WIRE.replace("[network.down]\n", queue).replace("1 Mbit", "4 kbit");
    let text = text.replace("synchronised", "notifications");
    let marked = run(&scenario(&format!("{wire}{text}")), "default", 1, 0).totals.down.marked;
    assert!(marked > 5, "{marked}");
}

#[test]
fn the_packets_of_exchanges_that_the_server_begins_are_counted_in_their_own_direction() {
    // The wire to the devices loses messages, and the one to the server nothing.
    let slow = "rate = \"2 kbit/s\"\ndelay = \"10 ms\"\nbuffer = \"200 B\"\n";
    let (up, _) = WIRE.split_once("[network.down]").unwrap();
    for kind in ["notifications", "synchronised\"\nrequester = \"server"] {
        let text = format!(
            "{up}[network.down]\n{slow}[workload]\nkind = \"{kind}\"\nperiod = \"60 s\"\n\
            exchanges = 5\nrequest_payload = 40\nresponse_payload = 40\n"
        );
        let record = run(&scenario(&text), "default", 1, 0);
        let (up, down) = (record.totals.up, record.totals.down);
        assert!(down.dropped_queue > 5, "{kind}: {down:?}");
        assert_eq!(down.delivered + down.dropped_queue + down.lost_link, down.sent, "{kind}");
        assert_eq!(up.delivered + up.dropped_queue + up.lost_link, up.sent, "{kind}");
        let requests = record.totals.delivery.transmissions;
        assert_eq!((down.sent, up.sent), (requests, record.totals.delivery.replies), "{kind}");
    }
}

#[test]
fn devices_without_a_mote_and_classes_that_do_not_fit_are_an_error_with_their_place() {
    let periodic = "[workload]\nkind = \"periodic\"\n";
    assert_refused(
        &format!("{periodic}[clients]\ncount = 9\n"),
        &["mine.toml:", "clients.count", "9 devices", "8 motes"],
    );
    let class = |rest: &str| format!("{periodic}[[class]]\nname = \"a\"\ncount = 4\n{rest}");
    let both = "[[class]]\nname = \"b\"\ncount = 4\nworkload = { kind = \"monitoring\" }\n";
    assert_refused(&class(both), &["mine.toml:", "class", "8 devices", "7 motes"]);
    assert_refused(
        &class("workload = { kind = \"burst\" }\n"),
        &["mine.toml:", "class.a.workload.kind", "requester = \"server\""],
    );
    assert_refused(
        &class("workload = { response_payload = 900 }\n"),
        &["mine.toml:", "class.a.workload.response_payload", "fragments", "8 frames"],
    );
    assert_refused(
        &class("access = { delay = \"10 ms\" }\n"),
        &["mine.toml:", "class.a.access", "without a radio"],
    );
    let link = "[[link]]\nname = \"b\"\nto = \"bottleneck\"\nrate = \"1 Mbit/s\"\ndelay = \"0 s\"\n\
        buffer = \"infinite\"\n";
    assert_refused(&class(&format!("link = \"b\"\n{link}")), &["link", "border router"]);
    let (up, _) = WIRE.split_once("[network.down]").unwrap();
    assert_refused(&format!("{up}{periodic}"), &["network.down", "two directions"]);
}
