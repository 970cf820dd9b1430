//! Loss after the queue: rates, bursts, and the same luck for whoever is compared.

use crate::common::{assert_near, scenario};
use ebbtide_core::time::Instant;
use ebbtide_sim::net::{Loss, LossModel};
use ebbtide_sim::random::{Probability, Streams, uniform};
use rand_chacha::ChaCha8Rng;

fn loss(model: LossModel, seed: u64) -> Loss<ChaCha8Rng> {
    let streams = Streams::new(seed, 0);
    Loss::new(model, streams.stream("packets"), streams.stream("states"))
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

/// The share of `packets` packets that a model loses, one every `step` ns.
fn share(model: LossModel, seed: u64, (packets, step): (u32, u64)) -> f64 {
    let mut loss = loss(model, seed);
    let lost = (0..u64::from(packets)).filter(|n| loss.loses(at(n * step))).count();
    lost as f64 / f64::from(packets)
}

/// Lengths of runs of `true`, complete ones only.
fn runs(states: &[bool]) -> Vec<usize> {
    let inner = states.split(|state| !state).filter(|run| !run.is_empty()).map(<[bool]>::len);
    let mut runs: Vec<usize> = inner.collect();
    runs.pop();
    runs
}

fn mean(values: &[usize]) -> f64 {
    values.iter().sum::<usize>() as f64 / values.len() as f64
}

#[test]
fn without_a_model_nothing_is_lost() {
    assert_eq!(share(LossModel::None, 1, (1000, 1)), 0.0);
}

#[test]
fn independent_loss_has_its_rate_and_no_memory() {
    let model = LossModel::Independent(Probability::new(0.02));
    let mut loss = loss(model, 1);
    let lost: Vec<bool> = (0..2_000_000).map(|n| loss.loses(at(n))).collect();
    let rate = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
    // The standard error is 0.5 %.
    assert_near(rate, 0.02, 0.015, "share lost");
    let after_loss = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
    let again = after_loss / (rate * lost.len() as f64);
    assert!((again - 0.02).abs() < 0.003, "share lost after a loss: {again}");
}

#[test]
fn certain_and_impossible_losses_are_exactly_that() {
    assert_eq!(share(LossModel::Independent(Probability::new(1.0)), 1, (100_000, 1)), 1.0);
    assert_eq!(share(LossModel::Independent(Probability::new(0.0)), 1, (100_000, 1)), 0.0);
}

#[test]
fn the_profiles_lose_2_10_and_18_percent() {
    for (profile, expected) in [("low", 0.02), ("medium", 0.10), ("high", 0.18)] {
        let model = scenario("nb-iot", &[("errors", profile)]).loss_model();
        // Standard errors: 0.35 %, 0.2 % and 0.15 % with the bursts taken into account.
        assert_near(share(model, 2, (4_000_000, 1)), expected, 0.011, profile);
    }
}

/// A chain whose losses are its states.
fn visible(worsen: f64, recover: f64) -> LossModel {
    LossModel::PerPacket {
        good: Probability::new(0.0),
        bad: Probability::new(1.0),
        worsen: Probability::new(worsen),
        recover: Probability::new(recover),
    }
}

#[test]
fn stays_of_the_per_packet_chain_are_geometric_with_the_stated_mean() {
    for (worsen, recover) in [(0.125, 0.5), (0.02, 0.2), (0.3, 1.0)] {
        let mut loss = loss(visible(worsen, recover), 3);
        let states: Vec<bool> = (0..3_000_000).map(|n| loss.loses(at(n))).collect();
        let bad = runs(&states);
        assert_near(mean(&bad), 1.0 / recover, 0.012, "mean stay in the bad state");
        let good: Vec<bool> = states.iter().map(|state| !state).collect();
        assert_near(mean(&runs(&good)), 1.0 / worsen, 0.012, "mean stay in the good state");
        let share = states.iter().filter(|state| **state).count() as f64 / states.len() as f64;
        assert_near(share, worsen / (worsen + recover), 0.012, "share of bad packets");
        // Geometric: the share of stays longer than k is (1 - recover)^k.
        let mut longer = 1.0;
        for k in 1..=5 {
            longer *= 1.0 - recover;
            let counted = bad.iter().filter(|run| **run > k).count() as f64 / bad.len() as f64;
            let error = 4.0 * (longer / bad.len() as f64).sqrt();
            assert!((counted - longer).abs() <= error, "longer than {k}: {counted} for {longer}");
        }
    }
}

#[test]
fn the_burst_lengths_of_a_profile_are_those_of_its_two_states() {
    // high: 2 and 80 %, 18 % on average, 2.5 packets in the bad state: a loss is followed by
    // another one with the probability that follows from the chain.
    let model = scenario("nb-iot", &[("errors", "high")]).loss_model();
    let mut loss = loss(model, 4);
    let lost: Vec<bool> = (0..4_000_000).map(|n| loss.loses(at(n))).collect();
    let bad_share = 0.16 / 0.78;
    let (recover, good, bad) = (0.4, 0.02, 0.8);
    let worsen = recover * bad_share / (1.0 - bad_share);
    let lost_in_bad = bad_share * bad / 0.18;
    let then_bad = lost_in_bad * (1.0 - recover) + (1.0 - lost_in_bad) * worsen;
    let again = then_bad * bad + (1.0 - then_bad) * good;
    // The mean run of losses is the number of losses over the number of runs.
    let lengths = runs(&lost);
    assert_near(mean(&lengths), 1.0 / (1.0 - again), 0.011, "mean burst of losses");
}

/// A chain over time whose losses are its states.
fn visible_in_time(mean_good: u64, mean_bad: u64) -> LossModel {
    LossModel::TimeDriven {
        good: Probability::new(0.0),
        bad: Probability::new(1.0),
        mean_good_ns: mean_good,
        mean_bad_ns: mean_bad,
        bad_share: Probability::new(mean_bad as f64 / (mean_good + mean_bad) as f64),
    }
}

#[test]
fn stays_of_the_time_driven_chain_are_exponential_with_the_stated_mean() {
    let (mean_good, mean_bad, step) = (900_000_000, 100_000_000, 500_000);
    let mut loss = loss(visible_in_time(mean_good, mean_bad), 5);
    let states: Vec<bool> = (0..30_000_000).map(|n| loss.loses(at(n * step))).collect();
    let share = states.iter().filter(|state| **state).count() as f64 / states.len() as f64;
    // 15000 stays: the standard error of the mean is 0.8 %, of the share 1.1 %.
    assert_near(share, 0.1, 0.03, "share of time in the bad state");
    let bad = runs(&states);
    assert_near(mean(&bad) * step as f64, mean_bad as f64, 0.025, "mean stay in the bad state");
    // Exponential, seen in steps: the share longer than k means is exp(-k).
    for (k, longer) in [(0.5, 0.6065), (1.0, 0.3679), (2.0, 0.1353), (3.0, 0.0498)] {
        let bound = (k * mean_bad as f64 / step as f64) as usize;
        let counted = bad.iter().filter(|run| **run > bound).count() as f64 / bad.len() as f64;
        assert!((counted - longer).abs() < 0.015, "longer than {k} means: {counted}");
    }
}

#[test]
fn the_time_driven_profile_loses_its_average() {
    let text = format!(
        "{}\n[errors.fading]\nkind = \"time-driven\"\ngood = 0.01\nbad = 0.6\naverage = 0.1\n\
         mean_bad = \"50 ms\"\n",
        ebbtide_sim::scenario::BUILTIN[0].toml.replace("errors = \"none\"", "errors = \"fading\"")
    );
    let source = ebbtide_sim::scenario::Source::new("test", text);
    let model = source.scenario(&[]).unwrap().loss_model();
    assert_near(share(model, 6, (4_000_000, 4_000_000)), 0.1, 0.015, "share lost");
}

#[test]
fn the_time_driven_chain_is_stationary_from_the_start() {
    let model = visible_in_time(300, 100);
    let bad = (0..40_000).filter(|seed| loss(model, *seed).loses(at(0))).count();
    assert_near(bad as f64 / 40_000.0, 0.25, 0.02, "share of chains that start bad");
}

#[test]
fn the_time_driven_chain_gives_the_same_luck_whatever_is_sent() {
    let model = visible_in_time(40_000_000, 10_000_000);
    for seed in 0..10 {
        let (mut sparse, mut dense) = (loss(model, seed), loss(model, seed));
        let mut draws = Streams::new(seed, 1).stream("pattern");
        let mut now = 0;
        for _ in 0..5_000 {
            now += uniform(&mut draws, 20_000, 20_000_000);
            // One sends bursts in between, the other does not.
            for before in (1..20).rev() {
                dense.loses(at(now - before * 1_000));
            }
            assert_eq!(sparse.loses(at(now)), dense.loses(at(now)), "seed {seed}, {now} ns");
        }
    }
}
