//! Stations in one cell that always have something to send, against the analytical models.
#![expect(clippy::disallowed_methods, reason = "the models are no part of a result")]

use crate::common::dcf_model::{bianchi, refined};
use crate::common::wifi::Cell;
use ebbtide_sim::medium::wifi::Dcf;

#[test]
fn saturation_throughput_is_that_of_bianchis_model_for_1_to_20_stations() {
    const SECONDS: u64 = 25;
    let dcf = Dcf::default();
    for bytes in [106, 1500] {
        for stations in [1, 2, 5, 10, 20] {
            let mut cell = Cell::saturated(stations, dcf, 7);
            cell.run(SECONDS, bytes);
            let measured = cell.arrived[0] as f64 / SECONDS as f64;
            let total = cell.total();
            let collides = total.collided as f64 / total.transmitted as f64;
            let published = bianchi(stations, &dcf, bytes);
            let refined = refined(stations, &dcf, bytes);
            let off = measured / published.frames_per_s - 1.0;
            let off_refined = measured / refined.frames_per_s - 1.0;
            println!(
                "{bytes} bytes, {stations}: {measured:.1}/s; Bianchi {:.1}, {:+.2} %; refined {:.1}, \
                 {:+.2} %; collisions {collides:.4}, {:.4}, {:.4}",
                published.frames_per_s,
                off * 100.0,
                refined.frames_per_s,
                off_refined * 100.0,
                published.collides,
                refined.collides,
            );
            assert!(off.abs() < 0.03, "{bytes} bytes, {stations} stations: {measured}");
            assert!(off_refined.abs() < 0.01, "{bytes} bytes, {stations} stations: {measured}");
            // A share, not a ratio: with one station there are none.
            assert!((collides - refined.collides).abs() < 0.02, "{collides}");
            assert_eq!(total.deaf + total.faded + total.acks_lost, 0, "{total:?}");
        }
    }
}

#[test]
fn without_a_window_one_station_delivers_at_exact_intervals() {
    let dcf = Dcf { cw_min: 0, cw_max: 0, ..Dcf::default() };
    let mut cell = Cell::saturated(1, dcf, 1);
    cell.run(5, 1500);
    // DIFS 50, data 192 + 1118; then SIFS 10 and ACK 192 + 112 until the next one.
    let at: Vec<u64> = cell.arrivals.iter().map(|at| at.as_nanos()).collect();
    let expected: Vec<u64> = (0..at.len() as u64).map(|n| 1_360_000 + n * 1_674_000).collect();
    assert_eq!(at, expected);
    assert_eq!(at.len(), 2987);
}

#[test]
fn with_a_window_every_interval_is_one_exchange_and_0_to_31_slots() {
    let dcf = Dcf::default();
    let mut cell = Cell::saturated(1, dcf, 1);
    cell.run(40, 106);
    let exchange = dcf.exchange(dcf.frame_bytes(106));
    let mut drawn = [0u32; 32];
    for pair in cell.arrivals.windows(2) {
        let wait = (pair[1] - pair[0]).as_nanos() as u64 - exchange;
        assert_eq!(wait % 20_000, 0);
        drawn[(wait / 20_000) as usize] += 1;
    }
    // Chi-squared with 31 degrees of freedom: above 61.1 once in a thousand seeds.
    let mean = f64::from(drawn.iter().sum::<u32>()) / 32.0;
    let chi: f64 = drawn.iter().map(|count| (f64::from(*count) - mean).powi(2) / mean).sum();
    assert!(chi < 61.1, "{drawn:?}");
}
