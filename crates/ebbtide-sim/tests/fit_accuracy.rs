//! Captures of random known networks: the fitted network is the true one, within stated bounds.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

mod fit_fixture;

use ebbtide_sim::fit::{Fit, Options, fit};
use ebbtide_sim::map::{Network, Ranges};
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{Scenario, Source, load};
use fit_fixture::capture;

/// Whether each figure is within its bound.
#[derive(Debug)]
struct Within {
    rate: bool,
    round_trip: bool,
    buffer: bool,
    loss: bool,
}

fn figure(fit: &Fit, key: &str) -> (f64, bool, f64) {
    let figure = fit.figures.iter().find(|figure| figure.key == key).unwrap();
    (figure.value, figure.is_known, figure.low.unwrap_or(0.0))
}

/// Compares the bottleneck, the round trip and the losses; a line that shows them.
fn compare(network: &Network, fit: &Fit) -> (Within, String) {
    let truth = &network.scenario;
    let mut line = String::new();
    let mut rate_within = true;
    let mut buffer_within = true;
    let both = [
        ("up", &truth.network.up, "network.up.rate", "network.up.buffer"),
        ("down", &truth.network.down, "network.down.rate", "network.down.buffer"),
    ];
    for (name, link, rate, buffer) in both {
        let real = link.rate.0 as f64;
        let (value, is_known, low) = figure(fit, rate);
        let is_right = if is_known { (value / real - 1.0).abs() <= 0.1 } else { low <= 1.1 * real };
        rate_within &= is_right;
        let mark = if is_known { "" } else { ">" };
        line += &format!("{name} {real:.0}/{mark}{:.0} ", if is_known { value } else { low });
        let real = link.buffer.0.map_or(f64::INFINITY, |bytes| bytes as f64);
        let (value, is_known, low) = figure(fit, buffer);
        let is_right =
            if is_known { value / real <= 1.5 && real / value <= 1.5 } else { low <= 1.05 * real };
        buffer_within &= is_right;
        let mark = if is_known { "" } else { ">" };
        line += &format!("buf {real:.0}/{mark}{:.0} ", if is_known { value } else { low });
    }
    let real = network.idle_s;
    let (value, ..) = figure(fit, "round_trip");
    let round_trip = (value / real - 1.0).abs() <= 0.05;
    line += &format!("rtt {real:.3}/{value:.3} ");
    let real = truth.average_loss();
    let (up, down) = (figure(fit, "network.up.loss").0, figure(fit, "network.down.loss").0);
    let value = (up + down) / 2.0;
    line += &format!("loss {:.1}/{:.1} ", real * 100.0, value * 100.0);
    let loss = (value - real).abs() <= 0.02;
    (Within { rate: rate_within, round_trip, buffer: buffer_within, loss }, line)
}

fn networks(count: u32, seed: u64, changes: &[&str], work: u64) -> Vec<Network> {
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    let ranges = Ranges::new("all", &changes).unwrap();
    let drawn = Network::draw(&load("nb-iot").unwrap(), &ranges, (seed, count), work).unwrap();
    drawn.into_iter().take(count as usize).collect()
}

/// The control that the verdict chooses.
fn choice(source: Source, reps: u32) -> (Option<String>, String) {
    let controls = ["default", "cocoa", "fasor", "fasor-token"].map(str::to_owned).to_vec();
    let campaign = Campaign::plan(source, Vec::new(), controls, (Some(reps), Some(1))).unwrap();
    let results = campaign.run(None, None, &()).unwrap();
    let (_, verdict) = results.judged(campaign.percentile).remove(0);
    let words: Vec<String> = verdict
        .judgements
        .iter()
        .map(|(cc, judgement)| format!("{cc} {}", judgement.word()))
        .collect();
    (verdict.choose, words.join(", "))
}

/// Fits captures of networks at a place; the number within each bound, and of equal choices.
fn score(networks: &[Network], place: Option<u32>, reps: u32) -> [usize; 5] {
    let mut counts = [0; 5];
    for network in networks {
        let truth = &network.scenario;
        let bytes = capture(truth, "default", place, 77);
        let fitted = fit(&bytes[..], &Options::default()).unwrap();
        let (within, line) = compare(network, &fitted);
        let same = reps > 0 && {
            let own = toml_of(truth);
            let (real, real_words) = choice(Source::new("truth", own), reps);
            let (found, words) = choice(Source::new("fit", fitted.toml.as_str()), reps);
            eprintln!("    {real:?} ({real_words}) / {found:?} ({words})");
            real == found
        };
        eprintln!(
            "{:>3} {} c{} x{} {:?} {} {line} [{}{}{}{}{}]",
            network.number,
            fitted.messages,
            truth.clients.count,
            truth.workload.exchanges,
            truth.workload.kind,
            truth.network.errors,
            if within.rate { 'R' } else { '-' },
            if within.round_trip { 'T' } else { '-' },
            if within.buffer { 'B' } else { '-' },
            if within.loss { 'L' } else { '-' },
            if same { 'V' } else { '-' },
        );
        let all = [within.rate, within.round_trip, within.buffer, within.loss, same];
        for (count, is_right) in counts.iter_mut().zip(all) {
            *count += usize::from(is_right);
        }
    }
    counts
}

/// The network as a scenario of its own: the settings of controls that the drawn one has are no property of a network.
fn toml_of(scenario: &Scenario) -> String {
    let mut own = scenario.clone();
    own.control.clear();
    toml::to_string(&own).unwrap()
}

#[test]
#[ignore = "a minute in release"]
fn twenty_random_networks_are_found_within_the_bounds() {
    let place = std::env::var("FIT_PLACE").ok().and_then(|place| place.parse().ok());
    let reps = std::env::var("FIT_REPS").ok().and_then(|reps| reps.parse().ok()).unwrap_or(0);
    let seed = std::env::var("FIT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let networks = networks(
        20,
        seed,
        &["workload=continuous", "clients=2..100", "exchanges=40..100", "server=0 s"],
        6000,
    );
    let counts = score(&networks, place, reps);
    eprintln!("rate, round trip, buffer, loss, choice: {counts:?}");
}
