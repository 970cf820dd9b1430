//! Every frame is in exactly one place.

use crate::common::radio::Radio;
use ebbtide_sim::medium::FrameCounts;
use ebbtide_sim::medium::low_power::{DutyCycle, PhaseLock};
use proptest::prelude::*;

/// What may still be under way when the run is stopped: one frame per station.
fn assert_conserved(total: &FrameCounts, stations: u32) {
    let ended = total.sent + total.no_ack + total.no_access;
    let in_hand = total.accepted - ended;
    assert!(in_hand <= u64::from(stations), "{total:?}");
    let fates =
        total.received + total.repeated + total.collided + total.faded + total.deaf + total.asleep;
    let on_air = total.transmitted - fates;
    assert!(on_air <= u64::from(stations), "{total:?}");
    assert!(total.acks_lost <= total.acks && total.busy <= total.assessments, "{total:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn frames_are_conserved_on_any_line_of_saturated_stations(
        places in prop::collection::vec(0.0f64..60.0, 2..12),
        capture in prop::option::of(1.0f64..3.0),
        sleeps in any::<bool>(),
        lock in 0usize..3,
        confirmed in any::<bool>(),
    ) {
        let phase_lock = [PhaseLock::Off, PhaseLock::Exact, PhaseLock::Contiki][lock];
        let duty = sleeps.then_some(DutyCycle { period: 125_000_000, phase_lock });
        let mut radio = Radio::new(&places, 20.0, capture, duty);
        radio.confirmed = confirmed;
        let stations = places.len() as u32;
        for station in 0..stations {
            radio.route(station, (station + 1) % stations, station % 2 == 0);
        }
        radio.run(20, 60);
        assert_conserved(&radio.total(), stations);
        let arrived: u64 = radio.arrived.iter().sum();
        prop_assert_eq!(arrived, radio.total().received);
    }
}
