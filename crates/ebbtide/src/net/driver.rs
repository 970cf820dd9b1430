//! The driver: the task that waits for the events of one socket.
//!
//! It sleeps until a datagram arrives, an application or a handler has something to send, or the
//! endpoint's timeout comes. It then does all pending work, receives and sends in batches, and
//! sleeps again. Receiving does not allocate.

use super::alarm::Alarm;
use super::beside::{TURN, let_others_run};
use super::brief::BriefTask;
use super::receive::BATCHES;
use super::shared::Shared;
use ebbtide_core::time::Instant;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Notifications that are made before datagrams are received again.
const NOTIFICATIONS: usize = 256;
/// How long to wait before sending again on a full socket. The event loop waits for readability
/// only; waiting for writability as well would wake it for every datagram that leaves.
const SEND_AGAIN: Duration = Duration::from_millis(1);

/// The number of bytes waiting for a full socket from which on nothing is received.
const MAX_UNSENT: usize = 256 << 10;

/// Drives `shared` until it is closed.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    /// Fires at `SocketState::armed`, no later than the endpoint's deadline. It is moved only when it must
    /// fire earlier, so an exchange that is answered in time does not touch the timer.
    alarm: Alarm,
    /// When to try to send again, if the socket was full.
    retry: Option<Instant>,
    /// When the last datagrams were received.
    heard: Instant,
    /// The work beside its own that was woken last.
    woken: Vec<Arc<dyn BriefTask>>,
    /// The task that waits for errors reported by the network.
    errors: tokio::task::AbortHandle,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.errors.abort();
        // The endpoint is not driven any more, for example because the runtime has ended. Calls
        // must fail instead of waiting forever.
        self.shared.close();
    }
}

impl Driver {
    /// Starts the task, which ends when `shared` is closed.
    pub(crate) fn spawn(shared: Arc<Shared>) -> tokio::task::JoinHandle<()> {
        let alarm = shared.device.alarm(shared.clock);
        let errors = tokio::spawn(watch_errors(shared.clone())).abort_handle();
        tokio::spawn(Self {
            shared,
            alarm,
            retry: None,
            heard: Instant::ZERO,
            woken: Vec::new(),
            errors,
        })
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let began = self.shared.clock.now();
        let mut now = began;
        for _ in 0..BATCHES {
            if now >= began + TURN {
                break;
            }
            let mut state = self.shared.lock();
            if !state.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                state.driver = Some(cx.waker().clone());
            }
            if state.armed.is_some_and(|at| at <= now) {
                // It has fired, even if nothing is due any more.
                state.armed = None;
            }
            state.advance(now);
            if state.deadline.is_some_and(|at| at <= now) {
                state.handle_timeout(now);
            }
            state.brief.swap_woken(&mut self.woken);
            if !self.woken.is_empty() || state.brief.next_late().is_some_and(|at| at <= now) {
                drop(state);
                self.do_brief_work(now);
                state = self.shared.lock();
            }
            let mut more = false;
            // Most turns have no notification, and pay for one lock.
            if state.observers.any_due() {
                drop(state);
                more = notify(&self.shared, now);
                state = self.shared.lock();
            }
            let mut sent = self.shared.flush(&mut state, now);
            while sent.is_ok() && state.is_full {
                // The endpoint has more to send.
                state.drain(None);
                sent = self.shared.flush(&mut state, now);
            }
            self.retry = sent.is_err().then(|| now + SEND_AGAIN);
            // Requests that cannot be answered stay in the system's queue, which drops them if
            // there are more.
            let deaf = sent.is_err() && state.out.len_bytes() >= MAX_UNSENT;
            if state.closed && (state.out.is_empty() || sent.is_err()) {
                return Poll::Ready(());
            }
            let woken = state.take_wakers();
            drop(state);
            woken.into_iter().for_each(Waker::wake);
            let busily = self.polls_busily();
            let received = if deaf { None } else { self.shared.receive(cx, busily) };
            if let Some(handled) = received {
                // Reading the clock again would cost as much as a tenth of an answer.
                (self.heard, now) = (now, handled);
            } else if !more && self.wait(cx) {
                if self.polls_busily() {
                    cx.waker().wake_by_ref();
                }
                return Poll::Pending;
            } else {
                now = self.shared.clock.now();
            }
        }
        // There is more to do, but other tasks need to run too.
        let_others_run(cx);
        Poll::Pending
    }

    /// Goes on with the work that was woken or is late.
    fn do_brief_work(&mut self, now: Instant) {
        let mut over = Vec::new();
        for task in self.woken.drain(..) {
            over.extend(task.poll(now));
        }
        let mut state = self.shared.lock();
        over.into_iter().for_each(|place| state.brief.end(place));
        while let Some(late) = state.brief.pop_late(now) {
            drop(state);
            late.on_late(now);
            let over = late.poll(now);
            state = self.shared.lock();
            over.into_iter().for_each(|place| state.brief.end(place));
        }
    }

    /// Whether the last datagrams are so recent that the task keeps polling for the next ones.
    fn polls_busily(&self) -> bool {
        let span = self.shared.busy_poll;
        !span.is_zero() && self.shared.clock.now() < self.heard + span
    }

    /// Arms the timer. Returns false if its time has already come.
    fn wait(&mut self, cx: &mut Context<'_>) -> bool {
        let mut state = self.shared.lock();
        let late = state.brief.next_late();
        let deadline = state.deadline.into_iter().chain(self.retry).chain(late).min();
        let Some(deadline) = deadline else { return true };
        if state.armed.is_none_or(|armed| deadline < armed) {
            self.alarm.set(self.shared.clock.now(), deadline);
            state.armed = Some(deadline);
        }
        if self.alarm.poll(cx).is_pending() {
            return true;
        }
        state.armed = None;
        false
    }
}

/// Lets the service create due notifications while the lock is free. Returns true if more could be
/// created at once.
fn notify(shared: &Arc<Shared>, now: Instant) -> bool {
    let Some(service) = &shared.service else { return false };
    for _ in 0..NOTIFICATIONS {
        let mut state = shared.lock();
        // Half of the exchanges are reserved for separate responses and requests.
        let full = state.out.len_bytes() >= MAX_UNSENT;
        if !state.observers.any_due() || state.endpoint.is_half_full() || full {
            return false;
        }
        let Some(due) = state.observers.pop_due(now) else { break };
        drop(state);
        service.notify(shared, now, due);
    }
    shared.lock().observers.any_due()
}

/// Reads the errors that the network reports for undeliverable datagrams.
async fn watch_errors(shared: Arc<Shared>) {
    while shared.device.reported().await.is_ok() {
        while shared.take_errors() {
            tokio::task::yield_now().await;
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.run(cx)
    }
}
