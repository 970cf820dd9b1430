//! Requests of CoAP clients.

use crate::ask::{Ask, BodyForm, StoredUse};
use crate::cell::Applicant;
use crate::gateway::{Gateway, GatewayAnswer};
use crate::observed;
use crate::options::Forwarded;
use crate::outcome;
use crate::room::{UNVERIFIED, UNVERIFIED_WITHOUT_SHARE, client_of};
use crate::system;
use crate::target::{Target, TargetScheme};
use crate::time_limit::TimerStart;
use bytes::Bytes;
use ebbtide::Response;
use ebbtide::server::{BodyStream, Call, FromCall, Handler, Reply, Resource, Router, Subject, get};
use ebbtide_core::wire::{Block, Code, Message, OptionNumber};
use std::net::SocketAddr;

/// The size of blocks for a client that names none: 1024 bytes.
const LARGEST: u8 = 6;

/// The urgency of a request that does not state it (RFC 9218 section 4.1).
pub(crate) const URGENCY: u8 = 3;

/// Requests a second of addresses that may be forged, which are sent to HTTP servers: each costs a connection. Further
/// ones have to echo first. Not all, since many clients cannot.
const UNVERIFIED_WEB: u32 = 64;

/// The same of all requests without a stored answer, while many of these are open: those that are let in share one turn.
const UNVERIFIED_CROWDED: u32 = 1;

/// Forwards requests.
#[derive(Clone, Debug)]
struct Forward {
    gateway: Gateway,
    role: TargetRole,
}

/// The part of a request that names its target.
#[derive(Copy, Clone, Debug)]
enum TargetRole {
    /// Proxy-Uri or Proxy-Scheme.
    Forward,
    /// The path, which is that of a backend.
    Reverse,
}

impl Gateway {
    /// A router that answers requests of CoAP clients with Proxy-Uri or Proxy-Scheme (RFC 7252
    /// section 5.10.2), and those for [backends](crate::GatewayConfig::backend), for a
    /// [`Server`](ebbtide::Server). If all paths have a backend, the list of resources is the backend's too.
    #[must_use]
    pub fn router(&self) -> Router {
        match self.inner.backends.paths().any(|path| path.is_empty()) {
            true => router(self).route(LIST, resource(self, TargetRole::Reverse).hidden()),
            false => router(self),
        }
    }

    /// As [`Self::router`], beside resources of this program, which `/.well-known/core` lists.
    #[must_use]
    pub fn router_beside(&self, own: Router) -> Router {
        router(self).merge(own)
    }
}

/// The list of resources (RFC 6690), which a route with parameters does not match.
const LIST: &str = "/.well-known/core";

fn router(gateway: &Gateway) -> Router {
    let router = Router::new().forward_proxy(resource(gateway, TargetRole::Forward));
    gateway.inner.backends.paths().fold(router, |router, path| {
        router.route(&format!("{path}/{{*below}}"), resource(gateway, TargetRole::Reverse).hidden())
    })
}

fn resource(gateway: &Gateway, role: TargetRole) -> Resource {
    let forward = Forward { gateway: gateway.clone(), role };
    let (observed, wary, crowded) = (forward.clone(), forward.clone(), forward.clone());
    let observing = gateway.clone();
    get(forward.clone())
        .post(forward.clone())
        .put(forward.clone())
        .delete(forward.clone())
        .fetch(forward.clone())
        .patch(forward.clone())
        .ipatch(forward)
        // The server decides about conditions.
        .conditional()
        .observable_by(move |message| observed.subject(message))
        .max_body(gateway.inner.max_body)
        .streamed_if(is_web_upload)
        .max_unverified_if(0, move |message, client| wary.concerns_download(message, client))
        .max_unverified_if(UNVERIFIED_WEB, |message, _| Target::is_of_web(message))
        .max_unverified_if(UNVERIFIED_WITHOUT_SHARE, move |message, _| {
            registers(message) && observing.is_followed_by_many()
        })
        .max_unverified_if(UNVERIFIED_CROWDED, move |message, _| {
            crowded.gateway.is_crowded() && !crowded.is_stored(message)
        })
}

/// Whether a request has a body in several blocks for an HTTP server, which receives it as it arrives. That of a single
/// block is sent with its length, which some servers require.
fn is_web_upload(message: &Message<'_>) -> bool {
    let block = message.option(OptionNumber::BLOCK1);
    let block = block.and_then(|opt| Block::from_reliable(&opt).ok());
    block.is_some_and(|block| block.more() || block.num() > 0) && Target::is_of_web(message)
}

impl Handler<Forward, ()> for Forward {
    fn call(&self, call: &Call<'_>, (): &()) -> Reply {
        let ask = match self.ask(call) {
            Ok(ask) => ask,
            Err(refusal) => return Reply::now(refusal),
        };
        if registers(&call.message()) && ask.is_observable() {
            return self.observe(ask);
        }
        if let TargetScheme::Web(_) = ask.target.scheme
            && ask.code == Code::GET
        {
            return self.download(call, ask);
        }
        if let Some(stored) = self.gateway.stored(&ask) {
            return Reply::now(stored);
        }
        let gateway = self.gateway.clone();
        let ask = match gateway.at_once(ask) {
            Ok(reply) => return reply,
            Err(ask) => *ask,
        };
        let is_brief = ask.is_brief();
        let answered = async move { gateway.answer(ask, TimerStart::SecondPoll).await.response };
        match is_brief {
            true => Reply::brief(answered),
            false => Reply::later(answered),
        }
    }
}

/// Whether a request registers an observer (RFC 7641 section 2).
fn registers(message: &Message<'_>) -> bool {
    message.option(OptionNumber::OBSERVE).and_then(|opt| opt.as_uint()) == Some(0)
}

impl Forward {
    /// Whether a request advances a download, which then occupies a connection for longer, or ends one that has been
    /// advanced. A stranger may know the address and the port of the client.
    fn concerns_download(&self, message: &Message<'_>, client: SocketAddr) -> bool {
        if message.code() != Code::GET || !Target::is_of_web(message) {
            return false;
        }
        let block = message.option(OptionNumber::BLOCK2);
        let block = block.and_then(|opt| Block::from_reliable(&opt).ok());
        let downloads = &self.gateway.inner.downloads;
        block.is_some_and(|block| block.num() > 0)
            || !downloads.is_empty()
                && self.unasked(message).is_ok_and(|ask| downloads.goes_on(&(client, ask.key())))
    }

    /// Whether the answer is there.
    fn is_stored(&self, message: &Message<'_>) -> bool {
        self.unasked(message).is_ok_and(|ask| self.gateway.stored(&ask).is_some())
    }

    fn target(&self, message: &Message<'_>) -> Result<Target, Response> {
        match self.role {
            TargetRole::Forward => Target::of_message(message),
            TargetRole::Reverse => {
                let (path, query) = Target::path_and_query(message)?;
                let target = self.gateway.inner.backends.target(path, query);
                target.ok_or_else(|| Response::new(Code::NOT_FOUND))
            }
        }
    }

    /// The present state of a resource that the client observes from now on, if the server lets it.
    fn observe(&self, ask: Ask) -> Reply {
        let mut follower = match self.gateway.follow(ask.clone()) {
            Ok(follower) => follower,
            Err(refusal) => return Reply::now(refusal),
        };
        // A notification: the state is there.
        if let Some(state) = follower.borrow().as_ref() {
            return Reply::now(state.response());
        }
        Reply::later(async move {
            match tokio::time::timeout_at(ask.deadline, observed::next(&mut follower)).await {
                Ok(Some(state)) => state.response(),
                Ok(None) | Err(_) => outcome::timed_out(),
            }
        })
    }

    /// An answer of an HTTP server, or a block of one that is too long to be held.
    fn download(&self, call: &Call<'_>, ask: Ask) -> Reply {
        let wanted = call.message().option(OptionNumber::BLOCK2);
        let wanted = wanted.and_then(|opt| Block::from_reliable(&opt).ok());
        let Some(wanted) = wanted.or_else(|| Block::new(0, false, LARGEST).ok()) else {
            return Reply::now(Response::new(Code::BAD_OPTION));
        };
        let (gateway, key) = (self.gateway.clone(), (call.remote(), ask.key()));
        if let Some(known) = gateway.inner.downloads.find(&key, wanted) {
            return Reply::later(async move { known.block(wanted).await });
        }
        if let Some(stored) = gateway.stored(&ask) {
            return Reply::now(stored);
        }
        let requested = system::now();
        Reply::later(async move {
            let GatewayAnswer { response, rest } =
                gateway.answer(ask, TimerStart::SecondPoll).await;
            let Some(rest) = rest else { return response };
            gateway.inner.downloads.begin(key, requested, response, rest).block(wanted).await
        })
    }

    /// The subject that a request observes: [`Self::observe`] has been called for it, or it is that of an observer
    /// before a restart.
    fn subject(&self, message: &Message<'_>) -> Option<Subject> {
        let inner = &self.gateway.inner;
        let ask = self.unasked(message).ok()?;
        let key = ask.key();
        let known = inner.observations.subject(&key);
        if known.is_some() || !registers(message) || !ask.is_observable() {
            return known;
        }
        drop(self.gateway.follow(ask).ok()?);
        inner.observations.subject(&key)
    }

    /// A request that no client waits for.
    fn unasked(&self, message: &Message<'_>) -> Result<Ask, Response> {
        let inner = &self.gateway.inner;
        Ok(Ask {
            applicant: Applicant { client: UNVERIFIED, urgency: URGENCY },
            target: self.target(message)?,
            code: message.code(),
            forwarded: Forwarded::of_request(message, &inner.upstream.name)?,
            payload: Bytes::copy_from_slice(message.payload()),
            deadline: system::now() + inner.deadline,
            freshness: StoredUse::Stored,
            body: BodyForm::Held,
            arriving: None,
        })
    }

    fn ask(&self, call: &Call<'_>) -> Result<Ask, Response> {
        let (upstream, message) = (&self.gateway.inner.upstream, call.message());
        let client = call.remote().ip();
        if !upstream.access.may_ask(client) {
            return Err(Response::error(Code::FORBIDDEN, "this proxy does not serve your address"));
        }
        let mut forwarded = Forwarded::of_request(&message, &upstream.name)?;
        if call.if_none_match() && forwarded.options.get(OptionNumber::IF_NONE_MATCH).is_none() {
            // Only the first block of a body has it.
            forwarded.options.push(OptionNumber::IF_NONE_MATCH, &[]);
        }
        let arriving = is_web_upload(&message).then(|| {
            let Ok(body) = BodyStream::from_call(call, &());
            body
        });
        Ok(Ask {
            applicant: Applicant { client: client_of(call), urgency: URGENCY },
            target: self.target(&message)?,
            code: call.method(),
            forwarded,
            payload: if arriving.is_some() { Bytes::new() } else { call.body() },
            deadline: system::now() + self.gateway.inner.deadline,
            freshness: StoredUse::Stored,
            body: BodyForm::Held,
            arriving,
        })
    }
}
