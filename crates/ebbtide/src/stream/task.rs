//! The task of one connection.
//!
//! It sleeps until bytes arrive, the transport has room, an application or a handler has something
//! to send, or a deadline comes. It then does all pending work, writes the answers to everything
//! that it has read at once, and sleeps again.

use super::counters::{Lingering, Tally};
use super::link::{Link, LinkState};
use super::member::Member;
use super::room::TaskBuffers;
use super::trace;
use super::wire::Wire;
use crate::message::Sizes;
use ebbtide_core::stream::{Input, Received};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Framing, Message, MessageId, Type};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Sleep;

/// The number of reads before other tasks get their turn.
const ROUNDS: usize = 8;
/// The number of messages handled before other tasks get their turn, and the number of their
/// bytes, so that a peer that sends without end gets only an equal share.
const MESSAGES: usize = 32;
const BYTES: usize = 64 << 10;
/// The number of notifications created before bytes are read again.
const NOTIFICATIONS: usize = 32;
/// The change of a connection's memory, in bytes, up to which the budget is not updated.
const UNNOTICED: usize = 1 << 10;
/// How long to read from a connection that has ended, so that data that the peer was still sending
/// does not make the system discard our last bytes (RFC 1122 section 4.2.2.13).
const LINGER: Duration = Duration::from_secs(1);

/// Drives a [`Link`] over `wire` until the connection has ended.
pub(crate) struct Task<W> {
    link: Arc<Link>,
    wire: W,
    tally: Arc<Tally>,
    /// The share of the budget, for a server's connection.
    held: Option<Held>,
    input: Input,
    /// Borrowed from the thread while the task runs.
    room: TaskBuffers,
    /// The remaining messages of this turn.
    messages: usize,
    bytes: usize,
    /// Fires no later than the connection's deadline. It is moved only when it must fire earlier.
    sleep: Pin<Box<Sleep>>,
    armed: Option<Instant>,
    stage: Stage,
    lingering: Option<Lingering>,
    /// Whether the transport has taken bytes that it has not sent.
    unflushed: bool,
}

/// A connection's share of the [budget](super::budget).
pub(crate) struct Held {
    member: Arc<Member>,
    /// The share without buffers.
    fixed: usize,
    /// The bytes as last reported.
    bytes: usize,
    /// The maximum for all connections together.
    max: usize,
}

impl Held {
    pub(crate) fn new(member: Arc<Member>, fixed: usize, max: usize) -> Self {
        Self { member, fixed, bytes: fixed, max }
    }
}

#[derive(Copy, Clone, PartialEq)]
enum Stage {
    Open,
    /// The peer has sent its last byte.
    Ended,
    /// The connection has ended: our side is closed, then the peer's is awaited.
    Closing,
    Lingering,
}

impl<W: Wire> Task<W> {
    pub(crate) fn new(link: Arc<Link>, wire: W, tally: Arc<Tally>, held: Option<Held>) -> Self {
        let sleep = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self {
            link,
            wire,
            tally,
            held,
            input: Input::default(),
            room: TaskBuffers::default(),
            messages: 0,
            bytes: 0,
            sleep,
            armed: None,
            stage: Stage::Open,
            lingering: None,
            unflushed: false,
        }
    }

    /// Reports the bytes that the connection holds, if they have changed.
    fn tell_held(&mut self) {
        let Some(held) = &mut self.held else { return };
        let state = self.link.lock();
        let kept = state.connection.output_capacity() + state.observers.held_bytes();
        drop(state);
        let bytes = held.fixed + self.input.capacity() + kept;
        if bytes.abs_diff(held.bytes) > UNNOTICED {
            held.bytes = bytes;
            self.tally.hold(&held.member, bytes, held.max);
        }
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let link = self.link.clone();
        (self.messages, self.bytes) = (MESSAGES, BYTES);
        for _ in 0..ROUNDS {
            if matches!(self.stage, Stage::Closing | Stage::Lingering) {
                return self.linger(cx);
            }
            let now = link.clock.now();
            notify(&link, now);
            let mut state = link.lock();
            if !state.task.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                state.task = Some(cx.waker().clone());
            }
            let kept = !state.observers.is_empty();
            state.connection.keep(kept);
            if state.connection.poll_timeout().is_some_and(|at| at <= now) {
                state.connection.handle_timeout(now);
            }
            self.write(&mut state, cx, now);
            let over = state.take_events();
            let deadline = state.connection.poll_timeout();
            let woken = state.take_wakers();
            drop(state);
            woken.into_iter().for_each(Waker::wake);
            if over {
                self.finish();
                continue;
            }
            if self.messages == 0 {
                break;
            }
            if !self.read(cx, now) && self.wait(cx, deadline) {
                return Poll::Pending;
            }
        }
        // There is more to do, but other tasks need to run too, including those for which the
        // system has just received something. Unlike a waker of our own, yielding lets the runtime
        // poll for events.
        let mut others = std::pin::pin!(tokio::task::yield_now());
        if others.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Writes the waiting bytes.
    fn write(&mut self, state: &mut LinkState, cx: &mut Context<'_>, now: Instant) {
        let result = loop {
            let bytes = state.connection.poll_transmit();
            if bytes.is_empty() {
                break Ok(());
            }
            match self.wire.poll_write(cx, bytes) {
                Poll::Ready(Ok(0)) => break Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(len)) => {
                    trace::sent(self.link.remote, W::FRAMING, bytes.get(..len).unwrap_or_default());
                    self.unflushed = true;
                    state.connection.handle_transmitted(now, len);
                }
                Poll::Ready(Err(error)) => break Err(error),
                Poll::Pending => break Ok(()),
            }
        };
        let result = result.and_then(|()| match self.unflushed {
            false => Ok(()),
            true => match self.wire.poll_flush(cx) {
                Poll::Ready(flushed) => {
                    self.unflushed = false;
                    flushed
                }
                Poll::Pending => Ok(()),
            },
        });
        if let Err(error) = result {
            // The peer may have said why before it closed, as by an alert of TLS.
            let error = match self.wire.poll_read(cx, &mut self.input, 0) {
                Poll::Ready(Err(said)) => said,
                Poll::Ready(Ok(_)) | Poll::Pending => error,
            };
            state.explain(&error.to_string());
            tracing::debug!(target: "ebbtide::stream", peer = %self.link.remote, %error, "lost");
            state.connection.handle_loss(now);
        }
    }

    /// Reads and handles the available bytes. Returns false if the task must wait.
    fn read(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        // Input that was left because too much was unanswered.
        let mut progress = self.handle(now);
        let (wants_input, expected) = {
            let connection = &self.link.lock().connection;
            (connection.wants_input(), connection.expects())
        };
        let has_room = W::FRAMING == Framing::Stream || self.input.unread().is_empty();
        if !wants_input || !has_room || self.stage != Stage::Open || self.messages == 0 {
            return progress;
        }
        match self.wire.poll_read(cx, &mut self.input, expected) {
            Poll::Pending => return progress,
            Poll::Ready(Ok(0)) => {
                self.stage = Stage::Ended;
                self.link.lock().connection.handle_eof(now);
                progress = true;
            }
            Poll::Ready(Ok(_)) => {
                self.handle(now);
                progress = true;
            }
            Poll::Ready(Err(error)) => {
                self.stage = Stage::Ended;
                progress = true;
                let mut state = self.link.lock();
                state.explain(&error.to_string());
                if W::FRAMING == Framing::WebSocket && error.kind() == io::ErrorKind::InvalidData {
                    state.connection.abort(now, &error.to_string());
                } else {
                    state.connection.handle_loss(now);
                }
            }
        }
        progress
    }

    /// Handles the complete messages, as many as belong to one turn. Returns true if there was
    /// one.
    fn handle(&mut self, now: Instant) -> bool {
        let mut any = false;
        loop {
            if self.messages == 0 {
                return true;
            }
            let mut state = self.link.lock();
            let taken = state.connection.handle_input(now, self.input.unread());
            let Some(taken) = taken else { return any };
            any = true;
            self.messages -= 1;
            self.bytes = self.bytes.saturating_sub(taken.bytes);
            if self.bytes == 0 {
                self.messages = 0;
            }
            if let Some(held) = &self.held {
                held.member.use_at(now.as_nanos());
            }
            trace::received(self.link.remote, &taken.received);
            match (taken.received, &self.link.service) {
                (Received::Request(incoming, frame), Some(service)) => {
                    let sizes = Sizes::of_connection(&state.connection, 0);
                    drop(state);
                    // A request over a connection has neither type nor message ID, and these
                    // values are never used.
                    let (header, rest) = frame.as_datagram(Type::Confirmable, MessageId(0));
                    self.room.datagram.clear();
                    self.room.datagram.extend_from_slice(&header);
                    self.room.datagram.extend_from_slice(rest);
                    // It was validated as a frame.
                    if let Ok(message) = Message::parse(&self.room.datagram) {
                        service.serve(&self.link, now, incoming, message, sizes);
                    }
                }
                (Received::Request(incoming, _), None) => {
                    // A client that serves nothing.
                    let sorry = Content { code: Code::NOT_IMPLEMENTED, options: &[], payload: &[] };
                    if state.connection.respond(now, &incoming, &sorry).is_err() {
                        state.connection.dismiss(now, &incoming);
                    }
                }
                (other, _) => state.dispatch(now, self.link.remote, other),
            }
            self.input.take(taken.bytes);
        }
    }

    /// Arms the timer. Returns false if its time has already come.
    fn wait(&mut self, cx: &mut Context<'_>, deadline: Option<Instant>) -> bool {
        let Some(deadline) = deadline else { return true };
        if self.armed.is_none_or(|armed| deadline < armed) {
            self.sleep.as_mut().reset(self.link.clock.to_tokio(deadline));
            self.armed = Some(deadline);
        }
        if self.sleep.as_mut().poll(cx).is_pending() {
            return true;
        }
        self.armed = None;
        false
    }

    /// The connection has ended.
    fn finish(&mut self) {
        let state = self.link.lock();
        if let Some(closed) = state.over {
            tracing::debug!(target: "ebbtide::stream", peer = %self.link.remote, %closed, "closed");
            self.tally.closed(closed, state.connection.counters());
        }
        drop(state);
        self.stage = Stage::Closing;
        let end = self.link.clock.now() + LINGER;
        self.sleep.as_mut().reset(self.link.clock.to_tokio(end));
    }

    /// Closes our side, and reads until the peer has closed its side or the time is over.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.sleep.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if self.stage == Stage::Closing {
            match self.wire.poll_shutdown(cx) {
                Poll::Ready(Ok(())) => match self.tally.linger(self.link.remote.ip()) {
                    Some(place) => (self.stage, self.lingering) = (Stage::Lingering, Some(place)),
                    // What the system has not sent yet may be lost if the peer goes on sending.
                    None => return Poll::Ready(()),
                },
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        for _ in 0..ROUNDS {
            let unread = self.input.unread().len();
            self.input.take(unread);
            match self.wire.poll_read(cx, &mut self.input, 0) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Lets the service create due notifications as long as the peer accepts them. Of states that the
/// peer does not receive in time, only the latest counts.
fn notify(link: &Arc<Link>, now: Instant) {
    let Some(service) = &link.service else { return };
    for _ in 0..NOTIFICATIONS {
        let mut state = link.lock();
        if !state.observers.any_due() || !state.connection.wants_input() {
            return;
        }
        let Some(due) = state.observers.pop_due(now) else { return };
        drop(state);
        service.notify(link, now, due);
    }
}

impl<W: Wire> Future for Task<W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let task = &mut *self;
        task.room = TaskBuffers::take();
        task.input.borrow_room(&mut task.room.input);
        let done = task.run(cx);
        task.input.return_room(&mut task.room.input);
        std::mem::take(&mut task.room).leave();
        task.tell_held();
        done
    }
}
