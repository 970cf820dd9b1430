//! Replies of handlers: a response that is ready, or a future that returns one.

use crate::message::Response;
use core::fmt;
use std::future::Future;
use std::pin::Pin;

/// A future that is polled by the server's runtime.
pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// The answer to a request, or the promise of one.
pub struct Reply(pub(crate) Answer);

pub(crate) enum Answer {
    /// It rides on the acknowledgement of its request.
    Now(Response),
    /// It is sent when it is ready. The request is acknowledged before, if that takes long.
    Later(BoxFuture),
}

impl Reply {
    /// A response that is ready.
    #[must_use]
    pub const fn now(response: Response) -> Self {
        Self(Answer::Now(response))
    }

    /// A response that is ready when `future` is.
    #[must_use]
    pub fn later(future: impl Future<Output = Response> + Send + 'static) -> Self {
        Self(Answer::Later(Box::pin(future)))
    }

    /// Changes the response, when it is ready.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Response) -> Response + Send + 'static) -> Self {
        match self.0 {
            Answer::Now(response) => Self::now(change(response)),
            Answer::Later(future) => Self::later(async move { change(future.await) }),
        }
    }

    /// Waits for the response.
    pub async fn wait(self) -> Response {
        match self.0 {
            Answer::Now(response) => response,
            Answer::Later(future) => future.await,
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
            Answer::Now(response) => f.debug_tuple("Now").field(response).finish(),
            Answer::Later(_) => f.write_str("Later"),
        }
    }
}
