//! Clients and a server that protect their messages by OSCORE: the core's own contexts under virtual time.

use crate::common::run;
use crate::security::STORM;
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::scenario::{Scenario, Source};

/// The storm of the tests of DTLS, with OSCORE and the default MTU.
fn storm_text() -> String {
    STORM.replacen("mtu = 300\n", "", 1).replacen("dtls-psk", "oscore", 1)
}

fn parsed(text: &str, changes: &[(&str, &str)]) -> Result<Scenario, String> {
    let mut text = text.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    Source::new("storm.toml", text).scenario(&[]).map_err(|error| error.to_string())
}

fn storm(changes: &[(&str, &str)]) -> RunRecord {
    let record = run(&parsed(&storm_text(), changes).unwrap(), "default", 1, 0);
    for client in &record.clients {
        assert_eq!((client.completed, client.failed), (3, 0), "client {}", client.client);
    }
    record
}

#[test]
fn a_message_is_longer_by_the_option_the_code_the_marker_and_the_tag_and_nothing_else() {
    let (plain, protected) = (storm(&[("\"oscore\"", "\"none\"")]), storm(&[]));
    let packets = protected.totals.up.sent;
    assert_eq!((plain.totals.up.sent, plain.totals.security), (packets, None));
    assert_eq!(protected.totals.security, None, "there are no handshakes");
    // Head of the option, flags, Partial IV and ID of one byte each; code, marker and tag.
    assert_eq!(protected.totals.up.bytes - plain.totals.up.bytes, packets * (4 + 1 + 1 + 8));
    // The option is empty: the nonce is that of the request (RFC 8613 section 5.2).
    let answers = protected.totals.down.sent;
    assert_eq!(protected.totals.down.bytes - plain.totals.down.bytes, answers * (1 + 1 + 1 + 8));
    let payloads = |record: &RunRecord| -> u64 {
        record.clients.iter().map(|client| client.payload_bytes).sum()
    };
    assert_eq!(payloads(&protected), payloads(&plain), "the tag is no payload");
}

#[test]
fn answers_come_through_losses_and_the_same_seed_gives_the_same_run() {
    let lossy = parsed(&storm_text(), &[("errors = \"none\"", "errors = \"some\"")]).unwrap();
    for cc in ["default", "fasor-token", "ebb", "cocoa"] {
        let (once, again) = (run(&lossy, cc, 5, 1), run(&lossy, cc, 5, 1));
        assert_eq!(once, again, "{cc}");
        let done: u32 = once.clients.iter().map(|client| client.completed).sum();
        assert!(done >= 57, "{cc}: {done} of 60");
        assert!(once.totals.up.lost_link > 0);
    }
}

#[test]
fn its_bytes_cost_a_lorawan_device_energy() {
    let meters = include_str!("../../../../scenarios/lora.toml");
    let run_of = |mode: &str| {
        let text = format!("{meters}\n[security]\nmode = \"{mode}\"\n");
        let few = [("count = 60", "count = 4"), ("exchanges = 30", "exchanges = 3")];
        run(&parsed(&text, &few).unwrap(), "default", 1, 0)
    };
    let (plain, protected) = (run_of("none"), run_of("oscore"));
    let done = |record: &RunRecord| record.clients.iter().map(|client| client.completed).sum();
    let (all, done): (u32, u32) = (done(&plain), done(&protected));
    assert_eq!((all, done), (12, 12));
    assert!(protected.power_mw().unwrap() > plain.power_mw().unwrap());
}

#[test]
fn what_oscore_has_not_is_refused_by_name() {
    let scenario = parsed(&storm_text(), &[]).unwrap();
    for cc in ["tcp", "q-block"] {
        let error = scenario.control_config(cc).unwrap_err().to_string();
        assert!(error.contains("security.mode") || error.contains("transfer"), "{error}");
    }
    for (from, to, named) in [
        (
            "mode = \"oscore\"",
            "mode = \"oscore\"\nreturn = \"resumption\"",
            "security.mode = \"dtls-psk\"",
        ),
        ("kind = \"continuous\"", "kind = \"notifications\"\nperiod = \"10 s\"", "security.mode"),
        ("request_payload = 40", "request_payload = 1000000", "workload.request_payload"),
    ] {
        let error = parsed(&storm_text(), &[(from, to)]).unwrap_err();
        assert!(error.contains(named), "{error}");
    }
    let mesh = include_str!("../../../../scenarios/lln-cloud.toml");
    let error = parsed(&format!("{mesh}\n[security]\nmode = \"oscore\"\n"), &[]).unwrap_err();
    assert!(error.contains("security.mode"), "{error}");
}
