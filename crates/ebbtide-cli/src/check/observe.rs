//! Observing resources: RFC 7641.
#![expect(clippy::disallowed_methods, reason = "a plain socket waits by the system's clock")]

use super::peer::{Draft, ReceivedMessage};
use super::{CheckSocket, CheckedServer, Finding, Rule};
use ebbtide_core::wire::{OptionNumber, Type};
use std::time::{Duration, Instant};

pub(super) const RULES: &[Rule] = &[
    Rule::must("RFC 7641 3.1", "A resource that is marked obs can be observed.", register),
    Rule::must("RFC 7641 3.6", "Observe 1 ends an observation and returns the state.", deregister),
    Rule::must(
        "RFC 7641 4.5.2",
        "Unacknowledged notifications are repeated at growing intervals, and then end.",
        unacknowledged,
    )
    .slow(),
];

const REGISTER: &[(OptionNumber, &[u8])] = &[(OptionNumber::OBSERVE, &[])];
const DEREGISTER: &[(OptionNumber, &[u8])] = &[(OptionNumber::OBSERVE, &[1])];

fn observed(server: &CheckedServer) -> Result<&str, Finding> {
    let none = || Finding::Untried("no resource is marked obs".to_owned());
    server.observable.first().map(String::as_str).ok_or_else(none)
}

/// Ends the observation. A notification has the same token as the answer, which it may overtake.
fn end(peer: &mut CheckSocket, path: &str) -> Option<ReceivedMessage> {
    const NOTIFICATIONS: u32 = 5;
    let draft = Draft { path, options: DEREGISTER, ..Draft::default() };
    let mut last = None;
    for _ in 0..NOTIFICATIONS {
        last = peer.ask(&draft);
        let is_notification = |answer: &ReceivedMessage| {
            answer.kind() != Type::Acknowledgement && answer.option(OptionNumber::OBSERVE).is_some()
        };
        if !last.as_ref().is_some_and(is_notification) {
            break;
        }
    }
    last
}

fn register(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    let path = match observed(server) {
        Ok(path) => path,
        Err(untried) => return untried,
    };
    let answer = peer.ask(&Draft { path, options: REGISTER, ..Draft::default() });
    end(peer, path);
    Finding::unless(match answer {
        Some(answer) if answer.option(OptionNumber::OBSERVE).is_some() => None,
        Some(answer) => Some(format!("{path}: {} without Observe", answer.describe())),
        None => Some(format!("{path}: no answer")),
    })
}

fn deregister(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    let path = match observed(server) {
        Ok(path) => path,
        Err(untried) => return untried,
    };
    peer.ask(&Draft { path, options: REGISTER, ..Draft::default() });
    let answer = end(peer, path);
    Finding::unless(match answer {
        Some(answer) if answer.code().is_success() => answer
            .option(OptionNumber::OBSERVE)
            .map(|_| format!("{path}: {} with Observe", answer.describe())),
        Some(answer) => Some(format!("{path}: {}", answer.describe())),
        None => Some(format!("{path}: no answer")),
    })
}

/// How long a first Confirmable notification may take.
const NOTIFICATION: Duration = Duration::from_secs(60);
/// MAX_TRANSMIT_WAIT (RFC 7252 section 4.8.2), after which a server has given up.
const GIVEN_UP: Duration = Duration::from_secs(93);
/// MAX_RETRANSMIT (RFC 7252 section 4.8).
const COPIES: usize = 4;

fn unacknowledged(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    let path = match observed(server) {
        Ok(path) => path,
        Err(untried) => return untried,
    };
    peer.ask(&Draft { path, options: REGISTER, ..Draft::default() });
    let deadline = Instant::now() + NOTIFICATION;
    let first = loop {
        match peer.receive(deadline) {
            Some(answer) if answer.kind() == Type::Confirmable && answer.code().is_response() => {
                break answer;
            }
            Some(_) => {}
            None => return Finding::Untried(format!("{path}: no Confirmable notification")),
        }
    };
    // A newer state may take the place of the one that is repeated (section 4.5.2), so all count.
    let mut instants = vec![first.at];
    while let Some(answer) = peer.receive(first.at + GIVEN_UP) {
        if answer.kind() == Type::Confirmable && answer.code().is_response() {
            instants.push(answer.at);
        }
    }
    end(peer, path);
    let waits: Vec<f64> = instants
        .iter()
        .zip(instants.iter().skip(1))
        .map(|(earlier, later)| later.duration_since(*earlier).as_secs_f64())
        .collect();
    let shown = || waits.iter().map(|wait| format!("{wait:.1}")).collect::<Vec<_>>().join(", ");
    Finding::unless(match (waits.first(), waits.last()) {
        _ if waits.len() > COPIES => Some(format!("{} copies, after {} s", waits.len(), shown())),
        (Some(first), Some(last)) if waits.len() > 1 && *last < 1.5 * first => {
            Some(format!("copies after {} s", shown()))
        }
        _ => None,
    })
}
