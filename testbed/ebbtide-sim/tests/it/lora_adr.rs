//! Several gateways of a LoRaWAN cell, and the adaptive data rate.
#![allow(clippy::disallowed_methods, reason = "a bound, whose last bit does not matter")]

use ebbtide_core::time::Instant;
use ebbtide_sim::engine::Engine;
use ebbtide_sim::medium::lora::{
    LinkParameters, Lora, LoraCell, LoraCounts, LoraEvent, required_snr,
};
use ebbtide_sim::net::Direction;
use ebbtide_sim::random::Streams;
use proptest::prelude::*;

/// The counts after packets of 20 bytes to or from devices, 20 s apart.
fn after(
    settings: &Lora,
    devices: u32,
    packets: impl Iterator<Item = (u32, Direction)>,
) -> LoraCounts {
    at_slots(settings, devices, (0..).zip(packets))
}

/// The same, each packet after so many times 20 s.
fn at_slots(
    settings: &Lora,
    devices: u32,
    packets: impl Iterator<Item = (u64, (u32, Direction))>,
) -> LoraCounts {
    let mut cell = LoraCell::new(settings, devices, &Streams::new(5, 0));
    let mut engine: Engine<LoraEvent> = Engine::new(0);
    let run = |cell: &mut LoraCell, engine: &mut Engine<LoraEvent>, until: u64| {
        while engine.next_at().is_some_and(|at| at.as_nanos() <= until) {
            let (at, event) = engine.pop().unwrap();
            cell.handle(at, event, engine);
        }
    };
    for (token, (slot, (device, direction))) in (0..).zip(packets) {
        let now = slot * 20_000_000_000;
        run(&mut cell, &mut engine, now);
        assert!(cell.send(Instant::from_nanos(now), device, direction, token, 20, &mut engine));
    }
    run(&mut cell, &mut engine, u64::MAX);
    cell.counts()
}

fn uplinks(device: u32, count: u32) -> impl Iterator<Item = (u32, Direction)> {
    (0..count).map(move |_| (device, Direction::Up))
}

/// The algorithm as its authors write it down, in decibels: steps of 3 dB go into the data rate (SF7 is DR5) first and
/// then into the power.
fn published(data_rate: i32, power_index: i32, best_snr: f64, margin: f64) -> (i32, i32) {
    let required = [-20.0, -17.5, -15.0, -12.5, -10.0, -7.5];
    let spare = best_snr - required[data_rate as usize] - margin;
    let (mut steps, mut data_rate, mut power_index) =
        ((spare / 3.0) as i32, data_rate, power_index);
    while steps > 0 && data_rate < 5 {
        (steps, data_rate) = (steps - 1, data_rate + 1);
    }
    power_index = (power_index + steps).clamp(0, 4);
    (data_rate, power_index)
}

proptest! {
    #[test]
    fn the_network_server_asks_for_what_the_published_algorithm_asks(
        spreading_factor in 7..=12u8, reduction in 0..=4u8, tenths in -300..300i32,
        margin in prop::sample::select(vec![10, 15]),
    ) {
        let link = LinkParameters { spreading_factor, reduction };
        let wanted = link.adapted(tenths * 100, margin * 1000);
        let expected = published(
            12 - i32::from(spreading_factor), reduction.into(), f64::from(tenths) / 10.0, margin.into(),
        );
        let found = (12 - i32::from(wanted.spreading_factor), i32::from(wanted.reduction));
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_device_near_a_gateway_is_asked_after_twenty_uplinks() {
    // Within 100 m the loss is at most 105.75 dB, so the ratio is 24 dB or more: enough for SF7 and the least power.
    let settings = Lora {
        spreading_factors: vec![12],
        duty_cycle: 1.0,
        radius: Some(100.0),
        adr_margin: Some(10.0),
        ..Lora::default()
    };
    let counts = after(&settings, 1, uplinks(0, 40));
    assert_eq!((counts.frames.uplinks, counts.frames.adapted), (40, 1));
    assert_eq!(counts.spreading_factors, 20 * 12 + 20 * 7);
    // The first frame with the new parameters has the answer of two bytes.
    let airtime = |bytes, options| Lora::frame_ns(Lora::uplink(7), Some(bytes), options);
    assert_eq!(counts.reduced_ns, [0, 0, 0, airtime(20, 2) + 19 * airtime(20, 0)]);
    let without = after(&Lora { adr_margin: None, ..settings }, 1, uplinks(0, 40));
    assert_eq!((without.frames.adapted, without.spreading_factors), (0, 40 * 12));
    assert!(counts.millijoules(u64::MAX) < without.millijoules(u64::MAX));
}

#[test]
fn a_request_whose_answer_is_lost_does_not_make_the_server_ask_for_less_power_again() {
    // 7 dB above the noise, 4.5 dB more than SF7 and the margin need: one step of 3 dB.
    let settings = Lora {
        spreading_factors: vec![7],
        channels: 1,
        duty_cycle: 1.0,
        radius: Some(1.0),
        path_loss: 192.6,
        adr_margin: Some(10.0),
        ..Lora::default()
    };
    let own = (0..60).map(|slot| (slot, (0, Direction::Up)));
    let alone = at_slots(&settings, 2, own.clone());
    assert_eq!((alone.frames.collided, alone.frames.adapted), (0, 1));
    // Another device transmits beside the uplink after the request, the 21st, which has the answer.
    let both = own.flat_map(|one| {
        std::iter::once(one).chain((one.0 == 20).then_some((20, (1, Direction::Up))))
    });
    let counts = at_slots(&settings, 2, both);
    assert_eq!((counts.frames.collided, counts.frames.adapted), (2, 1));
    assert_eq!(counts.reduced_ns[1..], [0, 0, 0], "by one step only");
}

#[test]
fn the_share_of_frames_that_cannot_be_read_is_that_of_one_gateway_and_of_four() {
    let faded = |gateways| {
        let settings = Lora { gateways, frame_loss: 0.3, ..Lora::default() };
        let frames =
            after(&settings, 10_000, (0..10_000).map(|device| (device, Direction::Up))).frames;
        assert_eq!(frames.uplinks, 10_000);
        frames.faded
    };
    assert_eq!(faded(1), faded(4));
    // Three standard deviations.
    assert!((2863..=3137).contains(&faded(4)), "{}", faded(4));
}

#[test]
fn a_device_that_hears_nothing_raises_its_spreading_factor_step_by_step() {
    // Nothing is read. From the 96th uplink on (64 without an answer, and 32 that ask for one) every 32nd raises it.
    let settings = Lora {
        spreading_factors: vec![7],
        duty_cycle: 1.0,
        frame_loss: 1.0 - 1e-9,
        radius: Some(100.0),
        adr_margin: Some(10.0),
        ..Lora::default()
    };
    let counts = after(&settings, 1, uplinks(0, 300));
    let expected: u64 = (1..=300u64).map(|uplink| 7 + (uplink / 32).clamp(2, 7) - 2).sum();
    assert_eq!(counts.spreading_factors, expected);
}

#[test]
fn a_device_that_is_heard_and_asks_for_an_answer_gets_an_empty_frame() {
    // 14 dB below what the margin needs: there is nothing to adapt, and nothing else to send.
    let settings = Lora {
        spreading_factors: vec![7],
        duty_cycle: 1.0,
        radius: Some(1.0),
        path_loss: 206.1,
        adr_margin: Some(10.0),
        ..Lora::default()
    };
    let counts = after(&settings, 1, uplinks(0, 130));
    assert_eq!((counts.frames.weak, counts.frames.adapted), (0, 0));
    assert_eq!(counts.frames.downlinks, [2, 0], "one for each 64 uplinks");
}

#[test]
fn a_gateway_covers_the_disc_that_the_path_loss_gives_and_further_ones_more() {
    let covered = |gateways, factor| {
        let settings = Lora {
            spreading_factors: vec![factor],
            gateways,
            radius: Some(8000.0),
            ..Lora::default()
        };
        let devices = 2000;
        let counts = after(&settings, devices, (0..devices).map(|device| (device, Direction::Up)));
        1.0 - counts.frames.weak as f64 / f64::from(devices)
    };
    for factor in [7, 10] {
        // 13 dBm over a noise of -117 dBm.
        let loss = 130.0 - f64::from(required_snr(factor)) / 1000.0;
        let reach_km = 10f64.powf((loss - 128.95) / 23.2);
        let expected = (reach_km / 8.0).powi(2);
        let (one, four) = (covered(1, factor), covered(4, factor));
        assert!((one - expected).abs() < 0.03, "SF{factor}: {one}, not {expected}");
        assert!(four > one + 0.05, "SF{factor}: {four} with four gateways, {one} with one");
    }
}

#[test]
fn a_gateway_that_must_be_silent_leaves_the_first_window_to_another_one() {
    let windows = |gateways| {
        let settings =
            Lora { spreading_factors: vec![12], duty_cycle: 0.01, gateways, ..Lora::default() };
        // Each device sends once, and a packet waits for it. A gateway is silent for 130 s after each answer.
        let packets =
            [(0, Direction::Down), (0, Direction::Up), (1, Direction::Down), (1, Direction::Up)];
        after(&settings, 2, packets.into_iter()).frames.downlinks
    };
    assert_eq!((windows(1), windows(2)), ([1, 1], [2, 0]));
}
