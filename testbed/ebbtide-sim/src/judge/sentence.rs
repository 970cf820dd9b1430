//! The judgement in words: what the link can do, what to use, what the others come to, what would
//! help.

use super::judgement::Judgement;
use super::others::Others;
use super::outcome::{Demand, SHARES};
use super::wording::{bit_rate, enumerate, percent, significant};
use super::{Candidate, ControlOutcome, DROPS};

/// Less than this share delivered asks for an explanation.
const NEARLY_ALL: f64 = 0.999;

/// A network in which every control delivers less than this share suits none of them.
const SUITABLE: f64 = 0.5;

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
    if let Some(best) = best {
        parts.extend(Others { candidates, best, judgements, place }.sentences());
    }
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
            false if low == 0.0 => format!("up to {}", percent(high)),
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
        facts.push(match missed > 0.0 {
            true => format!("misses the deadline in {} of them", percent(missed)),
            false => "meets the deadline in all of them".to_owned(),
        });
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

/// The rate, or MAX_RETRANSMIT, that would let the link get through one request of every client
/// before the first one gives up.
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
fn needed_s(outcome: &ControlOutcome) -> f64 {
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
