//! Panics of handlers: a bug in one handler must not stop the server for other clients.

use super::reply::BoxFuture;
use crate::message::Response;
use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// The payload of a handler's panic.
pub(super) struct CaughtPanic(Box<dyn Any + Send>);

impl fmt::Display for CaughtPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.downcast_ref::<&str>().copied();
        let text = text.or_else(|| self.0.downcast_ref::<String>().map(String::as_str));
        f.write_str(text.unwrap_or("no message"))
    }
}

/// Calls a handler and catches its panic. State that the handler shares with other calls stays as
/// the panic left it, and a mutex that the handler had locked is poisoned.
pub(super) fn catch<R>(call: impl FnOnce() -> R) -> Result<R, CaughtPanic> {
    catch_unwind(AssertUnwindSafe(call)).map_err(CaughtPanic)
}

/// Waits for a handler and catches its panic.
pub(super) async fn caught(mut future: BoxFuture) -> Result<Response, CaughtPanic> {
    poll_fn(|cx| match catch(|| future.as_mut().poll(cx)) {
        Ok(Poll::Ready(response)) => Poll::Ready(Ok(response)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(caught) => Poll::Ready(Err(caught)),
    })
    .await
}
