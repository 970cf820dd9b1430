//! `--until KEY`: the value of a key up to which each control meets the requirements.

use super::campaign::{Campaign, CampaignError, Progress, run_command};
use crate::judge::{ControlOutcome, Met, RequirementCheck};
use crate::result::{BreakingPoint, CellResult, CellSpec, Results, UntilPoint};
use crate::scenario::{Axis, LoadCurve, Scale, Scenario, ScenarioError, Source};
use std::fmt;

/// The largest factor by which the scenario's own value is changed in search of an end.
const REACH: u32 = 12;

/// The most exchanges of a replication in a search without a range, unless the scenario itself has
/// more: a search that finds no breaking point must end.
const MOST_EXCHANGES: f64 = 1e6;

/// The search ends when the ends are this close: the quotient of the larger and the smaller one.
const CLOSE: f64 = 1.02;

/// A search, before it runs.
#[derive(Clone, Debug)]
pub struct Until {
    source: Source,
    axes: Vec<Axis>,
    /// The value of `--set` at which it begins.
    given: Option<Axis>,
    cc: Vec<String>,
    reps: Option<u32>,
    seed: Option<u64>,
    key: String,
    /// The values between which the end lies, if they were given.
    range: Option<(f64, f64)>,
    scale: Scale,
    /// The most exchanges of a replication that is tried.
    most_exchanges: f64,
    /// The scenario's own value.
    start: f64,
    written: String,
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct UntilResults {
    /// A campaign whose cells are those that were run.
    pub campaign: Campaign,
    /// Their results.
    pub results: Results,
    /// The end that each control reaches, in the order of the controls.
    pub points: Vec<BreakingPoint>,
}

/// Why a search stopped.
#[derive(Debug)]
pub enum UntilError {
    /// The scenario is not possible at a value.
    Scenario(ScenarioError),
    /// A replication failed.
    Campaign(CampaignError),
    /// It was interrupted.
    Interrupted,
}

impl fmt::Display for UntilError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(error) => error.fmt(f),
            Self::Campaign(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted; a search keeps nothing"),
        }
    }
}

impl std::error::Error for UntilError {}

/// One value and what a control comes to there.
struct Tried {
    value: f64,
    text: String,
    spec: CellSpec,
    result: CellResult,
}

impl Tried {
    fn met(&self) -> Met {
        met(&self.result.cell.outcome)
    }
}

/// Whether a control meets all requirements; without any, whether it does not collapse.
fn met(outcome: &ControlOutcome) -> Met {
    if outcome.collapse().is_some() || outcome.asked > 0 && outcome.all.delivered == 0.0 {
        return Met::No;
    }
    let order = [Met::No, Met::Hardly, Met::Barely, Met::Yes];
    let place = |met: Met| order.iter().position(|one| *one == met).unwrap_or(0);
    let worst = outcome.checks.iter().map(|check| place(check.met())).min();
    worst.map_or(Met::Yes, |place| order[place])
}

impl Until {
    /// Plans a search. `text` is KEY, or KEY=FROM..TO with the values between which the end is sought.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting is a sweep, if the key is not one of the scenario's, if its value has no
    /// logarithm and no range is given, or if the scenario is not possible at an end of the range.
    pub fn plan(
        text: &str,
        source: Source,
        mut axes: Vec<Axis>,
        cc: Vec<String>,
        reps: Option<u32>,
    ) -> Result<Self, ScenarioError> {
        let fail = |message: &str| ScenarioError::argument("--until", text, message);
        if let Some(axis) = axes.iter().find(|axis| axis.values.len() > 1) {
            let message = "is a sweep; --until takes one setting at a time";
            return Err(ScenarioError::argument("--set", &axis.key, message));
        }
        let (key, range) = match text.split_once('=') {
            Some((key, range)) => (key.trim(), Some(range)),
            None => (text.trim(), None),
        };
        if range.is_some() && axes.iter().any(|axis| axis.key == key) {
            return Err(fail("is also fixed by --set; leave that out"));
        }
        let own = Campaign::plan(source.clone(), axes.clone(), cc.clone(), Some(1), None)?;
        let own = own.cells.first();
        let most_exchanges = match (range, own) {
            (Some(_), _) => f64::INFINITY,
            (None, own) => own.map_or(0.0, |spec| exchanges(&spec.scenario)).max(MOST_EXCHANGES),
        };
        let own = own.and_then(|spec| spec.value_of(key));
        // A value that --set gives is where the search begins.
        let given = axes.iter().position(|axis| axis.key == key).map(|place| axes.remove(place));
        let (scale, start, ends) = match range {
            Some(range) => {
                let example = "takes KEY or KEY=FROM..TO, such as clients=10..100000";
                let (from, to) = range.split_once("..").ok_or_else(|| fail(example))?;
                let (scale, from, to) = Scale::of(from, to).ok_or_else(|| {
                    fail("must have two ends of one unit, above zero and in ascending order")
                })?;
                (scale, from, Some((from, to)))
            }
            None => {
                let own = own.ok_or_else(|| {
                    fail("has no value in the scenario: give a range, such as KEY=10..1000")
                })?;
                let (scale, start, _) = Scale::of(&own, &own).ok_or_else(|| {
                    fail("has no value above zero to begin with: give a range, KEY=FROM..TO")
                })?;
                (scale, start, None)
            }
        };
        let (key, written) = (key.to_owned(), text.to_owned());
        let plan = Self {
            source,
            axes,
            given,
            cc,
            reps,
            seed: None,
            key,
            range: ends,
            scale,
            most_exchanges,
            start,
            written,
        };
        for end in ends.into_iter().flat_map(|(from, to)| [from, to]) {
            plan.campaign(&plan.cc, &plan.scale.text(end))
                .map_err(|error| error.of_option("--until"))?;
        }
        Ok(plan)
    }

    /// Takes another seed than the scenario's.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Runs the search on the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a replication fails, if an end of a given range is not possible, or if `progress` cancels.
    pub fn run(&self, progress: &impl Progress) -> Result<UntilResults, UntilError> {
        let mut points = Vec::new();
        let mut tried: Vec<Tried> = Vec::new();
        for cc in &self.cc {
            let own = self.search(cc, progress)?;
            points.push(self.point(cc, &own));
            tried.extend(own);
        }
        // As a campaign has them: settings first, controls within.
        let order = |cc: &str| self.cc.iter().position(|one| one == cc);
        tried.sort_by(|a, b| {
            a.value.total_cmp(&b.value).then_with(|| order(&a.spec.cc).cmp(&order(&b.spec.cc)))
        });
        // The scenario may be impossible without a value.
        let first = self.scale.text(self.start);
        let mut campaign = self.campaign(&self.cc, &first).map_err(UntilError::Scenario)?;
        campaign.axes.retain(|axis| axis.key != self.key);
        let mut values: Vec<String> = tried.iter().map(|one| one.text.clone()).collect();
        values.dedup();
        campaign.axes.push(Axis { key: self.key.clone(), values });
        campaign.command = self.command(&campaign);
        campaign.curve = Some(LoadCurve {
            key: self.key.clone(),
            written: self.written.clone(),
            work: u32::MAX,
        });
        let mut results = Results { cells: Vec::new(), left_out: Vec::new(), reused: 0 };
        campaign.cells.clear();
        for (index, one) in tried.into_iter().enumerate() {
            campaign.cells.push(one.spec);
            results.cells.push((index, one.result));
        }
        Ok(UntilResults { campaign, results, points })
    }

    /// The command that searches again.
    fn command(&self, campaign: &Campaign) -> String {
        let axes = self.axes.iter().chain(&self.given);
        let sets: Vec<(String, String)> =
            axes.map(|axis| (axis.key.clone(), axis.values.join(","))).collect();
        let (place, cc) = (&self.source.place, self.cc.join(","));
        let command = run_command(place, &sets, &cc, campaign.reps, campaign.seed);
        format!("{command} --until {}", super::campaign::quoted(&self.written))
    }

    fn campaign(&self, cc: &[String], value: &str) -> Result<Campaign, ScenarioError> {
        let mut axes = self.axes.clone();
        axes.push(Axis { key: self.key.clone(), values: vec![value.to_owned()] });
        Campaign::plan(self.source.clone(), axes, cc.to_vec(), self.reps, self.seed)
    }

    /// The campaign that tries a value; `None` if the scenario is not possible with it, or has too many exchanges.
    fn attempted(&self, cc: &str, text: &str) -> Result<Option<Campaign>, UntilError> {
        let is_small = |spec: &CellSpec| exchanges(&spec.scenario) <= self.most_exchanges;
        match (self.campaign(&[cc.to_owned()], text), self.range) {
            (Ok(campaign), _) => Ok(Some(campaign).filter(|all| all.cells.iter().all(is_small))),
            (Err(_), None) => Ok(None),
            (Err(error), Some(_)) => Err(UntilError::Scenario(error)),
        }
    }

    /// Tries a value; `None` if it is not possible.
    fn attempt(
        &self,
        cc: &str,
        value: f64,
        progress: &impl Progress,
    ) -> Result<Option<Tried>, UntilError> {
        if progress.is_cancelled() {
            return Err(UntilError::Interrupted);
        }
        let text = self.scale.text(value);
        let Some(campaign) = self.attempted(cc, &text)? else { return Ok(None) };
        let mut results = campaign.run(None, None, progress).map_err(UntilError::Campaign)?;
        let (Some(spec), Some((_, result))) =
            (campaign.cells.into_iter().next(), results.cells.pop())
        else {
            return Err(UntilError::Interrupted);
        };
        let value = self.scale.value(&text).unwrap_or(value);
        Ok(Some(Tried { value, text, spec, result }))
    }

    /// All values that were tried for a control, ascending.
    fn search(&self, cc: &str, progress: &impl Progress) -> Result<Vec<Tried>, UntilError> {
        let mut tried = match self.range {
            Some((from, to)) => {
                let ends = [self.attempt(cc, from, progress)?, self.attempt(cc, to, progress)?];
                ends.into_iter().flatten().collect()
            }
            None => self.outwards(cc, progress)?,
        };
        loop {
            tried.sort_by(|a, b| a.value.total_cmp(&b.value));
            let Some(place) = change(&tried) else { break };
            let (low, high) = (tried[place].value, tried[place + 1].value);
            let middle = (low * high).sqrt();
            let text = self.scale.text(middle);
            let is_new = text != tried[place].text && text != tried[place + 1].text;
            if high <= low * CLOSE || !is_new {
                break;
            }
            let Some(one) = self.attempt(cc, middle, progress)? else { break };
            tried.push(one);
        }
        Ok(tried)
    }

    /// Doubles and halves the scenario's own value in turn until a control does better or worse.
    fn outwards(&self, cc: &str, progress: &impl Progress) -> Result<Vec<Tried>, UntilError> {
        let Some(first) = self.attempt(cc, self.start, progress)? else { return Ok(Vec::new()) };
        let is_met = first.met().is_met();
        let mut tried = vec![first];
        let mut ways = [Some(2.0), Some(0.5)];
        for step in 1..=REACH {
            for way in &mut ways {
                let Some(factor) = *way else { continue };
                let value = self.start * (0..step).fold(1.0, |product, _| product * factor);
                let is_known = tried.iter().any(|one| one.text == self.scale.text(value));
                let next = if is_known { None } else { self.attempt(cc, value, progress)? };
                let Some(next) = next else {
                    *way = None;
                    continue;
                };
                let is_other = next.met().is_met() != is_met;
                tried.push(next);
                if is_other {
                    return Ok(tried);
                }
            }
        }
        Ok(tried)
    }

    fn point(&self, cc: &str, tried: &[Tried]) -> BreakingPoint {
        let required = tried.first().map_or(&[][..], |one| &one.result.cell.outcome.checks);
        let points = tried.iter().map(|one| UntilPoint {
            value: one.text.clone(),
            place: one.value,
            is_met: one.met().is_met(),
            is_sure: matches!(one.met(), Met::Yes | Met::No),
            checks: one.result.cell.outcome.checks.clone(),
        });
        BreakingPoint {
            cc: cc.to_owned(),
            key: self.key.clone(),
            required: required.iter().map(RequirementCheck::text).collect(),
            points: points.collect(),
        }
    }
}

/// The exchanges of a replication, as far as their number is known before.
fn exchanges(scenario: &Scenario) -> f64 {
    if scenario.class.is_empty() {
        // In a low-power network the topology may say how many clients there are.
        return scenario.workload.exchanges_of(0..scenario.client_count());
    }
    let classes = scenario.classes();
    classes.iter().map(|class| class.scenario.workload.exchanges_of(class.clients())).sum()
}

/// The first of two neighbours of which one meets the requirements and one does not.
fn change(tried: &[Tried]) -> Option<usize> {
    tried.windows(2).position(|pair| pair[0].met().is_met() != pair[1].met().is_met())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients with ten exchanges each, where one class has its own number.
    fn search(key: &str, classes: &str) -> Until {
        let text = format!(
            "name = \"x\"\ntitle = \"x\"\n\
             [network.up]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\nbuffer = \"infinite\"\n\
             [network.down]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\nbuffer = \"infinite\"\n\
             [workload]\nkind = \"continuous\"\nexchanges = 10\n{classes}"
        );
        let (source, cc) = (Source::new("x.toml", text), vec!["default".to_owned()]);
        Until::plan(key, source, Vec::new(), cc, Some(1)).unwrap()
    }

    #[test]
    fn a_search_outwards_tries_no_value_beyond_a_million_exchanges() {
        let clients = search("clients.count", "[clients]\ncount = 5\n");
        assert!(clients.attempt("default", 20.0, &()).unwrap().is_some());
        assert!(clients.attempt("default", 100_001.0, &()).unwrap().is_none());
        // Those of each class count.
        let class = "[[class]]\nname = \"few\"\ncount = 2\n\
            [[class]]\nname = \"much\"\ncount = 1\nworkload = { exchanges = 20 }\n";
        let exchanges = search("class.much.workload.exchanges", class);
        assert!(exchanges.attempt("default", 40.0, &()).unwrap().is_some());
        assert!(exchanges.attempt("default", 1_000_001.0, &()).unwrap().is_none());
    }

    #[test]
    fn a_scenario_of_more_exchanges_than_that_is_searched_by_keys_that_add_none() {
        let large = |key| search(key, "[clients]\ncount = 200000\n");
        let is_tried = |key, value| large(key).attempted("default", value).unwrap().is_some();
        assert!(is_tried("network.up.rate", "2 Gbit/s"));
        assert!(is_tried("workload.exchanges", "10"));
        assert!(is_tried("workload.exchanges", "5"));
        assert!(!is_tried("workload.exchanges", "20"));
        assert!(is_tried("workload.exchanges=10..40", "20"), "a range is taken as it is");
    }
}
