//! From a request to the server's answer: the address, the places in front of it, the exchange.

use crate::access::Reach;
use crate::ask::{Ask, BodyForm, CacheKey};
use crate::cell::{Cells, ExchangeEnd, Permit};
use crate::options;
use crate::outcome::{self, ForwardOutcome};
use crate::shared::RequestProgress;
use crate::system;
use crate::target::{NamedBy, Target, TargetScheme};
use crate::timeline::{Timeline, TimelineEntry};
use crate::uploads::UploadsUnderWay;
use crate::web::WebClient;
use ebbtide::client::DirectRequest;
use ebbtide::{Client, Code, Error, Request, Response, Scheme, Uri};
use ebbtide_core::wire::OptionNumber;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Look-ups of names at the same time: each occupies a thread.
const MAX_LOOKUPS: usize = 16;
/// How often a request that waits is checked for whether its answer can still come in time.
const RECHECK: Duration = Duration::from_secs(3);
/// The longest body that is transferred in one message, whose round trip is therefore one of the path.
const ONE_MESSAGE: usize = 1024;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) client: Client,
    pub(crate) access: Reach,
    pub(crate) cells: Cells,
    pub(crate) name: String,
    pub(crate) timeline: Timeline,
    pub(crate) uploads: Arc<UploadsUnderWay>,
    web: WebClient,
    lookups: Semaphore,
}

/// The settings of an [`Upstream`].
#[derive(Debug)]
pub(crate) struct UpstreamConfig {
    pub(crate) client: Client,
    pub(crate) access: Reach,
    pub(crate) cells: Cells,
    pub(crate) name: String,
    /// The most bytes of an HTTP server's answer that are held.
    pub(crate) max_body: usize,
}

/// A server that may be asked.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) uri: Uri,
    pub(crate) address: SocketAddr,
}

/// The places that an exchange occupies.
struct Places {
    device: Permit,
    cell: Permit,
}

impl Places {
    /// The request leaves.
    fn set_sent(&mut self) {
        self.device.set_sent();
        self.cell.set_sent();
    }

    /// The exchange has ended.
    fn end(self, end: PlaceEnd) {
        let now = system::now();
        let of = |place: &Permit| match end {
            PlaceEnd::Answered => ExchangeEnd::Answered(place.age(now)),
            PlaceEnd::Other(end) => end,
        };
        // The device was occupied from before the wait for the cell on.
        let (cell, device) = (of(&self.cell), of(&self.device));
        self.cell.end(now, cell);
        self.device.end(now, device);
    }
}

/// The end of an exchange, whose time each place counts from its own beginning.
#[derive(Copy, Clone)]
enum PlaceEnd {
    Answered,
    Other(ExchangeEnd),
}

impl PlaceEnd {
    fn of<T>(answered: &Result<T, Error>, round_trip: impl FnOnce(&T) -> RoundTrip) -> Self {
        match answered {
            Ok(answer) => match round_trip(answer) {
                RoundTrip::OfPath => Self::Answered,
                RoundTrip::Repeated => Self::Other(ExchangeEnd::Repeated),
                RoundTrip::OfManyMessages => Self::Other(ExchangeEnd::Unmeasured),
            },
            Err(error) if error.is_timeout() => Self::Other(ExchangeEnd::Lost),
            Err(_) => Self::Other(ExchangeEnd::Unmeasured),
        }
    }
}

/// An exchange that needs nothing but its places. Dropping it cancels it.
pub(crate) struct DirectExchange {
    request: DirectRequest,
    address: SocketAddr,
    /// `None` before it may begin, and after its end.
    places: Option<Places>,
    /// The length of the request's body.
    length: usize,
}

impl Future for DirectExchange {
    type Output = Result<Response, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { request, places, length, .. } = &mut *self;
        if let Some(places) = places {
            places.set_sent();
        }
        let answered = ready!(Pin::new(request).poll(cx));
        if let Some(places) = places.take() {
            places.end(PlaceEnd::of(&answered, |response| of_bodies(*length, response)));
        }
        Poll::Ready(answered)
    }
}

/// The meaning of the time of an exchange that may have had several messages, the request's body being so long.
fn of_bodies(length: usize, response: &Response) -> RoundTrip {
    match response.body().len().max(length) > ONE_MESSAGE {
        _ if response.is_repeated() => RoundTrip::Repeated,
        true => RoundTrip::OfManyMessages,
        false => RoundTrip::OfPath,
    }
}

/// The meaning of an exchange's time.
#[derive(Copy, Clone, Debug)]
pub(crate) enum RoundTrip {
    OfPath,
    /// A message was lost, or came late.
    Repeated,
    OfManyMessages,
}

impl Upstream {
    pub(crate) fn new(config: UpstreamConfig) -> Self {
        let UpstreamConfig { client, access, cells, name, max_body } = config;
        let (web, lookups) = (WebClient::new(max_body), Semaphore::new(MAX_LOOKUPS));
        let (timeline, uploads) = (Timeline::default(), Arc::default());
        Self { client, access, cells, name, timeline, uploads, web, lookups }
    }

    /// The address of a target, if it may be reached.
    ///
    /// # Errors
    ///
    /// The answer, if it has no address or may not be reached.
    pub(crate) async fn route(&self, target: &Target) -> Result<Route, Response> {
        let address = self.address(target).await?;
        Ok(Route { uri: target.at(address)?, address })
    }

    fn permits(&self, target: &Target, address: &SocketAddr) -> bool {
        match target.scheme {
            _ if target.named_by == NamedBy::Operator => true,
            TargetScheme::Coap(_) => self.access.may_reach(address.ip()),
            TargetScheme::Web(_) => self.access.may_reach_web(address.ip()),
        }
    }

    async fn address(&self, target: &Target) -> Result<SocketAddr, Response> {
        let permitted = |address: &SocketAddr| self.permits(target, address);
        let address = match target.address {
            Some(address) => Some(SocketAddr::new(address, target.port)).filter(permitted),
            None => {
                let name = format!("{}:{}", target.host, target.port);
                let Ok(_place) = self.lookups.acquire().await else {
                    return Err(outcome::not_supported("the gateway ends"));
                };
                let found = tokio::net::lookup_host(name).await;
                let mut found = found.map_err(|_| {
                    Response::error(Code::BAD_GATEWAY, "the host has no address").max_age(1)
                })?;
                found.find(permitted)
            }
        };
        address.ok_or_else(|| outcome::not_supported("the address is not allowed"))
    }

    /// The request in the form in which it leaves.
    pub(crate) fn request(ask: &Ask, uri: Uri) -> Result<Request, Error> {
        let is_pinned = ask.target.address.is_none() && uri.address().is_some();
        let mut request = Request::new(ask.code, uri)?.payload(ask.payload.clone());
        if is_pinned {
            request = request.option(OptionNumber::URI_HOST, ask.target.host.as_bytes());
        }
        for opt in ask.forwarded.leaving() {
            request = request.option(opt.number, opt.value);
        }
        Ok(request)
    }

    /// Asks the server, when it is the request's turn.
    pub(crate) async fn exchange(
        &self,
        ask: &Ask,
        progress: &Arc<RequestProgress>,
    ) -> ForwardOutcome {
        let mut noted = self.note(ask, progress);
        let now = system::now();
        let answered = match self.at_once(ask, now, progress.deadline()) {
            Some(direct) => {
                progress.set_sent(now);
                self.answer(direct.await)
            }
            None => {
                // In boxes: moving a future costs as much as the work on a request.
                let later = match self.direct(ask) {
                    Some(direct) => Box::pin(self.when_entered(ask, progress, direct)).await,
                    None => Box::pin(self.ask(ask, progress)).await,
                };
                later.unwrap_or_else(ForwardOutcome::Refusal)
            }
        };
        noted.code = Some(answered.code());
        answered
    }

    /// The outcome of an exchange.
    pub(crate) fn answer(&self, answered: Result<Response, Error>) -> ForwardOutcome {
        match answered {
            Ok(response) => ForwardOutcome::Answer(options::of_response(response, &self.name)),
            Err(error) => ForwardOutcome::Refusal(outcome::failed(&error)),
        }
    }

    /// The address to which a request leaves in one message, as most do.
    fn direct_address(&self, ask: &Ask) -> Option<SocketAddr> {
        let target = &ask.target;
        let is_streamed = ask.body == BodyForm::Streamed && ask.code == Code::GET;
        let is_long = ask.payload.len() > self.client.block_size();
        if target.scheme != TargetScheme::Coap(Scheme::Coap) || is_streamed || is_long {
            return None;
        }
        let address = SocketAddr::new(target.address?, target.port);
        self.permits(target, &address).then_some(address)
    }

    /// The exchange of such a request, which has no places yet.
    fn direct(&self, ask: &Ask) -> Option<DirectExchange> {
        let address = self.direct_address(ask)?;
        let request = self.client.direct(address, ask.parts())?;
        Some(DirectExchange { request, address, places: None, length: ask.payload.len() })
    }

    /// Begins the exchange of such a request, if there are places for it.
    pub(crate) fn at_once(
        &self,
        ask: &Ask,
        now: Instant,
        deadline: Instant,
    ) -> Option<DirectExchange> {
        let address = self.direct_address(ask)?;
        let patience = deadline.saturating_duration_since(now);
        let client = ask.applicant.client;
        let device = self.cells.device(address).try_enter(client, now, patience)?;
        let cell = self.cells.cell(address.ip()).try_enter(client, now, patience)?;
        let request = self.client.direct(address, ask.parts())?;
        let (places, length) = (Some(Places { device, cell }), ask.payload.len());
        Some(DirectExchange { request, address, places, length })
    }

    /// Performs such an exchange when it is the request's turn.
    async fn when_entered(
        &self,
        ask: &Ask,
        progress: &RequestProgress,
        mut direct: DirectExchange,
    ) -> Result<ForwardOutcome, Response> {
        direct.places = Some(self.enter(ask, direct.address, progress).await?);
        progress.set_sent(system::now());
        Ok(self.answer(direct.await))
    }

    async fn ask(
        &self,
        ask: &Ask,
        progress: &Arc<RequestProgress>,
    ) -> Result<ForwardOutcome, Response> {
        if let TargetScheme::Web(scheme) = ask.target.scheme {
            let address = self.address(&ask.target).await?;
            let exchange = self.web.exchange(ask, scheme, address, &self.name, progress);
            return Ok(Box::pin(exchange).await);
        }
        let (request, address) = self.prepare(ask).await?;
        if ask.body == BodyForm::Streamed && ask.code == Code::GET {
            return self.begin(ask, request, address, progress).await;
        }
        let mut _alone = None;
        if ask.payload.len() > self.client.block_size() {
            let uri = CacheKey::of_uri(&ask.target);
            _alone = Some(self.uploads.turn(&uri, ask.applicant).await);
        }
        let exchange = self.client.request(request);
        let of_bodies = |response: &Response| of_bodies(ask.payload.len(), response);
        let answered = self.turn(ask, address, progress, exchange, of_bodies).await?;
        Ok(self.answer(Ok(answered)))
    }

    /// The request in the form in which it leaves, and the address to which it goes.
    ///
    /// # Errors
    ///
    /// The answer, if it cannot be forwarded.
    pub(crate) async fn prepare(&self, ask: &Ask) -> Result<(Request, SocketAddr), Response> {
        let Route { uri, address } = self.route(&ask.target).await?;
        let request = Self::request(ask, uri).map_err(|error| outcome::failed(&error))?;
        Ok((request, address))
    }

    /// Performs an exchange with a device when it is its turn.
    ///
    /// # Errors
    ///
    /// The answer, if it would come too late or fails.
    pub(crate) async fn turn<T>(
        &self,
        ask: &Ask,
        address: SocketAddr,
        progress: &RequestProgress,
        exchange: impl Future<Output = Result<T, Error>>,
        round_trip: impl FnOnce(&T) -> RoundTrip,
    ) -> Result<T, Response> {
        let mut places = self.enter(ask, address, progress).await?;
        places.set_sent();
        progress.set_sent(system::now());
        let answered = exchange.await;
        places.end(PlaceEnd::of(&answered, round_trip));
        answered.map_err(|error| outcome::failed(&error))
    }

    /// Notes an exchange for an explorer, until the result is dropped.
    pub(crate) fn note<'e>(
        &'e self,
        ask: &'e Ask,
        progress: &'e RequestProgress,
    ) -> NotedExchange<'e> {
        let Ask { target, code: method, .. } = ask;
        self.note_of(target, *method, Some(progress))
    }

    /// As [`Self::note`]; an exchange without a progress leaves now.
    pub(crate) fn note_of<'e>(
        &'e self,
        target: &'e Target,
        method: Code,
        progress: Option<&'e RequestProgress>,
    ) -> NotedExchange<'e> {
        let began = self.timeline.is_watched().then(system::now);
        NotedExchange { upstream: self, target, method, progress, began, code: None }
    }

    /// Waits for a place at the device and in its cell.
    ///
    /// # Errors
    ///
    /// The answer, if the request would come too late.
    async fn enter(
        &self,
        ask: &Ask,
        address: SocketAddr,
        progress: &RequestProgress,
    ) -> Result<Places, Response> {
        let client = ask.applicant.client;
        let (cell, device) = (self.cells.cell(address.ip()), self.cells.device(address));
        self.check(cell.expected(cell.next_place(client)), progress)?;
        let queued = device.next_place(client);
        self.check(device.expected(queued), progress)?;
        let mut entering = pin!(device.enter(ask.applicant));
        let device = loop {
            tokio::select! {
                // A place that is free needs no timer.
                biased;
                permit = &mut entering => break permit,
                // What was not known at the beginning may be known now.
                () = tokio::time::sleep(RECHECK) => self.check(device.expected(queued), progress)?,
            }
        };
        let place = cell.enter(ask.applicant).await;
        self.check(cell.mean(), progress)?;
        Ok(Places { device, cell: place })
    }

    /// Whether an answer after this span is in time.
    fn check(
        &self,
        expected: Option<Duration>,
        progress: &RequestProgress,
    ) -> Result<(), Response> {
        let left = progress.deadline().saturating_duration_since(system::now());
        match expected.and_then(|expected| expected.checked_sub(left)) {
            None => Ok(()),
            Some(late) => Err(outcome::unavailable(late, "the cell is busy")),
        }
    }
}

/// An exchange that is noted when it ends, or when its clients no longer wait for it.
pub(crate) struct NotedExchange<'e> {
    upstream: &'e Upstream,
    target: &'e Target,
    method: Code,
    progress: Option<&'e RequestProgress>,
    /// `None` without an explorer.
    began: Option<Instant>,
    pub(crate) code: Option<Code>,
}

impl Drop for NotedExchange<'_> {
    fn drop(&mut self) {
        let Self { upstream, target, method, progress, began: Some(began), code } = self else {
            return;
        };
        let now = system::now();
        let sent = progress.map_or(Some(*began), RequestProgress::sent).unwrap_or(now);
        let method = method.name().unwrap_or("?");
        upstream.timeline.add(TimelineEntry {
            request: format!("{method} {}", target.uri()),
            answer: code.map_or_else(|| "none in time".to_owned(), |code| code.to_string()),
            began: *began,
            waited: sent.saturating_duration_since(*began),
            took: now.saturating_duration_since(sent),
        });
    }
}

/// Shares an upstream.
pub(crate) type SharedUpstream = Arc<Upstream>;
