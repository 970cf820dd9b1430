//! The rule by which a default is chosen from a map: safety first, then the delivered share, then
//! time, then transmissions. Each step decides only beyond chance; `docs/verdict.md` states it.

use super::regret::ln;
use super::result::{Map, MapCell};
use ebbtide_sim::judge::{MARGIN, named_among};
use ebbtide_sim::stats::mean_and_half_width;
use std::fmt;

/// A step of the rule.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleStep {
    /// Networks in which a control is unsafe and another one of the comparison is safe.
    Safety,
    /// The delivered share.
    Share,
    /// The median and the 90th percentile of the times.
    Time,
    /// Transmissions for each delivered exchange.
    Transmissions,
}

impl RuleStep {
    /// The steps in their order.
    pub const ALL: [Self; 4] = [Self::Safety, Self::Share, Self::Time, Self::Transmissions];

    /// The least mean difference that decides.
    fn margin(self) -> f64 {
        match self {
            Self::Safety | Self::Share => 0.0,
            Self::Time | Self::Transmissions => ln(1.0 + MARGIN),
        }
    }
}

impl fmt::Display for RuleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Safety => "safety",
            Self::Share => "delivered share",
            Self::Time => "time",
            Self::Transmissions => "transmissions",
        })
    }
}

/// A control in one network by each step, the smaller the better. `None` where it does not count.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Whether it is unsafe where another control is safe: 1 or 0.
    pub safety: f64,
    /// The share that it does not deliver.
    pub share: f64,
    /// The logarithm of its time.
    pub time: Option<f64>,
    /// The logarithm of its transmissions for each delivered exchange.
    pub transmissions: Option<f64>,
}

impl Figures {
    fn from_cell(cell: &MapCell, place: usize) -> Self {
        let regret = cell.regrets[place];
        Self {
            safety: f64::from(u8::from(!cell.safer[place].is_empty())),
            share: -regret.share,
            time: regret.median.zip(regret.p90).map(|(median, p90)| (ln(median) + ln(p90)) / 2.0),
            transmissions: regret.cost.map(ln),
        }
    }

    const fn by(&self, step: RuleStep) -> Option<f64> {
        match step {
            RuleStep::Safety => Some(self.safety),
            RuleStep::Share => Some(self.share),
            RuleStep::Time => self.time,
            RuleStep::Transmissions => self.transmissions,
        }
    }
}

/// A control that another one beats, and the step that decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Beaten {
    /// The place of the control.
    pub place: usize,
    /// The step.
    pub step: RuleStep,
    /// The place of the control that beats it by the most.
    pub by: usize,
    /// The mean difference over the networks: networks, shares, or logarithms.
    pub mean: f64,
    /// Half of its 95 % confidence interval.
    pub half: f64,
}

/// The result of the rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BestControls {
    /// The places of the controls that no step decides against.
    pub equals: Vec<usize>,
    /// The one of them that is named: the library's default if it is among them, or else the first.
    pub best: Option<usize>,
    /// All others, in the order of the steps.
    pub beaten: Vec<Beaten>,
}

impl Map {
    /// The control that the rule chooses as the default.
    pub fn chosen(&self) -> BestControls {
        let figures: Vec<Vec<Figures>> = self
            .cells
            .iter()
            .map(|cell| {
                (0..self.controls.len()).map(|place| Figures::from_cell(cell, place)).collect()
            })
            .collect();
        choose(&self.controls, &figures)
    }
}

/// Applies the rule to the figures of some controls in some networks.
pub fn choose(controls: &[String], networks: &[Vec<Figures>]) -> BestControls {
    let mut chosen =
        BestControls { equals: (0..controls.len()).collect(), ..BestControls::default() };
    if networks.is_empty() {
        return BestControls::default();
    }
    for step in RuleStep::ALL {
        let loses = |one: usize, other: usize| {
            let pairs = networks
                .iter()
                .filter_map(|own| Some(own.get(one)?.by(step)? - own.get(other)?.by(step)?));
            let (mean, half) = mean_and_half_width(&pairs.collect::<Vec<f64>>());
            (mean > half && mean > step.margin()).then_some((mean, half))
        };
        let worst = |place: usize| {
            let others = chosen.equals.iter().filter(|other| **other != place);
            let beaten = others.filter_map(|other| {
                loses(place, *other).map(|(mean, half)| Beaten {
                    place,
                    step,
                    by: *other,
                    mean,
                    half,
                })
            });
            beaten.max_by(|a, b| a.mean.total_cmp(&b.mean))
        };
        let beaten: Vec<Beaten> = chosen.equals.iter().filter_map(|place| worst(*place)).collect();
        // In a circle each beats another one; then the step does not decide.
        if beaten.len() < chosen.equals.len() {
            chosen.equals.retain(|place| beaten.iter().all(|one| one.place != *place));
            chosen.beaten.extend(beaten);
        }
    }
    let names = chosen.equals.iter().map(|place| controls[*place].as_str());
    chosen.best = named_among(names).map(|place| chosen.equals[place]);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|place| format!("control-{place}")).collect()
    }

    /// Ten networks in which the controls differ by `each`.
    fn everywhere(each: &[Figures]) -> Vec<Vec<Figures>> {
        vec![each.to_vec(); 10]
    }

    fn fast(time: f64) -> Figures {
        Figures { time: Some(time), transmissions: Some(0.0), ..Figures::default() }
    }

    #[test]
    fn safety_decides_before_a_share_that_is_far_better() {
        // The first is unsafe in eight of ten networks where the other is safe, and delivers half as
        // much again: mean 0.8, half-width 2.262 x 0.4216 / 3.162 = 0.30.
        let safe = Figures { share: 0.5, ..fast(3.0) };
        let networks: Vec<Vec<Figures>> = (0..10)
            .map(|network| {
                let safety = if network < 8 { 1.0 } else { 0.0 };
                vec![Figures { safety, ..fast(0.0) }, safe]
            })
            .collect();
        let chosen = choose(&names(2), &networks);
        assert_eq!((chosen.best, chosen.beaten.len()), (Some(1), 1));
        let beaten = &chosen.beaten[0];
        assert_eq!((beaten.place, beaten.step, beaten.by), (0, RuleStep::Safety, 1));
        assert!((beaten.mean - 0.8).abs() < 1e-9 && (beaten.half - 0.3016).abs() < 1e-3);
    }

    #[test]
    fn one_unsafe_network_of_ten_is_within_chance_and_the_share_decides() {
        // Mean 0.1, half-width 2.262 x 0.3162 / 3.162 = 0.226.
        let networks: Vec<Vec<Figures>> = (0..10)
            .map(|network| {
                let safety = if network == 0 { 1.0 } else { 0.0 };
                vec![Figures { safety, ..fast(0.0) }, Figures { share: 0.01, ..fast(0.0) }]
            })
            .collect();
        let chosen = choose(&names(2), &networks);
        assert_eq!(chosen.best, Some(0));
        assert_eq!(chosen.beaten[0].step, RuleStep::Share);
    }

    #[test]
    fn time_decides_before_transmissions_and_both_only_beyond_two_percent() {
        let cheap = |time: f64, cost: f64| Figures { transmissions: Some(cost), ..fast(time) };
        let chosen = choose(&names(2), &everywhere(&[cheap(0.0, 0.7), cheap(0.03, 0.0)]));
        assert_eq!((chosen.best, chosen.beaten[0].step), (Some(0), RuleStep::Time));
        let chosen = choose(&names(2), &everywhere(&[cheap(0.0, 0.7), cheap(0.01, 0.0)]));
        assert_eq!((chosen.best, chosen.beaten[0].step), (Some(1), RuleStep::Transmissions));
        let chosen = choose(&names(2), &everywhere(&[cheap(0.0, 0.01), cheap(0.01, 0.0)]));
        assert_eq!((chosen.equals, chosen.best), (vec![0, 1], Some(0)));
    }

    #[test]
    fn among_equals_the_present_default_stays() {
        let mut controls = names(3);
        controls[2] =
            ebbtide_core::endpoint::EndpointConfig::default().control.selection.name().to_owned();
        assert_eq!(choose(&controls, &everywhere(&[fast(0.0); 3])).best, Some(2));
    }

    #[test]
    fn a_time_that_does_not_count_for_one_of_two_decides_nothing_between_them() {
        let chosen = choose(&names(2), &everywhere(&[Figures::default(), fast(9.0)]));
        assert_eq!(chosen.equals, [0, 1]);
        assert_eq!(choose(&names(2), &[]).best, None);
    }
}
