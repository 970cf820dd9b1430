//! Messages of EDHOC (RFC 9528). Each waits for its turn, since its answer takes as long as those of a hundred others.

use super::carrier::Carrier;
use super::handler_future::HandlerFuture;
use super::inner::Service;
use super::later::{HandlerPlace, LaterAnswer};
use super::protected::oscore_is_required;
use super::reply::{PendingAnswer, PolledBy};
use super::service::AnsweredBy;
use crate::edhoc::{Edhoc, HandshakePeer, refusal};
use crate::message::Response;
use crate::net::shared::{ArrivedRequest, Shared};
use crate::stream::Link;
use ebbtide_core::PeerId;
use ebbtide_core::session::BlockSizes;
use ebbtide_core::session::server::{Next, Outgoing, Received, RequestSlot};
use ebbtide_core::stream::Incoming;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message};
use std::sync::Arc;
use tracing::Span;

/// Bytes of the longest message, above those that `lakers` reads.
const MAX_MESSAGE: usize = 1024;

impl Service {
    /// Answers a message of EDHOC.
    pub(super) fn shake_hands(
        &self,
        edhoc: &Edhoc,
        shared: &Arc<Shared>,
        now: Instant,
        request: &ArrivedRequest<'_>,
    ) {
        let &ArrivedRequest { ref incoming, message, from, to, vouched } = request;
        let (local, sizes) = (shared.reply_from(to), self.session().datagram_sizes());
        let mut place = RequestSlot::new();
        let received =
            place.datagram(incoming.clone(), message, sizes, shared.number, local, false);
        if !vouched {
            let challenge = self.session().challenge(now, &received);
            return self.send(shared, now, Outgoing::One(challenge));
        }
        let is_pressed = edhoc.is_pressed(now, self.inner.handshakes.waiting());
        if is_pressed && !self.session().is_fresh(now, &received) {
            let challenge = self.session().challenge_received(now, &received);
            return self.send(shared, now, Outgoing::One(challenge));
        }
        let client = HandshakePeer { id: incoming.remote, ip: from.ip() };
        self.answer_in_turn(edhoc, shared, now, received, client);
    }

    /// Answers a message of EDHOC over a connection, whose client has shown its address.
    pub(super) fn shake_hands_over(
        &self,
        edhoc: &Edhoc,
        link: &Arc<Link>,
        now: Instant,
        incoming: Incoming,
        message: Message<'_>,
        sizes: BlockSizes,
    ) {
        let mut place = RequestSlot::new();
        let received = place.stream(incoming, link.remote, message, sizes);
        let client = HandshakePeer { id: PeerId::Connection(link.remote), ip: link.remote.ip() };
        self.answer_in_turn(edhoc, link, now, received, client);
    }

    fn answer_in_turn<C: Carrier>(
        &self,
        edhoc: &Edhoc,
        carrier: &Arc<C>,
        now: Instant,
        received: Received<'_, '_>,
        client: HandshakePeer,
    ) {
        let Some(contexts) = &self.config().oscore else {
            let refused = received.refuse(oscore_is_required());
            return self.send(carrier, now, Outgoing::One(refused));
        };
        if !self.inner.handshakes.has_room(client.ip) {
            // Before anything is drawn, read and kept for it.
            let refused = received.refuse(overloaded());
            return self.send(carrier, now, Outgoing::One(refused));
        }
        let admitted = match self.session().receive(now, received) {
            Next::Proceed(verified) => self.session().assemble(now, verified.permit(MAX_MESSAGE)),
            Next::Handled(handled) => Next::Handled(handled),
            Next::Send(outgoing) => Next::Send(outgoing),
        };
        let assembled = match admitted {
            Next::Proceed(assembled) => assembled,
            Next::Handled(handled) => {
                return self.finish(carrier, now, handled, AnsweredBy::Session);
            }
            Next::Send(outgoing) => return self.send(carrier, now, outgoing),
        };
        let step = match edhoc.read(client.id, assembled.body()) {
            Ok(step) => step,
            Err(fault) => {
                let refused = assembled.handled(refusal(fault));
                return self.finish(carrier, now, refused, AnsweredBy::Session);
            }
        };
        let (edhoc, contexts) = (edhoc.clone(), contexts.clone());
        let handshakes = Arc::clone(&self.inner.handshakes);
        let answer = async move {
            let Some(turn) = handshakes.turn(client.ip).await else {
                return overloaded();
            };
            edhoc.answer(turn.began(), &contexts, client, step)
        };
        let pending =
            PendingAnswer { future: HandlerFuture::new(answer), polled_by: PolledBy::Task };
        // Reading the message has changed nothing.
        let answer = LaterAnswer { pending, place: HandlerPlace::Wanted };
        self.later(carrier, now, assembled, None, answer, &Span::none());
    }
}

/// The answer to a client whose source has its share of the messages that wait.
fn overloaded() -> Response {
    Response::new(Code::SERVICE_UNAVAILABLE).max_age(1)
}

#[cfg(test)]
mod tests {
    use crate::edhoc::tests::{client, server};
    use crate::net::beside::rest;
    use crate::server::{Call, Router, Server, get};
    use crate::{Client, ClientConfig, Response, ServerConfig};
    use ebbtide_core::time::Instant;
    use tokio::runtime::{Builder, Runtime};

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// A new client, in a thread of its own, asks so often.
    async fn ask(uri: String, times: usize) {
        let asked = async move {
            let client = Client::with_config(ClientConfig::new().edhoc(client()));
            for _ in 0..times {
                assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "on");
            }
        };
        tokio::task::spawn_blocking(|| runtime().block_on(asked)).await.unwrap();
    }

    #[test]
    fn handshakes_do_not_rest_for_each_other_but_for_requests_that_follow() {
        let serve = async {
            let on = |_: &Call<'_>| Response::content("on");
            let router = Router::new().route("/on", get(on));
            let config = ServerConfig::new().edhoc(server());
            let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
            let uri = format!("coap://{}/on", server.local_addrs()[0]);
            let rests = || rest(Instant::ZERO, Instant::ZERO).is_some();
            // The request of each is the end of its handshake.
            for _ in 0..2 {
                ask(uri.clone(), 1).await;
            }
            assert!(!rests());
            ask(uri, 2).await;
            assert!(rests());
        };
        // What was served is counted in each thread.
        std::thread::spawn(|| runtime().block_on(serve)).join().unwrap();
    }
}
