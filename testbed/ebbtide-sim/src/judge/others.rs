//! The controls other than the recommended one in words: in which respect each is worse, with its figures.

use super::judgement::{Difference, Judgement, difference};
use super::run_figures::RunFigures;
use super::wording::{enumerate, percent, significant};
use super::{Candidate, WASTE};

/// A control that needs so much fewer transmissions is said to.
const CHEAPER: f64 = 0.1;

/// A slower control that needs so much fewer transmissions is recommended where these matter more.
const FRUGAL: f64 = 0.25;

/// Controls named with their figures at most.
const MOST_LISTED: usize = 4;

/// The controls of a setting, of which one is recommended.
pub(super) struct Others<'c> {
    pub(super) candidates: &'c [Candidate<'c>],
    /// The place of the recommended one.
    pub(super) best: usize,
    pub(super) judgements: &'c [(String, Judgement)],
    /// The place of the percentile whose times are compared, if there are any.
    pub(super) place: Option<usize>,
}

/// The figure in parentheses after the name of a control.
type Detail<'c> = fn(&Others<'c>, usize) -> String;

impl<'c> Others<'c> {
    /// A sentence for each judgement, with the controls that have it.
    pub(super) fn sentences(&self) -> Vec<String> {
        let all_fall = self.judgements.iter().all(|(_, found)| *found == Judgement::Collapses);
        let parts = [
            self.sentence(Judgement::Level, ["is", "are"], " level with it", Self::transmissions),
            self.sentence(Judgement::Slower, ["takes", "take"], " longer", Self::delay),
            self.frugal(),
            self.sentence(Judgement::Loses, ["delivers", "deliver"], " less", Self::delivered),
            self.sentence(Judgement::Wasteful, ["is", "are"], " wasteful", Self::waste),
            self.sentence(Judgement::Collapses, ["collapses", "collapse"], "", Self::collapse)
                .filter(|_| !all_fall),
        ];
        parts.into_iter().flatten().collect()
    }

    /// The places of those with this judgement.
    fn judged(&self, wanted: Judgement) -> impl Iterator<Item = usize> {
        let judgements = self.judgements.iter().enumerate();
        judgements
            .filter(move |(place, (_, found))| *place != self.best && *found == wanted)
            .map(|(place, _)| place)
            .filter(|place| *place < self.candidates.len())
    }

    /// "NAME (FIGURE) and NAME (FIGURE) VERB REST."; `verbs` are the singular and the plural.
    fn sentence(
        &self,
        wanted: Judgement,
        verbs: [&str; 2],
        rest: &str,
        detail: Detail<'c>,
    ) -> Option<String> {
        let which: Vec<usize> = self.judged(wanted).collect();
        let verb = verbs[usize::from(which.len() > 1)];
        let name = |one: &usize| match which.len() <= MOST_LISTED {
            true => format!("{} ({})", self.candidates[*one].cc, detail(self, *one)),
            false => self.candidates[*one].cc.to_owned(),
        };
        let names: Vec<String> = which.iter().map(name).collect();
        (!names.is_empty()).then(|| format!("{} {verb}{rest}.", enumerate(&names)))
    }

    /// A slower control that suits where transmissions matter more than time.
    fn frugal(&self) -> Option<String> {
        let least =
            self.judged(Judgement::Slower).min_by(|a, b| self.cost(*a).total_cmp(&self.cost(*b)));
        let one = least.filter(|one| self.cost(*one) < (1.0 - FRUGAL) * self.cost(self.best))?;
        Some(format!(
            "Where energy or airtime matters more than time, use {}: {:.2} transmissions per \
             delivered exchange.",
            self.candidates[one].cc,
            self.cost(one)
        ))
    }

    fn cost(&self, one: usize) -> f64 {
        self.candidates[one].outcome.all.transmissions_per_delivered
    }

    fn transmissions(&self, one: usize) -> String {
        format!("{:.2} transmissions", self.cost(one))
    }

    fn delivered(&self, one: usize) -> String {
        percent(self.candidates[one].outcome.all.delivered)
    }

    fn waste(&self, one: usize) -> String {
        let share = percent(self.candidates[one].outcome.all.unnecessary_share);
        format!("delivers {}, {share} of its transmissions unnecessary", self.delivered(one))
    }

    fn collapse(&self, one: usize) -> String {
        let all = &self.candidates[one].outcome.all;
        if all.unnecessary_share > WASTE {
            return self.waste(one);
        }
        let goodput = percent(all.goodput_share);
        format!("delivers {}, goodput {goodput} of a full link", self.delivered(one))
    }

    /// How much later than the best one, and at what cost.
    fn delay(&self, one: usize) -> String {
        let Some(place) = self.place else { return String::new() };
        let time = |figures: &RunFigures| figures.delivered_by_s[place].unwrap_or(f64::INFINITY);
        let behind =
            |other: usize| difference(&self.candidates[one], &self.candidates[other], &time);
        // It may be slower than another one only: the best was chosen among the fast for its cost.
        let mut faster = [self.best].into_iter().chain(self.judged(Judgement::Level));
        let beaten = faster.find(|other| behind(*other).mean > behind(*other).half);
        let than = match beaten.filter(|other| *other != self.best) {
            Some(other) => {
                format!(", {} against {}", seconds(&behind(other)), self.candidates[other].cc)
            }
            None => String::new(),
        };
        // What is slower may be cheaper by far: that is for the reader to weigh.
        let cost = match self.cost(one) < (1.0 - CHEAPER) * self.cost(self.best) {
            true => format!(", {}", self.transmissions(one)),
            false => String::new(),
        };
        format!("{}{than}{cost}", seconds(&behind(self.best)))
    }
}

/// A difference in seconds, with half of its interval if it has one.
fn seconds(by: &Difference) -> String {
    let sign = if by.mean < 0.0 { "−" } else { "+" };
    let mean = format!("{sign}{}", significant(by.mean.abs()));
    match by.half > 0.0 {
        true => format!("{mean} ± {} s", significant(by.half)),
        false => format!("{mean} s"),
    }
}
