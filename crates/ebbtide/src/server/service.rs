//! From a request to its response.

use super::ServerConfig;
use super::call::Call;
use super::router::{Later, Reply, Router};
use crate::message::Response;
use crate::net::pending::{Open, Owner};
use crate::net::shared::{Shared, State};
use crate::net::socket::Datagram;
use ebbtide_core::endpoint::Incoming;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};

/// What answers the requests of all sockets of a server.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    router: Router,
    config: ServerConfig,
    /// Requests that asynchronous handlers are at work on.
    working: AtomicUsize,
}

impl Service {
    pub(crate) fn new(router: Router, config: ServerConfig) -> Self {
        Self { inner: Arc::new(Inner { router, config, working: AtomicUsize::new(0) }) }
    }

    /// Answers a request, or starts to.
    pub(crate) fn serve<'s>(
        &self,
        shared: &'s Arc<Shared>,
        now: Instant,
        (incoming, message): (Incoming, Message<'_>),
        datagram: Datagram<'_>,
    ) -> MutexGuard<'s, State> {
        let local = shared.reply_from(datagram.to);
        let reply = self.reply(&incoming, &message);
        match reply {
            Reply::Now(response) => {
                let mut state = shared.lock();
                respond(&mut state, now, &incoming, &response, local);
                state
            }
            Reply::Later(later) => self.later(shared, now, incoming, later, local),
        }
    }

    fn reply(&self, incoming: &Incoming, message: &Message<'_>) -> Reply {
        let Some((route, params)) = self.inner.router.find(message.path()) else {
            return Reply::Now(Response::new(Code::NOT_FOUND));
        };
        route.resource.call(&Call {
            remote: incoming.remote,
            message: *message,
            payload: message.payload(),
            names: &route.names,
            params,
        })
    }

    /// Polls a handler once: most are ready then. What is not becomes a task.
    fn later<'s>(
        &self,
        shared: &'s Arc<Shared>,
        now: Instant,
        incoming: Incoming,
        mut later: Later,
        local: Option<IpAddr>,
    ) -> MutexGuard<'s, State> {
        let inner = &self.inner;
        if inner.working.load(Ordering::Relaxed) >= inner.config.max_working {
            let mut state = shared.lock();
            let response = Response::new(Code::SERVICE_UNAVAILABLE).max_age(1);
            respond(&mut state, now, &incoming, &response, local);
            return state;
        }
        if let Poll::Ready(response) = later.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            let mut state = shared.lock();
            respond(&mut state, now, &incoming, &response, local);
            return state;
        }
        inner.working.fetch_add(1, Ordering::Relaxed);
        let working = Working(self.clone());
        let task = finish(shared.clone(), incoming, later, local, working);
        tokio::spawn(task);
        shared.lock()
    }
}

/// Counts a task that works on a request, and no longer when it is over, however it ends.
struct Working(Service);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.inner.working.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for a slow handler. After a while the request is acknowledged, so that the client stops
/// repeating it (RFC 7252 section 5.2.2).
async fn finish(
    shared: Arc<Shared>,
    mut incoming: Incoming,
    later: Later,
    local: Option<IpAddr>,
    working: Working,
) {
    let patience = working.0.inner.config.acknowledge_after;
    let mut later = pin!(later);
    let response = match tokio::time::timeout(patience, later.as_mut()).await {
        Ok(response) => response,
        Err(_) => {
            shared.with(|state, now| {
                state.endpoint.acknowledge(now, &mut incoming);
                state.drain(local);
            });
            later.await
        }
    };
    shared.with(|state, now| respond(state, now, &incoming, &response, local));
}

/// Sends a response.
fn respond(
    state: &mut State,
    now: Instant,
    incoming: &Incoming,
    response: &Response,
    local: Option<IpAddr>,
) {
    let sent =
        response.with_content(None, |content| state.endpoint.respond(now, incoming, content));
    match sent {
        Ok(None) => {}
        Ok(Some(exchange)) => {
            let remote = incoming.remote;
            state.pending.opened(Open { exchange, owner: Owner::Response, remote, local });
        }
        Err(error) => {
            tracing::warn!(peer = %incoming.remote, %error, "response not sent");
            let sorry = Response::new(Code::INTERNAL_SERVER_ERROR);
            // What then fails has been counted by the endpoint.
            let _ =
                sorry.with_content(None, |content| state.endpoint.respond(now, incoming, content));
        }
    }
    state.drain(local);
}
