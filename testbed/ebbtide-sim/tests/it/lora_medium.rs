//! The medium of a LoRaWAN cell alone: duty cycles, receive windows, collisions.
#![allow(clippy::disallowed_methods, reason = "a bound, whose last bit does not matter")]

use crate::common::assert_near;
use ebbtide_core::time::Instant;
use ebbtide_sim::engine::Engine;
use ebbtide_sim::medium::Crossing;
use ebbtide_sim::medium::lora::{Lora, LoraCell, LoraCounts, LoraEvent};
use ebbtide_sim::net::Direction;
use ebbtide_sim::random::{Streams, exponential};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// A packet handed to the cell: after so many milliseconds, for this device, in this direction, of this length.
type Op = (u64, u32, Direction, u32);

/// A transmission of a device or (`None`) of the gateway.
#[derive(Copy, Clone, Debug)]
struct Sent {
    from: Option<u32>,
    /// The receive window that the gateway used.
    window: usize,
    start: u64,
    end: u64,
}

/// What happened in a cell.
#[derive(Default)]
struct Seen {
    sent: Vec<Sent>,
    /// Instants at which packets were through, and how.
    outcomes: Vec<(u64, Crossing)>,
    /// Tokens that the cell took.
    taken: Vec<u32>,
    counts: LoraCounts,
}

/// Watches the counts around each step, which tell when a transmission began and how long it takes.
fn watch(settings: &Lora, devices: u32, ops: &[Op]) -> Seen {
    let mut cell = LoraCell::new(settings, devices, &Streams::new(3, 0));
    let mut engine: Engine<LoraEvent> = Engine::new(0);
    let mut seen = Seen::default();
    let mut note = |cell: &mut LoraCell, now: u64, device: u32, before: LoraCounts| {
        let after = cell.counts();
        let mut began = |from, window, time: u64| {
            if time > 0 {
                seen.sent.push(Sent { from, window, start: now, end: now + time });
            }
        };
        began(Some(device), 0, after.radio.transmit_ns - before.radio.transmit_ns);
        for window in 0..2 {
            began(None, window, after.downlink_ns[window] - before.downlink_ns[window]);
        }
        seen.outcomes.extend(std::iter::from_fn(|| cell.poll()).map(|one| (now, one)));
        seen.counts = after;
    };
    let mut taken = Vec::new();
    let mut now = 0;
    let mut ops = ops.iter().enumerate().peekable();
    loop {
        let next = ops.peek().map(|(_, op)| now + op.0 * 1_000_000);
        let event = engine.next_at().map(Instant::as_nanos);
        if let Some(at) = event.filter(|at| next.is_none_or(|next| *at <= next)) {
            let (at_event, event) = engine.pop().unwrap();
            let before = cell.counts();
            cell.handle(at_event, event, &mut engine);
            note(&mut cell, at, event.device, before);
            continue;
        }
        let Some((token, (_, device, direction, bytes))) = ops.next() else { break };
        now = next.unwrap();
        let before = cell.counts();
        let token = token as u32;
        if cell.send(Instant::from_nanos(now), *device, *direction, token, *bytes, &mut engine) {
            taken.push(token);
        }
        note(&mut cell, now, *device, before);
    }
    seen.taken = taken;
    seen
}

/// Every two transmissions of a sender in a band: the later begins when the share allows it.
fn assert_share<'s>(sent: impl Iterator<Item = &'s Sent>, share: f64) {
    let mut allowed = 0.0;
    for one in sent {
        assert!(one.start as f64 >= allowed, "{one:?} before {allowed} ns");
        allowed = one.start as f64 + (one.end - one.start) as f64 / share;
    }
}

fn ops(devices: u32) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(
        (0..20_000u64, 0..devices, prop::sample::select(Direction::BOTH.to_vec()), 1..40u32),
        1..150,
    )
}

fn settings() -> impl Strategy<Value = Lora> {
    let factors = prop::collection::vec(7..=12u8, 1..4);
    let share = prop::sample::select(vec![0.01, 0.1, 1.0]);
    (factors, 1..4u8, share.clone(), share, 7..=12u8, 1..5u32).prop_map(
        |(spreading_factors, channels, duty_cycle, second, factor, queue)| Lora {
            spreading_factors,
            channels,
            duty_cycle,
            second_window_spreading_factor: factor,
            second_window_duty_cycle: second,
            frame_loss: 0.1,
            queue,
            ..Lora::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nobody_transmits_for_more_than_its_share_nor_receives_meanwhile(
        (settings, ops) in (settings(), ops(6)),
    ) {
        let seen = watch(&settings, 6, &ops);
        for device in 0..6 {
            let own = seen.sent.iter().filter(|sent| sent.from == Some(device));
            assert_share(own, settings.duty_cycle);
        }
        for (window, share) in [settings.duty_cycle, settings.second_window_duty_cycle].into_iter().enumerate() {
            let own = seen.sent.iter().filter(|sent| sent.from.is_none() && sent.window == window);
            assert_share(own, share);
        }
        let gateway: Vec<_> = seen.sent.iter().filter(|sent| sent.from.is_none()).collect();
        prop_assert!(gateway.windows(2).all(|two| two[0].end <= two[1].start), "one transmitter");
        for (at, outcome) in &seen.outcomes {
            let Crossing::Up(token) = outcome else { continue };
            let device = ops[*token as usize].1;
            let frame = seen.sent.iter().find(|sent| sent.from == Some(device) && sent.end == *at);
            let frame = frame.unwrap();
            let overlaps = |one: &&&Sent| one.start < frame.end && frame.start < one.end;
            prop_assert!(gateway.iter().find(overlaps).is_none(), "{frame:?} was heard");
        }
    }

    #[test]
    fn devices_are_reached_only_one_or_two_seconds_after_their_own_transmissions(
        (settings, ops) in (settings(), ops(4)),
    ) {
        let seen = watch(&settings, 4, &ops);
        let mut uplinks = [None; 4];
        for sent in &seen.sent {
            if let Some(device) = sent.from {
                uplinks[device as usize] = Some(sent.end);
                continue;
            }
            // A downlink ends with its outcome, which names the packet and so the device.
            let ends = seen.outcomes.iter().find(|(at, outcome)| {
                *at == sent.end
                    && matches!(outcome, Crossing::Down(_) | Crossing::Lost { direction: Direction::Down, .. })
            });
            let Some((_, Crossing::Down(token) | Crossing::Lost { token, .. })) = ends else {
                panic!("no outcome of {sent:?}")
            };
            let device = ops[*token as usize].1;
            let after = sent.start - uplinks[device as usize].unwrap();
            prop_assert_eq!(after, (sent.window as u64 + 1) * SECOND);
        }
    }

    #[test]
    fn every_packet_upwards_has_one_outcome_and_none_is_invented(
        (settings, ops) in (settings(), ops(5)),
    ) {
        let seen = watch(&settings, 5, &ops);
        let mut ended: Vec<u32> = seen.outcomes.iter().map(|(_, outcome)| match outcome {
            Crossing::Up(token) | Crossing::Down(token) | Crossing::Lost { token, .. } => *token,
        }).collect();
        ended.sort_unstable();
        let count = ended.len();
        ended.dedup();
        prop_assert_eq!(ended.len(), count, "a packet ended twice");
        for token in &seen.taken {
            let is_up = ops[*token as usize].2 == Direction::Up;
            // A packet for a device that transmits no more waits for ever.
            prop_assert!(!is_up || ended.binary_search(token).is_ok(), "{} vanished", token);
        }
        let refused = ops.len() - seen.taken.len();
        prop_assert_eq!(seen.counts.frames.overflows.iter().sum::<u64>(), refused as u64);
    }
}

#[test]
fn uplinks_collide_as_in_pure_aloha() {
    let streams = Streams::new(7, 0);
    for (channels, per_s) in [(1, 2.0), (1, 5.0), (3, 12.0)] {
        let settings =
            Lora { spreading_factors: vec![7], channels, duty_cycle: 1.0, ..Lora::default() };
        let mut cell = LoraCell::new(&settings, 1000, &streams);
        let mut engine: Engine<LoraEvent> = Engine::new(0);
        let mut arrivals = streams.stream("arrivals");
        let mut now = 0;
        for frame in 0..20_000 {
            now += exponential(&mut arrivals, (1e9 / per_s) as u64);
            while engine.next_at().is_some_and(|at| at.as_nanos() <= now) {
                let (at, event) = engine.pop().unwrap();
                cell.handle(at, event, &mut engine);
            }
            // Each device has long finished when its turn comes again.
            let at = Instant::from_nanos(now);
            assert!(cell.send(at, frame % 1000, Direction::Up, frame, 23, &mut engine));
        }
        let counts = cell.counts();
        assert_eq!(
            (counts.frames.uplinks, counts.frames.deaf, counts.frames.faded),
            (20_000, 0, 0)
        );
        let airtime = Lora::frame_ns(Lora::uplink(7), Some(23), 0) as f64 / 1e9;
        let load = per_s * airtime / f64::from(channels);
        // A frame meets another one if that begins within an airtime before or after it.
        let collided = counts.frames.collided as f64 / counts.frames.uplinks as f64;
        assert_near(collided, 1.0 - (-2.0 * load).exp(), 0.03, &format!("load {load}"));
    }
}

#[test]
fn a_device_asks_for_the_packets_that_the_gateway_announces() {
    // Two packets wait at the gateway when the device transmits once: the first answer announces the second.
    let settings = Lora { spreading_factors: vec![7], ..Lora::default() };
    let seen = watch(
        &settings,
        1,
        &[(0, 0, Direction::Down, 5), (0, 0, Direction::Down, 5), (0, 0, Direction::Up, 20)],
    );
    let arrived: Vec<_> = seen.outcomes.iter().map(|(_, outcome)| *outcome).collect();
    assert_eq!(arrived, [Crossing::Up(2), Crossing::Down(0), Crossing::Down(1)]);
    assert_eq!((seen.counts.frames.uplinks, seen.counts.frames.polls), (2, 1));
}

#[test]
fn devices_on_other_spreading_factors_do_not_disturb_each_other() {
    let both = |spreading_factors: Vec<u8>| {
        let settings = Lora { spreading_factors, channels: 1, ..Lora::default() };
        watch(&settings, 2, &[(0, 0, Direction::Up, 20), (10, 1, Direction::Up, 20)])
            .counts
            .frames
            .collided
    };
    assert_eq!((both(vec![7]), both(vec![7, 8])), (2, 0));
}

#[test]
fn a_radio_listens_for_eight_symbols_in_each_window_that_stays_empty() {
    let settings = Lora { spreading_factors: vec![7], ..Lora::default() };
    let symbol = |factor: u64| (1u64 << factor) * 8000;
    let silent = watch(&settings, 1, &[(0, 0, Direction::Up, 20)]).counts.radio;
    assert_eq!(silent.transmit_ns, Lora::frame_ns(Lora::uplink(7), Some(20), 0));
    assert_eq!(silent.listen_ns, 8 * (symbol(7) + symbol(12)));
    let answered =
        watch(&settings, 1, &[(0, 0, Direction::Down, 5), (0, 0, Direction::Up, 20)]).counts.radio;
    assert_eq!(answered.listen_ns, Lora::frame_ns(settings.downlink(7, 0), Some(5), 0));
}
