//! Expensive work runs beside the rest, not before it.
//!
//! Turns are counted in time: a task that has worked for [`TURN`] lets the others work. Work that takes nearly
//! a turn by itself, as the signature of a handshake does, rests after each piece while the same thread
//! has served other messages, so that it takes a fifth of the time at most. The order of
//! such work, and the share of each source, is the matter of [`ebbtide_core::turns`].

use ebbtide_core::time::Instant;
use std::cell::Cell;
use std::pin::pin;
use std::task::Context;
use std::time::Duration;

/// How long a task works before others have their turn.
pub(crate) const TURN: Duration = Duration::from_millis(1);

/// How often the time that a piece of expensive work took is left to other work.
const WEIGHT: u32 = 4;

/// How long messages count as other work after they were served.
const RECENT: Duration = Duration::from_millis(50);

thread_local! {
    static SERVED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// This thread serves a message, which is other work. Those of a handshake are not: they would rest for each other.
#[inline]
pub(crate) fn served(now: Instant) {
    SERVED.set(Some(now));
}

/// Until when no more expensive work should be done, after a piece of it.
#[cfg_attr(
    not(any(feature = "dtls", feature = "tls", feature = "edhoc")),
    expect(dead_code, reason = "no expensive work")
)]
pub(crate) fn rest(began: Instant, ended: Instant) -> Option<Instant> {
    let served = SERVED.get().filter(|served| ended.saturating_since(*served) < RECENT);
    served.map(|_| ended + ended.saturating_since(began) * WEIGHT)
}

/// Lets all other tasks run, and the runtime look for events, before the task of `cx` runs again. A
/// task that merely wakes itself runs many times before the runtime looks for events of other sockets.
pub(crate) fn let_others_run(cx: &mut Context<'_>) {
    let _ = pin!(tokio::task::yield_now()).poll(cx);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(1) + Duration::from_micros(micros)
    }

    #[test]
    fn expensive_work_rests_only_while_there_is_other_work() {
        assert_eq!(rest(at(0), at(600)), None);
        served(at(0));
        assert_eq!(rest(at(0), at(600)), Some(at(3000)));
        assert_eq!(rest(at(50_000), at(50_600)), None, "it is long ago");
    }
}
