//! Memory that `ebbtide serve` has freed goes back to the system.
//!
//! glibc's allocator keeps what lies between blocks that are still in use. After ten thousand
//! connections that is a hundred megabytes, which other programs of the machine then lack.

use std::time::Duration;

/// Between two looks: memory is back within ten seconds of its release.
const PERIOD: Duration = Duration::from_secs(5);

/// Gives free pages back to the system from time to time, as long as the runtime runs.
pub(crate) fn release_when_free() {
    tokio::spawn(async {
        let mut period = tokio::time::interval(PERIOD);
        period.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            period.tick().await;
            // Of a large heap it takes milliseconds, in which requests would wait.
            if tokio::task::spawn_blocking(trim).await.is_err() {
                return;
            }
        }
    });
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "the allocator's own function; the C library has no safe form of it"
)]
fn trim() {
    // SAFETY: `malloc_trim` takes a number of bytes and no pointer, may be called by any thread at
    // any time (it is MT-Safe), and changes no allocated block.
    unsafe { nix::libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}
