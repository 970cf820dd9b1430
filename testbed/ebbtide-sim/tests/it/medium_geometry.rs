//! Chains, hidden nodes, capture, sleep.

use crate::common::radio::Radio;
use ebbtide_core::time::Instant;
use ebbtide_sim::medium::Energy;
use ebbtide_sim::medium::low_power::{DutyCycle, PhaseLock};

/// The most frames per second that reach the end of a chain of `hops`, whatever the source offers;
/// nodes hear their neighbours only.
fn chain(hops: u32) -> f64 {
    let places: Vec<f64> = (0..=hops).map(|node| f64::from(node) * 10.0).collect();
    let best = (15..=75).step_by(3).map(|offered| {
        let mut radio = Radio::new(&places, 10.0, None, None);
        (0..hops).for_each(|node| radio.route(node, node + 1, false));
        radio.pace = Some(1_000_000_000 / (2 * offered));
        radio.run(40, 127);
        radio.arrived[hops as usize]
    });
    best.max().unwrap_or(0) as f64 / 40.0
}

#[test]
fn a_chain_carries_1_then_a_half_then_a_third_of_one_hop() {
    let one = chain(1);
    let shares: Vec<f64> = (1..=5).map(|hops| chain(hops) / one).collect();
    println!("{shares:?}");
    for (share, ideal) in shares.iter().zip([1.0, 1.0 / 2.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]) {
        assert!((share / ideal - 1.0).abs() < 0.15, "{shares:?}");
    }
}

#[test]
fn hidden_nodes_collide_where_neighbours_do_not() {
    let collided = |places: [f64; 3]| {
        let mut radio = Radio::new(&places, 20.0, None, None);
        radio.route(0, 1, true);
        radio.route(2, 1, true);
        radio.run(60, 100);
        let total = radio.total();
        total.collided as f64 / total.transmitted as f64
    };
    // The two senders are 30 m apart, or 20.
    let (hidden, seen) = (collided([0.0, 15.0, 30.0]), collided([0.0, 10.0, 20.0]));
    assert!(hidden > 0.5 && seen < 0.25, "{hidden} {seen}");
}

#[test]
fn with_capture_the_nearer_sender_gets_through() {
    let arrived = |capture| {
        let mut radio = Radio::new(&[0.0, 5.0, 24.0], 20.0, capture, None);
        radio.route(0, 1, true);
        radio.route(2, 1, true);
        radio.run(60, 100);
        (radio.counts(0).received, radio.counts(2).received)
    };
    let (near, far) = arrived(None);
    let (near_captured, far_captured) = arrived(Some(2.0));
    // The far sender is 3.8 times as far: it does no harm any more, and still suffers.
    assert!(near_captured > 2 * near, "{near} {near_captured}");
    assert!(far_captured <= far, "{far} {far_captured}");
}

#[test]
fn duty_cycling_saves_energy_and_costs_delay_and_either_phase_lock_shortens_the_strobes() {
    let run = |duty| {
        let mut radio = Radio::new(&[0.0, 10.0], 20.0, None, duty);
        radio.route(0, 1, true);
        radio.run(60, 60);
        let at = Instant::from_nanos(60_000_000_000);
        let energy = Energy::CC2420.millijoules(radio.mac().radio_time(1, at), at.as_nanos());
        let total = radio.total();
        (total.received, total.transmitted as f64 / total.received as f64, energy)
    };
    let duty = |phase_lock| Some(DutyCycle { period: 125_000_000, phase_lock });
    let (awake, plain) = (run(None), run(duty(PhaseLock::Off)));
    let (locked, contiki) = (run(duty(PhaseLock::Exact)), run(duty(PhaseLock::Contiki)));
    // Always on: 60 s at 56.4 mW, a little less while acknowledging.
    assert!((awake.2 / 3384.0 - 1.0).abs() < 0.02, "{awake:?}");
    assert!(plain.2 < awake.2 / 10.0, "{plain:?}");
    // One frame per wake-up, sometimes two.
    assert!((450..600).contains(&plain.0), "{plain:?}");
    assert!(plain.1 > 10.0 && locked.1 < 4.0, "{plain:?} {locked:?}");
    // Contiki begins 12.8 ms before the time that it remembers: at most 16.7 ms of strobes.
    assert!((locked.1..8.0).contains(&contiki.1), "{locked:?} {contiki:?}");
    assert!((450..600).contains(&contiki.0), "{contiki:?}");
}
