//! Requests that change a resource, which the user has named for it: RFC 7252 section 4.5, RFC 7959 section 2.5.

use super::peer::{Draft, ReceivedMessage};
use super::{CheckSocket, CheckedServer, Finding, Rule};
use ebbtide_core::wire::{Code, OptionNumber};

pub(super) const RULES: &[Rule] = &[
    Rule::should(
        "RFC 7252 4.5",
        "A copy of a POST gets the same answer, since it is processed once.",
        copy_of_a_post,
    ),
    Rule::should(
        "RFC 7959 2.5",
        "A block of an upload without those before it is not accepted.",
        second_without_first,
    ),
    Rule::should(
        "RFC 7959 2.5",
        "An upload is not accepted if a block before its last one is missing.",
        gap,
    ),
    Rule::must(
        "RFC 7959 2.2",
        "A block with more to come that is shorter than its size is not accepted.",
        short,
    ),
];

/// Sends a request with a payload, and perhaps a Block1 option, to the resource.
fn write(
    peer: &mut CheckSocket,
    path: &str,
    code: Code,
    block: Option<u8>,
    payload: &[u8],
) -> WriteRequest {
    let block = block.map(|value| [value]);
    let options: Vec<(OptionNumber, &[u8])> =
        block.iter().map(|value| (OptionNumber::BLOCK1, &value[..])).collect();
    let draft = Draft { code, path, options: &options, ..Draft::default() };
    let (mut datagram, id) = peer.encode(&draft);
    datagram.push(0xff);
    datagram.extend_from_slice(payload);
    WriteRequest { datagram, id }
}

struct WriteRequest {
    datagram: Vec<u8>,
    id: u16,
}

impl WriteRequest {
    fn ask(&self, peer: &CheckSocket) -> Option<ReceivedMessage> {
        peer.ask_again(&self.datagram, self.id, Draft::default().token)
    }
}

fn untried() -> Finding {
    Finding::Untried("no resource that may be changed: --write PATH".to_owned())
}

fn copy_of_a_post(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    let Some(path) = &server.writable else { return untried() };
    let post = write(peer, path, Code::POST, None, b"x");
    let (Some(first), Some(copy)) = (post.ask(peer), post.ask(peer)) else {
        return Finding::Broken("no answer".to_owned());
    };
    let content = |answer: &ReceivedMessage| (answer.code(), answer.payload());
    Finding::unless((content(&first) != content(&copy)).then(|| {
        let [first, copy] = [first, copy].map(|answer| {
            let payload =
                String::from_utf8_lossy(&answer.payload()).chars().take(20).collect::<String>();
            format!("{} '{payload}'", answer.describe())
        });
        format!("first {first}, then {copy}")
    }))
}

/// The value of Block1 for a block of 64 bytes with more to come.
const fn block(number: u8) -> u8 {
    number << 4 | 0b1010
}

/// The value of Block1 for the last block, with the same size.
const fn last_block(number: u8) -> u8 {
    number << 4 | 0b0010
}

/// Sends these blocks of an upload; broken if the last one is accepted.
fn not_accepted(peer: &mut CheckSocket, server: &CheckedServer, blocks: &[(u8, usize)]) -> Finding {
    let Some(path) = &server.writable else { return untried() };
    let mut last = None;
    for (value, len) in blocks {
        last = write(peer, path, Code::PUT, Some(*value), &vec![b'x'; *len]).ask(peer);
        let Some(answer) = &last else { break };
        if answer.code().class() >= 4 {
            return Finding::Holds;
        }
    }
    Finding::Broken(last.map_or_else(|| "no answer".to_owned(), |answer| answer.describe()))
}

fn second_without_first(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    not_accepted(peer, server, &[(last_block(2), 64)])
}

fn gap(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    not_accepted(peer, server, &[(block(0), 64), (last_block(2), 64)])
}

fn short(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    not_accepted(peer, server, &[(block(0), 40)])
}
