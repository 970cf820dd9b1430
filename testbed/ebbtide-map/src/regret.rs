//! The difference between a control and the best published control in a network.

use super::measures::{Measures, NEVER};

/// The published controls with which others are compared, unless the caller names others.
pub const PUBLISHED: [&str; 7] =
    ["default", "cocoa", "fasor", "fasor-token", "linux-rto", "default-fb2", "slow"];
/// The control with whose transmissions those of others are compared.
pub const COST_OF: &str = "fasor-token";
/// The delivered share by which a control may be below the best one for its time to count as the
/// best time.
const SHARE_TOLERANCE: f64 = 0.005;
/// Times count only if the best published control delivers at least this share; otherwise they are
/// those of the few exchanges that did not fail.
const MIN_SHARE: f64 = 0.5;

/// A control in one network, compared with the best published ones.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Regret {
    /// The delivered share minus the best one's; below zero if it is worse.
    pub share: f64,
    /// The median of the clients' times divided by the best one, if times count.
    pub median: Option<f64>,
    /// Their 90th percentile divided by the best one, if times count.
    pub p90: Option<f64>,
    /// Transmissions, probes included, per delivered exchange, divided by `fasor-token`'s.
    pub cost: Option<f64>,
}

/// Which of the published controls is the best one in a network, by each measure.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// The place of the control with the largest delivered share.
    pub share: usize,
    /// The place of the one with the shortest median, among those that deliver about as much.
    pub median: usize,
    /// The place of the one with the shortest 90th percentile, among the same.
    pub p90: usize,
}

impl Best {
    /// The best of these controls; `None` if there are none.
    pub fn among(published: &[Measures]) -> Option<Self> {
        let places = || published.iter().enumerate();
        let (share, best) = places().max_by(|a, b| a.1.share().total_cmp(&b.1.share()))?;
        let near = || places().filter(|(_, m)| m.share() >= best.share() - SHARE_TOLERANCE);
        Some(Self {
            share,
            median: near().min_by_key(|(_, m)| m.median_us)?.0,
            p90: near().min_by_key(|(_, m)| m.p90_us)?.0,
        })
    }
}

/// The best figures of the published controls in one network.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Reference {
    share: f64,
    median_us: u64,
    p90_us: u64,
    cost: Option<f64>,
}

impl Reference {
    /// The best figures among those of the published controls; `cost_of` are `fasor-token`'s.
    pub fn from_published(published: &[Measures], cost_of: Option<Measures>) -> Option<Self> {
        let best = Best::among(published)?;
        Some(Self {
            share: published[best.share].share(),
            median_us: published[best.median].median_us,
            p90_us: published[best.p90].p90_us,
            cost: cost_of.filter(|m| m.delivered > 0).map(|m| m.cost()),
        })
    }

    /// Compares the reference with itself: its controls measured again, each in that by which it is
    /// the best one.
    pub fn regret_of_chance(&self, again: &Again) -> Regret {
        let by = |own: &Measures| self.regret(own);
        Regret {
            share: by(&again.share).share,
            median: by(&again.median).median,
            p90: by(&again.p90).p90,
            cost: by(&again.cost).cost,
        }
    }

    /// Compares a control with the reference.
    pub fn regret(&self, measures: &Measures) -> Regret {
        let counts = self.share >= MIN_SHARE;
        let over = |own: u64, best: u64| {
            (counts && own < NEVER && best < NEVER).then(|| own as f64 / best.max(1) as f64)
        };
        Regret {
            share: measures.share() - self.share,
            median: over(measures.median_us, self.median_us),
            p90: over(measures.p90_us, self.p90_us),
            cost: self.cost.filter(|_| measures.delivered > 0).map(|cost| measures.cost() / cost),
        }
    }
}

/// The figures of the controls of a [`Reference`] in other replications.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// The control that delivered most.
    pub share: Measures,
    /// The one with the shortest median.
    pub median: Measures,
    /// The one with the shortest 90th percentile.
    pub p90: Measures,
    /// The one with whose transmissions others are compared.
    pub cost: Measures,
}

/// Factors over many networks.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Spread {
    /// Their geometric mean.
    pub mean: f64,
    /// The value that 95 % of them do not exceed.
    pub p95: f64,
    /// The largest.
    pub worst: f64,
}

impl Spread {
    /// The spread of factors in any order; `None` if there are none.
    pub fn from_factors(factors: impl Iterator<Item = f64>) -> Option<Self> {
        let mut factors: Vec<f64> = factors.collect();
        factors.sort_unstable_by(f64::total_cmp);
        let worst = *factors.last()?;
        let mean = factors.iter().map(|factor| ln(*factor)).sum::<f64>() / factors.len() as f64;
        Some(Self { mean: exp(mean), p95: ebbtide_sim::stats::quantile(&factors, 0.95), worst })
    }
}

#[expect(clippy::disallowed_methods, reason = "shown with four digits, where the last bit is not")]
pub(super) fn ln(value: f64) -> f64 {
    value.max(1e-12).ln()
}

#[expect(clippy::disallowed_methods, reason = "see above")]
fn exp(value: f64) -> f64 {
    (value.exp() * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measures(delivered: u64, median_us: u64, messages: u64) -> Measures {
        let p90_us = 2 * median_us;
        Measures { asked: 1000, delivered, median_us, p90_us, messages, ..Measures::default() }
    }

    #[test]
    fn only_those_that_deliver_about_as_much_as_the_best_count_for_the_best_time() {
        let published = [measures(1000, 40, 1500), measures(996, 30, 0), measures(900, 10, 0)];
        let reference = Reference::from_published(&published, Some(published[0])).unwrap();
        let regret = reference.regret(&measures(990, 60, 1980));
        assert_eq!((regret.median, regret.p90), (Some(2.0), Some(2.0)));
        assert!((regret.share + 0.01).abs() < 1e-9);
        assert!((regret.cost.unwrap() - 2.0 / 1.5).abs() < 1e-9);
    }

    #[test]
    fn the_best_one_measured_again_differs_by_chance_alone() {
        let published = [measures(1000, 40, 1500), measures(996, 30, 1200)];
        assert_eq!(Best::among(&published), Some(Best { share: 0, median: 1, p90: 1 }));
        let reference = Reference::from_published(&published, Some(published[0])).unwrap();
        let again = Again {
            share: measures(999, 50, 0),
            median: measures(990, 33, 0),
            p90: measures(990, 27, 0),
            cost: measures(1000, 50, 1350),
        };
        let regret = reference.regret_of_chance(&again);
        assert!((regret.share + 0.001).abs() < 1e-9);
        assert_eq!((regret.median, regret.p90, regret.cost), (Some(1.1), Some(0.9), Some(0.9)));
    }

    #[test]
    fn times_do_not_count_where_the_best_delivers_less_than_half() {
        let reference = Reference::from_published(&[measures(499, 40, 0)], None).unwrap();
        let regret = reference.regret(&measures(600, 4000, 0));
        assert_eq!((regret.median, regret.p90, regret.cost), (None, None, None));
        assert!(regret.share > 0.1);
    }

    #[test]
    fn a_spread_is_the_geometric_mean_and_the_upper_tail() {
        let spread = Spread::from_factors([0.5, 2.0].into_iter()).unwrap();
        assert_eq!((spread.mean, spread.worst), (1.0, 2.0));
        assert_eq!(Spread::from_factors(std::iter::empty()), None);
    }
}
