//! RCOAP21's reports: the comparison, the rates over time, the loads.

use super::super::measured_campaign::MeasuredCampaign;
use super::super::page::{Page, described, make, select};
use super::super::papers::Paper;
use super::super::replications::{replications, withhold};
use super::cells::{BY_THE_CLOCK, BY_THE_RATE, INTERVALS, RCOAP, RCOAP_OF_ANY_LOAD};
use ebbtide_sim::result::{CellSpec, Results};
use ebbtide_sim::run::Campaign;

/// The page to which a cell belongs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum PagePart {
    Comparison,
    Rates,
    Loads,
}

const ALL: [(PagePart, &str, &str, &str, &[&str]); 3] = [
    (
        PagePart::Comparison,
        "rcoap21",
        "Three flows, alone and beside TCP",
        "three flows, alone and beside TCP; published values, statements and contradictions",
        &["background", "interval"],
    ),
    (
        PagePart::Rates,
        "rcoap21-rate",
        "Rate estimation, losses, discovery",
        "rates over time: estimation, one and several losses, discovery on a narrow link",
        &["delay", "rate", "drops", "duration"],
    ),
    (
        PagePart::Loads,
        "rcoap21-load",
        "Three flows under loads from one message per 5 s to one per 10 ms",
        "loss ratio, packets and delays against the offered load",
        &["interval"],
    ),
];

impl PagePart {
    fn holds(spec: &CellSpec, part: Self) -> bool {
        let is = |settings: &[(&str, &str)]| {
            spec.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).eq(settings.iter().copied())
        };
        let has = |key: &str| spec.settings.iter().any(|(own, _)| own == key);
        match part {
            // The interval of 500 ms in the comparison is one of the loads, too.
            Self::Comparison => {
                has("background")
                    || is(BY_THE_RATE)
                    || (is(BY_THE_CLOCK) && spec.cc != RCOAP_OF_ANY_LOAD)
            }
            Self::Rates => has("clients"),
            Self::Loads => {
                INTERVALS.iter().any(|interval| is(&[("interval", interval)])) && spec.cc != RCOAP
            }
        }
    }
}

/// The pages.
pub(in super::super) fn pages(campaign: &Campaign, results: &Results) -> Vec<Page> {
    let paper = Paper::Rcoap21;
    let page =
        |(part, name, subtitle, about, axes): (PagePart, &str, &str, &'static str, &[&str])| {
            let cells = select(paper, campaign, results, &|spec| PagePart::holds(spec, part));
            let mut report = make(paper, campaign, results, cells, axes);
            described(&mut report, paper);
            report.subtitle = subtitle.to_owned();
            if part == PagePart::Comparison {
                let reps = replications(paper, campaign);
                report.published = super::compare::compare(campaign, results);
                withhold(&mut report.published, reps);
                let statements = super::statements::check(MeasuredCampaign { campaign, results });
                report.notes.extend(statements.iter().map(|statement| statement.words(reps)));
            }
            Page { name: name.to_owned(), about, report }
        };
    ALL.map(page).into()
}
