//! Two connections with a transport between them that takes no time.

use ebbtide_core::stream::{Config, Connection, Incoming, Input, Received, RequestId};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, Framing, Opt, OptionNumber};

/// What a connection made of a message, as far as tests ask.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Response(RequestId, Vec<u8>),
    Notification(RequestId, Vec<u8>),
    Pong { custody: bool },
    Release,
    Abort(String),
}

/// See the module.
pub(crate) struct Wired {
    pub(crate) a: Connection,
    pub(crate) b: Connection,
    pub(crate) now: Instant,
    a_said: (Vec<Incoming>, Vec<Said>),
    b_said: (Vec<Incoming>, Vec<Said>),
    to_a: Input,
    to_b: Input,
    framing: Framing,
}

pub(crate) fn get() -> Content<'static> {
    const PATH: &[Opt<'_>] = &[Opt { number: OptionNumber::URI_PATH, value: b"test" }];
    Content { code: Code::GET, options: PATH, payload: &[] }
}

pub(crate) fn put(payload: &[u8]) -> Content<'_> {
    Content { code: Code::PUT, payload, ..get() }
}

pub(crate) fn content(payload: &[u8]) -> Content<'_> {
    Content { code: Code::CONTENT, options: &[], payload }
}

impl Wired {
    pub(crate) fn new(a: Config, b: Config) -> Self {
        Self::framed(Framing::Stream, a, b)
    }

    pub(crate) fn framed(framing: Framing, a: Config, b: Config) -> Self {
        Self {
            a: Connection::new(Instant::ZERO, framing, a),
            b: Connection::new(Instant::ZERO, framing, b),
            now: Instant::ZERO,
            a_said: Default::default(),
            b_said: Default::default(),
            to_a: Input::default(),
            to_b: Input::default(),
            framing,
        }
    }

    /// Carries what waits, until nothing does or nobody takes it.
    pub(crate) fn exchange(&mut self) {
        loop {
            let there = carry(
                self.framing,
                self.now,
                &mut self.a,
                (&mut self.b, &mut self.to_b),
                &mut self.b_said,
            );
            let back = carry(
                self.framing,
                self.now,
                &mut self.b,
                (&mut self.a, &mut self.to_a),
                &mut self.a_said,
            );
            if !there && !back {
                return;
            }
        }
    }

    pub(crate) fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        self.a.handle_timeout(self.now);
        self.b.handle_timeout(self.now);
    }

    pub(crate) fn a_requests(&mut self) -> Vec<Incoming> {
        core::mem::take(&mut self.a_said.0)
    }

    pub(crate) fn b_requests(&mut self) -> Vec<Incoming> {
        core::mem::take(&mut self.b_said.0)
    }

    pub(crate) fn a_said(&mut self) -> Vec<Said> {
        core::mem::take(&mut self.a_said.1)
    }

    pub(crate) fn b_said(&mut self) -> Vec<Said> {
        core::mem::take(&mut self.b_said.1)
    }
}

/// True if anything moved.
fn carry(
    framing: Framing,
    now: Instant,
    from: &mut Connection,
    (to, input): (&mut Connection, &mut Input),
    said: &mut (Vec<Incoming>, Vec<Said>),
) -> bool {
    let mut moved = false;
    while to.wants_input() && !from.poll_transmit().is_empty() {
        let bytes = from.poll_transmit();
        let room = input.room(to.expects());
        let len = bytes.len().min(room.len());
        assert!(framing == Framing::Stream || len == bytes.len(), "a frame is whole");
        room[..len].copy_from_slice(&bytes[..len]);
        input.filled(len);
        from.handle_transmitted(now, len);
        moved = true;
        while let Some(taken) = to.handle_input(now, input.unread()) {
            note(taken.received, said);
            let bytes = taken.bytes;
            input.take(bytes);
        }
    }
    // What was left unread may be wanted now.
    while let Some(taken) = to.handle_input(now, input.unread()) {
        note(taken.received, said);
        let bytes = taken.bytes;
        input.take(bytes);
        moved = true;
    }
    moved
}

fn note(received: Received<'_>, said: &mut (Vec<Incoming>, Vec<Said>)) {
    match received {
        Received::Request(incoming, _) => said.0.push(incoming),
        Received::Response { request, message } => {
            said.1.push(Said::Response(request, message.payload().to_vec()));
        }
        Received::Notification { request, message } => {
            said.1.push(Said::Notification(request, message.payload().to_vec()));
        }
        Received::Pong { custody, .. } => said.1.push(Said::Pong { custody }),
        Received::Release(_) => said.1.push(Said::Release),
        Received::Abort(diagnostic) => {
            said.1.push(Said::Abort(String::from_utf8_lossy(diagnostic).into_owned()));
        }
        Received::Capabilities(_) | Received::Ignored(_) => {}
    }
}
