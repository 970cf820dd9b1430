//! `rcoap` in an endpoint under any losses and any settings: the rate stays within its bounds, time
//! moves on, and everything ends.

use crate::common::node::PEER;
use crate::common::receiver::{Burst, answered};
use proptest::prelude::*;
use rand_core::Rng;

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rate_stays_within_its_bounds_and_nothing_spins(
        (ipi_us, start_us) in (100..2_000_000u32, prop::option::of(100..10_000_000u32)),
        cap in prop::option::of(1..64u16),
        (round_trip_ms, service_us) in (1..5_000u32, 0..50_000u32),
        (loss, outage, seed) in (0..100u32, prop::option::of(0..30u32), any::<u64>()),
    ) {
        let start = start_us.map_or("auto".to_owned(), |us| format!("{us}us"));
        let mut text = format!("rcoap:ipi-min={}.{:03}ms", ipi_us / 1000, ipi_us % 1000);
        if let Some(us) = start_us {
            text += &format!(":start-interval={}.{:03}ms", us / 1000, us % 1000);
        }
        if let Some(cap) = cap {
            text += &format!(":in-flight={cap}");
        }
        let round_trip = f64::from(round_trip_ms) / 1e3;
        let mut burst = Burst::new(&text, round_trip, 80).behind(f64::from(service_us) / 1e6);
        let mut rng = crate::common::seeded(seed);
        burst.fate = Box::new(move |sent| {
            let second = (sent.at.as_nanos() / 1_000_000_000) as u32;
            let out = outage.is_some_and(|from| (from..from + 20).contains(&second));
            if out || rng.next_u32() % 100 < loss { None } else { answered(sent) }
        });
        let slowest = (f64::from(start_us.unwrap_or(0)) / 1e6).max(8.0).max(f64::from(ipi_us) / 1e6);
        for second in 0..40 {
            burst.run_until(f64::from(second) * 2.0);
            let metrics = burst.node.ep.metrics(PEER).expect("a peer");
            if let Some(interval) = metrics.interval.map(crate::common::float) {
                prop_assert!(interval >= f64::from(ipi_us) / 1e6, "{start}: {interval}");
                prop_assert!(interval <= slowest, "{start}: {interval}");
            }
            prop_assert!(burst.node.ep.exchanges().open <= u64::from(cap.unwrap_or(1024)));
        }
        // What left cannot be more than five copies of each message, and pings at a bounded pace.
        prop_assert!(burst.messages() <= 80 * 5);
        for pair in burst.log.windows(4).filter(|four| four.iter().all(|sent| sent.is_probe())) {
            // Two pairs at most meet, when one discovery ends and the next begins.
            prop_assert!(pair[3].at > pair[0].at);
        }
        burst.left = 0;
        burst.run_until(30_000.0);
        burst.node.assert_free();
    }
}
