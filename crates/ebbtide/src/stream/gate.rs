//! TLS handshakes one at a time, each source in its turn.
//!
//! A connection waits here from its complete ClientHello on, which costs little, until it is its turn to
//! have it answered, which costs a key agreement and a signature. After each answer the task that gives the
//! turns rests as [`beside`] says.

use crate::net::beside;
use crate::net::clock::Clock;
use ebbtide_core::time::Instant;
use ebbtide_core::turns::{TurnLimits, Turns};
use futures_util::future::{Either, select};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// As those of DTLS (`ebbtide_dtls::Limits`).
const LIMITS: TurnLimits =
    TurnLimits { per_second: 64, at_once: 128, waiting: 1024, sources: 16_384 };

/// How long a connection that has its turn may keep the others waiting, if its task does not run.
const PATIENCE: Duration = Duration::from_millis(100);

/// Gives a handshake its turn, with the channel on which it reports its end.
type Waiter = oneshot::Sender<oneshot::Sender<Worked>>;

/// When a handshake was worked at.
struct Worked {
    began: Instant,
    ended: Instant,
}

/// See the [module](self).
pub(super) struct Gate {
    clock: Clock,
    turns: Mutex<Turns<Waiter>>,
    added: Notify,
}

/// The turn of a handshake. The next one has its turn when this is dropped.
pub(super) struct Turn {
    clock: Clock,
    began: Instant,
    done: Option<oneshot::Sender<Worked>>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            let _ = done.send(Worked { began: self.began, ended: self.clock.now() });
        }
    }
}

impl Gate {
    /// Starts the task that gives the turns, which ends with the gate.
    pub(super) fn open(clock: Clock) -> Arc<Self> {
        let turns = Mutex::new(Turns::new(LIMITS));
        let gate = Arc::new(Self { clock, turns, added: Notify::new() });
        tokio::spawn(give_turns(Arc::downgrade(&gate), clock));
        gate
    }

    fn lock(&self) -> MutexGuard<'_, Turns<Waiter>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a handshake from this address would find a place.
    pub(super) fn has_room(&self, from: IpAddr) -> bool {
        self.lock().has_room(from)
    }

    /// Waits for the turn of a handshake; `None` if its source has its share of those that wait.
    pub(super) async fn turn(&self, from: IpAddr) -> Option<Turn> {
        let (waiter, turn) = oneshot::channel();
        self.lock().push(self.clock.now(), from, waiter).ok()?;
        self.added.notify_one();
        let done = turn.await.ok()?;
        Some(Turn { clock: self.clock, began: self.clock.now(), done: Some(done) })
    }
}

async fn give_turns(gate: Weak<Gate>, clock: Clock) {
    loop {
        let Some(open) = gate.upgrade() else { return };
        let due = open.lock().due();
        match due {
            Some(due) if due <= clock.now() => {
                let next = open.lock().pop(clock.now());
                drop(open);
                // A connection that has gone does not wait any more.
                let (done, worked) = oneshot::channel();
                if let Some(waiter) = next
                    && waiter.send(done).is_ok()
                    && let Ok(Ok(worked)) = tokio::time::timeout(PATIENCE, worked).await
                    && let Some(until) = beside::rest(worked.began, worked.ended)
                {
                    tokio::time::sleep_until(clock.to_tokio(until)).await;
                } else {
                    tokio::task::yield_now().await;
                }
            }
            due => {
                let wait =
                    due.map_or(PATIENCE, |due| due.saturating_since(clock.now()).min(PATIENCE));
                let added = std::pin::pin!(open.added.notified());
                let wait = std::pin::pin!(tokio::time::sleep(wait));
                // It wakes from time to time to see whether the gate is still needed.
                let (Either::Left(_) | Either::Right(_)) = select(added, wait).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    #[tokio::test]
    async fn one_address_has_its_budget_and_another_does_not_wait_for_it() {
        let clock = Clock::start();
        let gate = Gate::open(clock);
        let many: Vec<_> = (0..1000)
            .map(|_| {
                let gate = gate.clone();
                tokio::spawn(async move { gate.turn(host(1)).await.is_some() })
            })
            .collect();
        // Its budget is used up, and the other comes at once.
        let (mut had, mut refused) = (0, 0);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(gate.turn(host(2)).await.is_some());
        for task in &many {
            if task.is_finished() {
                had += 1;
            }
        }
        for task in many {
            if task.is_finished() {
                refused += u32::from(!task.await.unwrap_or(true));
            } else {
                task.abort();
            }
        }
        // 128 at once and 64 a second.
        let most = 130 + clock.now().as_nanos() / (1_000_000_000 / 64);
        let served = u64::from(had - refused);
        assert!((128..=most).contains(&served), "{served} of {most}");
        // Half of the places are its own.
        assert!(u64::from(refused) + 512 + served >= 1000, "{refused} refused, {served} served");
    }
}
