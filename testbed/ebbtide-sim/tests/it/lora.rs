//! CoAP over a LoRaWAN cell.
#![allow(clippy::disallowed_methods, reason = "a bound, whose last bit does not matter")]

use crate::common::{assert_near, run};
use ebbtide_sim::medium::lora::{LoraCounts, Modulation, airtime};
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::scenario::{Scenario, Source};

fn source(lora: &str, delay: &str, rest: &str) -> Source {
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n[network]\nheader = 2\nmtu = 51\n[network.lora]\n{lora}\n\
         [network.up]\nrate = \"1 Gbit/s\"\ndelay = \"{delay}\"\nbuffer = \"infinite\"\n\
         [network.down]\nrate = \"1 Gbit/s\"\ndelay = \"{delay}\"\nbuffer = \"infinite\"\n{rest}"
    );
    Source::new("x.toml", text)
}

fn scenario(lora: &str, delay: &str, rest: &str) -> Scenario {
    source(lora, delay, rest).scenario(&[]).unwrap()
}

/// One device: requests of 2 + 4 + 6 bytes of headers and path, a marker and 10 of payload; responses of
/// 2 + 4 + 1.
const ALONE: &str = "[clients]\ncount = 1\n[workload]\nkind = \"continuous\"\nexchanges = 20\n\
    request_payload = 10\nresponse_payload = 0\n[coap]\nack_timeout = \"60 s\"\n";
const REQUEST: u32 = 23 + 13;
const RESPONSE: u32 = 7 + 13;

/// Seconds on the air at this spreading factor.
fn on_air(spreading_factor: u8, bytes: u32, has_crc: bool) -> f64 {
    let bandwidth = 125_000;
    let modulation = Modulation { spreading_factor, bandwidth, coding_rate: 1, has_crc };
    airtime(modulation, bytes) as f64 / 1e9
}

fn counts(record: &RunRecord) -> LoraCounts {
    record.totals.lora.unwrap()
}

#[test]
fn a_device_alone_is_answered_in_its_first_window_and_sends_one_percent_of_the_time() {
    for factor in [7, 9, 12] {
        let lora = format!("spreading_factors = [{factor}]");
        // The duty cycle makes a request wait for longer than a minute.
        let rest = ALONE.replace("\"60 s\"", "\"600 s\"");
        let record = run(&scenario(&lora, "10 ms", &rest), "default", 1, 0);
        let (up, down) = (on_air(factor, REQUEST, true), on_air(factor, RESPONSE, false));
        let rtt = record.totals.durations.0[0].0 as f64 / 1e6;
        assert_near(rtt, up + 1.0 + down, 0.01, "the first exchange");
        let fct = record.clients[0].fct.as_nanos() as f64 / 1e9;
        // The starts of two uplinks are a hundred airtimes apart.
        assert_near(fct, 19.0 * 100.0 * up + up + 1.0 + down, 1e-6, &format!("SF{factor}"));
        let counts = counts(&record);
        assert_eq!((counts.frames.uplinks, counts.frames.downlinks), (20, [20, 0]));
        assert_eq!(record.clients[0].retransmissions, 0);
    }
}

#[test]
fn an_answer_that_misses_the_first_window_comes_in_the_second_one() {
    let lora = "spreading_factors = [7]\nsecond_window_duty_cycle = 1.0";
    let record = run(&scenario(lora, "600 ms", ALONE), "default", 1, 0);
    let expected = on_air(7, REQUEST, true) + 2.0 + on_air(12, RESPONSE, false);
    assert_near(record.totals.durations.0[0].0 as f64 / 1e6, expected, 0.01, "the first exchange");
    assert_eq!(counts(&record).frames.downlinks, [0, 20]);
}

#[test]
fn an_answer_that_misses_both_windows_waits_for_the_next_uplink() {
    let rest = ALONE.replace("exchanges = 20", "exchanges = 1");
    let record = run(&scenario("spreading_factors = [7]", "1500 ms", &rest), "default", 1, 0);
    let client = record.clients[0];
    // Only the retransmission, a minute later, opens the windows in which the first answer comes.
    assert_eq!((client.completed, client.retransmissions, client.unnecessary), (1, 1, 1));
    assert!(client.fct.as_nanos() > 60_000_000_000);
}

#[test]
fn the_gateway_does_not_hear_while_it_transmits_nor_more_than_its_share() {
    let rest = "[clients]\ncount = 100\n[workload]\nkind = \"poisson\"\nperiod = \"20 s\"\n\
        exchanges = 30\nrequest_payload = 10\nresponse_payload = 30\n[coap]\nack_timeout = \"30 s\"\n";
    let record = run(&scenario("spreading_factors = [7, 8]", "10 ms", rest), "default", 1, 0);
    let counts = counts(&record);
    assert!(counts.frames.deaf > 0, "{counts:?}");
    // One percent in the band of the first windows, ten in that of the second ones.
    let share = counts.downlink_ns.iter().sum::<u64>() as f64 / record.totals.sim_ns as f64;
    assert!(share > 0.02 && share < 0.111, "{share}");
    let asked: u32 = record.clients.iter().map(|client| client.completed + client.failed).sum();
    assert_eq!(asked, 3000, "every exchange ends");
}

#[test]
fn impossible_cells_are_refused() {
    for (lora, expected) in [
        (
            "spreading_factors = [6]",
            "x.toml:7: network.lora.spreading_factors: must be from 7 to 12",
        ),
        ("channels = 0", "network.lora.channels: must be from 1 to 80"),
        ("duty_cycle = 0.0", "network.lora.duty_cycle: must be from 0.000001 to 1"),
        ("frame_loss = 1.0", "network.lora.frame_loss: must be from 0 to below 1"),
        ("spreding_factors = [7]", "did you mean 'spreading_factors'?"),
        ("adr_margin = 10.0", "network.lora.adr_margin: needs the signals of devices"),
        ("spreading_factors = [7]\nfading = 3.0", "network.lora.fading: needs the signals"),
        ("path_loss = 140.0", "network.lora.path_loss: needs the signals"),
        ("path_loss_exponent = 3.0", "network.lora.path_loss_exponent: needs the signals"),
    ] {
        let error = source(lora, "10 ms", ALONE).scenario(&[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let cell = scenario("", "10 ms", ALONE);
    let error = cell.control_config("tcp").unwrap_err().to_string();
    assert!(error.contains("[network.lora] carries UDP only"), "{error}");
    let text = source("", "10 ms", ALONE).text.replace("mtu = 51", "mtu = 52");
    let error = Source::new("x.toml", text).scenario(&[]).unwrap_err().to_string();
    assert!(error.contains("network.mtu: must be at most 51"), "{error}");
}

#[test]
fn the_built_in_cell_delivers_most_of_its_reports() {
    let source = ebbtide_sim::scenario::load("lora").unwrap();
    let scenario = source.scenario(&[]).unwrap();
    // CoCoA's timeouts of round trips without a wait in the queue make more copies than the cell carries.
    for (control, least, most) in [("default", 0.95, 1.0), ("ebb", 0.95, 1.0), ("cocoa", 0.3, 0.9)]
    {
        let record = run(&scenario, control, 1, 0);
        let completed: u32 = record.clients.iter().map(|client| client.completed).sum();
        let share = f64::from(completed) / f64::from(60 * 30);
        assert!((least..=most).contains(&share), "{control}: {share}");
        let counts = counts(&record);
        assert!(counts.frames.downlinks[0] > 0 && counts.frames.collided > 0, "{counts:?}");
        let sends = counts.radio.transmit_ns as f64 / 60.0 / record.totals.sim_ns as f64;
        assert!(sends < 0.01, "{control}: {sends}");
    }
}

#[test]
fn the_same_seed_gives_the_same_record_and_another_one_another() {
    let source = ebbtide_sim::scenario::load("lora").unwrap();
    let scenario = source.scenario(&[]).unwrap();
    let text = |seed| format!("{:?}", run(&scenario, "default", seed, 0));
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}
