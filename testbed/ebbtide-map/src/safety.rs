//! Safety: which controls are unsafe in a network in which another one is safe.

use super::measures::Measured;
use super::network::DrawnNetwork;
use ebbtide_sim::stats::mean_and_half_width;

/// For each control the places of those that are safe in the network where it is unsafe, beyond
/// chance: their goodput is larger by more than the 95 % confidence interval of the difference
/// between the replications, which met the same luck. With one replication there is no interval,
/// and every difference counts.
pub(super) fn safer(network: &DrawnNetwork, measured: &[Measured]) -> Vec<Vec<usize>> {
    let is_safe = |one: &Measured| one.all.is_safe(network);
    let places = |one: &Measured| {
        if is_safe(one) != Some(false) {
            return Vec::new();
        }
        let others = measured.iter().enumerate();
        let safer = |other: &Measured| is_safe(other) == Some(true) && is_more(other, one);
        others.filter(|(_, other)| safer(other)).map(|(place, _)| place).collect()
    };
    measured.iter().map(places).collect()
}

/// Whether the goodput of one is larger, beyond chance.
fn is_more(one: &Measured, other: &Measured) -> bool {
    let pairs = one.runs.iter().zip(&other.runs);
    let differences: Vec<f64> =
        pairs.map(|(one, other)| one.goodput as f64 - other.goodput as f64).collect();
    let (mean, half) = mean_and_half_width(&differences);
    mean > half
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draw, Measures, Ranges};
    use ebbtide_sim::scenario::load;

    fn measured(goodput: &[u64]) -> Measured {
        let run = |goodput: &u64| Measures { goodput: *goodput, ..Measures::default() };
        let mean = goodput.iter().sum::<u64>() / goodput.len() as u64;
        Measured { all: run(&mean), runs: goodput.iter().map(run).collect() }
    }

    fn network(changes: &[&str]) -> DrawnNetwork {
        let changes: Vec<String> = changes.iter().map(|text| (*text).to_owned()).collect();
        let ranges = Ranges::new("all", &changes).unwrap();
        let source = load("nb-iot").unwrap();
        DrawnNetwork::draw(&source, &ranges, Draw { seed: 1, networks: 1 }, 6000).unwrap().remove(0)
    }

    const OVERLOADED: [&str; 4] =
        ["clients=500", "rate=2 kbit/s", "round-trip=100 ms", "errors=none"];

    #[test]
    fn a_control_is_blamed_only_where_another_one_is_safe_beyond_chance() {
        let network = network(&OVERLOADED);
        assert!(network.load() > 10.0);
        let of = |all: &[&[u64]]| {
            let all: Vec<Measured> = all.iter().map(|own| measured(own)).collect();
            safer(&network, &all)
        };
        let clear: &[u64] = &[700, 710, 690, 700];
        let low: &[u64] = &[300, 310, 290, 300];
        assert_eq!(of(&[low, clear, low]), [vec![1], vec![], vec![1]]);
        let none: [Vec<usize>; 2] = [vec![], vec![]];
        assert_eq!(of(&[low, low]), none);
        // 520 against 480 on average, and two of four replications the other way round.
        let (just, nearly): (&[u64], &[u64]) = (&[900, 140, 900, 140], &[480, 480, 480, 480]);
        assert_eq!(of(&[just, nearly]), none);
        // One replication has no interval.
        assert_eq!(of(&[&[400], &[600]]), [vec![1], vec![]]);
    }

    #[test]
    fn a_network_that_is_not_overloaded_is_not_unsafe() {
        let mut changes = OVERLOADED.map(str::to_owned);
        changes[0] = "clients=1".to_owned();
        changes[2] = "round-trip=8 s".to_owned();
        let network = network(&changes.each_ref().map(String::as_str));
        assert!(network.load() < 1.0);
        let none: [Vec<usize>; 2] = [vec![], vec![]];
        assert_eq!(safer(&network, &[measured(&[0]), measured(&[900])]), none);
    }
}
