//! A scenario's workload over real sockets: clients of the library, as many as in the scenario,
//! each with a port of its own and the scenario's number of requests.

use crate::failure::Failure;
use ebbtide::config::TransportConfig;
use ebbtide::congestion::ControlConfig;
use ebbtide::{Client, ClientConfig, Request, Response, Scheme, Uri};
use ebbtide_core::time::Duration as Span;
use ebbtide_sim::random::{Streams, uniform};
use ebbtide_sim::run::endpoint_config;
use ebbtide_sim::scenario::{Activity, BackToBack, Scenario};
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, Instant};

/// The measurements of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// The time from the first request to the response to the last one, or to its failure.
    pub(crate) completion: Duration,
    pub(crate) completed: u32,
    /// Requests without a response, and responses with the wrong content.
    pub(crate) failed: u32,
    pub(crate) retransmissions: u64,
    /// The duration of each exchange.
    pub(crate) durations: Vec<Duration>,
}

/// The settings shared by all clients.
#[derive(Clone, Debug)]
struct Plan {
    uri: Uri,
    request: Request,
    config: ClientConfig,
    exchanges: u32,
    /// Whether a continuous client is connected before its first request is timed.
    connects_first: bool,
    /// The sizes of batches after which another device takes over.
    batch: Option<[u32; 2]>,
    payload: usize,
}

/// Runs all flows at the same time.
///
/// # Errors
///
/// Returns an error if a client cannot start at all.
pub(crate) async fn run(
    uri: &Uri,
    scenario: &Scenario,
    control: ControlConfig,
    seed: u64,
) -> Result<Vec<Flow>, Failure> {
    let workload = &scenario.workload;
    let batch = match workload.activity() {
        Activity::BackToBack(BackToBack::Random(batch)) => Some(*batch),
        _ => None,
    };
    let mut endpoint = endpoint_config(scenario, control);
    endpoint.limits.message_bytes = ebbtide_core::endpoint::Limits::default().message_bytes;
    let plan = Plan {
        uri: uri.clone(),
        request: Request::get(uri.clone())?,
        config: ClientConfig::new()
            .transport(over_tcp_as_in_a_scenario)
            .transport(|transport| transport.token_length(endpoint.token_length))
            .research(|research| research.endpoint(endpoint)),
        connects_first: uri.scheme() == Scheme::CoapTcp && batch.is_none(),
        exchanges: workload.exchanges,
        batch,
        payload: workload.response_payload as usize,
    };
    let streams = Streams::new(seed, 0);
    let tasks: Vec<_> = (0..scenario.clients.count)
        .map(|number| {
            // Draws the same values as the simulator's client with this number.
            let mut starts = streams.stream(&format!("client/{number}/start"));
            let window = scenario.clients.start_window.0;
            let start = if window == 0 { 0 } else { uniform(&mut starts, 0, window) };
            let batches = streams.stream(&format!("client/{number}/batches"));
            tokio::spawn(flow(plan.clone(), Span::from_nanos(start), batches))
        })
        .collect();
    let mut flows = Vec::new();
    for task in tasks {
        flows.push(task.await.map_err(Failure::work)??);
    }
    Ok(flows)
}

/// The settings of a scenario's hosts for CoAP over TCP. They wait as long as necessary, since
/// TCP's patience is measured and not theirs; tokens are empty, as over UDP; Nagle's algorithm is
/// on.
pub(crate) fn over_tcp_as_in_a_scenario(transport: TransportConfig) -> TransportConfig {
    const LONG: Duration = Duration::from_secs(86_400);
    transport
        .handshake_timeout(LONG)
        .csm_wait(LONG)
        .nodelay(false)
        .keep_alive(None)
        .csm_timeout(LONG)
        .message_timeout(LONG)
        .write_timeout(LONG)
        .response_timeout(LONG)
        .release_timeout(LONG)
        .pong_timeout(LONG)
}

async fn flow(plan: Plan, start: Duration, mut batches: ChaCha8Rng) -> Result<Flow, Failure> {
    tokio::time::sleep(start).await;
    let mut flow = Flow::default();
    let mut left = plan.exchanges;
    let connected = Client::with_config(plan.config.clone());
    if plan.connects_first {
        connected.ping(plan.uri.clone()).await?;
    }
    let began = now();
    while left > 0 {
        let (batch, client) = match plan.batch {
            // Another device takes over, represented by another client that knows nothing.
            Some([least, most]) => {
                let size = uniform(&mut batches, least.into(), most.into());
                let batch = u32::try_from(size).unwrap_or(left).min(left);
                (batch, Client::with_config(plan.config.clone()))
            }
            None => (left, connected.clone()),
        };
        for _ in 0..batch {
            let asked = now();
            let answer = client.request(plan.request.clone()).await;
            let answered = now();
            flow.durations.push(answered - asked);
            flow.completion = answered - began;
            match answer {
                Ok(response) if is_right(&response, plan.payload) => flow.completed += 1,
                Ok(_) | Err(_) => flow.failed += 1,
            }
        }
        flow.retransmissions += client.snapshot().counters.retransmissions;
        left -= batch;
    }
    Ok(flow)
}

fn is_right(response: &Response, payload: usize) -> bool {
    response.is_success() && response.body().len() == payload
}

#[expect(clippy::disallowed_methods, reason = "a load generator measures wall time")]
fn now() -> Instant {
    Instant::now()
}
