//! The host that answers.

use super::oscore::ProtectedAnswers;
use super::{Tag, client_address, client_at, digits};
use crate::random::Streams;
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Measured, Output, Received, Remember};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};
use std::net::SocketAddr;

/// A server that answers every request of a class of clients with the same payload.
pub(crate) struct ConstantServer {
    pub(super) endpoint: Endpoint,
    /// For each class.
    payloads: Vec<Vec<u8>>,
    /// The class of the client whose request is next.
    class: usize,
    /// Its side of OSCORE, if that protects its answers.
    protected: Option<ProtectedAnswers>,
}

impl ConstantServer {
    /// A server whose answers to the clients of each class have so many bytes of payload.
    pub(crate) fn new(
        config: EndpointConfig,
        payload_bytes: impl IntoIterator<Item = u32>,
        stream: &str,
        streams: &Streams,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(config, Box::new(streams.stream(stream))),
            payloads: payload_bytes.into_iter().map(digits).collect(),
            class: 0,
            protected: None,
        }
    }

    /// Protects the answers to so many clients by OSCORE.
    pub(crate) fn protect(&mut self, clients: u32) {
        self.protected = Some(ProtectedAnswers::new(clients));
    }

    /// The requests from now on are those of a client of this class.
    #[inline]
    pub(crate) const fn serve(&mut self, class: usize) {
        self.class = class;
    }

    /// The losses of a client's messages, by the option PM.
    pub(crate) fn measured(&self, client: u32) -> Option<Measured> {
        self.endpoint.measured(client_address(client).into())
    }

    /// Takes a request and hands the datagrams that it causes to `send`.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        tag: Tag,
        mut send: impl FnMut(u32, &[u8], Tag),
    ) {
        let text = self.payloads.get(self.class).map_or(&[][..], Vec::as_slice);
        // text/plain is content format 0, whose shortest form has no bytes (section 3.2).
        let format = [Opt { number: OptionNumber::CONTENT_FORMAT, value: &[] }];
        let answer = |request: Code| {
            let code = if request == Code::GET { Code::CONTENT } else { Code::CHANGED };
            Content { code, options: &format, payload: text }
        };
        match &mut self.protected {
            None => {
                if let Received::Request(incoming, message) =
                    self.endpoint.handle_datagram(now, from.into(), datagram)
                {
                    // A refused response is counted by the endpoint; the client asks again.
                    let _ = self.endpoint.respond(now, &incoming, &answer(message.code()));
                }
            }
            // As a deployed server: a request takes a place among those that are remembered when it is verified.
            Some(protected) => {
                let received =
                    self.endpoint.receive(now, from.into(), datagram, |_, _| Remember::No);
                if let Received::Request(incoming, message) = received
                    && let Some(verified) = protected.verify(incoming.remote, &message)
                    && let Some(code) = verified.plain().map(|plain| plain.code())
                {
                    self.endpoint.remember_verified(now, &incoming);
                    verified.answer(&answer(code), |outer| {
                        let _ = self.endpoint.respond(now, &incoming, outer);
                    });
                }
            }
        }
        while let Output::Transmit(transmit) = self.endpoint.poll_output() {
            if let Some(client) = client_at(transmit.to) {
                send(client, transmit.datagram, tag);
            }
        }
    }
}
