//! `ebbtide check --listen`: rules of the RFCs that a client's datagrams show.
//!
//! A lesson answers one request of the client in its own way, or not at all, and looks at what the client does then.
#![expect(clippy::disallowed_methods, reason = "a plain socket waits by the system's clock")]

mod listener;

pub(crate) use listener::Listener;

use super::Finding;
use super::Level::{self, Must, Should};
use ebbtide_core::wire::Type;
use listener::{ClientDatagram, Head};
use std::time::{Duration, Instant};

/// A rule as a sentence about a client.
pub(crate) struct ClientRule {
    pub(crate) clause: &'static str,
    pub(crate) level: Level,
    pub(crate) text: &'static str,
}

const fn rule(clause: &'static str, level: Level, text: &'static str) -> ClientRule {
    ClientRule { clause, level, text }
}

/// Whether all copies of a message are waited for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    /// The first two show how waits grow.
    Two,
    All,
}

/// Rules that one request tries.
pub(crate) struct Lesson {
    pub(crate) rules: &'static [ClientRule],
    /// The finding on each rule, in their order.
    pub(crate) attempt: fn(&mut Listener, &ClientDatagram, Copies) -> Vec<Finding>,
}

/// All lessons, in the order in which they are given.
pub(crate) const LESSONS: &[Lesson] = &[
    Lesson {
        rules: &[
            rule("RFC 7252 4.2", Must, "An empty Acknowledgement ends the copies of a request."),
            rule("RFC 7252 4.2", Must, "A Confirmable response is acknowledged."),
            rule("RFC 7252 4.2", Must, "A copy of that response is acknowledged again."),
        ],
        attempt: separate,
    },
    Lesson {
        rules: &[
            rule("RFC 7252 4.3", Must, "A ping is answered with an empty Reset."),
            rule("RFC 7252 4.2", Must, "A Confirmable message with a format error is rejected."),
            rule("RFC 7252 4.2", Must, "A Confirmable response to no request is rejected."),
        ],
        attempt: rejecting,
    },
    Lesson {
        rules: &[
            rule("RFC 7252 5.3.2", Must, "A response with another token is not taken."),
            rule("RFC 7252 4.2", Must, "An Acknowledgement with a format error is ignored."),
        ],
        attempt: mistaken,
    },
    Lesson {
        rules: &[
            rule("RFC 7252 4.2", Must, "A request that is not answered is repeated."),
            rule("RFC 7252 4.8.1", Should, "The first copy follows no earlier than a second."),
            rule("RFC 7252 4.2", Must, "Each wait for an answer is longer than the one before."),
            rule("RFC 7252 4.8", Should, "At most MAX_RETRANSMIT copies, 4, are sent."),
            rule(
                "RFC 7252 4.2",
                Must,
                "A copy differs from its original in nothing but the token.",
            ),
            rule("RFC 7252 4.7", Should, "No other request is sent while one is unanswered."),
        ],
        attempt: silence,
    },
    Lesson {
        rules: &[rule(
            "RFC 8085 3.1.3",
            Should,
            "After two round trips of 3 s, a third is waited for without a copy.",
        )],
        attempt: delayed,
    },
];

/// The requests that all lessons together take.
pub(crate) const REQUESTS: usize = LESSONS.len() + 2;

const CONTENT: u8 = 0x45;
const EMPTY: u8 = 0;
/// How long an answer to a message of ours may take.
const ANSWER: Duration = Duration::from_millis(500);
/// Longer than the first timeout of RFC 7252.
const PAST_TIMEOUT: Duration = Duration::from_millis(3500);
/// How long the first copy may take.
const FIRST_COPY: Duration = Duration::from_secs(15);
/// A wait grows by this in the gentlest published backoff, less what a busy machine adds.
const GROWTH: f64 = 1.3;
const MAX_RETRANSMIT: usize = 4;

fn acknowledge(listener: &Listener, request: &ClientDatagram) {
    let head = Head { kind: Type::Acknowledgement, code: EMPTY, id: request.id() };
    listener.say(request.from, head, b"", b"");
}

/// Answers in the acknowledgement.
fn answer(listener: &Listener, request: &ClientDatagram) {
    let head = Head { kind: Type::Acknowledgement, code: CONTENT, id: request.id() };
    listener.say(request.from, head, &request.token(), b"\xffok");
}

/// Whether an empty message of this type and ID arrives.
fn arrives(listener: &mut Listener, request: &ClientDatagram, kind: Type, id: u16) -> bool {
    let from = request.from;
    let wanted = |datagram: &ClientDatagram| datagram.from == from && datagram.is(kind, id);
    listener.next(Instant::now() + ANSWER, wanted).is_some()
}

fn copy(
    listener: &mut Listener,
    request: &ClientDatagram,
    wait: Duration,
) -> Option<ClientDatagram> {
    listener.next(Instant::now() + wait, |datagram| datagram.is_copy_of(request))
}

fn holds(is_so: bool, otherwise: &str) -> Finding {
    Finding::unless((!is_so).then(|| otherwise.to_owned()))
}

fn separate(listener: &mut Listener, request: &ClientDatagram, _: Copies) -> Vec<Finding> {
    acknowledge(listener, request);
    let late = copy(listener, request, PAST_TIMEOUT);
    let head = Head { kind: Type::Confirmable, code: CONTENT, id: listener.next_id() };
    let findings: [bool; 2] = std::array::from_fn(|_| {
        listener.say(request.from, head, &request.token(), b"\xffok");
        arrives(listener, request, Type::Acknowledgement, head.id)
    });
    let [first, second] = findings;
    let again = match first {
        true if !second => Finding::Untried("the client may have ended by then".to_owned()),
        _ => holds(second, "no Acknowledgement"),
    };
    vec![holds(late.is_none(), "a copy follows"), holds(first, "no Acknowledgement"), again]
}

fn rejecting(listener: &mut Listener, request: &ClientDatagram, _: Copies) -> Vec<Finding> {
    acknowledge(listener, request);
    let messages: [(u8, &[u8], &[u8]); 3] =
        [(EMPTY, b"", b""), (1, b"", b"\xff"), (CONTENT, b"\x7e\x57\x7e\x57", b"\xffno")];
    let findings = messages.map(|(code, token, rest)| {
        let head = Head { kind: Type::Confirmable, code, id: listener.next_id() };
        listener.say(request.from, head, token, rest);
        holds(arrives(listener, request, Type::Reset, head.id), "no Reset")
    });
    let head = Head { kind: Type::NonConfirmable, code: CONTENT, id: listener.next_id() };
    listener.say(request.from, head, &request.token(), b"\xffok");
    findings.to_vec()
}

fn mistaken(listener: &mut Listener, request: &ClientDatagram, _: Copies) -> Vec<Finding> {
    let head = Head { kind: Type::Acknowledgement, code: CONTENT, id: request.id() };
    let mut other = request.token();
    match other.first_mut() {
        Some(byte) => *byte ^= 0x55,
        None => other.push(0x55),
    }
    listener.say(request.from, head, &other, b"\xffno");
    let untried = Finding::Untried("the client has sent no copy".to_owned());
    let Some(second) = copy(listener, request, FIRST_COPY) else {
        // An Acknowledgement is matched by its message ID alone (section 4.2) and may have ended the
        // copies. Then the client waits for a separate response, unless it has taken the wrong one.
        let head = Head { kind: Type::Confirmable, code: CONTENT, id: listener.next_id() };
        listener.say(request.from, head, &request.token(), b"\xffok");
        let is_waiting = arrives(listener, request, Type::Acknowledgement, head.id);
        return vec![
            holds(is_waiting, "neither a copy follows nor is another answer taken"),
            untried,
        ];
    };
    listener.say(request.from, head, &second.token(), b"\xff");
    let third = copy(listener, request, FIRST_COPY * 2);
    if let Some(third) = &third {
        answer(listener, third);
    }
    vec![Finding::Holds, holds(third.is_some(), "no copy follows")]
}

fn silence(listener: &mut Listener, request: &ClientDatagram, copies: Copies) -> Vec<Finding> {
    let mut sent = vec![request.clone()];
    let pings = listener.pings();
    let mut wait = FIRST_COPY;
    let enough = |sent: &[ClientDatagram]| copies == Copies::Two && sent.len() > 2;
    // A client that never ends is watched for a while only.
    while sent.len() <= 4 * MAX_RETRANSMIT && !enough(&sent) {
        let Some(next) = copy(listener, request, wait) else { break };
        let last = sent.last().map_or(next.at, |last| last.at);
        wait = (next.at - last).mul_f64(4.0).max(Duration::from_secs(1));
        sent.push(next);
    }
    let others = listener.others(request);
    let waits: Vec<f64> = sent
        .windows(2)
        .filter_map(|pair| Some((pair.last()?.at - pair.first()?.at).as_secs_f64()))
        .collect();
    let written: Vec<String> = waits.iter().map(|wait| format!("{wait:.2} s")).collect();
    let written = written.join(", ");
    let untried = |why: &str| Finding::Untried(why.to_owned());
    let is_growing =
        waits.windows(2).all(|pair| pair.last() >= pair.first().map(|w| w * GROWTH).as_ref());
    let differs = sent.iter().any(|each| each.content() != request.content());
    if let Some(last) = sent.last().filter(|_| enough(&sent)) {
        answer(listener, last);
    }
    vec![
        holds(!waits.is_empty(), "no copy follows"),
        waits.first().map_or_else(|| untried("no copy"), |first| holds(*first >= 1.0, &written)),
        match waits.len() {
            0 | 1 => untried("fewer than two copies"),
            // It repeats because of a loss that it has detected, not because of silence.
            _ if listener.pings() > pings => untried("pings told the client that the path is free"),
            _ => holds(is_growing, &written),
        },
        match copies {
            Copies::Two => untried("it takes minutes: --slow"),
            Copies::All => holds(waits.len() <= MAX_RETRANSMIT, &format!("{} copies", waits.len())),
        },
        holds(!differs, "code, options or payload of a copy differ"),
        holds(others == 0, &format!("{others} other requests meanwhile")),
    ]
}

fn delayed(listener: &mut Listener, request: &ClientDatagram, _: Copies) -> Vec<Finding> {
    const ROUND_TRIP: Duration = Duration::from_secs(3);
    let mut request = request.clone();
    for round in 0..3 {
        let mut copies = 0;
        let deadline = request.at + ROUND_TRIP;
        while listener.next(deadline, |datagram| datagram.is_copy_of(&request)).is_some() {
            copies += 1;
        }
        answer(listener, &request);
        if round == 2 {
            return vec![holds(copies == 0, &format!("{copies} copies"))];
        }
        match listener.request(IDLE) {
            Some(next) => request = next,
            None => break,
        }
    }
    vec![Finding::Untried("no further request came".to_owned())]
}

/// How long the next request may take.
pub(crate) const IDLE: Duration = Duration::from_secs(60);
