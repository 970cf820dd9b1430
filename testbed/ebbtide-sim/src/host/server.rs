//! The host that answers.

use super::{Tag, client_at, digits};
use crate::random::Streams;
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Output, Received};
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
        }
    }

    /// The requests from now on are those of a client of this class.
    #[inline]
    pub(crate) const fn serve(&mut self, class: usize) {
        self.class = class;
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
        if let Received::Request(incoming, message) =
            self.endpoint.handle_datagram(now, from.into(), datagram)
        {
            let text = self.payloads.get(self.class).map_or(&[][..], Vec::as_slice);
            let code = match message.code() {
                Code::GET => Code::CONTENT,
                _ => Code::CHANGED,
            };
            // text/plain is content format 0, whose shortest form has no bytes (section 3.2).
            let format = [Opt { number: OptionNumber::CONTENT_FORMAT, value: &[] }];
            let content = Content { code, options: &format, payload: text };
            // A refused response is counted by the endpoint; the client asks again.
            let _ = self.endpoint.respond(now, &incoming, &content);
        }
        while let Output::Transmit(transmit) = self.endpoint.poll_output() {
            if let Some(client) = client_at(transmit.to) {
                send(client, transmit.datagram, tag);
            }
        }
    }
}
