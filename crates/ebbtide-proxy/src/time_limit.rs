//! Time limits of work that mostly ends long before them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use tokio::time::Instant;
use tokio::time::error::Elapsed;

/// When the timer of a limit is set.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimerStart {
    AtOnce,
    /// With the second poll, which [`Reply::brief`](ebbtide::server::Reply::brief) promises soon:
    /// most work is over then.
    SecondPoll,
}

/// Waits for work until a deadline.
pub(crate) async fn until<T>(
    deadline: Instant,
    start: TimerStart,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Elapsed> {
    if start == TimerStart::SecondPoll {
        let mut is_first = true;
        let early = poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if core::mem::take(&mut is_first) => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
        });
        if let Some(done) = early.await {
            return Ok(done);
        }
    }
    tokio::time::timeout_at(deadline, work).await
}
