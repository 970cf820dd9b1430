//! CoAP over a cell of NB-IoT, compared with what can be computed by hand.
#![allow(clippy::disallowed_methods, reason = "a bound, whose last bit does not matter")]

use crate::common::{assert_near, run};
use ebbtide_sim::medium::nb_iot::{NbIotCounts, NbIotPower};
use ebbtide_sim::net::Direction;
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::scenario::{NbIot, Override, Scenario, Source, load};

/// A cell with a fast and near server; `cell` and `rest` are more keys and tables.
fn source(cell: &str, rest: &str) -> Source {
    let link = "rate = \"1 Gbit/s\"\ndelay = \"0 s\"\nbuffer = \"infinite\"\n";
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n[network.nb_iot]\nmissed_preambles = 0.0\n{cell}\n\
         [network.up]\n{link}[network.down]\n{link}{rest}"
    );
    Source::new("x.toml", text)
}

fn scenario(cell: &str, rest: &str) -> Scenario {
    source(cell, rest).scenario(&[]).unwrap()
}

/// One device that asks so often, each time after the answer before: requests and responses of 28 + 4 + 6 bytes and
/// of 28 + 4 + 1.
fn alone(exchanges: u32) -> String {
    format!(
        "[clients]\ncount = 1\n[workload]\nkind = \"continuous\"\nexchanges = {exchanges}\nresponse_payload = 0\n\
         [coap]\nack_timeout = \"300 s\"\n"
    )
}

const REQUEST: u32 = 38;
const RESPONSE: u32 = 33;

fn counts(record: &RunRecord) -> NbIotCounts {
    record.totals.nb_iot.unwrap()
}

/// Seconds of a preamble, its answer and the signalling of a connection at the only level.
fn access_s(cell: &NbIot) -> f64 {
    let setup = |direction| cell.transmission_ns(0, direction, cell.setup_bytes);
    (cell.preamble_ns(0) + cell.answer_ns(0) + setup(Direction::Down) + setup(Direction::Up)) as f64
        / 1e9
}

/// Seconds of a request and its response.
fn exchange_s(cell: &NbIot) -> f64 {
    let (up, down) = (
        cell.transmission_ns(0, Direction::Up, REQUEST),
        cell.transmission_ns(0, Direction::Down, RESPONSE),
    );
    (up + down) as f64 / 1e9
}

#[test]
fn a_device_alone_needs_a_preamble_the_signalling_and_its_packets_with_all_repetitions() {
    // At 0 s there is an opportunity for preambles.
    for (repetitions, preamble) in [(1, 0.0064), (8, 0.0512), (64, 0.4096), (128, 0.8592)] {
        let cell = format!(
            "preamble_period = \"1280 ms\"\npreamble_repetitions = [{repetitions}]\n\
             uplink_repetitions = [{repetitions}]\ndownlink_repetitions = [{repetitions}]\n"
        );
        let scenario = scenario(&cell, &alone(3));
        let cell = scenario.network.nb_iot().unwrap();
        assert_near(cell.preamble_ns(0) as f64 / 1e9, preamble, 1e-9, "the preamble");
        assert_near(
            exchange_s(cell),
            f64::from(repetitions) * (38.0 * 8.0 / 62_500.0 + 33.0 * 8.0 / 25_500.0),
            1e-6,
            "an exchange",
        );
        let record = run(&scenario, "default", 1, 0);
        let fct = record.clients[0].fct.as_nanos() as f64 / 1e9;
        let expected = access_s(cell) + 3.0 * exchange_s(cell);
        assert_near(fct, expected, 1e-4, &format!("{repetitions} repetitions"));
        let counts = counts(&record);
        assert_eq!((counts.accesses, counts.preambles, counts.connections), (1, 1, 1));
        assert_near(counts.access_ns as f64 / 1e9, access_s(cell), 1e-6, "the access");
    }
}

#[test]
fn preambles_meet_as_often_as_balls_in_urns() {
    // All devices send their first preamble at 0 s on one of the subcarriers; whoever is alone needs no other one.
    for (devices, subcarriers) in [(12, 12), (24, 48), (60, 24)] {
        let cell = format!("subcarriers = {subcarriers}\nbackoff = \"60 s\"\n");
        let rest = format!(
            "[clients]\ncount = {devices}\n[workload]\nkind = \"continuous\"\nexchanges = 1\n\
             [coap]\nack_timeout = \"3000 s\"\n"
        );
        let scenario = scenario(&cell, &rest);
        let first: f64 = (0..40)
            .map(|replication| {
                let record = run(&scenario, "default", 1, replication);
                // Signalling and packets of sixty devices take less than the contention timer and 7 s more.
                let early = |fct: f64| fct < 3.0;
                let done = record.clients.iter().map(|one| one.fct.as_nanos() as f64 / 1e9);
                assert_eq!(counts(&record).given_up, 0);
                done.filter(|fct| early(*fct)).count() as f64
            })
            .sum();
        let share = first / 40.0 / f64::from(devices);
        let alone = (1.0 - 1.0 / f64::from(subcarriers)).powi(devices - 1);
        // Some of the others are back within 3 s of a backoff of up to 60 s.
        assert!((alone - 0.05..alone + 0.1).contains(&share), "{devices}: {share}, {alone}");
    }
}

#[test]
fn a_connection_stays_until_nothing_was_sent_for_a_while() {
    let rest = |period: &str| {
        format!(
            "[clients]\ncount = 1\n[workload]\nkind = \"periodic\"\nperiod = \"{period}\"\nexchanges = 10\n\
             response_payload = 0\n[coap]\nack_timeout = \"300 s\"\n"
        )
    };
    for (period, accesses) in [("15 s", 1), ("30 s", 10)] {
        let record = run(&scenario("inactivity = \"20 s\"", &rest(period)), "default", 1, 0);
        assert_eq!(counts(&record).accesses, accesses, "{period}");
        assert_eq!(record.clients[0].completed, 10);
    }
}

/// Commands of the server to one device, which sleeps unless a cycle or a time says otherwise.
fn commands(cell: &str) -> RunRecord {
    let rest = "[clients]\ncount = 1\n[workload]\nkind = \"periodic\"\nperiod = \"10 min\"\nexchanges = 3\n\
                requester = \"server\"\nresponse_payload = 0\n[coap]\nack_timeout = \"900 s\"\nmax_retransmit = 0\n";
    run(&scenario(cell, rest), "default", 1, 0)
}

#[test]
fn a_device_without_a_connection_is_reached_when_it_listens_and_one_that_sleeps_is_not() {
    let record = commands("paging_cycle = \"163.84 s\"");
    assert_eq!(record.clients[0].completed, 3);
    assert_eq!((counts(&record).paged, counts(&record).accesses), (3, 3));
    let waited = |record: &RunRecord| {
        record.totals.durations.0.iter().map(|(micros, _)| *micros as f64 / 1e6).fold(0.0, f64::max)
    };
    assert!((1.0..164.5).contains(&waited(&record)), "{}", waited(&record));
    let short = commands("paging_cycle = \"2.56 s\"");
    assert!(waited(&short) < 3.2, "{}", waited(&short));
    // It has never sent, so it has slept from the beginning.
    let asleep = commands("active_time = \"10 s\"");
    assert_eq!((asleep.clients[0].completed, counts(&asleep).accesses), (0, 0));
}

#[test]
fn the_power_of_a_device_is_that_of_its_states() {
    let cell = "active_time = \"10 s\"\ninactivity = \"20 s\"\n";
    let scenario = scenario(cell, &alone(1));
    let settings = scenario.network.nb_iot().unwrap().clone();
    let record = run(&scenario, "default", 1, 0);
    let counts = counts(&record);
    let transmitted = settings.preamble_ns(0)
        + settings.transmission_ns(0, Direction::Up, settings.setup_bytes)
        + settings.transmission_ns(0, Direction::Up, REQUEST);
    assert_eq!(counts.times.transmit_ns, transmitted);
    let connected = access_s(&settings) + exchange_s(&settings) + 20.0;
    let listened = connected - transmitted as f64 / 1e9;
    assert_near(counts.times.listen_ns as f64 / 1e9, listened, 1e-3, "listening");
    assert_near(counts.times.idle_ns as f64 / 1e9, 10.0, 1e-6, "idle");
    let power = NbIotPower::TR_45_820;
    // An hour from the beginning of an access to the next one: 80 mW for 20 s are most of it.
    let hour = power.millijoules(counts.times, 3_600_000_000_000);
    let expected = transmitted as f64 / 1e9 * 500.0 + listened * 80.0 + 10.0 * 3.0;
    assert_near(hour, expected + (3600.0 - connected - 10.0) * 0.015, 1e-3, "energy of an hour");
    let sim_s = record.totals.sim_ns as f64 / 1e9;
    let mean = power.millijoules(counts.times, record.totals.sim_ns) / sim_s;
    assert_near(record.power_mw().unwrap(), mean, 1e-6, "mean power");
}

#[test]
fn an_access_that_always_fails_goes_through_the_levels_and_is_given_up() {
    let cell = "missed_preambles = 0.999999999\nattempts = 2\nshares = [1.0, 0.0]\npreamble_repetitions = [1, 4]\n\
                uplink_repetitions = [1, 4]\ndownlink_repetitions = [1, 4]\n";
    let text = source("", "").text.replace("missed_preambles = 0.0\n", cell);
    let rest = alone(1).replace("300 s", "60 s") + "max_retransmit = 0\n";
    let record = run(&Source::new("x.toml", text + &rest).scenario(&[]).unwrap(), "default", 1, 0);
    let counts = counts(&record);
    assert_eq!((counts.accesses, counts.preambles, counts.missed), (1, 4, 4));
    assert_eq!((counts.raised, counts.given_up, counts.connections), (1, 1, 0));
    assert_eq!((record.clients[0].completed, record.clients[0].failed), (0, 1));
}

#[test]
fn devices_are_spread_over_the_coverage_levels_as_their_shares_say() {
    let cell = "shares = [0.7, 0.2, 0.1]\npreamble_repetitions = [1, 8, 32]\nuplink_repetitions = [1, 8, 32]\n\
                downlink_repetitions = [1, 8, 32]\n";
    let scenario = scenario(cell, &alone(1));
    let settings = scenario.network.nb_iot().unwrap();
    for devices in [20u32, 1000] {
        let of = |level| (0..devices).filter(|device| settings.level(*device) == level).count();
        let shares = [of(0), of(1), of(2)].map(|count| count as f64 / f64::from(devices));
        for (share, expected) in shares.into_iter().zip([0.7, 0.2, 0.1]) {
            assert!((share - expected).abs() <= 0.05, "{devices}: {shares:?}");
        }
    }
}

#[test]
fn a_cell_that_cannot_be_is_refused_by_key_and_reason() {
    for (cell, says) in [
        ("shares = [0.5, 0.4]", "shares: must be 1 in total"),
        ("shares = []", "one to three coverage levels"),
        ("shares = [0.5, 0.5]", "preamble_repetitions: must have as many entries"),
        ("preamble_repetitions = [3]", "powers of two"),
        ("preamble_repetitions = [256]", "from 1 to 128"),
        ("subcarriers = 13", "must be 12, 24, 36 or 48"),
        ("preamble_repetitions = [128]", "preamble_period: must be at least 859200 us"),
        ("preamble_period = \"5 s\"", "from 40 ms to 2560 ms"),
        ("attempts = 0", "from 1 to 10"),
        ("cycle = 3", "cycle"),
    ] {
        let error = source(cell, &alone(1)).scenario(&[]).unwrap_err().to_string();
        assert!(error.contains(says), "{cell}: {error}");
    }
    let both =
        source("", "").text.replace("[network.up]", "[network.lora]\n[network.up]") + &alone(1);
    let error = Source::new("x.toml", both).scenario(&[]).unwrap_err().to_string();
    assert!(error.contains("network.nb_iot: cannot be combined"), "{error}");
}

#[test]
fn each_meter_of_the_built_in_scenario_has_one_connection_for_a_report() {
    let changes = [("exchanges", "1"), ("window", "600 s")];
    let change = |(key, value): (&str, &str)| Override { key: key.into(), value: value.into() };
    let source = load("nb-iot-access").unwrap();
    let scenario = source.scenario(&changes.map(change)).unwrap();
    let record = run(&scenario, "ebb", 1, 0);
    let counts = counts(&record);
    // Within ten minutes nothing is congested: a connection carries a report and its answer.
    assert_eq!((counts.accesses, counts.connections, counts.given_up), (500, 500, 0));
    assert!(record.clients.iter().all(|client| client.completed == 1));
    // 0.83 accesses per second, 70 % of them on 12 subcarriers every 320 ms: a preamble meets another one with
    // 0.83 * 0.7 * 0.32 / 12 = 1.6 %, and fewer do at the other levels.
    let share = counts.collided as f64 / counts.preambles as f64;
    assert!((0.002..0.035).contains(&share), "{share}");
}
