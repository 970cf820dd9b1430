//! Replies of handlers: a response that is ready, or a future that returns one.

use crate::message::Response;
use core::fmt;
use std::future::Future;
use std::pin::Pin;

/// A future that is polled by the server's runtime.
pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// The answer to a request, or a future that returns it.
pub struct Reply(pub(crate) HandlerAnswer);

pub(crate) enum HandlerAnswer {
    /// The response is sent with the acknowledgement (piggybacked).
    Ready(Response),
    /// The response is sent when the future is ready. If that takes long, the request is
    /// acknowledged first.
    Pending(BoxFuture),
}

impl Reply {
    /// Creates a reply with this response.
    #[must_use]
    pub const fn now(response: Response) -> Self {
        Self(HandlerAnswer::Ready(response))
    }

    /// Creates a reply whose response is the output of `future`.
    #[must_use]
    pub fn later(future: impl Future<Output = Response> + Send + 'static) -> Self {
        Self(HandlerAnswer::Pending(Box::pin(future)))
    }

    /// Applies `change` to the response when it is ready.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Response) -> Response + Send + 'static) -> Self {
        match self.0 {
            HandlerAnswer::Ready(response) => Self::now(change(response)),
            HandlerAnswer::Pending(future) => Self::later(async move { change(future.await) }),
        }
    }

    /// Waits for the response.
    pub async fn wait(self) -> Response {
        match self.0 {
            HandlerAnswer::Ready(response) => response,
            HandlerAnswer::Pending(future) => future.await,
        }
    }
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self::now(response)
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            HandlerAnswer::Ready(response) => f.debug_tuple("Ready").field(response).finish(),
            HandlerAnswer::Pending(_) => f.write_str("Pending"),
        }
    }
}
