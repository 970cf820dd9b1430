//! Waiting for what other tasks do: for as long as a busy machine may need, and not for ever.

use std::time::Duration;

/// Waits until `is` returns true; panics after a minute.
#[track_caller]
pub(crate) fn eventually(is: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    let mut is = is;
    async move {
        for _ in 0..12_000 {
            if is() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{caller}: not within a minute");
    }
}
