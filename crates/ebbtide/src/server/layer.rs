//! Layers around handlers: logging, deadlines, permissions, limits.

use super::call::Call;
use super::reply::{HandlerAnswer, Reply};
use crate::message::Response;
use core::fmt;
use ebbtide_core::wire::Code;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// A layer around handlers. It sees each request before the handler and the response after it, and
/// may answer in the handler's place.
///
/// Around a handler that answers at once, a layer costs a function call and no allocation.
///
/// ```
/// use ebbtide::Response;
/// use ebbtide::server::{Call, Layer, Next, Reply};
///
/// /// Counts what was not found.
/// struct NotFound(std::sync::Arc<std::sync::atomic::AtomicU64>);
///
/// impl Layer for NotFound {
///     fn call(&self, call: &Call<'_>, next: Next<'_>) -> Reply {
///         let count = self.0.clone();
///         next.run(call).map(move |response: Response| {
///             if response.code() == ebbtide::Code::NOT_FOUND {
///                 count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///             }
///             response
///         })
///     }
/// }
/// ```
pub trait Layer: Send + Sync + 'static {
    /// Answers a request, or lets `next` answer it.
    fn call(&self, call: &Call<'_>, next: Next<'_>) -> Reply;
}

/// The inner part of a layer: further layers and the handler.
#[derive(Copy, Clone)]
pub struct Next<'a>(pub(crate) &'a dyn Fn(&Call<'_>) -> Reply);

impl Next<'_> {
    /// Lets the handler answer.
    #[must_use]
    pub fn run(&self, call: &Call<'_>) -> Reply {
        (self.0)(call)
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

/// Logs each request with its answer, at the level INFO with the target `ebbtide::access`.
#[derive(Copy, Clone, Debug, Default)]
pub struct AccessLog;

impl Layer for AccessLog {
    fn call(&self, call: &Call<'_>, next: Next<'_>) -> Reply {
        if !tracing::enabled!(target: "ebbtide::access", tracing::Level::INFO) {
            return next.run(call);
        }
        let (peer, method, path) = (call.remote(), call.method(), call.path());
        next.run(call).map(move |response| {
            let (code, bytes) = (response.code(), response.body().len());
            tracing::info!(target: "ebbtide::access", %peer, %method, path, %code, bytes, "answered");
            response
        })
    }
}

/// The time limit of a handler. Beyond it, the request is answered 5.03 and the handler's future is
/// dropped at its current `await`.
#[derive(Copy, Clone, Debug)]
pub struct Timeout(pub Duration);

impl Layer for Timeout {
    fn call(&self, call: &Call<'_>, next: Next<'_>) -> Reply {
        let span = self.0;
        match next.run(call).0 {
            HandlerAnswer::Ready(response) => Reply::now(response),
            HandlerAnswer::Pending(pending) => Reply::later(async move {
                let timely = tokio::time::timeout(span, pending.future.response()).await;
                timely.unwrap_or_else(|_| Response::new(Code::SERVICE_UNAVAILABLE))
            }),
        }
    }
}

/// Limits concurrent requests; excess requests receive 5.03 with Max-Age 1.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit(Arc<Semaphore>);

impl ConcurrencyLimit {
    /// A limit that all clones of the layer share.
    #[must_use]
    pub fn new(requests: usize) -> Self {
        Self(Arc::new(Semaphore::new(requests.min(Semaphore::MAX_PERMITS))))
    }
}

impl Layer for ConcurrencyLimit {
    fn call(&self, call: &Call<'_>, next: Next<'_>) -> Reply {
        let Ok(place) = self.0.clone().try_acquire_owned() else {
            return Reply::now(Response::new(Code::SERVICE_UNAVAILABLE).max_age(1));
        };
        next.run(call).map(move |response| {
            drop(place);
            response
        })
    }
}

/// Calls a function for each request, which lets the request pass or answers it.
///
/// On a route with bodies in blocks, use [`Resource::authorize`](super::Resource::authorize), which
/// is called at the first block, before anything is stored.
#[derive(Clone, Debug)]
pub struct Authorize<F>(pub F);

impl<F> Layer for Authorize<F>
where
    F: Fn(&Call<'_>) -> Result<(), Response> + Send + Sync + 'static,
{
    fn call(&self, call: &Call<'_>, next: Next<'_>) -> Reply {
        match (self.0)(call) {
            Ok(()) => next.run(call),
            Err(refusal) => Reply::now(refusal),
        }
    }
}
