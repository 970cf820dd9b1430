//! The task of one connection.
//!
//! It sleeps until bytes arrive, the transport has room, an application or a handler has something
//! to send, or a deadline comes; then it does all there is to do and writes the answers to all that
//! it has read at once.

use super::counters::Tally;
use super::link::{Link, State};
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

/// Reads before other tasks get their turn.
const ROUNDS: usize = 8;
/// Notifications that are made before bytes are read again.
const NOTIFICATIONS: usize = 256;
/// How long a connection that is over is read from, so that what the peer was still sending does
/// not make the system throw away our last words (RFC 1122 section 4.2.2.13).
const LINGER: Duration = Duration::from_secs(1);

/// Drives a [`Link`] over `wire` until the connection is over.
pub(crate) struct Task<W> {
    link: Arc<Link>,
    wire: W,
    tally: Arc<Tally>,
    input: Input,
    /// A request as it would be over UDP, which is what handlers are given.
    datagram: Vec<u8>,
    /// Fires no later than the connection's deadline. Moved only when it must fire earlier.
    sleep: Pin<Box<Sleep>>,
    armed: Option<Instant>,
    stage: Stage,
    /// Whether the transport has taken bytes that it has not sent.
    unflushed: bool,
}

#[derive(Copy, Clone, PartialEq)]
enum Stage {
    Open,
    /// The peer has sent its last byte.
    Ended,
    /// Over: our side is to be closed, and then the peer's waited for.
    Closing,
    Lingering,
}

impl<W: Wire> Task<W> {
    pub(crate) fn new(link: Arc<Link>, wire: W, tally: Arc<Tally>) -> Self {
        let sleep = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self {
            link,
            wire,
            tally,
            input: Input::default(),
            datagram: Vec::new(),
            sleep,
            armed: None,
            stage: Stage::Open,
            unflushed: false,
        }
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let link = self.link.clone();
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
            if !self.read(cx, now) && self.wait(cx, deadline) {
                return Poll::Pending;
            }
        }
        // There is more, but others want to run too.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes what waits.
    fn write(&mut self, state: &mut State, cx: &mut Context<'_>, now: Instant) {
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
            tracing::debug!(target: "ebbtide::stream", peer = %self.link.remote, %error, "lost");
            state.connection.handle_loss(now);
        }
    }

    /// Reads and handles what is there. False if it must wait.
    fn read(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        // What was left because too much was unanswered.
        let mut progress = self.handle(now);
        let (wants_input, expected) = {
            let connection = &self.link.lock().connection;
            (connection.wants_input(), connection.expects())
        };
        let has_room = W::FRAMING == Framing::Stream || self.input.unread().is_empty();
        if !wants_input || !has_room || self.stage != Stage::Open {
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
                if error.kind() == io::ErrorKind::InvalidData {
                    state.connection.abort(now, &error.to_string());
                } else {
                    state.connection.handle_loss(now);
                }
            }
        }
        progress
    }

    /// Takes the messages that are whole. True if there was one.
    fn handle(&mut self, now: Instant) -> bool {
        let mut any = false;
        loop {
            let mut state = self.link.lock();
            let taken = state.connection.handle_input(now, self.input.unread());
            let Some(taken) = taken else { return any };
            any = true;
            trace::received(self.link.remote, &taken.received);
            match (taken.received, &self.link.service) {
                (Received::Request(incoming, frame), Some(service)) => {
                    let sizes = Sizes::of_connection(&state.connection, 0);
                    drop(state);
                    // It has neither type nor message ID: what these are for does not arise.
                    let (header, rest) = frame.as_datagram(Type::Confirmable, MessageId(0));
                    self.datagram.clear();
                    self.datagram.extend_from_slice(&header);
                    self.datagram.extend_from_slice(rest);
                    // It was checked as a frame.
                    if let Ok(message) = Message::parse(&self.datagram) {
                        service.serve(&self.link, now, (incoming, message), sizes);
                    }
                }
                (Received::Request(incoming, _), None) => {
                    // A client that serves nothing.
                    let sorry = Content { code: Code::NOT_IMPLEMENTED, options: &[], payload: &[] };
                    if state.connection.respond(now, &incoming, &sorry).is_err() {
                        state.connection.dismiss(now, &incoming);
                    }
                }
                (other, _) => state.dispatch(self.link.remote, other),
            }
            self.input.take(taken.bytes);
        }
    }

    /// Arms the timer. False if its time has come already.
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

    /// The connection is over.
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

    /// Closes our side, and reads until the peer has closed its own or had its time.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.sleep.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if self.stage == Stage::Closing {
            match self.wire.poll_shutdown(cx) {
                Poll::Ready(Ok(())) => self.stage = Stage::Lingering,
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

/// Lets the service make notifications that are due, as long as the peer takes them: of the states
/// that it does not get in time the latest counts.
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
        self.run(cx)
    }
}
