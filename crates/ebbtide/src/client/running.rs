//! The exchanges of one transfer or registration, whose answers come in the order in which they arrive.

use super::pending::Pending;
use crate::error::{Cause, Error};
use crate::message::Response;
use crate::net::pending::Answer;
use futures_util::stream::{FuturesUnordered, Stream};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// News of one of the exchanges.
pub(super) struct Arrived {
    /// The number of the exchange.
    pub(super) id: u32,
    pub(super) news: News,
}

/// See [`Arrived`].
pub(super) enum News {
    /// A response, after which others may follow: the exchange goes on.
    Response(Response),
    /// The last response.
    LastResponse(Response),
    /// It has ended without one.
    Lost(Error),
}

impl Arrived {
    pub(super) fn new(id: u32, pending: &Pending, answer: Option<Answer>) -> Self {
        let news = match answer {
            Some(Answer::More { response, .. }) => News::Response(response),
            Some(Answer::Response { response, .. }) => News::LastResponse(response),
            Some(other) => News::Lost(pending.error(other)),
            None => News::Lost(Cause::Closed.into()),
        };
        Self { id, news }
    }

    pub(super) const fn ends_exchange(&self) -> bool {
        !matches!(self.news, News::Response(_))
    }
}

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
    /// `None` if it was cancelled.
    type Output = Option<(Arrived, Pending)>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(pending) = &self.pending else { return Poll::Ready(None) };
        match pending.poll_answer(cx) {
            Poll::Ready(answer) => {
                let arrived = Arrived::new(self.id, pending, answer);
                Poll::Ready(self.pending.take().map(|pending| (arrived, pending)))
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

    fn take(&mut self, id: u32) -> Option<Pending> {
        let exchange = self.exchanges.iter_mut().find(|exchange| exchange.id == id)?;
        let pending = exchange.pending.take()?;
        self.live -= 1;
        // So that it is looked at once more, and goes.
        exchange.waker.take().into_iter().for_each(Waker::wake);
        Some(pending)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Arrived> {
        loop {
            match Pin::new(&mut self.exchanges).poll_next(cx) {
                Poll::Ready(Some(Some((arrived, pending)))) => {
                    self.live -= 1;
                    if !arrived.ends_exchange() {
                        self.push(arrived.id, pending);
                    }
                    return Poll::Ready(arrived);
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

    /// Removes an exchange, which is cancelled when it is dropped.
    pub(super) fn take(&mut self, id: u32) -> Option<Pending> {
        if let Some((_, pending)) = self.only.take_if(|(only, _)| *only == id) {
            return Some(pending);
        }
        self.several.as_mut()?.take(id)
    }

    pub(super) fn cancel(&mut self, id: u32) {
        drop(self.take(id));
    }

    pub(super) fn clear(&mut self) {
        (self.only, self.several) = (None, None);
    }

    /// Returns the next news of any of the exchanges, and removes an exchange that has ended. Waits forever if there
    /// are no exchanges. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Arrived {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`Self::next`].
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Arrived> {
        if let Some((id, pending)) = &self.only
            && let Poll::Ready(answer) = pending.poll_answer(cx)
        {
            let arrived = Arrived::new(*id, pending, answer);
            if arrived.ends_exchange() {
                self.only = None;
            }
            return Poll::Ready(arrived);
        }
        match &mut self.several {
            Some(several) => several.poll_next(cx),
            None => Poll::Pending,
        }
    }
}
