//! The exchanges of one transfer, whose answers come in the order in which they arrive.

use super::pending::Pending;
use crate::net::pending::Answer;
use futures_util::stream::{FuturesUnordered, Stream};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// An exchange of the transfer and its answer, or `None` if it has ended without one.
type AnsweredExchange = (u32, Pending, Option<Answer>);

/// See the [module](self). Dropping it cancels them.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Most transfers have one exchange at a time, which needs no list with wakers of its own.
    only: Option<(u32, Pending)>,
    several: Option<Box<Several>>,
}

/// The exchanges of a transfer with several at a time.
#[derive(Debug, Default)]
struct Several {
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
    type Output = Option<AnsweredExchange>;

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

impl Several {
    fn push(&mut self, id: u32, pending: Pending) {
        self.live += 1;
        self.exchanges.push(Exchange { id, pending: Some(pending), waker: None });
    }

    fn cancel(&mut self, id: u32) {
        let found = self.exchanges.iter_mut().find(|exchange| exchange.id == id);
        if let Some(exchange) = found
            && exchange.pending.take().is_some()
        {
            self.live -= 1;
            // So that it is looked at once more, and goes.
            exchange.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<AnsweredExchange> {
        loop {
            match Pin::new(&mut self.exchanges).poll_next(cx) {
                Poll::Ready(Some(Some(answered))) => {
                    self.live -= 1;
                    return Poll::Ready(answered);
                }
                Poll::Ready(Some(None)) => {}
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Running {
    pub(super) fn push(&mut self, id: u32, pending: Pending) {
        if self.is_empty() {
            (self.only, self.several) = (Some((id, pending)), None);
            return;
        }
        let several = self.several.get_or_insert_default();
        // Several are in one list, which wakes in the order in which answers arrive.
        if let Some((only, pending)) = self.only.take() {
            several.push(only, pending);
        }
        several.push(id, pending);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.only.is_none() && self.several.as_ref().is_none_or(|several| several.live == 0)
    }

    pub(super) fn cancel(&mut self, id: u32) {
        if self.only.as_ref().is_some_and(|(only, _)| *only == id) {
            self.only = None;
        } else if let Some(several) = &mut self.several {
            several.cancel(id);
        }
    }

    pub(super) fn clear(&mut self) {
        (self.only, self.several) = (None, None);
    }

    /// Returns the next answer to any of the exchanges, or `None` in place of the answer if the
    /// exchange has ended without one, and removes the exchange. Waits forever if there are no
    /// exchanges. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> AnsweredExchange {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<AnsweredExchange> {
        if let Some((_, pending)) = &self.only
            && let Poll::Ready(answer) = pending.poll_answer(cx)
            && let Some((id, pending)) = self.only.take()
        {
            return Poll::Ready((id, pending, answer));
        }
        match &mut self.several {
            Some(several) => several.poll_next(cx),
            None => Poll::Pending,
        }
    }
}
