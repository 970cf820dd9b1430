//! The link against what queueing theory says of it.
#![allow(clippy::disallowed_methods, reason = "an expected value may be off in its last bit")]

use crate::common::{assert_near, run, scenario};
use ebbtide_core::time::Instant;
use ebbtide_sim::net::{Delay, Fate, Link, Loss, LossModel, Serialiser};
use ebbtide_sim::random::{Probability, Streams, exponential, uniform};
use rand_chacha::ChaCha8Rng;

const BYTES: u32 = 94;
const RATE: u64 = 30_000;
/// Serialisation of one packet, s.
const SERVICE: f64 = 94.0 * 8.0 / 30_000.0;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn stream(seed: u64, path: &str) -> ChaCha8Rng {
    Streams::new(seed, 0).stream(path)
}

fn link(seed: u64, buffer: Option<u64>, loss: LossModel) -> Link<ChaCha8Rng> {
    let loss = Loss::new(loss, stream(seed, "loss"), stream(seed, "states"));
    Link::new(RATE, buffer, Delay::fixed(0), loss, stream(seed, "delay"))
}

/// Hands `packets` Poisson arrivals of load `rho` to a link; each fate goes to `see`.
fn poisson(
    seed: u64,
    link: &mut Link<ChaCha8Rng>,
    (rho, packets): (f64, u32),
    mut see: impl FnMut(Instant, Fate),
) -> Instant {
    let mut arrivals = stream(seed, "arrivals");
    let mean_ns = (SERVICE / rho * 1e9).round() as u64;
    let mut now = 0;
    for _ in 0..packets {
        now += exponential(&mut arrivals, mean_ns);
        see(at(now), link.send(at(now), BYTES));
    }
    at(now)
}

#[test]
fn serialisation_takes_the_exact_time_rounded_down_to_a_nanosecond() {
    for (rate, bytes, nanos) in [
        (30_000, 94, 25_066_666),
        (60_000, 38, 5_066_666),
        (30_000, 95, 25_333_333),
        (1_000_000, 106, 848_000),
        (250_000, 127, 4_064_000),
        (1, 1, 8_000_000_000),
        (7, 1, 1_142_857_142),
        (1_000_000_000_000, 1, 0),
        (1, 2_000_000_000, 16_000_000_000_000_000_000),
    ] {
        let (start, left) = Serialiser::new(rate).accept(at(0), bytes);
        assert_eq!((start, left), (at(0), at(nanos)), "{bytes} bytes at {rate} bit/s");
    }
}

#[test]
fn a_million_packets_back_to_back_accumulate_no_rounding() {
    for (rate, bytes) in [(30_000u64, 94u32), (7, 3), (999_983, 1), (60_000, 38)] {
        let mut serialiser = Serialiser::new(rate);
        for n in 1..=1_000_000u128 {
            let (_, left) = serialiser.accept(at(0), bytes);
            let exact = n * u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate);
            assert_eq!(u128::from(left.as_nanos()), exact, "packet {n} at {rate} bit/s");
        }
    }
}

#[test]
fn an_idle_period_ends_the_carry_of_fractions() {
    let mut serialiser = Serialiser::new(30_000);
    let (_, first) = serialiser.accept(at(0), 94);
    // A nanosecond later the link is idle: the two thirds of a nanosecond are gone.
    let start = at(first.as_nanos() + 1);
    let (_, second) = serialiser.accept(start, 94);
    assert_eq!(second.as_nanos() - start.as_nanos(), 25_066_666);
}

#[test]
fn the_mean_wait_is_that_of_m_d_1_within_1_percent() {
    for (seed, rho, packets) in [(1, 0.3, 2_000_000), (2, 0.5, 2_000_000), (3, 0.7, 4_000_000)] {
        let mut link = link(seed, None, LossModel::None);
        let mut waits = 0.0;
        poisson(seed, &mut link, (rho, packets), |now, fate| {
            let Fate::Delivered { at } = fate else { panic!("nothing is dropped or lost") };
            waits += (at - now).as_secs_f64() - SERVICE;
        });
        // Pollaczek and Khinchine, for constant service.
        let expected = rho * SERVICE / (2.0 * (1.0 - rho));
        assert_near(waits / f64::from(packets), expected, 0.01, &format!("mean wait at {rho}"));
    }
}

/// The share of packets that M/D/1 with room for `waiting` packets drops, from the chain of the
/// numbers of packets left behind by departures.
fn blocked(rho: f64, waiting: usize) -> f64 {
    // Poisson(rho): arrivals during one service.
    let mut arrivals = vec![(-rho).exp()];
    for k in 1..=waiting + 1 {
        arrivals.push(arrivals[k - 1] * rho / k as f64);
    }
    let mut left = vec![1.0];
    for j in 0..waiting {
        let reached: f64 = (1..=j).map(|i| left[i] * arrivals[j + 1 - i]).sum();
        left.push((left[j] - left[0] * arrivals[j] - reached) / arrivals[0]);
    }
    let none_left = left[0] / left.iter().sum::<f64>();
    1.0 - 1.0 / (none_left + rho)
}

#[test]
fn the_recursion_gives_the_known_values_of_m_d_1_k() {
    // With no room to wait it is Erlang's loss formula, which holds for any service.
    assert!((blocked(0.5, 0) - 0.5 / 1.5).abs() < 1e-12);
    assert!((blocked(2.0, 0) - 2.0 / 3.0).abs() < 1e-12);
    // One place to wait: 1 - 1 / (rho + exp(-rho)).
    assert!((blocked(1.0, 1) - (1.0 - 1.0 / (1.0 + (-1.0f64).exp()))).abs() < 1e-12);
    // In overload with much room it is what exceeds the rate.
    assert!((blocked(2.0, 60) - 0.5).abs() < 1e-9);
}

#[test]
fn the_tail_drop_ratio_is_that_of_m_d_1_k_within_1_percent() {
    for (seed, rho, buffer) in
        [(11, 0.9, 0), (12, 0.8, 94), (13, 0.95, 3 * 94), (14, 1.2, 500), (15, 1.5, 2500)]
    {
        let packets = 3_000_000;
        let mut link = link(seed, Some(buffer), LossModel::None);
        let mut dropped = 0u32;
        poisson(seed, &mut link, (rho, packets), |_, fate| {
            dropped += u32::from(fate == Fate::Dropped);
        });
        let expected = blocked(rho, (buffer / u64::from(BYTES)) as usize);
        let measured = f64::from(dropped) / f64::from(packets);
        assert_near(measured, expected, 0.01, &format!("drops at {rho}, {buffer} bytes"));
        assert_eq!(link.counts().dropped_queue, u64::from(dropped));
    }
}

#[test]
fn the_packet_in_transmission_does_not_count_for_the_buffer() {
    let mut link = link(1, Some(2 * u64::from(BYTES)), LossModel::None);
    let sent: Vec<bool> = (0..5).map(|_| link.send(at(0), BYTES) != Fate::Dropped).collect();
    assert_eq!(sent, [true, true, true, false, false], "one under way, two wait");
    assert_eq!(link.queued_bytes(at(0)), 2 * u64::from(BYTES));
    // When the first has left, the second is in transmission and one place is free.
    let next = at(25_066_667);
    assert_eq!(link.queued_bytes(next), u64::from(BYTES));
    assert_ne!(link.send(next, BYTES), Fate::Dropped);
    assert_eq!(link.send(next, BYTES), Fate::Dropped);
}

#[test]
fn an_idle_link_takes_a_packet_that_its_buffer_could_not_hold() {
    let mut link = link(1, Some(10), LossModel::None);
    assert_ne!(link.send(at(0), BYTES), Fate::Dropped);
    assert_eq!(link.send(at(0), BYTES), Fate::Dropped);
    assert_ne!(link.send(at(0), 10), Fate::Dropped, "what fits still waits");
}

#[test]
fn a_buffer_counts_bytes_and_not_packets() {
    let mut link = link(1, Some(100), LossModel::None);
    let fates: Vec<bool> = [94, 60, 41, 40, 1]
        .into_iter()
        .map(|bytes| link.send(at(0), bytes) != Fate::Dropped)
        .collect();
    assert_eq!(fates, [true, true, false, true, false]);
}

#[test]
fn packets_in_propagation_occupy_no_buffer_and_no_serialiser() {
    let loss = Loss::new(LossModel::None, stream(1, "loss"), stream(1, "states"));
    let mut link = Link::new(RATE, Some(0), Delay::fixed(1 << 40), loss, stream(1, "delay"));
    for n in 0..100 {
        let now = at(n * 25_066_667);
        let expected = at(now.as_nanos() + 25_066_666 + (1 << 40));
        assert_eq!(link.send(now, BYTES), Fate::Delivered { at: expected });
    }
}

#[test]
fn a_link_accounts_for_every_packet_and_byte() {
    let loss = LossModel::Independent(Probability::new(0.1));
    let mut link = link(21, Some(1000), loss);
    let (mut delivered, mut dropped, mut lost, mut bytes, mut arrived) = (0, 0, 0, 0, 0);
    let mut draws = stream(21, "arrivals");
    let mut now = 0;
    for _ in 0..100_000 {
        now += uniform(&mut draws, 0, 40_000_000);
        let length = uniform(&mut draws, 20, 296) as u32;
        let fate = link.send(at(now), length);
        bytes += if fate == Fate::Dropped { 0 } else { u64::from(length) };
        match fate {
            Fate::Delivered { .. } => {
                delivered += 1;
                arrived += u64::from(length);
            }
            Fate::Dropped => dropped += 1,
            Fate::Lost { .. } => lost += 1,
        }
        let counts = link.counts();
        assert_eq!(counts.sent, counts.delivered + counts.dropped_queue + counts.lost_link);
    }
    let counts = link.counts();
    let seen = (counts.delivered, counts.dropped_queue, counts.lost_link, counts.bytes_serialised);
    assert_eq!(seen, (delivered, dropped, lost, bytes));
    assert_eq!(counts.bytes_delivered, arrived);
    assert!(delivered > 0 && dropped > 0 && lost > 0, "{counts:?}: each must have happened");
    // Rounding to a nanosecond, once per packet at most.
    let exact = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(RATE);
    assert!(exact.abs_diff(counts.busy_ns.into()) <= u128::from(counts.sent));
}

#[test]
fn littles_law_holds_within_1_percent() {
    // The queue is looked at at instants of their own, which know nothing of the arrivals.
    let (rho, packets, step) = (0.8, 2_000_000, 3_333_333);
    let mut arrivals = stream(31, "arrivals");
    let mut link = link(31, None, LossModel::None);
    let mean_ns = (SERVICE / rho * 1e9).round() as u64;
    let (mut now, mut look, mut looks, mut seen, mut waits) = (0u64, 0u64, 0u64, 0u64, 0.0);
    for _ in 0..packets {
        now += exponential(&mut arrivals, mean_ns);
        while look < now {
            seen += link.queued_bytes(at(look));
            looks += 1;
            look += step;
        }
        let Fate::Delivered { at: left } = link.send(at(now), BYTES) else { panic!("no drops") };
        waits += (left - at(now)).as_secs_f64() - SERVICE;
    }
    let length = seen as f64 / looks as f64 / f64::from(BYTES);
    let arrival_rate = f64::from(packets) / (now as f64 / 1e9);
    let wait = waits / f64::from(packets);
    assert_near(length, arrival_rate * wait, 0.01, "mean queue length against rate x wait");
}

#[test]
fn every_packet_of_a_replication_is_delivered_dropped_or_lost() {
    for (cc, settings) in [
        ("default", &[("clients", "100"), ("buffer", "2500"), ("errors", "low")][..]),
        ("fasor-token", &[("clients", "20"), ("errors", "high")][..]),
        ("cocoa", &[("clients", "50"), ("workload", "random"), ("buffer", "2500")][..]),
    ] {
        let scenario = scenario("nb-iot", settings);
        let record = run(&scenario, cc, 5, 0);
        let (up, down) = (record.totals.up, record.totals.down);
        for side in [up, down] {
            assert_eq!(side.sent, side.delivered + side.dropped_queue + side.lost_link, "{cc}");
        }
        // The server answers each request that reaches it, once.
        assert_eq!(up.delivered, down.sent, "{cc}");
        let clients = &record.clients;
        let sum = |field: fn(&ebbtide_sim::record::ClientRecord) -> u32| -> u64 {
            clients.iter().map(|client| u64::from(field(client))).sum()
        };
        // Every transmission enters the link; every response is the first one or a duplicate.
        let exchanges = u64::from(scenario.clients.count * scenario.workload.exchanges);
        assert_eq!(up.sent, exchanges + sum(|client| client.retransmissions), "{cc}");
        let responses = sum(|client| client.completed) + sum(|client| client.duplicates);
        assert_eq!(down.delivered, responses, "{cc}");
        assert_eq!(sum(|client| client.completed) + sum(|client| client.failed), exchanges);
    }
}

#[test]
fn an_idle_path_takes_the_sum_of_its_parts() {
    let settings = [
        ("clients", "1"),
        ("network.up.delay", "200 ms"),
        ("network.down.delay", "400 ms"),
        ("network.up.beyond", "10 ms"),
        ("network.down.beyond", "20 ms"),
        ("server.processing", "1 ms"),
        ("clients.processing", "2 ms"),
    ];
    let record = run(&scenario("nb-iot", &settings), "default", 1, 0);
    // 38 bytes at 60 kbit/s and 94 at 30, each rounded down; the processing after the last
    // response is not part of the flow.
    let round = 200_000_000 + 400_000_000 + 10_000_000 + 20_000_000 + 1_000_000;
    let expected = 50 * (round + 5_066_666 + 25_066_666) + 49 * 2_000_000;
    assert_eq!(record.clients[0].fct.as_nanos(), expected);
}
