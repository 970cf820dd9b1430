//! Clients and a server behind DTLS: the real handshakes and records under virtual time.

use crate::common::run;
use ebbtide_sim::record::{Handshakes, RunRecord};
use ebbtide_sim::scenario::{Scenario, Source};

pub(crate) const STORM: &str = r#"
name = "storm"
title = "Devices come back at once"
[network]
mtu = 300
errors = "none"
[network.up]
rate = "60 kbit/s"
delay = "200 ms"
buffer = "infinite"
[network.down]
rate = "30 kbit/s"
delay = "400 ms"
buffer = "infinite"
[errors.some]
kind = "independent"
average = 0.1
[clients]
count = 20
start_window = "2 s"
[security]
mode = "dtls-psk"
[workload]
kind = "continuous"
exchanges = 3
request_payload = 40
response_payload = 20
"#;

fn scenario(changes: &[(&str, &str)]) -> Scenario {
    let mut text = STORM.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    Source::new("storm.toml", text).scenario(&[]).unwrap()
}

fn with(key: &str) -> Scenario {
    scenario(&[("mode = \"dtls-psk\"", &format!("mode = \"dtls-psk\"\n{key}"))])
}

fn storm(scenario: &Scenario) -> (RunRecord, Handshakes) {
    let record = run(scenario, "fasor-token", 1, 0);
    for client in &record.clients {
        assert_eq!((client.completed, client.failed), (3, 0), "client {}", client.client);
    }
    let security = record.totals.security.unwrap();
    (record, security)
}

#[test]
fn every_client_makes_a_handshake_and_gets_its_answers() {
    let (record, security) = storm(&scenario(&[]));
    let Handshakes { begun, completed, resumed, failed, .. } = security;
    assert_eq!((begun, completed, resumed, failed), (20, 20, 0, 0));
    // Two flights of each side to the cookie and back, two more to the Finished messages: three round
    // trips of 600 ms at least before the first request.
    assert!(security.packets_up >= 60 && security.packets_down >= 60, "{security:?}");
    for client in &record.clients {
        assert!(client.fct.as_millis() > 3 * 600 + 3 * 600, "{:?}", client.fct);
    }
}

#[test]
fn a_session_that_is_resumed_takes_a_round_trip_less() {
    let (full, _) = storm(&scenario(&[]));
    let (resumed, security) = storm(&with("return = \"resumption\""));
    assert_eq!((security.begun, security.resumed), (20, 20));
    let quickest = |record: &RunRecord| record.clients.iter().map(|client| client.fct).min();
    assert!(quickest(&resumed).unwrap() < quickest(&full).unwrap());
}

#[test]
fn a_connection_id_needs_no_handshake_at_a_new_address() {
    let (record, security) = storm(&with("return = \"connection-id\""));
    assert_eq!((security.begun, security.completed), (0, 0));
    let (plain, _) = {
        let record =
            run(&scenario(&[("mode = \"dtls-psk\"", "mode = \"none\"")]), "fasor-token", 1, 0);
        (record, ())
    };
    assert_eq!(plain.totals.security, None);
    // Records are longer than messages; the first answer may have to wait until the address is
    // confirmed.
    let bytes = |record: &RunRecord| record.totals.up.bytes;
    assert!(bytes(&record) > bytes(&plain));
    assert!(bytes(&record) < 3 * bytes(&plain), "{} {}", bytes(&record), bytes(&plain));
}

#[test]
fn timers_decide_how_often_flights_are_repeated() {
    let crowd = |timers: &str| {
        let key = format!("mode = \"dtls-psk\"\ntimers = \"{timers}\"");
        let changes = [
            ("mode = \"dtls-psk\"", key.as_str()),
            ("count = 20", "count = 200"),
            ("start_window = \"2 s\"", "start_window = \"0 s\""),
        ];
        let record = run(&scenario(&changes), "fasor-token", 1, 0);
        record.totals.security.unwrap()
    };
    let (impatient, patient) = (crowd("rfc6347"), crowd("rfc7925"));
    assert!(
        impatient.packets_up > patient.packets_up,
        "{} for {}",
        impatient.packets_up,
        patient.packets_up
    );
}

#[test]
fn handshakes_come_through_losses_and_the_same_seed_gives_the_same_run() {
    let lossy = scenario(&[("errors = \"none\"", "errors = \"some\"")]);
    for cc in ["default", "fasor-token", "ebb", "cocoa"] {
        let (once, again) = (run(&lossy, cc, 5, 1), run(&lossy, cc, 5, 1));
        assert_eq!(once, again, "{cc}");
        let done: u32 = once.clients.iter().map(|client| client.completed).sum();
        assert!(done >= 57, "{cc}: {done} of 60");
        assert!(once.totals.up.lost_link > 0);
    }
}

#[test]
fn a_network_that_dtls_cannot_protect_is_refused_by_name() {
    let scenario = scenario(&[]);
    for cc in ["tcp", "q-block"] {
        let error = scenario.control_config(cc).unwrap_err().to_string();
        assert!(error.contains("security.mode") || error.contains("transfer"), "{error}");
    }
    let refused = |from: &str, to: &str| {
        let text = STORM.replacen(from, to, 1);
        Source::new("storm.toml", text).scenario(&[]).unwrap_err().to_string()
    };
    let error = refused("mtu = 300", "mtu = 200");
    assert!(error.contains("security.mode") && error.contains("network.mtu"), "{error}");
    let error = refused("mode = \"dtls-psk\"", "timers = \"rfc6347\"");
    assert!(error.contains("dtls-psk"), "{error}");
    let error = refused("dtls-psk", "dtls-psq");
    assert!(error.contains("dtls-psk"), "{error}");
}
