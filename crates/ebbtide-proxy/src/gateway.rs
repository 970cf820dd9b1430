//! The gateway: from a request to its answer, whatever the protocols on both sides.

use crate::ask::{Ask, BodyForm, CacheKey, StoredUse};
use crate::backend::Backends;
use crate::blocks::BodyRest;
use crate::cache::{self, Cache, Found};
use crate::cell::{Cells, GateLoad};
use crate::config::GatewayConfig;
use crate::downloads::WebDownloads;
use crate::observed::{Observations, State};
use crate::open::{Counted, FairPlaces, OpenRequest};
use crate::outcome::{self, ForwardOutcome};
use crate::room::{Holding, PLACE};
use crate::shared::{RequestProgress, SharedRequest, SharedRequests};
use crate::system;
use crate::target::Target;
use crate::time_limit::{TimerStart, until};
use crate::upstream::{SharedUpstream, Upstream, UpstreamConfig};
use ebbtide::server::Reply;
use ebbtide::{Client, Code, OptionNumber, Response};
use hyper::header::HeaderValue;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Bytes of the bodies of all requests that arrive over HTTP, wait or are in flight; or twice the longest, if that is
/// more.
const MAX_BODIES: usize = 64 << 20;

/// A gateway to CoAP servers. Cloning it is cheap; all clones are the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    pub(crate) inner: Arc<GatewayInner>,
}

/// The load of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellStatus {
    /// Its prefixes.
    pub name: String,
    /// The requests in flight.
    pub in_flight: usize,
    /// The requests that wait at the gateway for a place in the cell.
    pub waiting: usize,
    /// The number of requests that may be in flight now.
    pub budget: usize,
    /// The mean round trip; `None` before the first answer.
    pub mean_round_trip: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct GatewayInner {
    pub(crate) upstream: SharedUpstream,
    cache: Cache,
    pub(crate) flights: Arc<SharedRequests>,
    pub(crate) observations: Arc<Observations>,
    pub(crate) downloads: Arc<WebDownloads>,
    pub(crate) open: Arc<FairPlaces>,
    /// In places of 1 KiB.
    bodies: Arc<FairPlaces>,
    /// Requests that are observed for clients, in places of 1 KiB.
    followed: Arc<FairPlaces>,
    pub(crate) backends: Backends,
    pub(crate) deadline: Duration,
    pub(crate) max_body: usize,
    /// This gateway in the field Via of HTTP, if its name can stand there.
    pub(crate) via: Option<HeaderValue>,
}

/// While addresses that may be forged hold one of so many places for open requests, few of them get another.
const CROWDED: usize = 64;
/// With fewer places they are not too many.
const UNCROWDED: usize = 16;

/// An answer, with the rest of its body if that is still to come.
#[derive(Debug)]
pub(crate) struct GatewayAnswer {
    pub(crate) response: Response,
    pub(crate) rest: Option<BodyRest>,
}

impl From<Response> for GatewayAnswer {
    fn from(response: Response) -> Self {
        Self { response, rest: None }
    }
}

impl Gateway {
    /// Creates a gateway. Its sockets are opened when they are needed, within a tokio runtime with IO and time enabled.
    #[must_use]
    pub fn new(config: GatewayConfig) -> Self {
        let GatewayConfig { access, cells, limits, client, name, .. } = config;
        let via = HeaderValue::from_str(&format!("1.1 {name}")).ok();
        let upstream = Upstream::new(UpstreamConfig {
            client: Client::with_config(client.for_proxy()),
            access,
            cells: Cells::new(cells, limits),
            name,
            max_body: config.max_body,
        });
        let inner = GatewayInner {
            upstream: Arc::new(upstream),
            cache: Cache::new(config.cache_bytes),
            flights: Arc::default(),
            observations: Arc::default(),
            downloads: Arc::default(),
            open: FairPlaces::new(config.max_requests),
            bodies: FairPlaces::new(MAX_BODIES.max(config.max_body.saturating_mul(2)) / PLACE),
            followed: FairPlaces::new(config.max_requests),
            backends: config.backends,
            deadline: config.deadline,
            max_body: config.max_body,
            via,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The cells that are configured, and others that have been used, with their present loads.
    #[must_use]
    pub fn cells(&self) -> Vec<CellStatus> {
        let loads = self.inner.upstream.cells.loads().into_iter();
        let status = |(name, load): (String, GateLoad)| {
            let GateLoad { in_flight, waiting, budget, mean } = load;
            CellStatus { name, in_flight, waiting, budget: budget as usize, mean_round_trip: mean }
        };
        loads.map(status).collect()
    }

    /// Follows the states of the resource that a request names. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// The answer, if too many requests are open.
    pub(crate) fn follow(&self, ask: Ask) -> Result<watch::Receiver<Option<State>>, Response> {
        let client = ask.applicant.client;
        let GatewayInner { upstream, observations, followed, .. } = &*self.inner;
        let admit = |bytes| followed.hold(Holding::of_bytes(client, bytes));
        let follower = observations.follow(upstream, ask, admit);
        follower.ok_or_else(too_many)
    }

    /// The stored answer to a request, if it is fresh.
    pub(crate) fn stored(&self, ask: &Ask) -> Option<Response> {
        if !ask.is_shareable() || ask.freshness != StoredUse::Stored {
            return None;
        }
        match self.inner.cache.find(&ask.key(), system::now()) {
            Found::Fresh(response) => Some(versioned(ask, response)),
            Found::Stale(_) | Found::Nothing => None,
        }
    }

    /// Answers a request for its client alone that can leave at once, as most do that change something.
    ///
    /// # Errors
    ///
    /// The request, if it is another one.
    pub(crate) fn at_once(&self, ask: Ask) -> Result<Reply, Box<Ask>> {
        if ask.is_shareable() || ask.arriving.is_some() {
            return Err(Box::new(ask));
        }
        let counted = match self.admit(&ask) {
            Ok(counted) => counted,
            Err(refusal) => return Ok(Reply::now(refusal)),
        };
        let Some(mut direct) = self.inner.upstream.at_once(&ask, system::now(), ask.deadline)
        else {
            return Err(Box::new(ask));
        };
        let (gateway, Ask { target, code, deadline, .. }) = (self.clone(), ask);
        Ok(Reply::brief(async move {
            // What the future has captured is used where it is: moved, it would be in it twice.
            let _counted = &counted;
            let upstream = &gateway.inner.upstream;
            let mut noted = upstream.note_of(&target, code, None);
            let exchange = until(deadline, TimerStart::SecondPoll, Pin::new(&mut direct));
            let Ok(answered) = exchange.await else { return outcome::timed_out() };
            let outcome = upstream.answer(answered);
            noted.code = Some(outcome.code());
            gateway.noticed(&target, &outcome);
            outcome.claim().map_or_else(too_many, |(response, _)| response)
        }))
    }

    /// Answers a request within its time limit. A body that goes on has this limit for each of its blocks.
    pub(crate) async fn answer(&self, mut ask: Ask, timer: TimerStart) -> GatewayAnswer {
        let now = system::now();
        ask.deadline = ask.deadline.min(now + self.inner.deadline);
        let patience = ask.deadline - now;
        let counted = match self.admit(&ask) {
            Ok(counted) => counted,
            Err(refusal) => return refusal.into(),
        };
        let deadline = ask.deadline;
        let (progress, answered) = if ask.is_shareable() {
            let flight = self.share(ask.clone());
            (flight.progress, until(deadline, timer, pin!(flight.outcome)).await)
        } else {
            let progress = RequestProgress::new(deadline);
            let answered = {
                let work = pin!(self.change(&ask, &progress));
                match &ask.arriving {
                    None => until(deadline, timer, work).await,
                    Some(_) => progress.within(work).await,
                }
            };
            (progress, answered)
        };
        let Ok(outcome) = answered else { return progress.too_late().into() };
        let (response, rest) = match outcome.claim() {
            Some(parts) => parts,
            None => {
                // Another client that asked for the same receives the answer, which is too long to be held.
                let progress = RequestProgress::new(deadline);
                let alone = self.inner.upstream.exchange(&ask, &progress);
                let Ok(outcome) = tokio::time::timeout_at(deadline, alone).await else {
                    return progress.too_late().into();
                };
                outcome.claim().unwrap_or_else(|| (too_many(), None))
            }
        };
        let response = versioned(&ask, response);
        let upstream = self.inner.upstream.clone();
        let rest = rest.filter(|_| response.code() == Code::CONTENT).map(|rest| BodyRest {
            upstream,
            ask,
            rest,
            patience,
            _counted: counted,
        });
        GatewayAnswer { response, rest }
    }

    /// Whether so many requests of addresses that may be forged are open that others have to wait for them.
    pub(crate) fn is_crowded(&self) -> bool {
        let open = &self.inner.open;
        open.has_many_unverified(CROWDED, UNCROWDED) || open.is_full_for_unverified()
    }

    /// Whether addresses that may be forged have used up their share of the places for observed requests.
    pub(crate) fn is_followed_by_many(&self) -> bool {
        self.inner.followed.is_full_for_unverified()
    }

    /// A place among the open requests.
    ///
    /// # Errors
    ///
    /// The answer, if there are too many.
    pub(crate) fn admit(&self, ask: &Ask) -> Result<OpenRequest, Response> {
        let client = ask.applicant.client;
        let request = self.inner.open.admit(client).ok_or_else(too_many)?;
        let body = match ask.payload.len() {
            0 => None,
            length => Some(self.admit_body(client, length)?),
        };
        Ok(OpenRequest { _request: request, _body: body })
    }

    /// Room for a body.
    ///
    /// # Errors
    ///
    /// The answer, if there is none.
    pub(crate) fn admit_body(&self, client: IpAddr, bytes: usize) -> Result<Counted, Response> {
        let too_much =
            || outcome::unavailable(Duration::from_secs(1), "too many bodies are waiting");
        self.inner.bodies.hold(Holding::of_bytes(client, bytes)).ok_or_else(too_much)
    }

    /// A request that may be shared, stored and confirmed.
    fn share(&self, mut ask: Ask) -> SharedRequest {
        let key = ask.key();
        let stored = match self.inner.cache.find(&key, system::now()) {
            Found::Fresh(response) => cache::etag(&response),
            Found::Stale(etag) => Some(etag),
            Found::Nothing => None,
        };
        if let Some(etag) = &stored {
            // The server is asked about our version; the client's are compared with it.
            ask.forwarded.options.remove(OptionNumber::ETAG);
            ask.forwarded.options.push(OptionNumber::ETAG, etag);
        }
        let mut shared_key = key.0.clone();
        // A request that has come back in a loop must not wait for itself.
        shared_key.push(ask.forwarded.hop_limit);
        shared_key.push(u8::from(ask.body == BodyForm::Streamed));
        for opt in ask.forwarded.options.iter().filter(|opt| opt.number == OptionNumber::ETAG) {
            shared_key.push(opt.value.len() as u8);
            shared_key.extend(opt.value);
        }
        let gateway = self.clone();
        let deadline = ask.deadline;
        self.inner.flights.join(shared_key, deadline, move |progress| async move {
            let outcome = gateway.inner.upstream.exchange(&ask, &progress).await;
            let ForwardOutcome::Answer(response) = outcome else { return outcome };
            let now = system::now();
            let cache = &gateway.inner.cache;
            if response.code() == Code::VALID && stored.is_some() {
                return match cache.confirm(&key, &response, now) {
                    Some(confirmed) => ForwardOutcome::Answer(confirmed),
                    // It was displaced meanwhile.
                    None => ForwardOutcome::Refusal(outcome::unavailable(
                        Duration::from_secs(1),
                        "try again",
                    )),
                };
            }
            cache.store(key, &response, now, || !progress.is_outdated());
            ForwardOutcome::Answer(response)
        })
    }

    /// A request that may change the resource.
    async fn change(&self, ask: &Ask, progress: &Arc<RequestProgress>) -> ForwardOutcome {
        let outcome = self.inner.upstream.exchange(ask, progress).await;
        self.noticed(&ask.target, &outcome);
        outcome
    }

    /// This is the outcome of a request that may have changed the resource.
    fn noticed(&self, target: &Target, outcome: &ForwardOutcome) {
        if matches!(outcome, ForwardOutcome::Answer(response) if response.is_success()) {
            self.changed(&CacheKey::of_uri(target));
        }
    }

    /// A client has changed the resource with this URI.
    pub(crate) fn changed(&self, uri: &CacheKey) {
        self.inner.flights.outdate(uri);
        self.inner.cache.invalidate(uri);
    }
}

fn too_many() -> Response {
    outcome::unavailable(Duration::from_secs(1), "too many requests are waiting")
}

/// The answer for a client that has a version already: 2.03 without the body, if it is this one (RFC 7252 section
/// 5.10.6.2).
fn versioned(ask: &Ask, response: Response) -> Response {
    let known = cache::etag(&response).filter(|etag| ask.has_version(etag));
    let Some(etag) = known.filter(|_| response.code() == Code::CONTENT) else {
        return response;
    };
    let valid = Response::new(Code::VALID).etag(&etag);
    match response.options().get_uint(OptionNumber::MAX_AGE) {
        Some(age) => valid.max_age(age),
        None => valid,
    }
}
