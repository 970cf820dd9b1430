//! Captures of random known networks: the fitted network is the true one, within stated bounds.
#![allow(clippy::print_stderr, reason = "a test fails by panicking")]

use crate::captures::capture;
use ebbtide_fit::{Fit, Options, TakenAt, fit};
use ebbtide_map::{Draw, DrawnNetwork, Ranges};
use ebbtide_sim::judge::{Judgement, Verdict};
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{Override, Scenario, Source, WorkloadKind, load};

fn figure(fit: &Fit, key: &str) -> (f64, bool, f64) {
    let figure = fit.figures.iter().find(|figure| figure.key == key).unwrap();
    (figure.value, figure.is_known, figure.low.unwrap_or(0.0))
}

/// Whether the rates, the round trip, the buffers and the losses are within their bounds, and a line that shows them.
fn compare(network: &DrawnNetwork, fit: &Fit) -> ([bool; 4], String) {
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
    ([rate_within, round_trip, buffer_within, loss], line)
}

fn networks(count: u32, seed: u64, changes: &[&str], work: u64) -> Vec<DrawnNetwork> {
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    let ranges = Ranges::new("all", &changes).unwrap();
    let drawn =
        DrawnNetwork::draw(&load("nb-iot").unwrap(), &ranges, Draw { seed, networks: count }, work)
            .unwrap();
    drawn.into_iter().take(count as usize).collect()
}

/// The verdict on a network.
fn judged(source: Source, reps: u32, seed: u64) -> Verdict {
    let controls = ["default", "cocoa", "fasor", "fasor-token"].map(str::to_owned).to_vec();
    let campaign = Campaign::plan(source, Vec::new(), controls, Some(reps), Some(seed)).unwrap();
    let results = campaign.run(None, None, &()).unwrap();
    results.judged(campaign.percentile).remove(0).1
}

/// A verdict in a line.
fn words(verdict: &Verdict) -> String {
    let words: Vec<String> = verdict
        .judgements
        .iter()
        .map(|(cc, judgement)| format!("{cc} {}", judgement.word()))
        .collect();
    format!("{:?} ({})", verdict.choose, words.join(", "))
}

/// Whether an engineer who uses the control that `found` names loses nothing in a network judged like this.
fn loses_nothing(truth: &Verdict, found: &Verdict) -> bool {
    let judgement = found.choose.as_ref().and_then(|cc| truth.judgement_of(cc));
    matches!(judgement, Some(Judgement::Best | Judgement::Level)) || found.choose == truth.choose
}

/// Fits captures of networks at a place. The number within each bound; of the fitted networks with the same choice
/// as the true ones, and with one that is the best or level there; and the same two for the true networks with
/// another seed.
fn score(networks: &[DrawnNetwork], place: Option<u32>, reps: u32) -> [usize; 8] {
    let mut counts = [0; 8];
    for network in networks {
        let truth = &network.scenario;
        let bytes = capture(truth, "default", place, 77);
        let fitted = fit(&bytes[..], &Options::default()).unwrap();
        let (within, line) = compare(network, &fitted);
        let mut verdicts = [false; 4];
        if reps > 0 {
            let own = || Source::new("truth", toml_of(truth));
            let real = judged(own(), reps, 1);
            let found = judged(Source::new("fit", fitted.toml.as_str()), reps, 1);
            let again = judged(own(), reps, 2);
            eprintln!("    {} / {} / again {}", words(&real), words(&found), words(&again));
            for (place, other) in [&found, &again].into_iter().enumerate() {
                verdicts[2 * place] = real.choose == other.choose;
                verdicts[2 * place + 1] = loses_nothing(&real, other);
            }
        }
        let letters = "RTBL".chars().zip(within).map(|(letter, is)| if is { letter } else { '-' });
        let letters: String = letters.collect();
        let number = network.number;
        eprintln!(
            "{number:>3} {} {line}[{letters}{}]",
            fitted.messages,
            if verdicts[0] { "V" } else { "-" }
        );
        for (count, is_right) in counts.iter_mut().zip(within.into_iter().chain(verdicts)) {
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

/// A number from the environment, to try other places, seeds and replications.
fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
#[ignore = "a minute in release; with FIT_REPS=20 the verdicts are compared, too"]
fn twenty_random_networks_are_found_within_the_bounds() {
    let ranges = ["workload=continuous", "clients=2..100", "exchanges=150..400", "server=0 s"];
    let seed = number("FIT_SEED").unwrap_or(1).into();
    let networks = networks(20, seed, &ranges, 20_000);
    let counts = score(&networks, number("FIT_PLACE"), number("FIT_REPS").unwrap_or(0));
    eprintln!("rate, round trip, buffer, loss: {:?}", &counts[..4]);
    eprintln!("the same control, one that is best or level: {:?}", &counts[4..6]);
    eprintln!("the true network with another seed: {:?}", &counts[6..]);
    if number("FIT_PLACE").is_none() {
        let reached = if number("FIT_REPS").is_some() { &counts[..6] } else { &counts[..4] };
        assert!(reached.iter().all(|count| *count >= 18), "{counts:?}");
    }
}

#[test]
fn a_few_random_networks_are_found_within_the_bounds() {
    let ranges = [
        "workload=continuous",
        "clients=5..30",
        "exchanges=40..60",
        "server=0 s",
        "errors=none,low",
    ];
    let networks = networks(6, 1, &ranges, 800);
    let counts = score(&networks, None, 0);
    assert!(counts[..4].iter().all(|count| *count >= 5), "{counts:?}");
}

#[test]
fn next_to_the_clients_the_bottleneck_and_the_sums_of_both_directions_are_found() {
    let changes = [("clients", "30"), ("exchanges", "20"), ("errors", "low")];
    let changes = changes.map(|(key, value)| Override { key: key.into(), value: value.into() });
    let truth = load("nb-iot").unwrap().scenario(&changes).unwrap();
    let fitted = fit(&capture(&truth, "default", Some(0), 1)[..], &Options::default()).unwrap();
    assert_eq!(fitted.taken_at, TakenAt::Clients);
    let (rate, is_known, _) = figure(&fitted, "network.down.rate");
    assert!(is_known && (rate / 30_000.0 - 1.0).abs() < 0.1, "{rate}");
    // Delays of 200, 400 and twice 15 ms, and the times of 38 and 94 bytes.
    let (round_trip, ..) = figure(&fitted, "round_trip");
    assert!((round_trip / 0.66 - 1.0).abs() < 0.05, "{round_trip}");
    let (loss, ..) = figure(&fitted, "network.up.loss");
    assert!((loss - 0.02).abs() < 0.02, "{loss}");
    assert!(fitted.unknown.iter().any(|own| own.contains("cannot be told apart")));
}

/// The fit of a capture of `nb-iot` with another workload, taken next to the clients.
fn fit_of(changes: &[(&str, &str)]) -> Fit {
    let common = [("clients", "8"), ("exchanges", "12"), ("network.down.rate", "1 Mbit/s")];
    let change =
        |(key, value): &(&str, &str)| Override { key: (*key).into(), value: (*value).into() };
    let changes: Vec<Override> = common.iter().chain(changes).map(change).collect();
    let truth = load("nb-iot").unwrap().scenario(&changes).unwrap();
    fit(&capture(&truth, "default", Some(0), 3)[..], &Options::default()).unwrap()
}

#[test]
fn each_workload_is_recognized() {
    let period = ("workload.period", "20 s");
    for (kind, changes) in [
        (WorkloadKind::Continuous, vec![]),
        (WorkloadKind::Periodic, vec![period]),
        (WorkloadKind::Periodic, vec![period, ("workload.jitter", "2 s")]),
        (WorkloadKind::Poisson, vec![period]),
        (WorkloadKind::Bursts, vec![period, ("workload.burst", "3")]),
        (WorkloadKind::Synchronised, vec![period]),
    ] {
        let name = toml::Value::try_from(kind).unwrap();
        let mut changes = changes;
        changes.push(("workload", name.as_str().unwrap()));
        let found = fit_of(&changes).scenario;
        assert_eq!(found.workload.kind(), kind, "{changes:?}");
        assert_eq!(found.clients.count, 8);
        if kind != WorkloadKind::Continuous {
            let period = found.workload.clocked().unwrap().period.0 as f64 / 2e10;
            let bound = if kind == WorkloadKind::Poisson { 0.4 } else { 0.05 };
            assert!((period - 1.0).abs() < bound, "{changes:?}: {period}");
        }
        assert_eq!((found.workload.response_payload, found.workload.path.as_str()), (60, "value"));
    }
}

#[test]
fn a_fitted_scenario_runs_and_its_own_capture_gives_the_same_network() {
    let changes = [("clients", "20"), ("exchanges", "20"), ("buffer", "1400")];
    let changes = changes.map(|(key, value)| Override { key: key.into(), value: value.into() });
    let truth = load("nb-iot").unwrap().scenario(&changes).unwrap();
    let first = fit(&capture(&truth, "default", None, 1)[..], &Options::default()).unwrap();
    let again =
        fit(&capture(&first.scenario, "default", None, 1)[..], &Options::default()).unwrap();
    for key in ["network.down.rate", "round_trip"] {
        let (one, other) = (figure(&first, key).0, figure(&again, key).0);
        assert!((one / other - 1.0).abs() < 0.05, "{key}: {one} {other}");
    }
    let counts =
        [&first, &again].map(|own| (own.scenario.clients.count, own.scenario.workload.exchanges));
    assert_eq!(counts, [(20, 20); 2]);
}
