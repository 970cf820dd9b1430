//! Options: RFC 7252 section 5.4 and 5.10, RFC 7959.

use super::peer::Draft;
use super::requests::expect;
use super::{CheckSocket, CheckedServer, Finding, Rule};
use ebbtide_core::wire::{Block, Code, OptionNumber, Type};

/// Options that are for experiments (RFC 7252 section 12.2): odd ones are critical.
const CRITICAL: OptionNumber = OptionNumber(65_001);
const ELECTIVE: OptionNumber = OptionNumber(65_000);

pub(super) const RULES: &[Rule] = &[
    Rule::must(
        "RFC 7252 5.4.1",
        "An unknown critical option in a Confirmable request is answered with 4.02.",
        critical,
    ),
    Rule::must(
        "RFC 7252 5.4.1",
        "A Non-confirmable request with an unknown critical option is not served.",
        critical_non,
    ),
    Rule::must("RFC 7252 5.4.1", "An unknown elective option is ignored.", elective),
    Rule::must(
        "RFC 7252 5.10.4",
        "A request that accepts only an unknown format is answered with 4.06.",
        accept,
    ),
    Rule::must(
        "RFC 7252 5.10.2",
        "Proxy-Uri is answered with 5.05 by a server that is not a proxy.",
        proxy,
    ),
    Rule::must("RFC 7959 2.2", "A block has the size that was asked for, or a smaller one.", block),
    Rule::must("RFC 7959 2.2", "SZX 7 is answered with 4.00.", reserved_size),
];

fn critical(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let options = [(CRITICAL, &b"x"[..])];
    expect(peer, &Draft { options: &options, ..Draft::default() }, &[Code::BAD_OPTION])
}

fn critical_non(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let options = [(CRITICAL, &b"x"[..])];
    let draft = Draft { kind: Type::NonConfirmable, options: &options, ..Draft::default() };
    let (datagram, _) = peer.encode(&draft);
    let (answers, _) = peer.provoke(&datagram);
    let served = answers.iter().find(|answer| answer.code().is_success());
    Finding::unless(served.map(super::peer::ReceivedMessage::describe))
}

fn elective(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let Some(plain) = peer.ask(&Draft::default()) else {
        return Finding::Untried("no answer to a GET of /.well-known/core".to_owned());
    };
    let options = [(ELECTIVE, &b"x"[..])];
    expect(peer, &Draft { options: &options, ..Draft::default() }, &[plain.code()])
}

fn accept(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    if !peer.get("/.well-known/core").is_some_and(|answer| answer.code().is_success()) {
        return Finding::Untried("no /.well-known/core".to_owned());
    }
    let options = [(OptionNumber::ACCEPT, &b"\xfd\xe8"[..])];
    expect(peer, &Draft { options: &options, ..Draft::default() }, &[Code::NOT_ACCEPTABLE])
}

fn proxy(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    // The host is one of TEST-NET-1 (RFC 5737), so that nobody is asked even by an open proxy.
    let options = [(OptionNumber::PROXY_URI, &b"coap://192.0.2.1/"[..])];
    let draft = Draft { path: "", options: &options, ..Draft::default() };
    expect(peer, &draft, &[Code::PROXYING_NOT_SUPPORTED])
}

fn block(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    let mut tried = false;
    for path in server.paths.iter().map(String::as_str).chain(["/.well-known/core"]) {
        let options = [(OptionNumber::BLOCK2, &[][..])];
        let Some(answer) = peer.ask(&Draft { path, options: &options, ..Draft::default() }) else {
            continue;
        };
        if !answer.code().is_success() {
            continue;
        }
        tried = true;
        let len = answer.payload().len();
        let block = answer.option(OptionNumber::BLOCK2).map(Block::from_uint);
        let complaint = match block {
            _ if len > 16 => Some(format!("{len} bytes in place of 16")),
            Some(Err(_)) => Some("an invalid Block2 option".to_owned()),
            Some(Ok(block)) if block.num() != 0 || block.szx() != 0 => {
                Some(format!("block {} of {} bytes", block.num(), block.size()))
            }
            Some(Ok(block)) if block.more() && len != 16 => {
                Some(format!("{len} bytes in a block that is not the last"))
            }
            _ => None,
        };
        if let Some(complaint) = complaint {
            return Finding::Broken(format!("{path}: {complaint}"));
        }
    }
    if tried { Finding::Holds } else { Finding::Untried("no resource to get".to_owned()) }
}

fn reserved_size(peer: &mut CheckSocket, _: &CheckedServer) -> Finding {
    let options = [(OptionNumber::BLOCK2, &b"\x07"[..])];
    expect(
        peer,
        &Draft { options: &options, ..Draft::default() },
        &[Code::BAD_REQUEST, Code::BAD_OPTION],
    )
}
