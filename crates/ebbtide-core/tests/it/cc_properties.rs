//! What holds for every control after any sequence of calls, at any time on the clock.

use crate::common::seeded;
use ebbtide_core::cc::{
    Admission, Algorithm, Answered, Attempts, Context, ControlConfig, Expiry, Kind, Load, Outcome,
    OutgoingMessage, ProbeReply, Sample, Shell, Slot, Transmission,
};
use ebbtide_core::params::Parameters;
use ebbtide_core::time::{Duration, Instant, Micros};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

#[derive(Copy, Clone, Debug)]
enum Step {
    /// A Confirmable message asks to leave, and does if it may.
    Confirmable,
    /// A Non-confirmable message asks to leave under this load, and does if it may.
    NonConfirmable { bytes: u32, since: u64, nons: u8, last: Option<u64> },
    /// The timeout of one of the open exchanges passes.
    Expire(usize),
    /// A probe of one of the open exchanges is answered.
    ProbeReply { which: usize, since: Micros, last: Micros },
    /// One of the open exchanges is answered.
    Answer { which: usize, outcome: Outcome, first: Micros, last: Micros, mark: Option<u8> },
    /// One of the open exchanges is cancelled.
    Cancel(usize),
    /// Nothing happens for so many nanoseconds.
    Idle(u64),
    /// The control is replaced, as when the peer is forgotten.
    Replace(Algorithm),
}

/// Spans of every size, the ends included.
fn span() -> impl Strategy<Value = Micros> {
    prop_oneof![
        Just(Micros::ZERO),
        Just(Micros::MAX),
        (0..100u32).prop_map(Micros::new),
        (0..20_000_000u32).prop_map(Micros::new),
        any::<u32>().prop_map(Micros::new),
        any::<u64>().prop_map(|bits| Micros::from_u64(bits >> 26)),
    ]
}

fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..100u64,
        0..100_000_000_000u64,
        0..100_000_000_000_000u64,
        any::<u64>(),
        Just(u64::MAX),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = select(vec![Outcome::Acknowledged, Outcome::Reset]);
    prop_oneof![
        6 => Just(Step::Confirmable),
        2 => (any::<u32>(), nanos(), any::<u8>(), prop::option::of(nanos())).prop_map(
            |(bytes, since, nons, last)| Step::NonConfirmable { bytes, since, nons, last }
        ),
        8 => (0..8usize).prop_map(Step::Expire),
        3 => (0..8usize, span(), span()).prop_map(
            |(which, since, last)| Step::ProbeReply { which, since, last }
        ),
        4 => (0..8usize, outcome, span(), span(), prop::option::of(0..6u8)).prop_map(
            |(which, outcome, first, last, mark)| Step::Answer { which, outcome, first, last, mark }
        ),
        1 => (0..8usize).prop_map(Step::Cancel),
        2 => nanos().prop_map(Step::Idle),
        1 => select(Algorithm::ALL).prop_map(Step::Replace),
    ]
}

fn config() -> impl Strategy<Value = ControlConfig> {
    (
        select(Algorithm::ALL),
        prop::option::of(1..5u16),
        prop::option::of(span()),
        prop::option::of(span()),
        any::<bool>(),
        2..=64u16,
        1..=4u8,
    )
        .prop_map(|(algorithm, nstart, bound, initial_rto, ageing, factor, history)| {
            let mut config = ControlConfig::new(algorithm);
            let settings = &mut config.settings;
            settings.nstart = nstart;
            settings.bound = bound.or(settings.bound);
            settings.initial_rto = initial_rto;
            (settings.ageing, settings.cocoa.small_ageing_factor) = (ageing, factor);
            settings.cocoa.history = history;
            config
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn timeouts_are_bounded_and_places_are_neither_leaked_nor_exceeded(
        config in config(),
        (begin, seed, max_retransmit) in (nanos(), any::<u64>(), prop_oneof![0..6u8, any::<u8>()]),
        steps in vec(step(), 0..120),
    ) {
        let params = Parameters { max_retransmit, ..Parameters::DEFAULT };
        let nstart = config.settings.places(&params);
        let mut rng = seeded(seed);
        let mut now = Instant::from_nanos(begin);
        let mut shell = Shell::new(config.build());
        let mut open: Vec<(Slot, Attempts)> = Vec::new();
        for step in steps {
            let cx = &mut Context { now, params: &params, settings: &config.settings, rng: &mut *rng };
            let bounds = Shell::FLOOR..=Shell::CEILING;
            match step {
                Step::Confirmable => {
                    let con = OutgoingMessage { confirmable: true, bytes: 30 };
                    match shell.admit(&con, Load::default(), cx) {
                        Admission::Send | Admission::SendAsConfirmable => {
                            let mut slot = Slot::default();
                            shell.open_exchange();
                            let timeout = shell.on_transmit(Transmission::new(Kind::Message, 0), &mut slot, cx);
                            prop_assert!(bounds.contains(&timeout), "{timeout:?}");
                            prop_assert_eq!(slot.armed, timeout);
                            open.push((slot, Attempts { transmissions: 1, ..Attempts::default() }));
                        }
                        // A control with a rate has a bound of its own below.
                        Admission::Blocked => prop_assert!(shell.open() > 0),
                        Admission::NotBefore(at) => prop_assert!(at > now),
                        // The second one of a pair may follow at once, the third may not.
                        Admission::Probe(at) => {
                            prop_assert!(at >= now);
                            let mut load = Load::default();
                            load.probes = 1;
                            let cx = &mut Context { now, params: &params, settings: &config.settings, rng: &mut *rng };
                            if let Admission::Probe(at) = shell.admit(&con, load, cx) {
                                prop_assert!(at >= now + Shell::PROBE_GAP);
                            }
                        }
                        Admission::GiveUp => {}
                    }
                }
                Step::NonConfirmable { bytes, since, nons, last } => {
                    let mut load = Load::default();
                    load.last_non = last.map(|last| Instant::from_nanos(last).min(now));
                    load.nons_since_con = nons;
                    load.unanswered_bytes = bytes;
                    load.unanswered_since = Instant::from_nanos(since).min(now);
                    let non = OutgoingMessage { confirmable: false, bytes: 30 };
                    match shell.admit(&non, load, cx) {
                        Admission::SendAsConfirmable => prop_assert!(shell.open() < nstart),
                        Admission::NotBefore(at) => prop_assert!(at > now),
                        Admission::Blocked => prop_assert!(shell.open() > 0),
                        Admission::Send => {}
                        answer => prop_assert!(false, "{answer:?} for a Non-confirmable message"),
                    }
                }
                Step::Expire(which) if which < open.len() => {
                    let (slot, effort) = &mut open[which];
                    now = now + slot.armed;
                    let cx = &mut Context { now, params: &params, settings: &config.settings, rng: &mut *rng };
                    let next = shell.on_expire(*effort, slot, cx);
                    if let Some(next) = next {
                        let transmission = match next {
                            Expiry::Repeat => Transmission::new(Kind::Message, effort.transmissions),
                            Expiry::Probe => Transmission::new(Kind::Probe, effort.probes),
                        };
                        let timeout = shell.on_transmit(transmission, slot, cx);
                        prop_assert!(bounds.contains(&timeout), "{timeout:?}");
                        prop_assert_eq!(slot.armed, timeout);
                        match next {
                            Expiry::Repeat => effort.transmissions += 1,
                            Expiry::Probe => effort.probes += 1,
                        }
                        prop_assert!(effort.probes <= max_retransmit);
                        prop_assert!(effort.unanswered() <= u16::from(max_retransmit) + 1);
                        prop_assert!(effort.transmissions - 1 <= max_retransmit);
                    } else {
                        prop_assert!(effort.unanswered() > u16::from(max_retransmit)
                            || effort.transmissions == 255);
                        let retransmissions = effort.transmissions - 1;
                        shell.close_exchange(slot, Outcome::GaveUp, retransmissions, cx);
                        open.remove(which);
                    }
                }
                Step::ProbeReply { which, since, last } if which < open.len() => {
                    let (slot, effort) = &mut open[which];
                    if effort.answered_probes < effort.probes {
                        effort.answered_probes += 1;
                        let reply = ProbeReply { since, since_last: last, transmissions: effort.transmissions };
                        let wait = shell.on_probe(slot, &reply, cx);
                        prop_assert!(wait.is_none_or(|wait| wait <= Shell::CEILING));
                        if wait.is_some() && effort.transmissions < u8::MAX {
                            // As the endpoint does: no expiry is asked about, the message leaves.
                            let repeat = Transmission::new(Kind::Message, effort.transmissions);
                            let timeout = shell.on_transmit(repeat, slot, cx);
                            prop_assert!(bounds.contains(&timeout), "{timeout:?}");
                            effort.transmissions += 1;
                            prop_assert!(effort.transmissions - 1 <= max_retransmit);
                            prop_assert!(effort.unanswered() <= u16::from(max_retransmit) + 1);
                        }
                    }
                }
                Step::Answer { which, outcome, first, last, mark } if which < open.len() => {
                    let (slot, Attempts { transmissions, .. }) = open.remove(which);
                    let mark = mark.filter(|&ordinal| ordinal < transmissions);
                    let sample = Sample::new(first, last.min(first), transmissions).with_answered(
                        mark.map(|ordinal| Answered { ordinal, since: last.min(first) }),
                    );
                    shell.on_feedback(&slot, &sample, cx);
                    shell.close_exchange(&slot, outcome, transmissions - 1, cx);
                }
                Step::Cancel(which) if which < open.len() => {
                    let (slot, Attempts { transmissions, .. }) = open.remove(which);
                    shell.close_exchange(&slot, Outcome::Cancelled, transmissions - 1, cx);
                }
                Step::Idle(nanos) => now = now + Duration::from_nanos(nanos),
                Step::Replace(algorithm) => {
                    let other = ControlConfig::new(algorithm);
                    shell.replace(ControlConfig { settings: config.settings, ..other }.build());
                }
                Step::Expire(_) | Step::ProbeReply { .. } | Step::Answer { .. } | Step::Cancel(_) => {}
            }
            prop_assert_eq!(usize::from(shell.open()), open.len());
            prop_assert!(shell.open() <= nstart);
            let _ = (shell.metrics(), shell.marking(), shell.poll_timeout());
        }
        // Everything that is open can end, and then everything is free.
        let cx = &mut Context { now, params: &params, settings: &config.settings, rng: &mut *rng };
        for (slot, Attempts { transmissions, .. }) in open.drain(..) {
            shell.close_exchange(&slot, Outcome::Cancelled, transmissions - 1, cx);
        }
        prop_assert_eq!(shell.open(), 0);
    }
}
