//! `--cc q-block`: a transfer as the blocks of one body (RFC 9177), by real endpoints over modelled
//! links.

use crate::common::{assert_near, run, scenario};
use ebbtide_sim::record::FlowRecord;
use ebbtide_sim::scenario::Scenario;

/// Messages of 67 bytes.
fn transfer(settings: &[(&str, &str)]) -> Scenario {
    let fixed = [
        ("workload", "transfer"),
        ("workload.request_payload", "67"),
        ("workload.response_payload", "0"),
        ("clients", "1"),
    ];
    scenario("nb-iot", &[&fixed[..], settings].concat())
}

fn only(scenario: &Scenario, cc: &str, seed: u64) -> (FlowRecord, f64, [u32; 3]) {
    let record = run(scenario, cc, seed, 0);
    let client = record.clients[0];
    let counts = [client.completed, client.failed, client.retransmissions];
    (record.totals.flows[0].clone(), client.fct.as_secs_f64(), counts)
}

#[test]
fn a_set_of_ten_leaves_per_round_trip() {
    let (flow, time, counts) = only(&transfer(&[("workload.flow.bytes", "10000")]), "q-block", 1);
    assert_eq!((flow.delivered, counts), (150, [150, 0, 0]));
    // Fifteen sets: 660 ms there and back, and ten packets of 110 to 125 bytes at 60 kbit/s.
    assert_near(time, 15.0 * (0.65 + 9.0 * 0.0155), 0.05, "completion time");
}

#[test]
fn a_server_that_is_never_heard_gets_a_set_every_non_timeout_and_is_given_up() {
    let settings = [
        ("workload.flow.bytes", "10000"),
        ("coap.max_retransmit", "4"),
        ("errors.low.average", "1"),
        ("network.errors", "low"),
    ];
    let (flow, time, counts) = only(&transfer(&settings), "q-block:non-timeout=4s", 1);
    assert_eq!((flow.delivered, counts), (0, [0, 150, 4]));
    // Fourteen delays of 4 to 6 s, and the last block four times: 8, 16, 32, 64 and 128 s.
    assert!((14.0 * 4.0 + 248.0..14.0 * 6.0 + 250.0).contains(&time), "{time}");
}

#[test]
fn a_lost_block_is_sent_again_and_the_body_arrives() {
    let settings = [
        ("workload.flow.bytes", "10000"),
        ("errors.low.average", "0.1"),
        ("network.errors", "low"),
    ];
    for seed in 1..=20 {
        let (flow, _, counts) = only(&transfer(&settings), "q-block", seed);
        assert_eq!((flow.delivered, counts[0]), (150, 150), "seed {seed}");
        assert!(counts[2] > 0 && counts[2] < 150, "seed {seed}: {} repeated", counts[2]);
    }
}

#[test]
fn it_carries_a_transfer_and_nothing_else() {
    for workload in ["continuous", "stream", "periodic"] {
        let error = transfer(&[("workload", workload)]).control_config("q-block").unwrap_err();
        assert!(error.to_string().contains("carries the workload transfer"), "{error}");
    }
    let error = transfer(&[]).control_config("q-block:nstart=4").unwrap_err();
    assert!(error.to_string().contains("it has max-payloads"), "{error}");
}
