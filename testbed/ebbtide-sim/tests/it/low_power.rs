//! Low-power networks as a whole: routes, conservation, the same answer, and another simulator's.

use crate::common::{run, scenario};
use ebbtide_sim::medium::FrameCounts;
use ebbtide_sim::medium::low_power::{MeshGraph, MeshRecord, Routes};
use ebbtide_sim::random::Streams;
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{load, parse_set};

fn mesh(record: &ebbtide_sim::record::RunRecord) -> &MeshRecord {
    record.totals.mesh.as_ref().unwrap()
}

#[test]
fn routes_in_a_grid_are_shortest_up_and_down_the_tree() {
    let grid = scenario("lln-grid", &[("n", "5")]);
    let topology = MeshGraph::new(grid.network.mesh().unwrap(), 0.0);
    for replication in 0..5 {
        let routes = Routes::new(&topology, &Streams::new(1, replication));
        assert_eq!(topology.root, 12);
        for node in 0..25u32 {
            let (x, y) = ((node % 5).abs_diff(2), (node / 5).abs_diff(2));
            // Diagonals lose 41 %: two hops along the grid are better.
            assert_eq!(routes.hops(node, 12), x + y, "node {node}");
            assert_eq!(routes.hops(12, node), x + y, "node {node}");
        }
        // Up to the common ancestor and down: at most by way of the root.
        for (from, to) in [(24, 0), (4, 20), (1, 0), (23, 3)] {
            let by_root = routes.hops(from, 12) + routes.hops(12, to);
            assert!((1..=by_root).contains(&routes.hops(from, to)));
        }
    }
}

#[test]
fn datagrams_and_messages_are_conserved() {
    for (name, settings, cc) in [
        ("lln-grid", vec![("n", "6"), ("load", "3 kbit/s"), ("duration", "10 min")], "cocoa-plus"),
        ("lln-grid", vec![("workload", "events"), ("duration", "30 min")], "fasor"),
        ("lln-cloud", vec![("workload", "burst")], "default"),
        (
            "lln-cloud",
            vec![
                ("workload", "many-to-many"),
                ("duration", "1 min"),
                ("duty_cycle", "contikimac-phase-lock"),
                ("workload.response_payload", "200"),
            ],
            "cocoa-01:nstart=4",
        ),
    ] {
        let scenario = scenario(name, &settings);
        let record = run(&scenario, cc, 1, 0);
        let m = mesh(&record);
        let lost = m.lost.queue + m.lost.retries + m.lost.access + m.lost.reassembly + m.lost.route;
        let under_way = m.datagrams - m.arrived - lost;
        // At most what queues hold.
        assert!(under_way <= 8 * m.nodes.len() as u64, "{name}: {m:?}");
        assert!(m.arrived > 100, "{name}");
        for messages in &m.messages {
            let ended = messages.delivered + messages.busy + messages.given_up;
            assert!((ended..=ended + 1).contains(&messages.offered), "{messages:?}");
            assert!(messages.given_up_queue + messages.given_up_retries <= messages.given_up);
        }
        for node in &m.nodes {
            let f = &node.frames;
            // One for each of the two neighbours that it has frames for.
            assert!(f.accepted - f.sent - f.no_ack - f.no_access <= 2);
            assert!(node.peak_queue <= 8 && node.energy_mj > 0.0);
        }
        let packets = [record.totals.up, record.totals.down];
        for side in packets {
            assert!(side.delivered + side.dropped_queue + side.lost_link <= side.sent);
        }
    }
}

#[test]
fn without_acknowledgements_every_frame_is_sent_once_and_coap_repairs_what_is_lost() {
    let sent = |acknowledged: &str| {
        let acknowledged = ("network.mesh.csma.acknowledged", acknowledged);
        let changes = [("exchanges", "2"), ("routes", "30"), acknowledged];
        let record = run(&scenario("lln-cloud", &changes), "default", 1, 0);
        let m = mesh(&record);
        let sum = |of: fn(&FrameCounts) -> u64| m.nodes.iter().map(|n| of(&n.frames)).sum::<u64>();
        let lost = sum(|f| f.collided + f.faded + f.deaf);
        assert!(lost > 0 && m.lost.retries <= lost);
        let repaired = sum(|f| f.transmitted) - sum(|f| f.accepted);
        (sum(|f| f.acks), repaired, m.lost.retries)
    };
    let (acks, repaired, lost) = sent("false");
    assert_eq!((acks, repaired), (0, 0));
    let (acks, repaired, lost_all_the_same) = sent("true");
    assert!(acks > 100 && repaired > 0 && lost_all_the_same < lost);
}

#[test]
fn a_relays_own_acknowledgement_does_not_make_it_wait() {
    // Without a backoff a busy channel costs 125 ms or more; in an idle network none is.
    let idle = [("n", "3"), ("load", "0.1 kbit/s"), ("duration", "10 min")];
    for acknowledged in ["true", "false"] {
        let mut changes = idle.to_vec();
        changes.push(("network.mesh.csma.acknowledged", acknowledged));
        let record = run(&scenario("lln-grid", &changes), "default", 1, 0);
        let m = mesh(&record);
        let busy: u64 = m.nodes.iter().map(|node| node.frames.busy).sum();
        assert!(m.arrived > 100 && busy * 20 < m.arrived, "{busy} of {}", m.arrived);
    }
}

#[test]
fn the_same_seed_gives_the_same_answer_with_any_number_of_threads() {
    for (name, sets) in [
        ("lln-grid", ["n=3,4", "duration=1 min", "load=3 kbit/s"]),
        ("lln-cloud", ["workload=baseline,many-to-many", "duration=20 s", "exchanges=1"]),
    ] {
        let axes = sets.iter().map(|set| parse_set(set).unwrap()).collect();
        let cc = ["default", "fasor-token"].map(str::to_owned).to_vec();
        let campaign = Campaign::plan(load(name).unwrap(), axes, cc, Some(2), Some(7)).unwrap();
        let answer = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let results = pool.install(|| campaign.run(None, None, &())).unwrap();
            let cells: Vec<String> =
                results.cells.iter().map(|(_, result)| format!("{:?}", result.cell)).collect();
            format!("{cells:?}")
        };
        assert_eq!(answer(1), answer(3), "{name}");
    }
}

/// The 5 x 5 grid that ns-3.37's lr-wpan was run on: 24 sources, 60 bytes each 7.68 s, 10 m. Frames are
/// received up to `range` and sensed up to twice that, if it is less than the grid; ns-3 weighs
/// interference against the signal, here a nearer sender captures the receiver.
fn ns3_grid(range: f64) -> ebbtide_sim::scenario::Scenario {
    let (reliable, reach) = (format!("{range:.1}"), format!("{:.1}", range + 0.1));
    let sensed = format!("{:.1}", (2.0 * range).min(60.1).max(range + 0.1));
    scenario(
        "lln-grid",
        &[
            ("n", "5"),
            ("duration", "30 min"),
            ("load", "1100 bit/s"),
            // With 16 bytes of CoAP 60.
            ("workload.mesh.message", "44"),
            ("workload.mesh.fragment", "64"),
            ("network.mesh.lowpan.addresses", "short"),
            // The MAC of the standard.
            ("network.mesh.csma.min_be", "3"),
            ("network.mesh.csma.max_be", "5"),
            ("network.mesh.csma.max_backoffs", "4"),
            ("network.mesh.csma.max_retries", "3"),
            ("network.mesh.csma.retry_interval", "0 s"),
            ("network.mesh.lowpan.neighbours", "8"),
            ("network.mesh.radio.reliable", &reliable),
            ("network.mesh.radio.reach", &reach),
            ("network.mesh.radio.interference", &sensed),
            ("network.mesh.radio.capture", "1.1"),
        ],
    )
}

#[test]
fn as_large_a_share_is_delivered_as_in_ns_3() {
    // ns-3: 0.996 to 1.000 at a range of 15 m, 0.98 to 1.0 where all hear each other; a point less is
    // allowed. There datagrams are not answered; here they are, over the same air.
    for (range, least) in [(15.0, 0.986), (60.0, 0.98)] {
        for replication in 0..2 {
            let record = run(&ns3_grid(range), "default", 1, replication);
            let up = record.totals.up;
            let share = up.delivered as f64 / up.sent as f64;
            println!("{range} m: {share:.4} of {} datagrams", up.sent);
            assert!(share >= least, "{range} m: {share}");
        }
    }
}

#[test]
fn duty_cycling_costs_time_and_saves_energy() {
    let power_and_rtt = |duty: &str| {
        let settings = [("workload", "baseline"), ("exchanges", "3"), ("duty_cycle", duty)];
        let record = run(&scenario("lln-cloud", &settings), "default", 1, 0);
        let m = mesh(&record);
        let energy: f64 = m.nodes.iter().map(|node| node.energy_mj).sum();
        let rtt: Vec<u64> = m.strong_rtt.0.iter().map(|(us, _)| *us).collect();
        (energy / (m.measured_ns as f64 / 1e9) / m.nodes.len() as f64, rtt[rtt.len() / 2])
    };
    let (on, fast) = power_and_rtt("off");
    let (sleeping, slow) = power_and_rtt("contikimac");
    assert!((50.0..60.0).contains(&on), "{on} mW");
    assert!(sleeping < on / 10.0, "{sleeping} mW");
    assert!(slow > fast + 50_000, "{fast} {slow} us");
    // A sender that remembers when its neighbour was awake strobes for 17 ms, not for up to 130.
    let (locked, _) = power_and_rtt("contiki");
    assert!(locked < sleeping / 2.0, "{locked} {sleeping} mW");
}
