//! The timeline of a replication: spans that nest, one for each exchange, without gaps.

use crate::common::{controls, scenario};
use ebbtide_core::time::Instant;
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::run::simulate_with;
use ebbtide_sim::run::{Trace, TraceFilter};
use ebbtide_sim::scenario::Scenario;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// The events of a replication, and its record.
fn timeline(scenario: &Scenario, cc: &str, only: TraceFilter) -> (Vec<Value>, RunRecord) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let sink: Box<dyn Write> = Box::new(std::io::BufWriter::new(file.reopen().unwrap()));
    let trace: Trace<Box<dyn Write>, Vec<u8>> = Trace::new(None, Vec::new(), only).with_spans(sink);
    let (record, trace) = simulate_with(scenario, &controls(scenario, cc), 1, 0, trace).unwrap();
    trace.finish().unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let Value::Array(events) = file["traceEvents"].take() else { panic!("no events") };
    (events, record)
}

#[derive(Clone, Debug)]
struct Slice {
    name: String,
    from: u64,
    to: u64,
    args: Value,
    children: Vec<Self>,
}

/// The slices of each track as trees; panics if two overlap without one inside the other.
fn trees(events: &[Value]) -> BTreeMap<(u64, u64), Vec<Slice>> {
    let mut tracks: BTreeMap<(u64, u64), Vec<Slice>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let from = event["ts"].as_u64().unwrap();
        let slice = Slice {
            name: event["name"].as_str().unwrap().to_owned(),
            from,
            to: from + event["dur"].as_u64().unwrap(),
            args: event["args"].clone(),
            children: Vec::new(),
        };
        let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        tracks.entry(track).or_default().push(slice);
    }
    for slices in tracks.values_mut() {
        // Stable: of two that are equal the parent was written first.
        slices.sort_by_key(|slice| (slice.from, u64::MAX - slice.to));
        let mut roots: Vec<Slice> = Vec::new();
        for slice in slices.drain(..) {
            match roots.last_mut() {
                Some(last) if slice.from < last.to => {
                    assert!(slice.to <= last.to, "{slice:?} does not nest in {last:?}");
                    if let Some(before) = last.children.last() {
                        assert!(before.to <= slice.from, "{slice:?} overlaps {before:?}");
                    }
                    last.children.push(slice);
                }
                _ => roots.push(slice),
            }
        }
        *slices = roots;
    }
    tracks
}

fn count(events: &[Value], phase: &str) -> usize {
    events.iter().filter(|event| event["ph"] == phase).count()
}

#[test]
fn spans_nest_without_gaps_and_each_exchange_has_exactly_one() {
    for (name, settings, cc) in [
        ("nb-iot", &[("clients", "20"), ("buffer", "500"), ("errors", "high")][..], "fasor-token"),
        ("nb-iot", &[("clients", "10"), ("exchanges", "10"), ("errors", "high")], "ebb"),
        ("nb-iot", &[("clients", "10"), ("exchanges", "10"), ("errors", "high")], "tcp"),
        ("rcoap-wifi", &[("clients", "20"), ("wifi_loss", "0.6")], "default"),
        ("two-bottlenecks", &[], "default"),
        ("lora", &[("exchanges", "5")], "default"),
        ("nb-iot-access", &[("exchanges", "1"), ("clients", "60")], "default"),
        ("lln-cloud", &[], "default"),
    ] {
        let scenario = scenario(name, settings);
        let (events, record) = timeline(&scenario, cc, TraceFilter::default());
        let mut seen = BTreeSet::new();
        for ((process, _), slices) in trees(&events) {
            for slice in slices {
                let is_exchange = slice.name.starts_with("exchange ");
                // A scenario with an end breaks off what is under way then.
                if is_exchange && slice.args["outcome"] != "unfinished" {
                    assert!(seen.insert((process, slice.name.clone())), "{slice:?} twice");
                }
                let parts: u64 = slice.children.iter().map(|child| child.to - child.from).sum();
                assert_eq!(parts, slice.to - slice.from, "{name}: {slice:?}");
            }
        }
        let ended: u32 = record.clients.iter().map(|one| one.completed + one.failed).sum();
        assert_eq!(seen.len(), ended as usize, "{name} {cc}");
    }
}

#[test]
fn every_transmission_has_an_arrow_to_its_packet_and_every_loss_a_mark() {
    let settings = [("clients", "20"), ("buffer", "500"), ("errors", "high")];
    let scenario = scenario("nb-iot", &settings);
    let (events, record) = timeline(&scenario, "fasor-token", TraceFilter::default());
    let arrows = |phase: &str| -> BTreeSet<u64> {
        let ends = events.iter().filter(|event| event["ph"] == phase);
        ends.map(|event| event["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(arrows("s"), arrows("f"));
    let repeated: u32 = record.clients.iter().map(|client| client.retransmissions).sum();
    let marks = |what: &str| {
        let named =
            |event: &&Value| event["name"].as_str().is_some_and(|name| name.starts_with(what));
        events.iter().filter(|event| event["ph"] == "i").filter(named).count() as u64
    };
    assert_eq!(marks("retransmission"), u64::from(repeated));
    assert_eq!(count(&events, "s") as u64, record.totals.up.sent, "one copy, one packet");
    assert_eq!(marks("dropped"), record.totals.up.dropped_queue + record.totals.down.dropped_queue);
    assert_eq!(marks("lost"), record.totals.up.lost_link + record.totals.down.lost_link);
    assert!(marks("dropped") > 0 && marks("lost") > 0 && repeated > 0);
}

/// Checks that each arrow has both ends, each in a slice of its track.
fn check_arrows(events: &[Value]) {
    let track = |event: &Value| (event["pid"].as_u64(), event["tid"].as_u64());
    let mut slices: BTreeMap<_, Vec<(u64, u64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let from = event["ts"].as_u64().unwrap();
        let ends = (from, from + event["dur"].as_u64().unwrap());
        slices.entry(track(event)).or_default().push(ends);
    }
    let mut ends: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "s" || event["ph"] == "f") {
        let at = event["ts"].as_u64().unwrap();
        let covers = |(from, to): &(u64, u64)| *from <= at && at < *to;
        assert!(slices[&track(event)].iter().any(covers), "{event} is in no slice");
        let phases = ends.entry(event["id"].as_u64().unwrap()).or_default();
        phases.push(event["ph"].as_str().unwrap());
    }
    assert!(!ends.is_empty(), "no arrows");
    for (id, phases) in ends {
        assert_eq!(phases, ["s", "f"], "arrow {id}");
    }
}

#[test]
fn every_arrow_has_two_ends_that_lie_in_spans() {
    let settings = [("clients", "20"), ("buffer", "500"), ("errors", "high")];
    let at = |seconds: u64| Some(Instant::from_nanos(seconds * 1_000_000_000));
    let part = TraceFilter { client: None, from: at(5), until: at(15) };
    for only in [TraceFilter::default(), part] {
        for cc in ["default", "fasor-token", "ebb"] {
            check_arrows(&timeline(&scenario("nb-iot", &settings), cc, only).0);
        }
        check_arrows(&timeline(&scenario("lora", &[("exchanges", "3")]), "default", only).0);
        let mesh = [("workload", "many-to-many"), ("duration", "20 s")];
        check_arrows(&timeline(&scenario("lln-cloud", &mesh), "default", only).0);
    }
}

#[test]
fn the_legs_of_a_packet_are_those_of_the_network() {
    // A client alone: no queue; 1000 bit/s are a millisecond a bit.
    let text = "name = \"x\"\ntitle = \"x\"\n[network]\nheader = 0\n\
        [network.up]\nrate = \"8 kbit/s\"\ndelay = \"200 ms\"\nbuffer = \"infinite\"\nbeyond = \"30 ms\"\n\
        [network.down]\nrate = \"4 kbit/s\"\ndelay = \"100 ms\"\nbuffer = \"infinite\"\nbeyond = \"40 ms\"\n[server]\nprocessing = \"5 ms\"\n\
        [clients]\ncount = 1\n[workload]\nkind = \"continuous\"\nexchanges = 1\n[coap]\nack_timeout = \"60 s\"\n";
    for queue in ["", "queue = { kind = \"codel\" }\n"] {
        let text = text.replace("[network.down]\n", &format!("[network.down]\n{queue}"));
        let scenario = ebbtide_sim::scenario::Source::new("x.toml", text).scenario(&[]).unwrap();
        let (events, _) = timeline(&scenario, "default", TraceFilter::default());
        let mut packets: Vec<Slice> = trees(&events)
            .into_values()
            .flatten()
            .filter(|one| one.name.starts_with("to "))
            .collect();
        packets.sort_by_key(|packet| packet.from);
        for (packet, legs) in packets.iter().zip([
            [("bottleneck wire", 1000), ("bottleneck delay", 200_000), ("beyond", 30_000)],
            [("server", 45_000), ("bottleneck wire", 2000), ("bottleneck delay", 100_000)],
        ]) {
            let bytes = packet.args["bytes"].as_u64().unwrap();
            assert_eq!(packet.children.len(), 3, "{packet:?}");
            for (child, (name, micros)) in packet.children.iter().zip(legs) {
                let expected = if name.ends_with("wire") { micros * bytes } else { micros };
                assert_eq!((child.name.as_str(), child.to - child.from), (name, expected));
            }
        }
        assert_eq!(packets.len(), 2);
    }
}

#[test]
fn a_packet_through_a_mesh_has_a_leg_on_its_wired_side_and_one_on_the_air() {
    let settings =
        [("exchanges", "1"), ("errors", "none"), ("network.mesh.radio.reliable", "10.2")];
    let scenario = scenario("lln-cloud", &settings);
    let (events, record) = timeline(&scenario, "default", TraceFilter::default());
    let packets: Vec<Slice> = trees(&events)
        .into_values()
        .flatten()
        .filter(|one| one.name.starts_with("to ") && one.args["ordinal"] == 0)
        .collect();
    assert!(packets.len() >= 20, "{} packets", packets.len());
    let wired = ["bottleneck wire", "bottleneck delay"];
    let (mut there, mut back) = (0, 0);
    for packet in &packets {
        let legs: Vec<&str> = packet.children.iter().map(|leg| leg.name.as_str()).collect();
        there += usize::from(legs == [wired[0], wired[1], "mesh"]);
        back += usize::from(legs == ["mesh", wired[0], wired[1]]);
    }
    let completed = record.clients[0].completed as usize;
    assert!(completed >= 9 && there >= completed && back >= completed - 1, "{there} {back}");
}

#[test]
fn a_part_of_a_replication_has_whole_exchanges() {
    let scenario = scenario("nb-iot", &[("clients", "5")]);
    let (from, until) = (Instant::from_nanos(10_000_000_000), Instant::from_nanos(20_000_000_000));
    let only = TraceFilter { client: Some(2), from: Some(from), until: Some(until) };
    let (events, _) = timeline(&scenario, "default", only);
    let all = timeline(&scenario, "default", TraceFilter::default()).0;
    let roots = |events: &[Value]| -> Vec<(u64, u64, u64)> {
        let of = |((process, _), slices): ((u64, u64), Vec<Slice>)| {
            slices.into_iter().map(move |slice| (process, slice.from, slice.to))
        };
        let mut roots: Vec<_> = trees(events).into_iter().flat_map(of).collect();
        roots.sort_unstable();
        roots
    };
    let mut expected = roots(&all);
    expected.retain(|(process, from, to)| *process == 3 && *from < 20_000_000 && *to >= 10_000_000);
    assert_eq!(roots(&events), expected);
    assert!(expected.len() > 10);
}
