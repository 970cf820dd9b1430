//! Hosts that answer: each an endpoint with a session on it.

use super::{PORT, client_address, client_at, digits};
use bytes::Bytes;
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Output, Received as Datagram};
use ebbtide_core::session::server::{
    Assembled, Handled, Next, Outgoing, Received, RequestSlot, Server, ServerState, SessionConfig,
};
use ebbtide_core::session::{ContentFormat, Response, Verify};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Code;
use rand_chacha::ChaCha8Rng;
use std::cell::RefCell;

/// A host that answers every request of a class of clients with the same payload.
pub(crate) struct Answerer {
    endpoint: Endpoint,
    session: Server<RefCell<ServerState>>,
    /// For each class.
    payloads: Vec<Bytes>,
    /// The class of the client whose request is next.
    class: usize,
}

impl Answerer {
    /// The generators are those of the endpoint and of the session.
    pub(crate) fn new(
        config: EndpointConfig,
        payloads: impl IntoIterator<Item = u32>,
        rng: ChaCha8Rng,
        session_rng: ChaCha8Rng,
    ) -> Self {
        let session = SessionConfig {
            // Nobody forges addresses here.
            verify: Verify::None,
            exchange_lifetime: config.params.exchange_lifetime(),
            ..SessionConfig::default()
        };
        let tables = ServerState::new(&session, Box::new(session_rng));
        Self {
            endpoint: Endpoint::new(config, Box::new(rng)),
            session: Server::new(session, RefCell::new(tables)),
            payloads: payloads.into_iter().map(|bytes| digits(bytes).into()).collect(),
            class: 0,
        }
    }

    /// The requests from now on are those of a client of this class.
    pub(crate) const fn serve(&mut self, class: usize) {
        self.class = class;
    }

    /// Answers a request from a host; hands what that causes to `send`.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        from: u32,
        datagram: &[u8],
        mut send: impl FnMut(u32, &[u8]),
    ) {
        let from = client_address(from);
        debug_assert_eq!(from.port(), PORT);
        if let Datagram::Request(incoming, message) =
            self.endpoint.handle_datagram(now, from.into(), datagram)
        {
            let sizes = self.session.datagram_sizes();
            let mut place = RequestSlot::new();
            let received = place.datagram(incoming, message, sizes, 0, None, false);
            self.process(now, received);
        }
        while let Output::Transmit(transmit) = self.endpoint.poll_output() {
            if let Some(to) = client_at(transmit.to) {
                send(to, transmit.datagram);
            }
        }
    }

    /// Takes a request through the stages of the session.
    fn process(&mut self, now: Instant, received: Received<'_, '_>) {
        let verified = match self.session.receive(now, received) {
            Next::Proceed(verified) => verified,
            Next::Handled(handled) => return self.complete(now, handled),
            Next::Send(outgoing) => return self.send(now, &outgoing),
        };
        match self.session.assemble(now, verified.permit(usize::MAX)) {
            Next::Proceed(assembled) => {
                let response = self.response(&assembled);
                self.complete(now, assembled.handled(response));
            }
            Next::Handled(handled) => self.complete(now, handled),
            Next::Send(outgoing) => self.send(now, &outgoing),
        }
    }

    fn complete(&mut self, now: Instant, handled: Handled<'_, '_>) {
        let mut handled = handled;
        let outgoing = self.session.complete(now, &mut handled, None);
        self.send(now, &outgoing);
    }

    /// A refused response is counted by the endpoint; the client asks again.
    fn send(&mut self, now: Instant, outgoing: &Outgoing<'_>) {
        for finished in outgoing.iter() {
            let _ = finished.send(now, &mut self.endpoint);
        }
    }

    fn response(&self, request: &Assembled<'_, '_>) -> Response {
        let code = match request.message().code() {
            Code::GET => Code::CONTENT,
            _ => Code::CHANGED,
        };
        let payload = self.payloads.get(self.class).cloned().unwrap_or_default();
        match (code, payload.is_empty()) {
            (Code::CHANGED, true) => Response::new(code),
            // text/plain.
            _ => Response::new(code).format(ContentFormat(0)).payload(payload),
        }
    }
}
