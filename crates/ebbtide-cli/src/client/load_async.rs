//! The load of `ebbtide bench --engine client`: the library's client, used as in an application.

use super::load::Outcome;
use crate::failure::Failure;
use ebbtide::{Client, ClientConfig, Request, Response};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// Keeps `window` requests open for `duration`.
pub(crate) async fn run(
    uri: &str,
    config: ClientConfig,
    window: u16,
    duration: Duration,
) -> Result<Outcome, Failure> {
    let client = Client::with_config(config);
    let request = Request::get(uri)?;
    let reference = client.request(request.clone()).await?;
    let began = now();
    let tasks: Vec<_> = (0..window)
        .map(|_| {
            let work = ask(client.clone(), request.clone(), reference.clone(), began + duration);
            tokio::spawn(work)
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
    total.retransmissions = client.snapshot().counters.retransmissions;
    Ok(total)
}

async fn ask(
    client: Client,
    request: Request,
    reference: Response,
    end: Instant,
) -> Result<Outcome, Failure> {
    let mut outcome = empty()?;
    let mut began = now();
    while began < end {
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
