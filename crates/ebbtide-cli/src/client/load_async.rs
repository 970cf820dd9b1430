//! The load of `ebbtide bench --engine client`: the library's client, used as in an application.

use super::load::Outcome;
use crate::failure::Failure;
use ebbtide::{Client, ClientConfig, Request, Response};
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A load of clients that each have a socket or a connection of their own.
pub(crate) struct ClientLoad {
    pub(crate) uri: String,
    pub(crate) config: ClientConfig,
    pub(crate) clients: u32,
    /// Requests that each client keeps open.
    pub(crate) window: u16,
    pub(crate) duration: Duration,
    pub(crate) requests: Option<u64>,
}

impl ClientLoad {
    pub(crate) async fn run(&self) -> Result<Outcome, Failure> {
        let request = Request::get(&*self.uri)?;
        let clients: Vec<_> =
            (0..self.clients).map(|_| Client::with_config(self.config.clone())).collect();
        let mut reference = None;
        for client in &clients {
            reference = Some(client.request(request.clone()).await?);
        }
        let Some(reference) = reference else { return empty() };
        let began = now();
        let left = Arc::new(AtomicU64::new(self.requests.unwrap_or(u64::MAX)));
        let windows = clients.iter().flat_map(|client| (0..self.window).map(move |_| client));
        let tasks: Vec<_> = windows
            .map(|client| {
                tokio::spawn(ask(Asking {
                    client: client.clone(),
                    request: request.clone(),
                    reference: reference.clone(),
                    end: began + self.duration,
                    left: left.clone(),
                }))
            })
            .collect();
        let mut total = empty()?;
        for task in tasks {
            let part = task.await.map_err(Failure::work)??;
            total.answered += part.answered;
            total.wrong += part.wrong;
            total.failed += part.failed;
            total.latency.add(part.latency).map_err(Failure::work)?;
        }
        total.elapsed = now() - began;
        let repeated = clients.iter().map(|client| client.snapshot().counters.retransmissions);
        total.retransmissions = repeated.sum();
        Ok(total)
    }
}

/// One place of a client's window.
struct Asking {
    client: Client,
    request: Request,
    reference: Response,
    end: Instant,
    /// The requests that all of them may still make.
    left: Arc<AtomicU64>,
}

async fn ask(asking: Asking) -> Result<Outcome, Failure> {
    let Asking { client, request, reference, end, left } = asking;
    let mut outcome = empty()?;
    let mut began = now();
    let take = |left: u64| left.checked_sub(1);
    while began < end && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        match client.request(request.clone()).await {
            Ok(response) => {
                let same =
                    response.code() == reference.code() && response.body() == reference.body();
                outcome.answered += 1;
                outcome.wrong += u64::from(!same);
            }
            Err(_) => outcome.failed += 1,
        }
        let ended = now();
        // The histogram grows by itself.
        let _ = outcome.latency.record((ended - began).as_nanos() as u64);
        began = ended;
    }
    Ok(outcome)
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
