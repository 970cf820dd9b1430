//! The future of an exchange.

use crate::error::Error;
use crate::message::Response;
use crate::net::pending::Answer;
use crate::net::shared::Shared;
use ebbtide_core::cc::Sample;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An exchange under way. Dropping it cancels the exchange.
#[derive(Debug)]
pub(crate) struct Pending {
    shared: Arc<Shared>,
    index: u32,
    remote: SocketAddr,
}

impl Pending {
    pub(crate) fn new(shared: Arc<Shared>, index: u32, remote: SocketAddr) -> Self {
        Self { shared, index, remote }
    }

    pub(crate) fn poll_answer(&self, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let mut state = self.shared.lock();
        let closed = state.closed;
        let Some(call) = state.pending.call(self.index) else { return Poll::Ready(None) };
        if let Some(answer) = call.pop() {
            return Poll::Ready(Some(answer));
        }
        if call.exchange.is_none() || closed {
            return Poll::Ready(None);
        }
        call.wake_later(cx.waker());
        Poll::Pending
    }

    /// The next answer; `None` once the exchange is over and all answers were fetched.
    pub(crate) async fn answer(&self) -> Option<Answer> {
        poll_fn(|cx| self.poll_answer(cx)).await
    }

    /// The one response that a request has.
    pub(crate) async fn response(&self) -> Result<Response, Error> {
        match self.answer().await {
            Some(Answer::Response { response, .. } | Answer::More { response, .. }) => Ok(response),
            Some(other) => Err(self.error(other)),
            None => Err(Error::Closed),
        }
    }

    /// What the Reset that answers a ping tells.
    pub(crate) async fn reset(&self) -> Result<Option<Sample>, Error> {
        match self.answer().await {
            Some(Answer::Reset { sample }) => Ok(sample),
            Some(other) => Err(self.error(other)),
            None => Err(Error::Closed),
        }
    }

    pub(crate) fn error(&self, answer: Answer) -> Error {
        let remote = self.remote;
        match answer {
            Answer::Reset { .. } => Error::Reset { remote },
            Answer::Failed(reason) => Error::Failed { remote, reason },
            Answer::Network(source) => Error::Network { remote, source },
            Answer::Response { .. } | Answer::More { .. } => {
                Error::Protocol { remote, what: "it answered a ping with a response" }
            }
        }
    }

    /// Whether an observation is registered: its answers came, and more may come.
    pub(crate) fn is_registered(&self) -> bool {
        let mut state = self.shared.lock();
        state.pending.call(self.index).is_some_and(|call| call.registered)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let over = {
            let mut state = self.shared.lock();
            match state.pending.call(self.index) {
                Some(call) if call.exchange.is_none() => {
                    state.pending.remove_call(self.index);
                    true
                }
                Some(_) => false,
                None => true,
            }
        };
        if !over {
            self.shared.with(|state, now| state.forget_call(now, self.index));
        }
    }
}
