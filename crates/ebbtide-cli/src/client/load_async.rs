//! The load of `ebbtide bench --engine client`: the library's client, used as in an application.

use super::load::{GRACE, Outcome, Schedule};
use crate::failure::Failure;
use ebbtide::{Client, ClientConfig, Request, Response};
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinSet};

/// Requests without an answer in an open loop; further ones fail at once.
const MAX_OPEN: usize = 16_384;
/// The pause after a failure: a server that is away is asked a hundred times a second, not a hundred thousand times.
const PAUSE: Duration = Duration::from_millis(10);

/// How the requests follow each other.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Pacing {
    /// Each client keeps so many open.
    Window(u16),
    /// So many a second are sent in all, however late the answers are.
    Rate(f64),
}

/// A load of clients that each have a socket or a connection of their own.
pub(crate) struct ClientLoad {
    pub(crate) uri: String,
    pub(crate) config: ClientConfig,
    pub(crate) clients: u32,
    pub(crate) pacing: Pacing,
    pub(crate) duration: Duration,
    pub(crate) requests: Option<u64>,
}

impl ClientLoad {
    /// Sends requests for the duration, and waits a little longer for the last answers.
    pub(crate) async fn run(&self) -> Result<Outcome, Failure> {
        let request = Request::get(&*self.uri)?;
        let clients: Vec<_> =
            (0..self.clients).map(|_| Client::with_config(self.config.clone())).collect();
        let mut reference = None;
        for client in &clients {
            let first = request.clone().timeout(self.duration + GRACE);
            reference = Some(client.request(first).await?);
        }
        let Some(reference) = reference.map(Arc::new) else { return empty() };
        let began = now();
        let end = began + self.duration;
        let left = Arc::new(AtomicU64::new(self.requests.unwrap_or(u64::MAX)));
        let asker = |client: &Client| Asker {
            client: client.clone(),
            request: request.clone(),
            reference: reference.clone(),
            end,
            left: left.clone(),
        };
        let mut total = empty()?;
        let mut tasks = JoinSet::new();
        match self.pacing {
            Pacing::Window(window) => {
                for client in clients.iter().flat_map(|client| (0..window).map(move |_| client)) {
                    tasks.spawn(asker(client).ask_in_turn());
                }
            }
            Pacing::Rate(rate) => {
                let mut schedule = Schedule::new(rate);
                for client in clients.iter().cycle() {
                    let at = began + (schedule.at() - ebbtide_core::time::Instant::ZERO);
                    if at >= end || left.load(Ordering::Relaxed) == 0 {
                        break;
                    }
                    tokio::time::sleep_until(at.into()).await;
                    let _ = schedule.next_before(ebbtide_core::time::Instant::from_nanos(u64::MAX));
                    while let Some(done) = tasks.try_join_next() {
                        add(&mut total, done)?;
                    }
                    if tasks.len() < MAX_OPEN {
                        tasks.spawn(asker(client).ask_once(at));
                    } else {
                        total.failed += 1;
                    }
                }
            }
        }
        while let Some(done) = tasks.join_next().await {
            add(&mut total, done)?;
        }
        total.elapsed = (now() - began).min(self.duration);
        let repeated = clients.iter().map(|client| client.snapshot().counters.retransmissions);
        total.retransmissions = repeated.sum();
        Ok(total)
    }
}

fn add(
    total: &mut Outcome,
    done: Result<Result<Outcome, Failure>, JoinError>,
) -> Result<(), Failure> {
    let part = done.map_err(Failure::work)??;
    total.answered += part.answered;
    total.wrong += part.wrong;
    total.failed += part.failed;
    total.latency.add(part.latency).map_err(Failure::work)
}

/// One place of a client's window, or one request of an open loop.
struct Asker {
    client: Client,
    request: Request,
    reference: Arc<Response>,
    end: Instant,
    /// The requests that all of them may still make.
    left: Arc<AtomicU64>,
}

impl Asker {
    /// Whether another request may be made; counts it.
    fn may_ask(&self) -> bool {
        let take = |left: u64| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Asks once more after each answer.
    async fn ask_in_turn(self) -> Result<Outcome, Failure> {
        let mut outcome = empty()?;
        let mut began = now();
        while began < self.end && self.may_ask() {
            if !self.ask(began, &mut outcome).await {
                tokio::time::sleep(PAUSE).await;
            }
            began = now();
        }
        Ok(outcome)
    }

    /// Asks once, for an instant at which that was due.
    async fn ask_once(self, at: Instant) -> Result<Outcome, Failure> {
        let mut outcome = empty()?;
        if self.may_ask() {
            self.ask(at, &mut outcome).await;
        }
        Ok(outcome)
    }

    /// Returns false if there was no answer until a little after the end.
    async fn ask(&self, began: Instant, outcome: &mut Outcome) -> bool {
        let asked = self.client.request(self.request.clone());
        let Ok(Ok(response)) = tokio::time::timeout_at((self.end + GRACE).into(), asked).await
        else {
            outcome.failed += 1;
            return false;
        };
        let reference = &self.reference;
        let same = response.code() == reference.code() && response.body() == reference.body();
        outcome.answered += 1;
        outcome.wrong += u64::from(!same);
        // The histogram grows by itself.
        let _ = outcome.latency.record((now() - began).as_nanos() as u64);
        true
    }
}

fn empty() -> Result<Outcome, Failure> {
    Ok(Outcome {
        answered: 0,
        wrong: 0,
        failed: 0,
        retransmissions: 0,
        elapsed: Duration::ZERO,
        latency: Histogram::new(3).map_err(Failure::work)?,
    })
}

#[expect(clippy::disallowed_methods, reason = "a load generator measures wall time")]
fn now() -> Instant {
    Instant::now()
}
