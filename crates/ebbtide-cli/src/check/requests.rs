//! Requests and responses: RFC 7252 sections 4 and 5.

use super::peer::Draft;
use super::{CheckSocket, CheckedServer, Finding, Rule};
use ebbtide_core::wire::{Code, OptionNumber, Type};

pub(super) const RULES: &[Rule] = &[
    Rule::must("RFC 7252 4.3", "A ping is answered with an empty Reset.", ping),
    Rule::must("RFC 7252 5.3.1", "A response has the token of its request.", token),
    Rule::must(
        "RFC 7252 4.2",
        "A Confirmable request is acknowledged; so is its duplicate.",
        duplicate,
    ),
    Rule::must("RFC 7252 4.3", "A Non-confirmable request is not acknowledged.", non_confirmable),
    Rule::must("RFC 7252 5.8", "An unknown method is answered with 4.05.", unknown_method),
    Rule::should("RFC 7252 5.8.1", "A path without a resource is answered with 4.04.", not_found),
    Rule::should("RFC 7252 4.6", "A message fits into 1,152 bytes.", size),
];

fn ping(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let id = peer.next_id();
    let [high, low] = id.to_be_bytes();
    let (answers, _) = peer.provoke_until_answered(&[0x40, 0, high, low], id);
    Finding::unless(match answers.iter().find(|answer| answer.id() == id) {
        Some(reset) if reset.is_reset_of(id) && reset.len() == 4 => None,
        Some(other) => Some(format!("{} of {} bytes", other.describe(), other.len())),
        None => Some("no answer".to_owned()),
    })
}

fn token(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    for token in [&b""[..], b"\0", b"\x01\x02\x03\x04\x05\x06\x07\x08"] {
        let Some(answer) = peer.ask(&Draft { token, ..Draft::default() }) else {
            return Finding::Broken(format!("no answer to a token of {} bytes", token.len()));
        };
        if answer.code().is_response() && answer.token() != token {
            return Finding::Broken(format!("another token in place of {} bytes", token.len()));
        }
    }
    Finding::Holds
}

fn duplicate(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let draft = Draft::default();
    let (datagram, id) = peer.encode(&draft);
    let Some(first) = peer.ask_again(&datagram, id, draft.token) else {
        return Finding::Broken("no answer".to_owned());
    };
    let (again, _) = peer.provoke_until_answered(&datagram, id);
    Finding::unless(match again.iter().find(|answer| answer.ends(id)) {
        None => Some("no answer to the duplicate".to_owned()),
        Some(second) if !first.is_separate && second.code() != first.code() => {
            Some(format!("first {}, then {}", first.describe(), second.describe()))
        }
        Some(_) => None,
    })
}

fn non_confirmable(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let (datagram, _) = peer.encode(&Draft { kind: Type::NonConfirmable, ..Draft::default() });
    let (answers, _) = peer.provoke(&datagram);
    let acknowledgement = answers.iter().find(|answer| answer.kind() == Type::Acknowledgement);
    Finding::unless(acknowledgement.map(super::peer::ReceivedMessage::describe))
}

fn unknown_method(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    expect(peer, &Draft { code: Code::new(0, 31), ..Draft::default() }, &[Code::METHOD_NOT_ALLOWED])
}

fn not_found(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    expect(peer, &Draft { path: "/no-such-resource-7252", ..Draft::default() }, &[Code::NOT_FOUND])
}

fn size(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    for path in &server.paths {
        let block = (OptionNumber::BLOCK2, &[][..]);
        // Without Block2 first: a server decides by itself.
        for options in [&[][..], &[block]] {
            let answer = peer.ask(&Draft { path, options, ..Draft::default() });
            if let Some(answer) = answer.filter(|answer| answer.len() > 1152) {
                return Finding::Broken(format!("{} bytes of {path}", answer.len()));
            }
        }
    }
    Finding::Holds
}

/// Broken unless the answer has one of these codes.
pub(super) fn expect(peer: &mut CheckSocket, draft: &Draft<'_>, codes: &[Code]) -> Finding {
    Finding::unless(match peer.ask(draft) {
        Some(answer) if codes.contains(&answer.code()) => None,
        Some(answer) => Some(answer.describe()),
        None => Some("no answer".to_owned()),
    })
}
