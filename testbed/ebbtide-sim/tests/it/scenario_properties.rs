//! Scenarios print as the text that they parse from; whatever they say, a run ends and accounts
//! for everything.

use crate::common::{controls, scenario};
use ebbtide_sim::run::simulate;
use ebbtide_sim::scenario::units::{Buffer, Rate, Time, TimeRange};
use ebbtide_sim::scenario::{Errors, Scenario, Source};
use proptest::prelude::*;

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        Just(Time(0)),
        (0u64..10_000).prop_map(|ms| Time(ms * 1_000_000)),
        (0u64..1_000_000_000_000).prop_map(Time),
    ]
}

fn range() -> impl Strategy<Value = TimeRange> {
    prop_oneof![
        time().prop_map(TimeRange::Fixed),
        (time(), time()).prop_map(|(a, b)| TimeRange::Between(a.min(b), a.max(b))),
    ]
}

fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![Just(Buffer(None)), (100u64..1 << 40).prop_map(|bytes| Buffer(Some(bytes)))]
}

fn errors() -> impl Strategy<Value = Errors> {
    let states = || (0.0f64..0.4, 0.6f64..1.0);
    prop_oneof![
        (0.0f64..0.5).prop_map(|average| Errors::Independent { average }),
        (states(), 2.0f64..20.0).prop_map(|((good, bad), mean_bad_packets)| Errors::PerPacket {
            good,
            bad,
            average: good + 0.3 * (bad - good),
            mean_bad_packets,
        }),
        (states(), 1u64..10_000_000_000).prop_map(|((good, bad), mean_bad)| Errors::TimeDriven {
            good,
            bad,
            average: good + 0.2 * (bad - good),
            mean_bad: Time(mean_bad),
        }),
    ]
}

fn kind() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("continuous"), Just("random"), Just("mixed"), Just("periodic")]
}

prop_compose! {
    fn any_scenario()(
        (up_rate, down_rate) in (1u64..1_000_000_000_000, 1u64..1_000_000_000_000),
        delays in [range(), range(), range(), range(), range(), range()],
        (up_buffer, down_buffer) in (buffer(), buffer()),
        (start_window, count, exchanges) in (time(), 1u32..1_000_000, 1u32..10_000_000),
        (kind, errors, has_errors) in (kind(), errors(), any::<bool>()),
        (response, request) in (0u32..200, 0u32..200),
        (factor, max_retransmit, nstart, token_length) in (1.0f64..10.0, 0u8..=254, 1u16.., 0u8..=7),
        description in "[ -~\n]{0,80}",
    ) -> Scenario {
        let mut s = scenario("nb-iot", &[("workload", kind)]);
        let [a, b, c, d, e, f] = delays;
        s.description = description;
        (s.network.up.rate, s.network.down.rate) = (Rate(up_rate), Rate(down_rate));
        (s.network.up.delay, s.network.up.beyond) = (a, b);
        (s.network.down.delay, s.network.down.beyond) = (c, d);
        (s.clients.processing, s.server.processing) = (e, f);
        (s.network.up.buffer, s.network.down.buffer) = (up_buffer, down_buffer);
        (s.clients.start_window, s.clients.count) = (start_window, count);
        s.workload.exchanges = exchanges;
        (s.workload.response_payload, s.workload.request_payload) = (response, request);
        s.errors.insert("drawn".into(), errors);
        s.network.errors = if has_errors { "drawn" } else { "none" }.into();
        (s.coap.ack_random_factor, s.coap.max_retransmit) = (factor, max_retransmit);
        (s.coap.nstart, s.coap.token_length) = (nstart, token_length);
        s
    }
}

proptest! {
    #[test]
    fn a_scenario_prints_as_toml_that_parses_to_the_same(scenario in any_scenario()) {
        let text = toml::to_string(&scenario).unwrap();
        let source = Source::new("printed", text);
        prop_assert_eq!(source.scenario(&[]).map_err(|error| error.to_string()), Ok(scenario));
    }
}

#[derive(Clone, Debug)]
struct Small {
    settings: Vec<(&'static str, String)>,
    cc: &'static str,
    seed: u64,
}

prop_compose! {
    fn small()(
        clients in 1u32..12, exchanges in 1u32..8, nstart in 1u16..4, max_retransmit in 0u8..8,
        buffer in prop_oneof![Just("infinite".to_owned()), (100u32..2000).prop_map(|b| b.to_string())],
        workload in prop_oneof![Just("continuous"), Just("random"), Just("periodic")],
        errors in prop_oneof![Just("none"), Just("low"), Just("medium"), Just("high")],
        (up, down) in (1_000u64..10_000_000, 1_000u64..10_000_000),
        (window, processing, request) in (0u64..5_000, 0u64..500, 0u32..40),
        cc in prop_oneof![
            Just("default"), Just("default-b"), Just("cocoa"), Just("cocoa-01"), Just("fasor"),
            Just("fasor-token"), Just("default+fasor-token"),
        ],
        seed in any::<u64>(),
    ) -> Small {
        let clients = if cc.contains('+') { clients + 1 } else { clients };
        Small {
            settings: vec![
                ("clients", clients.to_string()), ("exchanges", exchanges.to_string()),
                ("nstart", nstart.to_string()), ("max_retransmit", max_retransmit.to_string()),
                ("buffer", buffer), ("workload", workload.into()), ("errors", errors.into()),
                ("network.up.rate", format!("{up} bit/s")),
                ("network.down.rate", format!("{down} bit/s")),
                ("clients.start_window", format!("{window} ms")),
                ("clients.processing", format!("[0 ms, {processing} ms]")),
                ("server.processing", format!("{processing} ms")),
                ("workload.request_payload", request.to_string()),
                ("workload.period", "3 s".into()),
            ],
            cc,
            seed,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn a_run_ends_accounts_for_every_packet_and_ends_each_exchange_once(small in small()) {
        let settings: Vec<(&str, &str)> =
            small.settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let scenario = scenario("nb-iot", &settings);
        let record =
            simulate(&scenario, &controls(&scenario, small.cc), small.seed, 0, true).unwrap();
        for side in [record.totals.up, record.totals.down] {
            prop_assert_eq!(side.sent, side.delivered + side.dropped_queue + side.lost_link);
        }
        for client in &record.clients {
            prop_assert_eq!(client.completed + client.failed, scenario.workload.exchanges);
            prop_assert!(client.unnecessary <= client.retransmissions);
            let exchanged = scenario.workload.request_payload + scenario.workload.response_payload;
            let payload = u64::from(client.completed) * u64::from(exchanged);
            prop_assert_eq!(client.payload_bytes, payload);
        }
        let completed: u32 = record.clients.iter().map(|client| client.completed).sum();
        prop_assert_eq!(record.totals.by_retransmissions.iter().sum::<u64>(), u64::from(completed));
        prop_assert!(record.totals.done_ns <= record.totals.sim_ns);
        let again = simulate(&scenario, &controls(&scenario, small.cc), small.seed, 0, true).unwrap();
        prop_assert_eq!(record, again);
    }
}
