//! A root that has a route to some motes only: what it drops, and whom studies ask.

use crate::common::{run, scenario};
use ebbtide_sim::medium::low_power::MeshRecord;
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{Source, load, parse_set};

fn mesh(record: &RunRecord) -> &MeshRecord {
    record.totals.mesh.as_ref().unwrap()
}

/// The built-in scenario without the key.
fn without_the_key(settings: &[(&str, &str)]) -> RunRecord {
    let text = load("lln-cloud").unwrap().text.replace("\nroutes = 10\n", "\n");
    assert!(!text.contains("routes = 10"));
    let changes: Vec<_> =
        settings.iter().map(|(key, value)| parse_set(&format!("{key}={value}")).unwrap()).collect();
    let cc = vec!["default".to_owned()];
    let source = Source::new("mine.toml", text);
    let campaign = Campaign::plan(source, changes, cc, Some(1), Some(1)).unwrap();
    run(&campaign.cells[0].scenario, "default", 1, 0)
}

const MANY: [(&str, &str); 2] = [("workload", "many-to-many"), ("duration", "2 min")];

fn many_to_many(routes: &str) -> RunRecord {
    run(&scenario("lln-cloud", &[MANY[0], MANY[1], ("routes", routes)]), "default", 1, 0)
}

fn served(record: &RunRecord) -> usize {
    record.clients.iter().filter(|client| client.completed > 0).count()
}

#[test]
fn the_root_drops_datagrams_for_motes_without_a_route_under_a_cause_of_their_own() {
    for routes in [1, 3, 10] {
        let record = many_to_many(&routes.to_string());
        assert_eq!((record.clients.len(), served(&record)), (30, routes));
        let m = mesh(&record);
        let lost = m.lost.queue + m.lost.retries + m.lost.access + m.lost.reassembly + m.lost.route;
        // Every request of the others, and nothing else.
        let others = record.clients.iter().filter(|client| client.completed == 0);
        let sent: u64 = others.map(|c| u64::from(c.retransmissions) + u64::from(c.asked)).sum();
        assert!(m.lost.route > 50 && m.lost.route <= sent, "{routes}: {m:?}");
        assert!(m.datagrams - m.arrived - lost <= 8 * 31, "{routes}: {m:?}");
    }
}

#[test]
fn as_many_routes_as_motes_are_as_good_as_none_stated() {
    let (all, none) = (many_to_many("30"), without_the_key(&MANY));
    assert_eq!(mesh(&all).lost.route, 0);
    let text = |record: &RunRecord| serde_json::to_string(mesh(record)).unwrap();
    assert_eq!(text(&all), text(&none));
    assert_eq!(all.clients, none.clients);
    assert!(!text(&none).contains("\"route\"") && text(&many_to_many("5")).contains("\"route\""));
}

#[test]
fn the_motes_with_a_route_are_drawn_anew_in_each_replication() {
    let who = |replication| {
        let scenario = scenario("lln-cloud", &[MANY[0], MANY[1], ("routes", "3")]);
        let record = run(&scenario, "default", 1, replication);
        let served = record.clients.iter().map(|client| client.completed > 0);
        served.collect::<Vec<bool>>()
    };
    assert_eq!(who(0), who(0));
    assert!((1..4).any(|replication| who(replication) != who(0)));
}

#[test]
fn the_baseline_and_the_steady_clients_ask_motes_with_a_route() {
    let settings = [("workload", "baseline"), ("exchanges", "2"), ("routes", "4")];
    let record = run(&scenario("lln-cloud", &settings), "default", 1, 0);
    assert_eq!(mesh(&record).lost.route, 0);
    assert_eq!(record.clients[0].completed + record.clients[0].failed, 8);
    let settings = [
        ("workload", "burst"),
        ("duration", "3 min"),
        ("workload.mesh.burst_at", "2 min"),
        ("routes", "6"),
    ];
    let record = run(&scenario("lln-cloud", &settings), "default", 1, 0);
    let is_served = |client: &ebbtide_sim::record::ClientRecord| client.completed > 0;
    assert!(record.clients[..4].iter().all(is_served));
    assert_eq!(record.clients[4..].iter().filter(|client| is_served(client)).count(), 2);
}

#[test]
fn steady_clients_share_the_motes_with_a_route_if_these_are_fewer() {
    let settings = [
        ("workload", "burst"),
        ("duration", "3 min"),
        ("workload.mesh.burst_at", "2 min"),
        ("routes", "1"),
    ];
    let record = run(&scenario("lln-cloud", &settings), "default", 1, 0);
    assert!(record.clients[..4].iter().all(|client| client.completed > 0), "{:?}", record.clients);
    assert!(record.clients[4..].iter().all(|client| client.completed == 0));
}
