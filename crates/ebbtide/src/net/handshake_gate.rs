//! Steps of handshakes one at a time, each source in its turn.
//!
//! A TLS connection waits here from its complete ClientHello on, and a message of EDHOC when it has arrived, which costs
//! little, until it is its turn to be answered, which costs key agreements and signatures. After each answer the task
//! that gives the turns rests as [`beside`] says.

use super::beside;
use super::clock::Clock;
use ebbtide_core::time::Instant;
use ebbtide_core::turns::{TurnLimits, Turns};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// How long one that has its turn may keep the others waiting, if its task does not run.
const PATIENCE: Duration = Duration::from_millis(100);

/// Gives a handshake its turn, with the channel on which it reports until when no other one should have its turn.
type Waiter = oneshot::Sender<oneshot::Sender<Option<Instant>>>;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct HandshakeGate {
    clock: Clock,
    queue: Mutex<Queue>,
    added: Notify,
}

#[derive(Debug)]
struct Queue {
    turns: Turns<Waiter>,
    /// Whether a task gives the turns, which runs while any wait.
    is_served: bool,
}

/// The turn of a handshake. The next one has its turn when this is dropped.
pub(crate) struct Turn {
    clock: Clock,
    began: Instant,
    done: Option<oneshot::Sender<Option<Instant>>>,
}

impl Turn {
    /// The instant at which it began.
    #[cfg(feature = "edhoc")]
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            // Here, since this thread knows what else it has served.
            let _ = done.send(beside::rest(self.began, self.clock.now()));
        }
    }
}

impl HandshakeGate {
    pub(crate) fn new(clock: Clock, limits: TurnLimits) -> Arc<Self> {
        let queue = Mutex::new(Queue { turns: Turns::new(limits), is_served: false });
        Arc::new(Self { clock, queue, added: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a handshake from this address would find a place.
    pub(crate) fn has_room(&self, from: IpAddr) -> bool {
        self.lock().turns.has_room(from)
    }

    /// How many wait.
    #[cfg(feature = "edhoc")]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().turns.len()
    }

    /// Waits for the turn of a handshake; `None` if its source has its share of those that wait.
    pub(crate) async fn turn(self: &Arc<Self>, from: IpAddr) -> Option<Turn> {
        let (waiter, turn) = oneshot::channel();
        let is_served = {
            let mut queue = self.lock();
            queue.turns.push(self.clock.now(), from, waiter).ok()?;
            core::mem::replace(&mut queue.is_served, true)
        };
        match is_served {
            true => self.added.notify_one(),
            false => drop(tokio::spawn(give_turns(Giver { gate: self.clone(), is_over: false }))),
        }
        let done = turn.await.ok()?;
        Some(Turn { clock: self.clock, began: self.clock.now(), done: Some(done) })
    }
}

/// The task that gives the turns.
struct Giver {
    gate: Arc<HandshakeGate>,
    is_over: bool,
}

impl Drop for Giver {
    fn drop(&mut self) {
        // The runtime has ended before the task: another one follows.
        if !self.is_over {
            self.gate.lock().is_served = false;
        }
    }
}

impl Giver {
    /// When the next one has its turn. If none waits, this task is over, and the next one to wait starts another.
    fn due(&mut self) -> Option<Instant> {
        let mut queue = self.gate.lock();
        let due = queue.turns.due();
        queue.is_served = due.is_some();
        self.is_over = due.is_none();
        due
    }
}

async fn give_turns(mut giver: Giver) {
    let gate = giver.gate.clone();
    while let Some(due) = giver.due() {
        let now = gate.clock.now();
        if due > now {
            // One that is added may have its turn earlier.
            let _ = tokio::time::timeout(due.saturating_since(now), gate.added.notified()).await;
            continue;
        }
        let next = gate.lock().turns.pop(now);
        // One that has gone does not wait any more.
        let (done, worked) = oneshot::channel();
        if let Some(waiter) = next
            && waiter.send(done).is_ok()
            && let Ok(Ok(Some(until))) = tokio::time::timeout(PATIENCE, worked).await
        {
            tokio::time::sleep_until(gate.clock.to_tokio(until)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// One address cannot have a thousand turns within a minute.
    const LIMITS: TurnLimits =
        TurnLimits { per_second: 1, at_once: 128, waiting: 1024, sources: 16_384 };

    fn host(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    #[tokio::test]
    async fn one_address_has_its_budget_and_another_does_not_wait_for_it() {
        let clock = Clock::start();
        let gate = HandshakeGate::new(clock, LIMITS);
        let (served, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let many: Vec<_> = (0..1000)
            .map(|_| {
                let (gate, served, refused) = (gate.clone(), served.clone(), refused.clone());
                tokio::spawn(async move {
                    let counted = if gate.turn(host(1)).await.is_some() { served } else { refused };
                    counted.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        let counts = || (served.load(Ordering::Relaxed), refused.load(Ordering::Relaxed));
        let others = async {
            // Its budget is used up, and half of the places are its own.
            while counts().0 < 128 || counts().0 + counts().1 + 512 < 1000 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            gate.turn(host(2)).await.is_some()
        };
        let other = tokio::time::timeout(Duration::from_secs(60), others).await;
        assert_eq!(other, Ok(true), "{:?}", counts());
        // 128 at once and one a second.
        let most = 130 + clock.now().as_nanos() / 1_000_000_000;
        assert!(counts().0 <= most, "{:?} of {most}", counts());
        many.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
