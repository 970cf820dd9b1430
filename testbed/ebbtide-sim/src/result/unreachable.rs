//! Requirements that no control can meet, however idle the network is. They are known before anything runs.

use super::cell_spec::CellSpec;
use super::classes::parts;
use super::limit::{demand_alone, shortest_idle_s};
use crate::judge::Demand;
use crate::scenario::{ClassView, Errors, Reliability, Required, Requirement, Transport};

/// A figure that comes this close to its bound may meet a requirement by chance.
const TOLERANCE: f64 = 0.01;

impl CellSpec {
    /// The requirements of its scenario that no control can meet, in sentences.
    pub fn unreachable_requirements(&self) -> Vec<String> {
        let of_parts = parts(self).into_iter().flat_map(|(class, part)| {
            let demand = demand_alone(&part);
            // The requirements of a scenario without classes are those of its only part.
            let sentences = part.scenario.requirements().into_iter();
            let sentences = sentences.filter_map(|one| bound(&part, &demand, one));
            sentences.map(|sentence| named(&class, &sentence)).collect::<Vec<_>>()
        });
        of_parts.collect()
    }
}

fn named(class: &ClassView, sentence: &str) -> String {
    match class.name.as_str() {
        "" => format!("require.{sentence}"),
        name => format!("class.{name}.require.{sentence}"),
    }
}

/// The bound that a requirement exceeds, after its key.
fn bound(part: &CellSpec, demand: &Demand, one: Requirement) -> Option<String> {
    let (key, wanted) = (one.figure.key(), one.wanted);
    match one.figure {
        Required::InTime => {
            let (deadline, idle) = (one.within_s?, shortest_idle_s(part));
            if demand.idle_s > 0.0 && idle > deadline {
                return Some(format!(
                    "{key}: a request and its response take at least {idle:.3} s on the idle path, and the deadline \
                     is {deadline:.3} s"
                ));
            }
            delivered_bound(part).and_then(|most| share(key, wanted, most))
        }
        Required::Delivered => delivered_bound(part).and_then(|most| share(key, wanted, most)),
        Required::Transmissions => {
            let least = 1.0 / answered_share(part)?;
            (wanted < least * (1.0 - TOLERANCE)).then(|| {
                format!(
                    "{key}: the link's losses alone take {least:.2} transmissions for each delivered exchange, and \
                     {wanted} are allowed"
                )
            })
        }
        Required::Bytes => {
            let least = demand.bytes.0 + demand.bytes.1;
            let is_single = part.scenario.workload.flow().is_none();
            (is_single && wanted < least).then(|| {
                format!(
                    "{key}: one request and its response have {least:.0} bytes, and {wanted} are allowed"
                )
            })
        }
        Required::LeftToOthers | Required::Power => None,
    }
}

fn share(key: &str, wanted: f64, most: f64) -> Option<String> {
    (wanted > most + TOLERANCE * (1.0 - most)).then(|| {
        format!(
            "{key}: with the link's losses and MAX_RETRANSMIT at most {most:.4} of the exchanges are delivered, and \
             {wanted} are required"
        )
    })
}

/// The share of the transmissions that are answered where only independent losses stand in the way; `None` if
/// something below CoAP repeats packets, or if losses come in bursts.
fn answered_share(part: &CellSpec) -> Option<f64> {
    let scenario = &part.scenario;
    let is_udp = part.controls.iter().all(|control| control.transport() == Transport::Udp);
    let is_plain = is_udp && !scenario.network.has_radio() && scenario.workload.flow().is_none();
    match scenario.errors.get(&scenario.network.errors) {
        Some(Errors::Independent { average }) if is_plain => {
            Some((1.0 - average) * (1.0 - average))
        }
        _ => None,
    }
}

/// The share of the exchanges that can be delivered before a client has no transmission left.
fn delivered_bound(part: &CellSpec) -> Option<f64> {
    let retransmissions = match part.scenario.workload.reliability {
        Reliability::Confirmable => part.scenario.coap.max_retransmit,
        Reliability::NonConfirmable => 0,
    };
    let fails = 1.0 - answered_share(part)?;
    let all_fail = (0..=retransmissions).fold(1.0, |product, _| product * fails);
    Some(1.0 - all_fail)
}
