//! Replies of handlers: a response that is ready, or a future that returns one.

use super::handler_future::HandlerFuture;
use crate::message::Response;
use core::fmt;
use std::future::Future;

/// The answer to a request, or a future that returns it.
pub struct Reply(pub(crate) HandlerAnswer);

pub(crate) enum HandlerAnswer {
    /// The response is sent with the acknowledgement (piggybacked).
    Ready(Response),
    /// The response is sent when the future is ready. If that takes long, the request is
    /// acknowledged first.
    Pending(PendingAnswer),
}

/// An answer that is not there yet.
pub(crate) struct PendingAnswer {
    pub(crate) future: HandlerFuture,
    pub(crate) polled_by: PolledBy,
}

/// The task that polls a handler's future.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum PolledBy {
    /// One of its own.
    Task,
    /// That of the socket by which the request came.
    Socket,
}

impl Reply {
    /// Creates a reply with this response.
    #[must_use]
    pub const fn now(response: Response) -> Self {
        Self(HandlerAnswer::Ready(response))
    }

    /// Creates a reply whose response is the output of `future`.
    ///
    /// A request that is challenged or refused because too many handlers are at work
    /// ([`MemoryLimits::working`](crate::config::MemoryLimits::working)) does not reach its handler, which has therefore
    /// done nothing when the client repeats the request. Only a GET or a FETCH, which changes nothing (RFC 7252 section
    /// 5.1, RFC 8132 section 2), may reach it before; the future is then dropped, and was not polled.
    #[must_use]
    pub fn later(future: impl Future<Output = Response> + Send + 'static) -> Self {
        Self::pending(future, PolledBy::Task)
    }

    /// As [`Self::later`], for a future that never works for long when it is polled, such as one
    /// that waits for the answer of another server. The task of the socket by which the request
    /// came polls it, which costs less than a task of its own; it serves no other request
    /// meanwhile. Over a connection, for a notification, and where a handler takes a body as it arrives, the future has
    /// a task of its own all the same.
    ///
    /// Both are polled once more when their request is acknowledged, so that a time limit need not be set before.
    #[must_use]
    pub fn brief(future: impl Future<Output = Response> + Send + 'static) -> Self {
        Self::pending(future, PolledBy::Socket)
    }

    fn pending(
        future: impl Future<Output = Response> + Send + 'static,
        polled_by: PolledBy,
    ) -> Self {
        let future = HandlerFuture::new(future);
        Self(HandlerAnswer::Pending(PendingAnswer { future, polled_by }))
    }

    /// Whether the response may be a success, as far as is known.
    pub(super) fn may_succeed(&self) -> bool {
        match &self.0 {
            HandlerAnswer::Ready(response) => response.is_success(),
            HandlerAnswer::Pending(_) => true,
        }
    }

    /// Applies `change` to the response when it is ready.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Response) -> Response + Send + 'static) -> Self {
        match self.0 {
            HandlerAnswer::Ready(response) => Self::now(change(response)),
            HandlerAnswer::Pending(PendingAnswer { future, polled_by }) => {
                Self::pending(async move { change(future.response().await) }, polled_by)
            }
        }
    }

    /// Waits for the response.
    pub async fn wait(self) -> Response {
        match self.0 {
            HandlerAnswer::Ready(response) => response,
            HandlerAnswer::Pending(pending) => pending.future.response().await,
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
            HandlerAnswer::Pending(..) => f.write_str("Pending"),
        }
    }
}
