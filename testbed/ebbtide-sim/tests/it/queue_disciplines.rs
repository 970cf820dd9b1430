//! Queue disciplines against closed forms: what they drop under a load that does not react.

use ebbtide_core::time::{Duration, Instant};
use ebbtide_sim::net::queue::{
    CoDelParameters, Discipline, FqCoDelParameters, LinkFacts, PieParameters, QueueModel,
    QueuedPacket, RedParameters,
};
use ebbtide_sim::net::{Delay, Fate, Loss, LossModel, ManagedLink};
use ebbtide_sim::random::{Streams, exponential};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

const RATE: u64 = 1_000_000;
const MTU: u32 = 1000;
/// How long a packet of the MTU is in transmission.
const SERVICE: u64 = 8_000_000;

fn stream(path: &str) -> ChaCha8Rng {
    Streams::new(7, 0).stream(path)
}

fn facts(buffer: Option<u64>) -> LinkFacts {
    LinkFacts { buffer, mtu: MTU, transmission: Duration::from_nanos(SERVICE), ecn: false }
}

fn link(model: QueueModel, buffer: Option<u64>) -> ManagedLink<ChaCha8Rng> {
    let loss = Loss::new(LossModel::None, stream("loss"), stream("states"));
    let queue = model.build(&facts(buffer), stream("queue"));
    ManagedLink::new(RATE, queue, Delay::fixed(0), loss, stream("delay"))
}

/// A sender that does not react: packets of one length at a mean distance.
struct Sender {
    client: u32,
    bytes: u32,
    mean_ns: u64,
    is_poisson: bool,
}

/// What became of a packet: when it was sent, whose it was, how long it is, when it was decided, and how.
type Seen = (u64, u32, u32, u64, Fate);

/// Sends until `end` and tells each packet's fate.
fn drive(
    link: &mut ManagedLink<ChaCha8Rng>,
    senders: &[Sender],
    end: u64,
    mut see: impl FnMut(Seen),
) {
    let mut luck = stream("arrivals");
    // What is due next: an arrival of a sender, or the link's timeout.
    let mut due: BTreeMap<(u64, usize), ()> = BTreeMap::new();
    let timeout = senders.len();
    for index in 0..senders.len() {
        due.insert((index as u64, index), ());
    }
    let mut packets: Vec<(u64, u32, u32)> = Vec::new();
    while let Some(((now, who), ())) = due.pop_first() {
        if now >= end {
            break;
        }
        let at = Instant::from_nanos(now);
        if who == timeout {
            link.handle_timeout(at);
        } else {
            let Sender { client, bytes, mean_ns, is_poisson } = senders[who];
            let id = u32::try_from(packets.len()).unwrap();
            packets.push((now, client, bytes));
            link.send(at, QueuedPacket { id, client, bytes, queued_at: at, is_marked: false });
            let gap = if is_poisson { exponential(&mut luck, mean_ns) } else { mean_ns };
            due.insert((now + gap.max(1), who), ());
        }
        while let Some((QueuedPacket { id, .. }, fate)) = link.poll_fate() {
            let (sent, client, bytes) = packets[id as usize];
            see((sent, client, bytes, now, fate));
        }
        if let Some(at) = link.poll_timeout() {
            due.insert((at.as_nanos(), timeout), ());
        }
    }
}

/// One sender of full packets whose load is `rho`.
fn overload(rho: f64, is_poisson: bool) -> [Sender; 1] {
    let mean_ns = (SERVICE as f64 / rho).round() as u64;
    [Sender { client: 0, bytes: MTU, mean_ns, is_poisson }]
}

fn near(measured: f64, expected: f64, share: f64, what: &str) {
    let off = measured / expected - 1.0;
    assert!(off.abs() <= share, "{what}: {measured} for {expected}, {:.1} %", off * 100.0);
}

#[test]
fn codel_drops_as_its_control_law_says() {
    // The nth drop comes at interval x (1 + 1/sqrt 2 + ... + 1/sqrt n) after the first one, about twice
    // the root of n: in a time T there are (T / (2 x interval))^2 of them.
    let parameters = CoDelParameters::default();
    let mut link = link(QueueModel::CoDel(parameters), None);
    let seconds: u64 = 20;
    let mut drops = Vec::new();
    // Of a load of 40, so much has to go that the control is far from having done it after 20 s.
    drive(&mut link, &overload(40.0, false), seconds * 1_000_000_000, |(.., now, fate)| {
        if fate == Fate::Dropped {
            drops.push(now);
        }
    });
    let interval = parameters.interval.as_secs_f64();
    let first = drops[0];
    let mut at = 0.0;
    let expected: Vec<f64> = (1..=drops.len())
        .map(|n| {
            let this = at;
            at += interval / (n as f64).sqrt();
            this
        })
        .collect();
    for n in [9, 99, 999, drops.len() - 1] {
        let after = (drops[n] - first) as f64 / 1e9;
        near(after, expected[n], 0.05, &format!("drop {n}"));
    }
    let within = (seconds as f64 - first as f64 / 1e9) / (2.0 * interval);
    near(drops.len() as f64, within * within, 0.05, "number of drops");
}

/// A link of the discipline whose packets are ECN-capable.
fn ecn_link(model: QueueModel, buffer: Option<u64>) -> ManagedLink<ChaCha8Rng> {
    let loss = Loss::new(LossModel::None, stream("loss"), stream("states"));
    let queue = model.build(&LinkFacts { ecn: true, ..facts(buffer) }, stream("queue"));
    ManagedLink::new(RATE, queue, Delay::fixed(0), loss, stream("delay"))
}

#[test]
fn with_ecn_codel_marks_as_its_control_law_says_and_drops_nothing() {
    let parameters = CoDelParameters::default();
    let interval = parameters.interval.as_secs_f64();
    // The first mark comes when a packet has waited too long for an interval, the nth 2 x interval x sqrt(n)
    // later. From 156 on marks would be due faster than packets leave: 8 ms apart.
    let marks_after = |millis: u64| {
        let mut link = ecn_link(QueueModel::CoDel(parameters), None);
        drive(&mut link, &overload(40.0, false), millis * 1_000_000, |(.., fate)| {
            assert_ne!(fate, Fate::Dropped);
        });
        link.counts().marked
    };
    let first = (1..1000).find(|millis| marks_after(*millis) > 0).unwrap();
    for n in [10, 50, 140] {
        let sum: f64 = (1..n).map(|k| interval / f64::from(k).sqrt()).sum();
        // A mark that is due waits for the next packet to leave, for 8 ms at most.
        let marks = marks_after(first + (sum * 1000.0).round() as u64 + SERVICE / 1_000_000);
        near(marks as f64, f64::from(n), 0.05, "marks");
    }
    let all = ecn_link_marks_all(parameters);
    assert!(all > 0.9, "in the end nearly each packet is marked: {all}");
}

/// The share of packets that CoDel marks in the last of ten seconds.
fn ecn_link_marks_all(parameters: CoDelParameters) -> f64 {
    let marks = |seconds: u64| {
        let mut link = ecn_link(QueueModel::CoDel(parameters), None);
        drive(&mut link, &overload(40.0, false), seconds * 1_000_000_000, |_| {});
        link.counts().marked
    };
    (marks(10) - marks(9)) as f64 * SERVICE as f64 / 1e9
}

#[test]
fn with_ecn_pie_marks_up_to_its_threshold_and_then_drops() {
    let facts =
        LinkFacts { buffer: None, mtu: 125, transmission: Duration::from_micros(100), ecn: true };
    let queue = QueueModel::Pie(PieParameters::default()).build(&facts, stream("queue"));
    let loss = Loss::new(LossModel::None, stream("loss"), stream("states"));
    let mut link = ManagedLink::new(10_000_000, queue, Delay::fixed(0), loss, stream("delay"));
    let senders = [Sender { client: 0, bytes: 125, mean_ns: 66_667, is_poisson: true }];
    let (mut sent, mut dropped, mut first_drop) = (0u64, 0u64, None);
    drive(&mut link, &senders, 60_000_000_000, |(at, _, _, now, fate)| {
        if fate == Fate::Dropped {
            first_drop.get_or_insert(now);
        }
        if at >= 20_000_000_000 {
            sent += 1;
            dropped += u64::from(fate == Fate::Dropped);
        }
    });
    // A sender that does not react to marks is dropped what is too much, a third, as without ECN.
    near(dropped as f64 / sent as f64, 1.0 / 3.0, 0.05, "share dropped");
    assert!(link.counts().marked > 0 && first_drop.is_some(), "marks come first");
}

#[test]
fn with_ecn_fq_codel_marks_and_drops_only_what_does_not_fit() {
    let mut link = ecn_link(QueueModel::FqCoDel(FqCoDelParameters::default()), None);
    let mut drops = 0;
    drive(&mut link, &overload(2.0, true), 20_000_000_000, |(.., fate)| {
        drops += u64::from(fate == Fate::Dropped);
    });
    assert!(link.counts().marked > 100 && drops == 0, "{:?}", link.counts());
    let mut link = ecn_link(QueueModel::FqCoDel(FqCoDelParameters::default()), Some(10_000));
    drive(&mut link, &overload(2.0, true), 20_000_000_000, |(.., fate)| {
        drops += u64::from(fate == Fate::Dropped);
    });
    // Half of the load does not fit.
    near(drops as f64 / link.counts().sent as f64, 0.5, 0.05, "dropped");
}

#[test]
fn codel_drops_nothing_while_waits_are_short_or_one_packet_waits() {
    let mut quiet = link(QueueModel::CoDel(CoDelParameters::default()), None);
    // The next packet comes when the one before has just left.
    drive(&mut quiet, &overload(1.0, false), 10_000_000_000, |(.., fate)| {
        assert_ne!(fate, Fate::Dropped);
    });
    // At 1 kbit/s a packet alone waits for longer than the target: it is no standing queue.
    let loss = Loss::new(LossModel::None, stream("loss"), stream("states"));
    let queue = QueueModel::CoDel(CoDelParameters::default()).build(&facts(None), stream("queue"));
    let mut slow = ManagedLink::new(1_000, queue, Delay::fixed(0), loss, stream("delay"));
    let senders = [0, 1].map(|client| Sender {
        client,
        bytes: 500,
        mean_ns: 8_000_000_000,
        is_poisson: false,
    });
    drive(&mut slow, &senders, 400_000_000_000, |(.., fate)| assert_ne!(fate, Fate::Dropped));
}

#[test]
fn pie_drops_what_is_too_much_and_holds_its_target() {
    for (rho, is_poisson) in [(1.2, false), (1.5, true), (2.0, true)] {
        // 200 packets wait for longer than a packet of 8 ms can be told from: a faster link.
        let loss = Loss::new(LossModel::None, stream("loss"), stream("states"));
        let facts = LinkFacts {
            buffer: None,
            mtu: 125,
            transmission: Duration::from_micros(100),
            ecn: false,
        };
        let queue = QueueModel::Pie(PieParameters::default()).build(&facts, stream("queue"));
        let mut link = ManagedLink::new(10_000_000, queue, Delay::fixed(0), loss, stream("delay"));
        let mean_ns = (100_000.0 / rho) as u64;
        let senders = [Sender { client: 0, bytes: 125, mean_ns, is_poisson }];
        let (mut sent, mut dropped, mut waits) = (0u64, 0u64, Vec::new());
        drive(&mut link, &senders, 60_000_000_000, |(at, _, _, now, fate)| {
            if at < 20_000_000_000 {
                return;
            }
            sent += 1;
            match fate {
                Fate::Dropped => dropped += 1,
                _ => waits.push((now - at) as f64 / 1e9),
            }
        });
        let share = dropped as f64 / sent as f64;
        near(share, 1.0 - 1.0 / rho, 0.05, "share dropped");
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        near(mean, 0.015, 0.05, "mean wait");
    }
}

/// A queue of RED whose average is held at a length: drops per packet.
fn red_drop_rate(parameters: RedParameters, average: u64) -> f64 {
    red_rates(parameters, average, false).0
}

/// The same with ECN or without: drops per packet, and marks per packet.
fn red_rates(parameters: RedParameters, average: u64, ecn: bool) -> (f64, f64) {
    let facts = LinkFacts { ecn, ..facts(None) };
    let mut queue = QueueModel::Red(parameters).build(&facts, stream("red"));
    let mut dropped = Vec::new();
    let packet = |bytes| QueuedPacket {
        id: 0,
        client: 0,
        bytes,
        queued_at: Instant::ZERO,
        is_marked: false,
    };
    let at = |step: u64| Instant::from_nanos(step);
    // Fills it to the length without a drop that counts, then keeps it there.
    while queue.bytes() < average {
        queue.enqueue(at(1), packet(1), &mut dropped);
    }
    let mut hold = |queue: &mut Box<dyn Discipline>, packets: u64| {
        dropped.clear();
        let mut marked = 0;
        for step in 0..packets {
            let before = queue.bytes();
            queue.enqueue(at(2 + step), packet(1), &mut dropped);
            if queue.bytes() > before {
                let left = queue.dequeue(at(2 + step), &mut Vec::new());
                marked += u64::from(left.is_some_and(|packet| packet.is_marked));
            }
        }
        (dropped.len() as f64 / packets as f64, marked as f64 / packets as f64)
    };
    hold(&mut queue, 20_000);
    hold(&mut queue, 400_000)
}

#[test]
fn red_drops_at_the_mean_of_uniform_distances() {
    // With the average held, distances between drops are uniform on 1, 2, ..., 1/p, so that one of
    // (1/p + 1) / 2 packets is dropped (the paper's section 7).
    let parameters = RedParameters { min: 500, max: 1500, max_probability: 0.1, weight: 0.002 };
    for (average, p) in [(600, 0.01), (700, 0.02), (1000, 0.05), (1400, 0.09)] {
        let expected = 2.0 * p / (1.0 + p);
        near(red_drop_rate(parameters, average), expected, 0.05, &format!("at {average}"));
    }
    assert_eq!(red_drop_rate(parameters, 400), 0.0, "below min");
}

#[test]
fn with_ecn_red_marks_what_it_would_drop_and_drops_above_its_maximum() {
    let parameters = RedParameters { min: 500, max: 1500, max_probability: 0.1, weight: 0.002 };
    for (average, p) in [(600, 0.01), (1000, 0.05), (1400, 0.09)] {
        let (dropped, marked) = red_rates(parameters, average, true);
        near(marked, 2.0 * p / (1.0 + p), 0.05, &format!("marked at {average}"));
        assert_eq!(dropped, 0.0, "dropped at {average}");
    }
}

#[test]
fn red_settles_where_it_drops_what_is_too_much() {
    let parameters =
        RedParameters { min: 5_000, max: 100_000, max_probability: 0.5, weight: 0.002 };
    let mut link = link(QueueModel::Red(parameters), None);
    let rho = 1.25;
    let (mut sent, mut dropped, mut waits) = (0u64, 0u64, Vec::new());
    drive(&mut link, &overload(rho, true), 4_000_000_000_000, |(at, _, _, now, fate)| {
        if at < 400_000_000_000 {
            return;
        }
        sent += 1;
        match fate {
            Fate::Dropped => dropped += 1,
            _ => waits.push((now - at) as f64 / 1e9),
        }
    });
    let share = 1.0 - 1.0 / rho;
    near(dropped as f64 / sent as f64, share, 0.05, "share dropped");
    // From 2p / (1 + p) = share follows p, and from that the average queue.
    let p = share / (2.0 - share);
    let queue = 5_000.0 + 95_000.0 * p / 0.5;
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    near(mean, queue * 8.0 / RATE as f64, 0.05, "mean wait");
}

#[test]
fn fq_codel_gives_every_flow_the_same_share_of_bytes() {
    let lengths = [1000, 500, 250, 100];
    // Each sends as much as the link carries: four times too much together.
    let senders: Vec<Sender> = (0..)
        .zip(lengths)
        .map(|(client, bytes)| Sender {
            client,
            bytes,
            mean_ns: u64::from(bytes) * 8_000,
            is_poisson: false,
        })
        .collect();
    // Without drops of CoDel, which time what a sender that does not react has in its queue.
    let never = Duration::from_secs(1000);
    let codel = CoDelParameters { target: never, interval: never };
    let parameters = FqCoDelParameters { codel, ..FqCoDelParameters::default() };
    let mut link = link(QueueModel::FqCoDel(parameters), Some(100_000));
    let mut bytes = [0u64; 4];
    drive(&mut link, &senders, 60_000_000_000, |(at, client, length, _, fate)| {
        if at > 5_000_000_000 && fate != Fate::Dropped {
            bytes[client as usize] += u64::from(length);
        }
    });
    let total: u64 = bytes.iter().sum();
    for (client, bytes) in bytes.iter().enumerate() {
        near(*bytes as f64 / total as f64, 0.25, 0.02, &format!("flow {client}"));
    }
}

#[test]
fn fq_codel_lets_a_flow_that_sends_little_go_first() {
    let senders = [
        Sender { client: 0, bytes: 1000, mean_ns: SERVICE / 2, is_poisson: false },
        Sender { client: 1, bytes: 100, mean_ns: 500_000_000, is_poisson: false },
    ];
    let mut link = link(QueueModel::FqCoDel(FqCoDelParameters::default()), Some(1_000_000));
    let mut longest = 0;
    drive(&mut link, &senders, 60_000_000_000, |(at, client, _, now, fate)| {
        if client == 1 {
            assert_ne!(fate, Fate::Dropped);
            longest = longest.max(now - at);
        }
    });
    // At most what is in transmission and one turn of the other flow.
    assert!(longest <= 2 * SERVICE, "{longest} ns");
}

#[test]
fn a_full_buffer_of_fq_codel_drops_from_the_longest_queue() {
    let mut queue =
        QueueModel::FqCoDel(FqCoDelParameters::default()).build(&facts(Some(3_000)), stream("q"));
    let mut dropped = Vec::new();
    let packet = |id, client| QueuedPacket {
        id,
        client,
        bytes: 1000,
        queued_at: Instant::ZERO,
        is_marked: false,
    };
    for (id, client) in [(0, 5), (1, 5), (2, 5), (3, 9)] {
        queue.enqueue(Instant::ZERO, packet(id, client), &mut dropped);
    }
    assert_eq!(dropped, [packet(0, 5)], "the head of the longest");
    assert_eq!(queue.bytes(), 3_000);
}

fn models() -> impl Strategy<Value = QueueModel> {
    prop_oneof![
        Just(QueueModel::TailDrop),
        Just(QueueModel::CoDel(CoDelParameters::default())),
        (1u32..5).prop_map(|queues| {
            let default = FqCoDelParameters::default();
            QueueModel::FqCoDel(FqCoDelParameters { queues, quantum: Some(300), ..default })
        }),
        Just(QueueModel::Pie(PieParameters::default())),
        Just(QueueModel::Red(RedParameters {
            min: 1000,
            max: 4000,
            max_probability: 0.2,
            weight: 0.1
        })),
    ]
}

proptest! {
    /// Whatever comes when: each packet leaves or is dropped once, and the bytes that wait are those of the
    /// packets that wait, never above the buffer.
    #[test]
    fn every_packet_leaves_or_is_dropped_once(
        model in models(),
        buffer in prop_oneof![Just(None), (1_000u64..10_000).prop_map(Some)],
        steps in prop::collection::vec((0u64..30_000_000, 0u32..4, 1u32..1000, any::<bool>()), 1..200),
    ) {
        let mut queue = model.build(&facts(buffer), stream("queue"));
        let mut waiting: BTreeMap<u32, QueuedPacket> = BTreeMap::new();
        let (mut now, mut dropped) = (Instant::ZERO, Vec::new());
        for (id, (gap, client, bytes, leaves)) in (0u32..).zip(steps) {
            now = now + Duration::from_nanos(gap);
            if leaves {
                if let Some(packet) = queue.dequeue(now, &mut dropped) {
                    prop_assert_eq!(waiting.remove(&packet.id), Some(packet));
                }
            } else {
                let packet = QueuedPacket { id, client, bytes, queued_at: now, is_marked: false };
                waiting.insert(id, packet);
                queue.enqueue(now, packet, &mut dropped);
            }
            for packet in dropped.drain(..) {
                prop_assert_eq!(waiting.remove(&packet.id), Some(packet));
            }
            let bytes: u64 = waiting.values().map(|packet| u64::from(packet.bytes)).sum();
            prop_assert_eq!(queue.bytes(), bytes);
            prop_assert!(buffer.is_none_or(|buffer| bytes <= buffer));
        }
        while let Some(packet) = queue.dequeue(now, &mut dropped) {
            prop_assert_eq!(waiting.remove(&packet.id), Some(packet));
        }
        for packet in dropped.drain(..) {
            prop_assert_eq!(waiting.remove(&packet.id), Some(packet));
        }
        prop_assert!(waiting.is_empty());
    }
}
