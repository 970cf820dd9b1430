//! Takes a request to its response, through the session's stages with the router's handlers between
//! them.

use super::awaited::{AwaitedRequest, BriefAnswer};
use super::carrier::{Carrier, Sink};
use super::gate::Gate;
use super::inner::Service;
use super::late_methods::LateMethods;
use super::later::{HandlerPlace, HandlersAtWork, LaterAnswer, NoPlace};
use super::observe::Subject;
use super::origin::{AddressTrust, Occasion, Origin, WayBack};
use super::panics;
use super::protected::sender;
use super::reply::{HandlerAnswer, PendingAnswer, PolledBy, Reply};
use super::route::{Route, RouteMatch};
use crate::message::Response;
use crate::net;
use crate::net::beside::served;
use crate::net::shared::{ArrivedRequest, Shared};
use crate::net::trace;
use crate::oscore::ClientContext;
use crate::refusals::Reason;
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::Remember;
use ebbtide_core::session::server::{
    Assembled, Handled, Next, Observe, Outgoing, Received, RequestSlot, Verified,
};
use ebbtide_core::session::{Due, Requester};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message, OptionNumber, Type};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use tracing::{Instrument, Span};

/// The origin of an answer.
#[derive(Copy, Clone)]
pub(super) enum AnsweredBy<'s> {
    Session,
    /// A handler, whose client may observe a subject that had changed so often when the handler began.
    Handler {
        observed: Option<(&'s Subject, u64)>,
    },
}

impl Service {
    /// Takes a request, which `security` protects, through as many stages as possible now.
    pub(super) fn process<C: Carrier>(
        &self,
        carrier: &Arc<C>,
        now: Instant,
        received: Received<'_, '_>,
        security: Option<&ClientContext>,
        span: &Span,
    ) {
        let verified = match self.session().receive(now, received) {
            Next::Proceed(verified) => verified,
            Next::Handled(handled) => {
                return self.finish(carrier, now, handled, AnsweredBy::Session);
            }
            Next::Send(outgoing) => return self.send(carrier, now, outgoing),
        };
        let (id, local) = (verified.requester().peer(), verified.requester().local);
        let info = sender(&**carrier, id, security);
        let (requests, over) = (&self.inner.requests, carrier.way_back());
        let way = WayBack { requests, over, security, trust: self };
        let (info, occasion) = (info.as_ref(), Occasion::Arrival);
        let origin = Origin { id, info, local, back: Some(way), occasion };
        let mut found = match self.permit(&verified, &origin) {
            Ok(found) => found,
            Err(refusal) => {
                return self.finish(carrier, now, verified.refuse(refusal), AnsweredBy::Session);
            }
        };
        let route: &Route = &found.route;
        let gate = match route.resource.gate(verified.message(), origin.address()) {
            Ok(gate) => gate,
            Err(caught) => {
                let refused = verified.refuse(self.panicked(&caught));
                return self.finish(carrier, now, refused, AnsweredBy::Session);
            }
        };
        if let Some(gate) = gate
            && !verified.continues_upload()
            && !self.is_trusted(now, verified.requester(), gate)
            && !gate.admit(now)
        {
            let challenge = self.session().challenge_first(now, verified.requester());
            return self.send(carrier, now, Outgoing::One(challenge));
        }
        let permitted = match route.resource.streams(verified.message()) {
            Ok(true)
                if verified.begins_upload()
                    && self.has_many_streams(now)
                    && !self.session().is_proved(verified.requester()) =>
            {
                let challenge = self.session().challenge_first(now, verified.requester());
                return self.send(carrier, now, Outgoing::One(challenge));
            }
            Ok(true) => verified.permit_blocks(route.resource.max_body),
            Ok(false) => verified.permit(route.resource.max_body),
            Err(caught) => {
                let refused = verified.refuse(self.panicked(&caught));
                return self.finish(carrier, now, refused, AnsweredBy::Session);
            }
        };
        let assembled = match self.session().assemble(now, permitted) {
            Next::Proceed(assembled) => assembled,
            Next::Handled(handled) => {
                return self.finish(carrier, now, handled, AnsweredBy::Session);
            }
            Next::Send(outgoing) => return self.send(carrier, now, outgoing),
        };
        found.if_none_match = assembled.if_none_match();
        let fixed = route.resource.subject.as_ref().map(|subject| (subject, subject.changes()));
        let subject_of = || {
            let own = route.resource.subject_of(assembled.message())?;
            Ok(own.map(|subject| (subject.changes(), subject)))
        };
        let place = match self.place_before(&assembled, &route.resource.late) {
            Ok(place) => place,
            Err(why) => return self.refuse_work(carrier, now, assembled, why),
        };
        let early = route.resource.is_subject_first.then(subject_of);
        let reply = match assembled.block() {
            Some(part) => self.stream_block(now, &found, &origin, assembled.message(), &part),
            None => self.call(&found, &origin, assembled.message(), assembled.body()),
        };
        let asked = early.unwrap_or_else(|| match reply.may_succeed() {
            true => subject_of(),
            // Nothing begins for the observer of what is refused.
            false => Ok(None),
        });
        let (own, reply) = match asked {
            Ok(own) => (own, reply),
            Err(caught) => (None, Reply::now(self.panicked(&caught))),
        };
        let own = own.as_ref().map(|(began, subject)| (subject, *began));
        let observed = own.or(fixed);
        match reply.0 {
            HandlerAnswer::Ready(response) => {
                let handled = assembled.handled(response);
                self.finish(carrier, now, handled, AnsweredBy::Handler { observed })
            }
            HandlerAnswer::Pending(pending) => {
                route.resource.late.note(assembled.message().code());
                let answer = LaterAnswer { pending, place };
                self.later(carrier, now, assembled, observed, answer, span)
            }
        }
    }

    /// The place of a handler that may change something, before it is called: a request that is challenged or refused
    /// for want of a place may be repeated, and must not have done anything then.
    fn place_before(
        &self,
        assembled: &Assembled<'_, '_>,
        late: &LateMethods,
    ) -> Result<HandlerPlace, NoPlace> {
        let message = assembled.message();
        Ok(match assembled.block() {
            // The handler of its body has a place.
            Some(part) if !self.is_copy_of_block(&part, message.payload()) => HandlerPlace::Due,
            Some(_) => HandlerPlace::Wanted,
            // Safe methods (RFC 7252 section 5.1, RFC 8132 section 2).
            None if matches!(message.code(), Code::GET | Code::FETCH) => HandlerPlace::Wanted,
            None if late.has(message.code()) => HandlerPlace::Taken(self.begin_work(assembled)?),
            None => HandlerPlace::Due,
        })
    }

    /// A place for the handler of a request, or why there is none.
    fn begin_work(&self, assembled: &Assembled<'_, '_>) -> Result<HandlersAtWork, NoPlace> {
        HandlersAtWork::begin(self, assembled.requester().peer(), length(assembled))
    }

    /// Answers a request for whose handler there is no place.
    fn refuse_work<C: Carrier>(
        &self,
        carrier: &Arc<C>,
        now: Instant,
        assembled: Assembled<'_, '_>,
        why: NoPlace,
    ) {
        match why {
            NoPlace::Unverified => {
                let challenge = self.session().challenge_first(now, assembled.requester());
                self.send(carrier, now, Outgoing::One(challenge));
            }
            NoPlace::Taken => {
                self.inner.overloaded.fetch_add(1, Ordering::Relaxed);
                self.refused(now, Reason::Overloaded, assembled.requester().peer());
                let refusal = Response::new(Code::SERVICE_UNAVAILABLE).max_age(1);
                self.finish(carrier, now, assembled.handled(refusal), AnsweredBy::Session);
            }
        }
    }

    /// Whether the limit of a resource does not concern a request. A stranger can forge an address that is verified, so
    /// where nothing is handled that may be forged each request has to be proved.
    fn is_trusted(&self, now: Instant, requester: &Requester, gate: &Gate) -> bool {
        match gate.is_closed() {
            true => self.session().is_proved(requester),
            false => self.session().trusts(now, requester),
        }
    }

    /// The route of a request, or the answer if there is no route or it does not accept the
    /// request. Nothing of a body in blocks has been stored yet.
    fn permit<'m>(
        &self,
        verified: &Verified<'_, 'm>,
        origin: &Origin<'_>,
    ) -> Result<RouteMatch<'_, 'm>, Response> {
        let refuses_for = self.inner.refuses_for.load(Ordering::Relaxed);
        if refuses_for > 0 {
            return Err(Response::new(Code::SERVICE_UNAVAILABLE).max_age(refuses_for));
        }
        if verified.is_proxy_request()
            && self.inner.router.forward_route(verified.message()).is_none()
        {
            // RFC 7252 section 5.10.2.
            return Err(Response::new(Code::PROXYING_NOT_SUPPORTED));
        }
        let message = verified.message();
        let found = self.find(message)?;
        let route: &Route = &found.route;
        if !route.resource.answers(message.code()) {
            // RFC 7252 section 5.8: "An unrecognized or unsupported Method Code MUST generate a
            // 4.05 (Method Not Allowed) piggybacked response."
            return Err(Response::new(Code::METHOD_NOT_ALLOWED));
        }
        if verified.is_conditional() && !route.resource.conditional {
            // RFC 7252 sections 5.4.1 and 5.10.8: both are critical, and this route does not
            // support them.
            return Err(Response::error(Code::BAD_OPTION, "no conditional requests here"));
        }
        if let Some(authorize) = &route.resource.authorize {
            let authorized = found
                .call(origin, message, message.payload(), |call| panics::catch(|| authorize(call)));
            match authorized {
                Ok(permitted) => permitted?,
                Err(caught) => return Err(self.panicked(&caught)),
            }
        }
        Ok(found)
    }

    /// The route of a request with its parameters, or the answer if there is none.
    fn find<'m>(&self, message: &Message<'m>) -> Result<RouteMatch<'_, 'm>, Response> {
        if let Some((route, params)) = self.inner.router.look_up(message) {
            return Ok(RouteMatch::fixed(route, params));
        }
        let added = self.inner.added.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((route, params)) = added.look_up(message) {
            return Ok(RouteMatch::added(route.clone(), params));
        }
        let routes = self.inner.router.routes.iter().chain(&added.routes);
        Err(super::well_known::answer(routes, message))
    }

    /// The subject of a stored observer's request.
    pub(super) fn subject_of(&self, request: &[u8]) -> Option<Subject> {
        let message = Message::parse(request).ok()?;
        let found = self.find(&message).ok()?;
        let resource = &found.route.resource;
        match resource.subject_of(&message) {
            Ok(own) => own.or_else(|| resource.subject.clone()),
            Err(caught) => {
                self.panicked(&caught);
                None
            }
        }
    }

    /// Calls a handler.
    fn call<'m>(
        &self,
        found: &RouteMatch<'_, 'm>,
        origin: &Origin<'_>,
        message: &Message<'m>,
        payload: &[u8],
    ) -> Reply {
        let resource = &found.route.resource;
        found
            .call(origin, message, payload, |call| panics::catch(|| resource.call(call)))
            .unwrap_or_else(|caught| Reply::now(self.panicked(&caught)))
    }

    /// Polls a handler once, since most are ready then. One that is not ready becomes a task, or work of the socket.
    pub(super) fn later<C: Carrier>(
        &self,
        carrier: &Arc<C>,
        now: Instant,
        assembled: Assembled<'_, '_>,
        observed: Option<(&Subject, u64)>,
        answer: LaterAnswer,
        span: &Span,
    ) {
        let LaterAnswer { pending: PendingAnswer { mut future, polled_by }, place } = answer;
        let from = assembled.requester().peer();
        let working = match place {
            HandlerPlace::Taken(working) => working,
            HandlerPlace::Due => HandlersAtWork::begin_regardless(self, length(&assembled)),
            HandlerPlace::Wanted => match self.begin_work(&assembled) {
                Ok(working) => working,
                Err(why) => return self.refuse_work(carrier, now, assembled, why),
            },
        };
        if let (PolledBy::Socket, Some(socket)) = (polled_by, carrier.socket()) {
            let working = working.hold(from.source());
            let late = now + self.config().acknowledge_after;
            socket.begin_brief(now, late, |state| {
                let pending = state.defer(now, assembled);
                let request = AwaitedRequest::new(working, now, pending, observed);
                BriefAnswer::new(request, future, span.clone())
            });
            return;
        }
        let polled = {
            let mut cx = Context::from_waker(Waker::noop());
            span.in_scope(|| Pin::new(&mut future).poll(&mut cx))
        };
        let response = match polled {
            Poll::Ready(answered) => answered.unwrap_or_else(|caught| self.panicked(&caught)),
            Poll::Pending => {
                let working = working.hold(from.source());
                // Before the driver looks at the next datagram, which may be a copy.
                let pending = carrier.lock().defer(now, assembled);
                let request = AwaitedRequest::new(working, now, pending, observed);
                let task = request.finish(carrier.clone(), future);
                tokio::spawn(task.instrument(span.clone()));
                return;
            }
        };
        self.finish(carrier, now, assembled.handled(response), AnsweredBy::Handler { observed })
    }

    /// Sends the application's answer.
    pub(super) fn finish<C: Carrier>(
        &self,
        carrier: &Arc<C>,
        now: Instant,
        handled: Handled<'_, '_>,
        by: AnsweredBy<'_>,
    ) {
        let subject = match by {
            AnsweredBy::Handler { observed } => {
                observed.filter(|(subject, _)| handled.observes() && !subject.is_closed())
            }
            AnsweredBy::Session => None,
        };
        if let Some((subject, _)) = subject {
            subject.attach(carrier);
        }
        let q_block = handled.is_q_block();
        if matches!(by, AnsweredBy::Handler { .. }) {
            carrier.answered(&self.inner.answered, now);
        }
        let mut state = carrier.lock();
        // A binding of its own has a lifetime as short as the borrow.
        let mut handled = handled;
        let outgoing = self.complete(now, &mut *state, &mut handled, subject);
        self.send_all(carrier, &mut state, now, &outgoing);
        if q_block {
            self.pace();
        }
    }

    /// Completes an answer while the state is locked.
    pub(super) fn complete<'h>(
        &self,
        now: Instant,
        state: &mut impl Sink,
        handled: &'h mut Handled<'h, '_>,
        subject: Option<(&Subject, u64)>,
    ) -> Outgoing<'h> {
        let (remote, refused) = (handled.requester().peer(), state.observers().refused());
        let observe = subject.map(|(subject, began)| Observe {
            observers: state.observers(),
            subject: subject.name(),
            max: subject.room(self.inner.config.max_observers),
            missed_a_change: subject.changes() != began,
        });
        let outgoing = self.session().complete(now, handled, observe);
        if state.observers().refused() > refused {
            self.refused(now, Reason::ObserverRefused, remote);
        }
        if reason(&outgoing) == Some(Reason::Challenged) {
            self.refused(now, Reason::Challenged, remote);
        }
        outgoing
    }

    pub(super) fn send<C: Carrier>(&self, carrier: &Arc<C>, now: Instant, outgoing: Outgoing<'_>) {
        let q_block = matches!(outgoing, Outgoing::Many(_));
        if let Some(why) = reason(&outgoing)
            && let Outgoing::One(finished) = &outgoing
        {
            self.refused(now, why, finished.requester().peer());
        }
        let mut state = carrier.lock();
        self.send_all(carrier, &mut state, now, &outgoing);
        if q_block {
            self.pace();
        }
    }

    /// Creates and sends a notification, or starts a task that does.
    pub(super) fn notify_one<C: Carrier>(&self, carrier: &Arc<C>, now: Instant, due: Due) {
        let message = Message::parse(&due.request).unwrap_or(Message::EMPTY);
        let (id, local) = (due.remote, due.local);
        let security = self.context_of(&message);
        let info = sender(&**carrier, id, security.as_ref());
        let (requests, over) = (&self.inner.requests, carrier.way_back());
        let way = WayBack { requests, over, security: security.as_ref(), trust: self };
        let (info, occasion) = (info.as_ref(), Occasion::Notification { is_proven: due.proven });
        let origin = Origin { id, info, local, back: Some(way), occasion };
        match self.state_for(&due, &origin).0 {
            HandlerAnswer::Ready(response) => {
                self.send_notification(&**carrier, now, &due, response)
            }
            HandlerAnswer::Pending(PendingAnswer { future, .. }) => {
                let (service, carrier) = (self.clone(), carrier.clone());
                tokio::spawn(async move {
                    let response = future.await.unwrap_or_else(|caught| service.panicked(&caught));
                    service.send_notification(&*carrier, carrier.clock().now(), &due, response);
                });
            }
        }
    }

    /// The state or event to send to an observer.
    fn state_for(&self, due: &Due, origin: &Origin<'_>) -> Reply {
        // The bytes were a valid message on arrival.
        let Ok(message) = Message::parse(&due.request) else {
            return Reply::now(Response::new(Code::INTERNAL_SERVER_ERROR));
        };
        if let Some(event) = due.event.clone() {
            return Reply::now(event);
        }
        match self.find(&message) {
            Ok(found) => self.call(&found, origin, &message, message.payload()),
            Err(refusal) => Reply::now(refusal),
        }
    }

    fn send_notification<C: Carrier>(
        &self,
        carrier: &C,
        now: Instant,
        due: &Due,
        mut response: Response,
    ) {
        // The bytes were a valid message on arrival.
        let Ok(message) = Message::parse(&due.request) else { return };
        let session = self.session();
        carrier.with(|state, _| {
            let sizes = state.sizes(session.datagram_sizes());
            response = session.size_notification(now, due, &message, response.clone(), sizes);
            state.notify(now, due, &response, |length| session.notification_allowance(due, length));
        });
    }
}

impl AddressTrust for Service {
    fn trusts(&self, client: PeerId) -> bool {
        let is_datagrams = matches!(client, PeerId::Address(_));
        !is_datagrams || self.session().trusts_source(self.clock().now(), client.source())
    }
}

/// The bytes for which the handler of a request has its place.
fn length(assembled: &Assembled<'_, '_>) -> usize {
    assembled.message().as_bytes().len().max(assembled.body().len())
}

/// The reason for which the session's own answer refuses a request, if it does.
fn reason(outgoing: &Outgoing<'_>) -> Option<Reason> {
    let Outgoing::One(finished) = outgoing else { return None };
    let response = finished.as_borrowed().get()?;
    match response.code() {
        Code::UNAUTHORIZED => {
            response.options().get(OptionNumber::ECHO).map(|_| Reason::Challenged)
        }
        Code::TOO_MANY_REQUESTS => Some(Reason::TooManyRequests),
        Code::SERVICE_UNAVAILABLE => Some(Reason::NoRoom),
        _ => None,
    }
}

impl net::shared::Serve for Service {
    fn opened(&self, shared: &Arc<Shared>) {
        let mut sockets = self.inner.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.insert(shared.number, Arc::downgrade(shared));
    }

    fn remember(
        &self,
        now: Instant,
        remote: PeerId,
        message: &Message<'_>,
        much: bool,
    ) -> Remember {
        if self.claims_protection(message) {
            // Its key decides (`serve_protected`).
            return Remember::No;
        }
        self.session().remember(now, remote, message, much)
    }

    fn refused(&self, now: Instant, why: Reason, remote: PeerId) {
        Service::refused(self, now, why, remote);
    }

    fn answered(&self, answers: u32, arrived: Instant, now: Instant) {
        self.inner.answered.record(answers, arrived, now);
    }

    fn serve(&self, shared: &Arc<Shared>, now: Instant, request: &ArrivedRequest<'_>) {
        let &ArrivedRequest { ref incoming, message, from, to, vouched } = request;
        let group = incoming.is_to_group();
        if group && incoming.kind == Type::Confirmable {
            // RFC 7252 section 8.1: such a request must be Non-confirmable.
            return;
        }
        #[cfg(feature = "edhoc")]
        if let (Some(edhoc), false) = (&self.config().edhoc, group)
            && crate::edhoc::is_handshake(&message)
        {
            return self.shake_hands(edhoc, shared, now, request);
        }
        if self.claims_protection(&message) || self.config().oscore_required {
            return self.serve_protected(shared, now, request);
        }
        served(now);
        let (local, sizes) = (shared.reply_from(to), self.session().datagram_sizes());
        let mut place = RequestSlot::new();
        let received =
            place.datagram(incoming.clone(), message, sizes, shared.number, local, group);
        if !vouched {
            let challenge = Outgoing::One(self.session().challenge(now, &received));
            return self.send(shared, now, challenge);
        }
        let span = trace::serve(from, &message);
        span.in_scope(|| self.process(shared, now, received, None, &span))
    }

    fn notify(&self, shared: &Arc<Shared>, now: Instant, due: Due) {
        self.notify_one(shared, now, due);
    }
}
