//! Messages with format errors, and messages that fit nothing: RFC 7252 sections 3 and 4.

use super::peer::ReceivedMessage;
use super::{CheckSocket, CheckedServer, Finding, Rule};
use ebbtide_core::wire::Type;

pub(super) const RULES: &[Rule] = &[
    Rule::must("RFC 7252 3", "A message of another version is ignored.", version),
    Rule::must("RFC 8974 2.1", "A token length of 15 is a format error: Reset.", token_length),
    Rule::must(
        "RFC 8974 2.2.2",
        "A token of more than 8 bytes is repeated, or its message is rejected with a Reset.",
        extended_token,
    ),
    Rule::must(
        "RFC 7252 3",
        "A payload marker without a payload is rejected with a Reset.",
        marker,
    ),
    Rule::must("RFC 7252 3.1", "The reserved option nibble 15 is rejected with a Reset.", nibble),
    Rule::must("RFC 7252 3.1", "An option that is cut is rejected with a Reset.", cut),
    Rule::must(
        "RFC 7252 4.1",
        "An Empty message with bytes after its header is rejected with a Reset.",
        empty,
    ),
    Rule::must("RFC 7252 4.2", "Reserved code classes are rejected with a Reset.", reserved),
    Rule::must("RFC 7252 4.2", "A response to no request is rejected with a Reset.", unexpected),
    Rule::must(
        "RFC 7252 4.2",
        "An Acknowledgement or Reset that fits no message is ignored.",
        stray,
    ),
    Rule::must("RFC 7252 3", "A datagram shorter than a header is ignored.", short),
    Rule::must("RFC 7252 11.1", "500 damaged datagrams leave the server alive.", damaged),
];

/// A Confirmable message of this first byte, code and rest.
fn confirmable(peer: &mut CheckSocket, first: u8, code: u8, rest: &[u8]) -> (Vec<u8>, u16) {
    let id = peer.next_id();
    let [high, low] = id.to_be_bytes();
    ([&[first, code, high, low], rest].concat(), id)
}

/// Broken unless each of these messages gets a Reset and nothing else.
fn rejected(peer: &mut CheckSocket, messages: &[(u8, u8, &[u8])]) -> Finding {
    for (first, code, rest) in messages {
        let (datagram, id) = confirmable(peer, *first, *code, rest);
        let (answers, is_alive) = peer.provoke_until_answered(&datagram, id);
        if !is_alive {
            return Finding::Broken(format!("the server is silent after {}", hex(&datagram)));
        }
        let other = answers.iter().find(|answer| !answer.is_reset_of(id));
        let complaint = match (other, answers.is_empty()) {
            (Some(answer), _) => answer.describe(),
            (None, true) => "no answer".to_owned(),
            (None, false) => continue,
        };
        return Finding::Broken(format!("{complaint} to {}", hex(&datagram)));
    }
    Finding::Holds
}

/// Broken if one of these datagrams gets an answer.
fn ignored(peer: &mut CheckSocket, datagrams: &[Vec<u8>]) -> Finding {
    for datagram in datagrams {
        let (answers, is_alive) = peer.provoke(datagram);
        if !is_alive {
            return Finding::Broken(format!("the server is silent after {}", hex(datagram)));
        }
        if let Some(answer) = answers.first() {
            return Finding::Broken(format!("{} to {}", answer.describe(), hex(datagram)));
        }
    }
    Finding::Holds
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(24).map(|byte| format!("{byte:02x}")).collect()
}

fn version(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let datagrams: Vec<Vec<u8>> =
        [0x00, 0x80, 0xc0].map(|first| confirmable(peer, first, 1, b"").0).to_vec();
    ignored(peer, &datagrams)
}

fn token_length(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    rejected(peer, &[(0x4f, 1, &[0; 15])])
}

fn extended_token(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let long = [&[7][..], &[1; 20]].concat();
    for (first, rest, token) in [(0x49, &[1; 9][..], &[1; 9][..]), (0x4d, &long, &[1; 20])] {
        let (datagram, id) = confirmable(peer, first, 1, rest);
        let (answers, is_alive) = peer.provoke_until_answered(&datagram, id);
        let is_fine = |answer: &ReceivedMessage| {
            answer.is_reset_of(id) || answer.code().is_empty() || answer.token() == token
        };
        if !is_alive || answers.is_empty() {
            return Finding::Broken(format!("no answer to a token of {} bytes", token.len()));
        }
        if let Some(answer) = answers.iter().find(|answer| !is_fine(answer)) {
            return Finding::Broken(format!("{} to {}", answer.describe(), hex(&datagram)));
        }
    }
    Finding::Holds
}

fn marker(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    rejected(peer, &[(0x40, 1, b"\xff"), (0x40, 1, b"\xb1a\xff")])
}

fn nibble(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    rejected(peer, &[(0x40, 1, b"\xf1a"), (0x40, 1, b"\xbfa")])
}

fn cut(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    rejected(peer, &[(0x40, 1, b"\xb5abc"), (0x40, 1, b"\xbd"), (0x40, 1, b"\xe1\x01")])
}

fn empty(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    rejected(peer, &[(0x40, 0, b"\xffx"), (0x41, 0, b"t"), (0x40, 0, b"\xb1a")])
}

fn reserved(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    rejected(peer, &[(0x40, 0x20, b""), (0x40, 0xc0, b""), (0x40, 0xe1, b"")])
}

fn unexpected(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    rejected(peer, &[(0x42, 0x45, b"\x7e\x57\xffx")])
}

fn stray(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let mut of = |kind: Type, code: u8| {
        let id = peer.next_id();
        let [high, low] = id.to_be_bytes();
        vec![0x40 | (kind as u8) << 4, code, high, low]
    };
    let datagrams = [
        of(Type::Acknowledgement, 0),
        of(Type::Reset, 0),
        of(Type::Acknowledgement, 0x45),
        of(Type::Acknowledgement, 0x01),
        of(Type::Reset, 0x01),
    ];
    ignored(peer, &datagrams)
}

fn short(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    ignored(peer, &[vec![], vec![0x40], vec![0x40, 1], vec![0x40, 1, 0]])
}

fn damaged(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let mut draw = xorshift(7252);
    for round in 0..50 {
        for _ in 0..10 {
            let (mut datagram, _) = peer.encode(&super::peer::Draft::default());
            for _ in 0..1 + draw() % 4 {
                let place = draw() as usize % datagram.len();
                if let Some(byte) = datagram.get_mut(place) {
                    *byte = draw() as u8;
                }
            }
            datagram.truncate(1 + draw() as usize % datagram.len());
            // A damaged code could be one that changes a resource.
            if let Some(code) = datagram.get_mut(1).filter(|code| (2..8).contains(*code)) {
                *code = 1;
            }
            peer.send(&datagram);
        }
        if !peer.is_alive() {
            return Finding::Broken(format!("the server is silent in round {round} of 50"));
        }
    }
    Finding::Holds
}

/// Numbers that are the same in every run.
fn xorshift(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 16
    }
}
