//! From a request to its response.

use super::ServerConfig;
use super::block::{Blocks, Part, is_long};
use super::call::Call;
use super::guard::{Guard, HEADERS, Refusals};
use super::observe::{Due, Observed, Subject};
use super::quick;
use super::respond::{Asked, Asker, finish, respond};
use super::router::{Later, Reply, Route, Router};
use super::well_known;
use crate::message::{Response, Sizes};
use crate::metrics::Load;
use crate::net::clock::Clock;
use crate::net::pending::{Open, Owner};
use crate::net::shared::{Shared, State};
use crate::net::socket::Datagram;
use crate::net::trace;
use ebbtide_core::endpoint::{Endpoint, Incoming, Reliability};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{
    Code, HEADER_LEN, MAX_TOKEN_LEN, Message, Opt, OptionNumber, Type, encode_uint,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;
use tracing::Instrument;

/// What answers the requests of all sockets of a server.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    /// Of connections, which come later: what they and sockets share is told one time.
    clock: Clock,
    pub(super) router: Router,
    pub(super) config: ServerConfig,
    /// Requests that asynchronous handlers are at work on.
    pub(super) working: AtomicUsize,
    blocks: Mutex<Blocks>,
    quick: Mutex<quick::Store>,
    /// Something in there is due earlier than it was.
    pub(super) earlier: Arc<Notify>,
    guard: Mutex<Guard>,
    /// Whether requests are counted per address at all.
    watches_rates: bool,
}

impl Service {
    pub(crate) fn new(router: Router, config: ServerConfig) -> Self {
        let guard = Guard::new(config.verify, config.max_rate);
        let lifetime = config.net.endpoint.params.exchange_lifetime();
        let blocks = Blocks::new((config.net.max_body, config.max_block_bytes), lifetime);
        let inner = Inner {
            clock: Clock::start(),
            router,
            working: AtomicUsize::new(0),
            blocks: Mutex::new(blocks),
            quick: Mutex::new(quick::Store::new(config.max_block_bytes, config.net.quick)),
            earlier: Arc::default(),
            watches_rates: guard.watches_rates(),
            guard: Mutex::new(guard),
            config,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.inner.config
    }

    pub(crate) fn clock(&self) -> Clock {
        self.inner.clock
    }

    /// What fits into a datagram.
    fn sizes(&self) -> Sizes {
        Sizes::of_datagrams(self.inner.config.net.block_szx)
    }

    /// What is held for requests that are not finished.
    pub(crate) fn load(&self, now: Instant) -> Load {
        let blocks = self.blocks().bodies.held(now);
        let quick = self.quick().bodies.held(now);
        Load {
            working: self.inner.working.load(Ordering::Relaxed),
            block_bytes: blocks.0 + quick.0,
            uploads: blocks.1 + quick.1,
            downloads: blocks.2 + quick.2,
        }
    }

    pub(super) fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.inner.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn quick(&self) -> MutexGuard<'_, quick::Store> {
        self.inner.quick.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn guard(&self) -> MutexGuard<'_, Guard> {
        self.inner.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been turned away, but for what observers have.
    pub(crate) fn refusals(&self) -> Refusals {
        let uploads_evicted = self.blocks().bodies.evicted + self.quick().bodies.evicted;
        Refusals { uploads_evicted, ..self.guard().refusals }
    }

    /// The challenge for an address that has not shown that it is there; nothing for one that has,
    /// be it with this request.
    pub(super) fn challenge(
        &self,
        now: Instant,
        from: IpAddr,
        message: &Message<'_>,
    ) -> Option<Response> {
        let mut guard = self.guard();
        guard.learn(now, from, message);
        (!guard.trusts(from)).then(|| guard.challenge(now, from))
    }

    /// The answer to a request that is better not even remembered: one that is not idempotent, from
    /// an address that may be forged, while much is remembered already. Otherwise whoever forges
    /// addresses could fill that memory, and nobody's request would be processed for
    /// EXCHANGE_LIFETIME.
    pub(crate) fn turn_away(
        &self,
        now: Instant,
        endpoint: &mut Endpoint,
        datagram: &Datagram<'_>,
    ) -> Option<Vec<u8>> {
        let message = Message::parse(datagram.bytes).ok()?;
        let id = message.message_id();
        let concerns = message.code().is_request() && !message.is_idempotent();
        if !concerns || endpoint.is_remembered(now, datagram.from, id) {
            return None;
        }
        let challenge = self.challenge(now, datagram.from.ip(), &message)?;
        let kind = match message.kind() {
            Type::Confirmable => Type::Acknowledgement,
            _ => Type::NonConfirmable,
        };
        challenge.with_content(None, |content| {
            let mut bytes = vec![0; HEADER_LEN + MAX_TOKEN_LEN + content.encoded_len()];
            let encoded = content.encode(&mut bytes, kind, id, message.token()).ok()?;
            bytes.truncate(encoded.len);
            Some(bytes)
        })
    }

    /// Answers a request, or starts to.
    pub(crate) fn serve<'s>(
        &self,
        shared: &'s Arc<Shared>,
        now: Instant,
        (incoming, message): (Incoming, Message<'_>),
        datagram: Datagram<'_>,
    ) -> MutexGuard<'s, State> {
        let group = datagram.to.is_some_and(|to| to.is_multicast());
        if group && incoming.kind == Type::Confirmable {
            // RFC 7252 section 8.1: such a request must be Non-confirmable.
            return shared.lock();
        }
        let mut asked = Asked::new(incoming, &message, shared.reply_from(datagram.to), group);
        let span = trace::serve(incoming.remote, &message);
        if quick::concerns(&message) {
            return span.in_scope(|| self.serve_quick(shared, now, asked, &message));
        }
        let asker = (&asked.asker, self.sizes());
        match span.in_scope(|| self.reply(shared, now, asker, &message)) {
            Reply::Now(response) => {
                let response = self.complete(now, &mut asked, &message, response);
                self.answer(shared, now, asked, response)
            }
            Reply::Later(later) => {
                let later =
                    if span.is_none() { later } else { Box::pin(later.instrument(span)) as Later };
                self.later(shared, now, asked, &message, later)
            }
        }
    }

    /// Sends a response: now, or to a group's client at leisure.
    pub(crate) fn answer<'s>(
        &self,
        shared: &'s Arc<Shared>,
        now: Instant,
        asked: Asked,
        response: Response,
    ) -> MutexGuard<'s, State> {
        if asked.asker.group {
            self.at_leisure(shared, asked, response);
            return shared.lock();
        }
        let mut state = shared.lock();
        respond(&mut state, now, &asked, &response);
        state
    }

    /// The answer to a request too many.
    #[inline]
    pub(super) fn refuse(&self, now: Instant, from: IpAddr) -> Option<Response> {
        if self.inner.watches_rates { self.guard().admit(now, from) } else { None }
    }

    /// The handler's answer, or one that is known without it.
    pub(super) fn reply<O: Observed + 'static>(
        &self,
        shared: &Arc<O>,
        now: Instant,
        (asker, sizes): (&Asker, Sizes),
        message: &Message<'_>,
    ) -> Reply {
        let from = asker.remote;
        if let Some(answer) = self.refuse(now, from.ip()) {
            return Reply::Now(answer);
        }
        let mut body = None;
        if Blocks::concern(message) {
            if asker.forgeable
                && self.blocks().would_press(message, sizes)
                && let Some(challenge) = self.challenge(now, from.ip(), message)
            {
                return Reply::Now(challenge);
            }
            match self.blocks().take(now, from, message, sizes) {
                Part::Answer(response) => return Reply::Now(response),
                Part::Whole(whole) => body = whole,
            }
        }
        let payload = body.as_deref().unwrap_or(message.payload());
        self.handle(shared, now, (asker, message), payload)
    }

    /// The handler's answer to a request with this body.
    pub(super) fn handle<O: Observed + 'static>(
        &self,
        shared: &Arc<O>,
        now: Instant,
        (asker, message): (&Asker, &Message<'_>),
        payload: &[u8],
    ) -> Reply {
        let from = asker.remote;
        let Some((route, params)) = self.inner.router.find(message.path()) else {
            return Reply::Now(well_known::answer(&self.inner.router, message));
        };
        let call = Call { remote: from, message: *message, payload, names: &route.names, params };
        let subject = route.resource.subject.as_ref();
        let before = subject.map(Subject::changes);
        let reply = route.resource.call(&call);
        match (reply, message.option(OptionNumber::OBSERVE)) {
            (Reply::Now(response), Some(observe)) => {
                Reply::Now(self.observe(shared, now, (asker, message), (route, observe), response))
            }
            (Reply::Later(later), Some(_)) if let Some(before) = before => {
                let (service, shared, asker) = (self.clone(), shared.clone(), *asker);
                let request = bytes::Bytes::copy_from_slice(message.as_bytes());
                Reply::Later(Box::pin(async move {
                    let response = later.await;
                    service.observe_late(&shared, now, (&asker, &request), before, response)
                }))
            }
            (reply, _) => reply,
        }
    }

    /// Registers an observer whose first state took a while to make. After a change in the meantime
    /// it is notified again, since that state may be older.
    fn observe_late<O: Observed + 'static>(
        &self,
        shared: &Arc<O>,
        now: Instant,
        (asker, request): (&Asker, &[u8]),
        before: u64,
        response: Response,
    ) -> Response {
        // It was a message of a route when it came.
        let Ok(message) = Message::parse(request) else { return response };
        let found = self.inner.router.find(message.path());
        let (Some((route, _)), Some(observe)) = (found, message.option(OptionNumber::OBSERVE))
        else {
            return response;
        };
        let response = self.observe(shared, now, (asker, &message), (route, observe), response);
        if let Some(subject) = route.resource.subject.as_ref().filter(|s| s.changes() != before) {
            subject.changed();
        }
        response
    }

    /// Registers an observer, or removes it (RFC 7641 section 4.1).
    fn observe<O: Observed + 'static>(
        &self,
        shared: &Arc<O>,
        now: Instant,
        (asker, message): (&Asker, &Message<'_>),
        (route, observe): (&Route, Opt<'_>),
        mut response: Response,
    ) -> Response {
        let Some(subject) = &route.resource.subject else { return response };
        let (remote, token) = (asker.remote, asker.token);
        let observable = matches!(message.code(), Code::GET | Code::FETCH);
        if !observable || asker.group {
            return response;
        }
        if observe.as_uint() == Some(1) {
            shared.observers(&mut |observers| observers.deregister(remote, token));
        } else if response.is_success() {
            let mut suspect = false;
            if asker.forgeable {
                // There must be room for a notification after this response.
                let length = response.payload.len() + RESPONSE_OVERHEAD;
                let request = message.as_bytes().len();
                let allowed = self.guard().allowance(remote.ip(), request, (0, length));
                if allowed < 2
                    && let Some(challenge) = self.challenge(now, remote.ip(), message)
                {
                    return challenge;
                }
                suspect = !self.guard().trusts(remote.ip());
            }
            let who = (remote, token, asker.local, suspect);
            let max = self.inner.config.max_observers;
            let mut registered = None;
            shared.observers(&mut |observers| {
                registered = observers.register(now, who, subject, message.as_bytes(), max);
            });
            if let Some(sequence) = registered {
                response.options.push_uint(OptionNumber::OBSERVE, sequence & 0xff_ffff);
            }
            subject.attach(shared);
        }
        response
    }

    /// What is sent of a handler's response: a block of it if it is long, and nothing of it to an
    /// address that may be forged.
    pub(crate) fn complete(
        &self,
        now: Instant,
        asked: &mut Asked,
        message: &Message<'_>,
        response: Response,
    ) -> Response {
        let from = asked.incoming.remote;
        let response = self.in_blocks(now, from, message, response, self.sizes());
        self.guarded(now, asked, message, response)
    }

    /// A response, or a challenge if it is long and the address may be forged.
    pub(super) fn guarded(
        &self,
        now: Instant,
        asked: &mut Asked,
        message: &Message<'_>,
        mut response: Response,
    ) -> Response {
        let from = asked.incoming.remote;
        let request = message.as_bytes().len();
        // The options that matter are few bytes; the payload is what amplifies.
        let length = response.payload.len() + RESPONSE_OVERHEAD;
        let allowance =
            |guard: &Guard, length| guard.allowance(from.ip(), request, (asked.sent, length));
        if asked.sent > 0 || length + HEADERS > 3 * (request + HEADERS) {
            let mut guard = self.guard();
            guard.learn(now, from.ip(), message);
            if allowance(&guard, length) == 0 {
                response = guard.challenge(now, from.ip());
            }
            let length = response.payload.len() + RESPONSE_OVERHEAD;
            asked.allowance = allowance(&guard, length).max(1);
        }
        response
    }

    /// A block of a response that is long, or that was asked for in blocks.
    pub(super) fn in_blocks(
        &self,
        now: Instant,
        from: SocketAddr,
        message: &Message<'_>,
        response: Response,
        sizes: Sizes,
    ) -> Response {
        let concerns = is_long(&response, sizes) || Blocks::concern(message);
        let is_block = response.options.get(OptionNumber::BLOCK2).is_some();
        if !concerns || is_block || response.code == Code::CONTINUE {
            return response;
        }
        self.blocks().give(now, from, message, response, sizes)
    }

    /// Polls a handler once: most are ready then. What is not becomes a task.
    fn later<'s>(
        &self,
        shared: &'s Arc<Shared>,
        now: Instant,
        mut asked: Asked,
        message: &Message<'_>,
        mut later: Later,
    ) -> MutexGuard<'s, State> {
        let inner = &self.inner;
        if let Poll::Ready(response) = self.poll_once(&mut later) {
            let response = self.complete(now, &mut asked, message, response);
            return self.answer(shared, now, asked, response);
        }
        inner.working.fetch_add(1, Ordering::Relaxed);
        let working = Working(self.clone());
        let request = bytes::Bytes::copy_from_slice(message.as_bytes());
        tokio::spawn(finish(shared.clone(), asked, request, later, working));
        shared.lock()
    }

    /// Polls a handler for the first time; none that is slow, if too many are at work.
    pub(super) fn poll_once(&self, later: &mut Later) -> Poll<Response> {
        if self.inner.working.load(Ordering::Relaxed) >= self.inner.config.max_working {
            self.guard().refusals.overloaded += 1;
            return Poll::Ready(Response::new(Code::SERVICE_UNAVAILABLE).max_age(1));
        }
        later.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Makes and sends a notification. False if it found no room.
    pub(crate) fn notify(&self, shared: &Arc<Shared>, now: Instant, due: Due) -> bool {
        match self.state_for(&due) {
            Reply::Now(response) => self.send_notification(shared, now, &due, response),
            Reply::Later(later) => {
                let (service, shared) = (self.clone(), shared.clone());
                tokio::spawn(async move {
                    let response = later.await;
                    service.send_notification(&shared, shared.clock.now(), &due, response);
                });
                true
            }
        }
    }

    /// What an observer is to be told.
    pub(super) fn state_for(&self, due: &Due) -> Reply {
        // It was a message when it came.
        let Ok(message) = Message::parse(&due.request) else {
            return Reply::Now(Response::new(Code::INTERNAL_SERVER_ERROR));
        };
        match due.event.clone() {
            Some(event) => Reply::Now(event),
            None => match self.inner.router.find(message.path()) {
                Some((route, params)) => route.resource.call(&Call {
                    remote: due.remote,
                    message,
                    payload: message.payload(),
                    names: &route.names,
                    params,
                }),
                None => Reply::Now(Response::new(Code::NOT_FOUND)),
            },
        }
    }

    fn send_notification(
        &self,
        shared: &Shared,
        now: Instant,
        due: &Due,
        mut response: Response,
    ) -> bool {
        let Ok(message) = Message::parse(&due.request) else { return false };
        if is_long(&response, self.sizes()) {
            response = self.blocks().give(now, due.remote, &message, response, self.sizes());
        }
        let reliability = if due.confirmable || !response.is_success() {
            Reliability::Confirmable
        } else {
            Reliability::NonConfirmable
        };
        shared.with(|state, now| {
            let mut value = [0; 4];
            // RFC 7641 section 4.2: an error ends the observation and has no sequence number.
            let sequence = response.is_success().then(|| Opt {
                number: OptionNumber::OBSERVE,
                value: encode_uint(due.sequence, &mut value),
            });
            let sent = response.with_content(sequence, |content| {
                state.endpoint.notify(now, (due.remote, due.token), content, reliability)
            });
            if let (Ok(exchange), false) = (sent, due.proven) {
                // The first response was as long, about (RFC 7641 section 7: notifications must
                // not amplify).
                let request = due.request.len();
                let length = response.payload.len() + RESPONSE_OVERHEAD;
                let sent = (length + HEADERS, length);
                let allowance = self.guard().allowance(due.remote.ip(), request, sent);
                state.endpoint.limit_transmissions(exchange, allowance.max(1));
            }
            let room = sent.is_ok();
            match sent {
                Ok(exchange) if response.is_success() => state.pending.opened(Open {
                    exchange,
                    owner: Owner::Notification(due.observer),
                    remote: due.remote,
                    local: due.local,
                }),
                Ok(exchange) => {
                    let (owner, remote) = (Owner::Response, due.remote);
                    state.pending.opened(Open { exchange, owner, remote, local: due.local });
                    state.observers.remove(due.observer, remote);
                }
                Err(error) => {
                    tracing::warn!(peer = %due.remote, %error, "notification not sent");
                    state.observers.postponed(due.observer, due.event.clone());
                }
            }
            room
        })
    }
}

/// Bytes of header, token and options of a response, about.
const RESPONSE_OVERHEAD: usize = 16;

/// Counts a task that works on a request, and no longer when it is over, however it ends.
pub(crate) struct Working(pub(crate) Service);

impl Working {
    /// `None` if as many work as may.
    pub(crate) fn begin(service: &Service) -> Option<Self> {
        let inner = &service.inner;
        let working = Self(service.clone());
        let before = inner.working.fetch_add(1, Ordering::Relaxed);
        (before < inner.config.max_working).then_some(working)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.inner.working.fetch_sub(1, Ordering::Relaxed);
    }
}
