//! Contenders in one hop that always have something to send, against the analytical model.

use crate::common::csma_model::throughput;
use crate::common::radio::Radio;

/// Frames per second that arrive at station 0 from `contenders` others at the same place.
fn measured(contenders: u32, bytes: u32, confirmed: bool) -> (f64, Radio) {
    const SECONDS: u64 = 120;
    let mut radio = Radio::new(&vec![0.0; contenders as usize + 1], 20.0, None, None);
    radio.confirmed = confirmed;
    (1..=contenders).for_each(|station| radio.route(station, 0, true));
    radio.run(SECONDS, bytes);
    (radio.arrived[0] as f64 / SECONDS as f64, radio)
}

#[test]
fn saturation_throughput_is_that_of_the_model_for_1_to_20_contenders() {
    for bytes in [50, 126] {
        for contenders in [1, 2, 3, 5, 8, 12, 20] {
            let expected = throughput(contenders as usize, bytes as usize);
            let (measured, _) = measured(contenders, bytes, false);
            let off = measured / expected - 1.0;
            println!(
                "{bytes} bytes, {contenders}: {measured:.2}/s, model {expected:.2}/s, {:+.2} %",
                off * 100.0
            );
            assert!(
                off.abs() < 0.03,
                "{bytes} bytes, {contenders} contenders: {measured} against {expected}"
            );
        }
    }
}

#[test]
fn a_single_station_sends_as_fast_as_the_standard_lets_it() {
    // Mean backoff 3.5 units, assessment, turnaround, 133 bytes, turnaround, 11 bytes, long spacing.
    let cycle_us = 3.5 * 320.0 + 128.0 + 192.0 + 4256.0 + 192.0 + 352.0 + 640.0;
    let (measured, radio) = measured(1, 127, true);
    assert!((measured * cycle_us / 1e6 - 1.0).abs() < 0.002, "{measured}");
    assert_eq!(radio.total().collided, 0);
}

#[test]
fn acknowledgements_cost_throughput_and_repair_collisions() {
    let (plain, _) = measured(10, 50, false);
    let (confirmed, radio) = measured(10, 50, true);
    assert!(confirmed < plain);
    let total = radio.total();
    // A frame is repeated up to 3 times: fewer are lost than collide.
    let lost = 1.0 - total.received as f64 / (total.sent + total.no_ack) as f64;
    let collided = total.collided as f64 / total.transmitted as f64;
    assert!(lost < collided, "{lost} {collided}");
}
