//! The future of a handler: neither its panics nor those of what it leaves behind end the task that polls or drops it.

use super::panics::{self, CaughtPanic};
use crate::message::Response;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// See the [module](self). `None` after its end.
pub(crate) struct HandlerFuture(Option<Pin<Box<dyn Future<Output = Response> + Send>>>);

impl HandlerFuture {
    pub(super) fn new(future: impl Future<Output = Response> + Send + 'static) -> Self {
        Self(Some(Box::pin(future)))
    }

    /// Its response. A panic goes on.
    pub(super) async fn response(self) -> Response {
        self.await.unwrap_or_else(|caught| caught.resume())
    }

    fn end(&mut self) {
        let Some(ended) = self.0.take() else { return };
        if let Err(caught) = panics::catch(|| drop(ended)) {
            tracing::error!(reason = %caught, "a value of a handler panicked when it was dropped");
        }
    }
}

impl Future for HandlerFuture {
    type Output = Result<Response, CaughtPanic>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let answered = match panics::catch(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(response)) => Ok(response),
            Err(caught) => Err(caught),
        };
        self.end();
        Poll::Ready(answered)
    }
}

impl Drop for HandlerFuture {
    fn drop(&mut self) {
        self.end();
    }
}
