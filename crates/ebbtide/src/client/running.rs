//! The exchanges of one transfer, whose answers come in the order in which they arrive.

use super::pending::Pending;
use crate::net::pending::Answer;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// See the [module](self). Dropping it cancels them.
#[derive(Debug, Default)]
pub(super) struct Running {
    exchanges: FuturesUnordered<Exchange>,
    /// How many of them are not cancelled.
    live: usize,
}

/// An exchange; as a future its next answer.
#[derive(Debug)]
struct Exchange {
    id: u32,
    pending: Option<Pending>,
    waker: Option<Waker>,
}

impl Future for Exchange {
    type Output = Option<(u32, Pending, Option<Answer>)>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(pending) = &self.pending else { return Poll::Ready(None) };
        match pending.poll_answer(cx) {
            Poll::Ready(answer) => {
                let id = self.id;
                Poll::Ready(self.pending.take().map(|pending| (id, pending, answer)))
            }
            Poll::Pending => {
                self.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Running {
    pub(super) fn push(&mut self, id: u32, pending: Pending) {
        self.live += 1;
        self.exchanges.push(Exchange { id, pending: Some(pending), waker: None });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub(super) fn cancel(&mut self, id: u32) {
        let found = self.exchanges.iter_mut().find(|exchange| exchange.id == id);
        if let Some(exchange) = found
            && exchange.pending.take().is_some()
        {
            self.live -= 1;
            // So that it is looked at once more, and goes.
            exchange.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn clear(&mut self) {
        self.exchanges.clear();
        self.live = 0;
    }

    /// Returns the next answer to any of the exchanges, or `None` in place of the answer if the
    /// exchange has ended without one, and removes the exchange. Waits forever if there are no
    /// exchanges. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> (u32, Pending, Option<Answer>) {
        loop {
            match self.exchanges.next().await {
                Some(Some(answered)) => {
                    self.live -= 1;
                    return answered;
                }
                Some(None) => {}
                None => std::future::pending().await,
            }
        }
    }
}
