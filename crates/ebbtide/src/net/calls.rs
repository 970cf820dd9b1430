//! The calls of an application at a socket: begun, waited for, forgotten.

use super::pending::{Answer, Open, Owner};
use super::shared::Shared;
use super::socket_state::SocketState;
use super::trace;
use crate::error::{Cause, Error};
use ebbtide_core::endpoint::{Endpoint, SendError};
use ebbtide_core::time::Instant;
use ebbtide_core::{ExchangeId, PeerId};
use std::net::IpAddr;
use std::task::{Context, Poll};

impl Shared {
    /// Starts a call, whose first message `start` sends. Returns the place of the call.
    pub(crate) fn call(
        &self,
        remote: PeerId,
        local: Option<IpAddr>,
        start: impl FnOnce(&mut Endpoint, Instant) -> Result<ExchangeId, SendError>,
    ) -> Result<u32, Error> {
        self.with(|state, now| {
            if state.closed {
                return Err(Cause::Closed.into());
            }
            let exchange = start(&mut state.endpoint, now).map_err(Cause::Send)?;
            trace::began(exchange);
            let index = state.pending.add_call();
            if let Some(call) = state.pending.call(index) {
                call.exchange = Some(exchange);
            }
            let owner = Owner::Call(index);
            state.pending.opened(Open::new(exchange, owner, remote, local));
            Ok(index)
        })
    }

    /// The next answer to a call; `None` once the exchange is over and all answers were fetched.
    pub(crate) fn poll_answer(&self, index: u32, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let mut state = self.lock();
        let closed = state.closed;
        let Some(call) = state.pending.call(index) else { return Poll::Ready(None) };
        if let Some(answer) = call.pop() {
            return Poll::Ready(Some(answer));
        }
        if call.exchange.is_none() || closed {
            return Poll::Ready(None);
        }
        call.wake_later(cx.waker());
        Poll::Pending
    }

    /// The exchange of a call, if it is open.
    pub(crate) fn exchange(&self, index: u32) -> Option<ExchangeId> {
        self.lock().pending.call(index)?.exchange
    }

    /// Forgets a call that the application waits for no longer, and cancels what is still open of it.
    pub(crate) fn forget(&self, index: u32) {
        let is_over = {
            let mut state = self.lock();
            match state.pending.call(index) {
                Some(call) if call.exchange.is_none() => {
                    state.pending.remove_call(index);
                    true
                }
                Some(_) => false,
                None => true,
            }
        };
        if !is_over {
            self.with(|state, now| state.forget_call(now, index));
        }
    }
}

impl SocketState {
    /// Forgets a call whose future was dropped.
    pub(crate) fn forget_call(&mut self, now: Instant, index: u32) {
        let Some(exchange) = self.pending.remove_call(index) else {
            return;
        };
        let open = self.pending.ended(exchange);
        self.endpoint.cancel(now, exchange);
        if let Some(open) = open {
            self.room(open.remote);
        }
    }
}
