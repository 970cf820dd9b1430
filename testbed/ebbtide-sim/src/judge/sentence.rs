//! The judgement in words: what the link can do, what to use, what the others come to, what would
//! help.

use super::judgement::{Judgement, difference};
use super::outcome::{Demand, SHARES};
use super::{Candidate, DROPS, Outcome, WASTE};

/// Less than this share delivered asks for an explanation.
const NEARLY_ALL: f64 = 0.999;

/// A network in which every control delivers less than this share suits none of them.
const SUITABLE: f64 = 0.5;

/// A control that needs so much fewer transmissions is said to.
const CHEAPER: f64 = 0.1;

/// A slower control that needs so much fewer transmissions is recommended where these matter more.
const FRUGAL: f64 = 0.25;

/// Controls named with their figures at most.
const MOST_LISTED: usize = 4;

/// The whole judgement on a setting.
pub(super) fn sentence(
    candidates: &[Candidate<'_>],
    best: Option<usize>,
    judgements: &[(String, Judgement)],
    place: Option<usize>,
) -> String {
    let Some(first) = candidates.first() else {
        return "Nothing was run, so there is nothing to judge.".to_owned();
    };
    let most = candidates.iter().map(|one| one.outcome.all.delivered).fold(0.0, f64::max);
    let mut parts = Vec::new();
    if most < NEARLY_ALL {
        let situation = situation(candidates, most);
        parts.push(match situation.split_at_checked(1).filter(|_| most < SUITABLE) {
            Some((first, rest)) => {
                format!("No control suits this network: {}{rest}", first.to_lowercase())
            }
            None => situation,
        });
    }
    match best {
        None => parts.push("No control delivers anything.".to_owned()),
        Some(best) => parts.push(choice(candidates, best, judgements, place)),
    }
    parts.extend(others(candidates, best, judgements, place));
    if most < NEARLY_ALL {
        parts.extend(remedy(candidates, &first.outcome.demand));
    }
    parts.join(" ")
}

/// The judgement on a class whose control is fixed: there is nothing to choose.
pub(super) fn fixed(
    class: &str,
    own: &str,
    candidates: &[Candidate<'_>],
    is_alike: bool,
) -> String {
    let head = format!("Class {class} always uses {own}");
    if is_alike {
        return format!("{head}; its devices are served alike under all controls.");
    }
    let each = candidates
        .iter()
        .map(|one| format!("{} beside {}", percent(one.outcome.all.delivered), one.cc));
    format!("{head}; delivered are {} of its exchanges.", enumerate(&each.collect::<Vec<_>>()))
}

/// Why not everything is delivered.
fn situation(candidates: &[Candidate<'_>], most: f64) -> String {
    let Some(first) = candidates.first() else { return String::new() };
    let demand = &first.outcome.demand;
    let asked_s = needed_s(first.outcome);
    if let Some(period) = demand.period_s.filter(|_| demand.each_s > 0.0) {
        let load = f64::from(demand.clients) * demand.each_s / period;
        if load > 1.0 {
            return format!(
                "The workload is {} times what the link can carry, so no control can keep \
                 delivering more than {} of it.{}",
                significant(load),
                percent(1.0 / load),
                losses(candidates, demand)
            );
        }
        return format!(
            "The workload takes {} of the link's capacity, and the best control delivers {} of \
             the exchanges.{}",
            percent(load),
            percent(most),
            losses(candidates, demand)
        );
    }
    let Some((least, longest)) = give_up(candidates) else {
        return format!("The best control delivers {} of the exchanges.", percent(most));
    };
    let span = range(least, longest);
    // Nobody still asks after that: the last one starts at the end of the window and gives up
    // every exchange as late as anyone did.
    let active = demand.start_window_s + f64::from(demand.in_turn) * longest;
    let bound = active / asked_s;
    let most = percent(most);
    let give_up =
        format!("give up {span} s after a request (MAX_RETRANSMIT {})", demand.max_retransmit);
    if demand.each_s <= 0.0 {
        return format!(
            "Clients {give_up}, and the best control delivers {most} of the exchanges."
        );
    }
    let link = format!("The link needs at least {} s to carry this workload", significant(asked_s));
    let text = match bound < 1.0 {
        true => format!(
            "{link}, but clients {give_up}: no control here can deliver more than {} of the \
             exchanges, and the best delivers {most}.",
            percent(bound)
        ),
        false => format!(
            "{link}, and clients {give_up}: the best control delivers {most} of the exchanges."
        ),
    };
    text + &losses(candidates, demand)
}

/// A sentence that packets are lost or dropped, after a blank, if that is so.
fn losses(candidates: &[Candidate<'_>], demand: &Demand) -> String {
    let mut facts = Vec::new();
    // Losses and drops are those of the bottleneck, which need not be the tightest link.
    let link = if demand.link.is_some() { "bottleneck" } else { "link" };
    if demand.loss > 0.0 {
        facts.push(format!("the {link} loses {} of the packets", percent(demand.loss)));
    }
    let dropped = candidates.iter().map(|one| one.outcome.dropped);
    let (low, high) = dropped.fold((1.0f64, 0.0f64), |(l, h), d| (l.min(d), h.max(d)));
    if high > DROPS {
        let whose = if demand.link.is_some() { "clients' packets" } else { "packets" };
        let which = demand.buffer.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
        let share = match percent(low) == percent(high) {
            true => percent(high),
            false => format!("{} to {}", percent(low), percent(high)),
        };
        facts.push(match facts.is_empty() {
            true => format!("the {link}'s buffer{which} drops {share} of the {whose}"),
            false => format!("its buffer{which} drops {share}"),
        });
    }
    match facts.join(", and ").split_at_checked(1) {
        // The first word of a sentence.
        Some((first, rest)) => format!(" {}{rest}.", first.to_uppercase()),
        None => String::new(),
    }
}

/// The recommendation, with its figures.
fn choice(
    candidates: &[Candidate<'_>],
    best: usize,
    judgements: &[(String, Judgement)],
    place: Option<usize>,
) -> String {
    let one = &candidates[best];
    let outcome = one.outcome;
    let mut facts = vec![format!("delivers {} of the exchanges", percent(outcome.all.delivered))];
    if let Some((place, time)) = place.and_then(|p| Some((p, outcome.all.delivered_by_s[p]?))) {
        let share = SHARES[place];
        let what = match share {
            100 => "all of them".to_owned(),
            _ => format!("the first {share} %"),
        };
        facts.push(format!("{what} within {} s", significant(time)));
    }
    if let Some(missed) = outcome.all.deadline_missed {
        facts.push(format!("misses the deadline with {}", percent(missed)));
    }
    let each = outcome.all.transmissions_per_delivered;
    let facts =
        format!("{}, with {each:.2} transmissions per delivered exchange", facts.join(", "));
    let name = one.cc;
    let collapses = |(_, judgement): &(String, Judgement)| *judgement == Judgement::Collapses;
    if judgements.iter().all(collapses) && candidates.len() > 1 {
        let why = outcome.collapse().unwrap_or_default();
        return format!(
            "Every control collapses; {name} comes off least badly: it {facts} ({why})."
        );
    }
    let own = judgements.get(best).map(|(_, judgement)| *judgement);
    if own == Some(Judgement::Wasteful) {
        let share = percent(outcome.all.unnecessary_share);
        let waste = format!("{share} of its transmissions are unnecessary");
        return match candidates.len() {
            1 => format!("{name} {facts}; {waste}."),
            _ => format!("{name} comes off least badly: it {facts}, but {waste}."),
        };
    }
    match outcome.collapse() {
        Some(why) => format!("{name} delivers the most, and still collapses ({why}): it {facts}."),
        None if candidates.len() == 1 => format!("{name} {facts}."),
        None if outcome.all.delivered < SUITABLE => {
            format!("{name} comes off least badly: it {facts}.")
        }
        None => format!("Use {name}: it {facts}."),
    }
}

/// The other controls, with their figures.
fn others(
    candidates: &[Candidate<'_>],
    best: Option<usize>,
    judgements: &[(String, Judgement)],
    place: Option<usize>,
) -> Vec<String> {
    let Some(best) = best else { return Vec::new() };
    let of = |wanted: Judgement| -> Vec<usize> {
        let own = (0..candidates.len()).filter(|one| *one != best);
        own.filter(|one| judgements.get(*one).is_some_and(|(_, found)| *found == wanted)).collect()
    };
    let list = |which: &[usize], figure: &dyn Fn(usize) -> String| {
        let with = which.len() <= MOST_LISTED;
        let name = |one: &usize| match with {
            true => format!("{} ({})", candidates[*one].cc, figure(*one)),
            false => candidates[*one].cc.to_owned(),
        };
        enumerate(&which.iter().map(name).collect::<Vec<_>>())
    };
    let verb = |which: &[usize], one: &str, many: &str| {
        if which.len() == 1 { one.to_owned() } else { many.to_owned() }
    };
    let later = |one: usize| {
        let Some(place) = place else { return String::new() };
        let each = |one: usize| candidates[one].outcome.all.transmissions_per_delivered;
        // What is slower may be cheaper by far: that is for the reader to weigh.
        let cost = match each(one) < (1.0 - CHEAPER) * each(best) {
            true => format!(", {:.2} transmissions", each(one)),
            false => String::new(),
        };
        let time =
            |figures: &super::RunFigures| figures.delivered_by_s[place].unwrap_or(f64::INFINITY);
        let from = |other: usize| difference(&candidates[one], &candidates[other], &time);
        let is_beyond = |other: &usize| from(*other).mean > from(*other).half;
        let sign = |seconds: f64| {
            format!("{}{}", if seconds < 0.0 { "−" } else { "+" }, significant(seconds.abs()))
        };
        let seconds = |other: usize| {
            let by = from(other);
            match by.half > 0.0 {
                true => format!("{} ± {} s", sign(by.mean), significant(by.half)),
                false => format!("{} s", sign(by.mean)),
            }
        };
        // It may be slower than another one only: the best was chosen among the fast for its cost.
        let beaten = [best].into_iter().chain(of(Judgement::Level)).find(is_beyond);
        let than = match beaten.filter(|other| *other != best) {
            Some(other) => format!(", {} against {}", seconds(other), candidates[other].cc),
            None => String::new(),
        };
        format!("{}{than}{cost}", seconds(best))
    };
    let mut parts = Vec::new();
    let level = of(Judgement::Level);
    if !level.is_empty() {
        let cost = |one: usize| {
            format!("{:.2} transmissions", candidates[one].outcome.all.transmissions_per_delivered)
        };
        let verb = verb(&level, "is", "are");
        parts.push(format!("{} {verb} level with it.", list(&level, &cost)));
    }
    let slower = of(Judgement::Slower);
    if !slower.is_empty() {
        parts.push(format!("{} {} longer.", list(&slower, &later), verb(&slower, "takes", "take")));
    }
    let each = |one: &usize| candidates[*one].outcome.all.transmissions_per_delivered;
    let frugal = slower.iter().copied().min_by(|a, b| each(a).total_cmp(&each(b)));
    if let Some(one) = frugal.filter(|one| each(one) < (1.0 - FRUGAL) * each(&best)) {
        parts.push(format!(
            "Where energy or airtime matters more than time, use {}: {:.2} transmissions per \
             delivered exchange.",
            candidates[one].cc,
            each(&one)
        ));
    }
    let delivered = |one: usize| percent(candidates[one].outcome.all.delivered);
    let loses = of(Judgement::Loses);
    if !loses.is_empty() {
        parts.push(format!(
            "{} {} less.",
            list(&loses, &delivered),
            verb(&loses, "delivers", "deliver")
        ));
    }
    let wasteful = of(Judgement::Wasteful);
    if !wasteful.is_empty() {
        let waste = |one: usize| {
            let all = &candidates[one].outcome.all;
            let share = percent(all.unnecessary_share);
            format!("delivers {}, {share} of its transmissions unnecessary", percent(all.delivered))
        };
        parts.push(format!(
            "{} {} wasteful.",
            list(&wasteful, &waste),
            verb(&wasteful, "is", "are")
        ));
    }
    let fallen = of(Judgement::Collapses);
    let all_fall = judgements.iter().all(|(_, found)| *found == Judgement::Collapses);
    if !fallen.is_empty() && !all_fall {
        let waste = |one: usize| {
            let all = &candidates[one].outcome.all;
            let why = if all.unnecessary_share > WASTE {
                format!("{} of its transmissions unnecessary", percent(all.unnecessary_share))
            } else {
                format!("goodput {} of a full link", percent(all.goodput_share))
            };
            format!("delivers {}, {why}", percent(all.delivered))
        };
        parts.push(format!(
            "{} {}.",
            list(&fallen, &waste),
            verb(&fallen, "collapses", "collapse")
        ));
    }
    parts
}

/// The rate, or MAX_RETRANSMIT, that would let the link get through one request of every client before the first one gives up.
fn remedy(candidates: &[Candidate<'_>], demand: &Demand) -> Option<String> {
    if demand.each_s <= 0.0 || demand.rate_bps <= 0.0 || demand.period_s.is_some() {
        return None;
    }
    let (least, _) = give_up(candidates)?;
    if demand.idle_s > least {
        // More patience alone would send more copies: it is the first timeout that is too short.
        return Some(format!(
            "A response may take {} s on the idle path: set ACK_TIMEOUT (coap.ack_timeout, now {} s) above that.",
            significant(demand.idle_s),
            significant(demand.ack_timeout_s)
        ));
    }
    let round_s = f64::from(demand.clients) * f64::from(demand.nstart.max(1)) * demand.each_s;
    // Who asks once only may start late; those who ask again find the requests of all others there.
    let window_s = if demand.in_turn == 1 { demand.start_window_s } else { 0.0 };
    let span = |retransmissions: u32| {
        window_s + demand.ack_timeout_s * ((1u64 << (retransmissions + 1).min(62)) as f64 - 1.0)
    };
    let now = span(demand.max_retransmit.into());
    if round_s <= now {
        return None;
    }
    let rate = demand.rate_bps * round_s / now;
    let enough = (u32::from(demand.max_retransmit)..=20).find(|more| span(*more) >= round_s)?;
    Some(format!(
        "The link needs {} s to carry one request from every client, and with MAX_RETRANSMIT {} a \
         client may give up after {} s: a rate of {} or MAX_RETRANSMIT {enough} would be enough.",
        significant(round_s),
        demand.max_retransmit,
        significant(now),
        bit_rate(rate)
    ))
}

/// The link's time for what one replication asks.
fn needed_s(outcome: &Outcome) -> f64 {
    outcome.asked as f64 / outcome.runs.len().max(1) as f64 * outcome.demand.each_s
}

/// The shortest and the longest time after which anyone gave up.
fn give_up(candidates: &[Candidate<'_>]) -> Option<(f64, f64)> {
    let spans = candidates.iter().filter_map(|one| one.outcome.gave_up_s);
    spans.reduce(|(least, most), (low, high)| (least.min(low), most.max(high)))
}

fn range(low: f64, high: f64) -> String {
    let (low, high) = (significant(low), significant(high));
    if low == high { low } else { format!("{low} to {high}") }
}

/// A share as a percentage that is never rounded to everything or nothing.
fn percent(share: f64) -> String {
    let value = 100.0 * share;
    match value {
        v if !v.is_finite() => "–".to_owned(),
        v if v >= 100.0 => "100 %".to_owned(),
        v if v > 99.99 => "more than 99.99 %".to_owned(),
        v if v >= 99.0 => format!("{v:.2} %"),
        v if v >= 10.0 => format!("{v:.0} %"),
        v if v >= 0.1 || v == 0.0 => format!("{v:.1} %"),
        v => format!("{v:.2} %"),
    }
}

/// Three significant digits.
fn significant(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Rounded up to two digits: it is to be enough.
fn bit_rate(bps: f64) -> String {
    let (value, unit) = match bps {
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    let step = match value {
        v if v >= 100.0 => 10.0,
        v if v >= 10.0 => 1.0,
        _ => 0.1,
    };
    let value = (value / step).ceil() * step;
    if step < 1.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

fn enumerate(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
