//! Sending what was answered, at once or later.

use super::guard::HEADERS;
use super::router::Later;
use super::service::Working;
use crate::message::Response;
use crate::net::pending::{Open, Owner};
use crate::net::shared::{Shared, State};
use bytes::Bytes;
use ebbtide_core::endpoint::Incoming;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, HEADER_LEN, Message, OptionNumber, Token};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

/// Who asked, over whatever transport.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) remote: SocketAddr,
    pub(crate) token: Token,
    /// From which of our addresses to answer, if that matters.
    pub(crate) local: Option<IpAddr>,
    /// Whether a group was asked.
    pub(crate) group: bool,
    /// Whether the address may be another's: a datagram's may, a connection's has answered.
    pub(crate) forgeable: bool,
    /// Classes of responses that the client does not want (RFC 7967 section 2.1).
    unwanted: u8,
}

/// A request over UDP whose answer is being made.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) incoming: Incoming,
    pub(crate) asker: Asker,
    /// Bytes of datagrams that were sent in answer already: an empty ACK's, or none.
    pub(crate) sent: usize,
    /// How often a separate response may be sent.
    pub(crate) allowance: u8,
}

impl Asked {
    #[inline]
    pub(crate) fn new(
        incoming: Incoming,
        message: &Message<'_>,
        local: Option<IpAddr>,
        group: bool,
    ) -> Self {
        let asker = Asker { local, group, forgeable: true, ..Asker::new(incoming.remote, message) };
        Self { incoming, asker, sent: 0, allowance: u8::MAX }
    }
}

impl Asker {
    #[inline]
    pub(crate) fn new(remote: SocketAddr, message: &Message<'_>) -> Self {
        let unwanted = message.option(OptionNumber::NO_RESPONSE).and_then(|opt| opt.as_uint());
        let unwanted = unwanted.unwrap_or(0) as u8;
        Self {
            remote,
            token: message.token(),
            local: None,
            group: false,
            forgeable: false,
            unwanted,
        }
    }

    /// RFC 7967 section 2.1: 2 stands for 2.xx, 8 for 4.xx, 16 for 5.xx.
    pub(crate) fn wants(&self, code: Code) -> bool {
        let class = 1_u8.checked_shl(u32::from(code.class()).saturating_sub(1)).unwrap_or(0);
        self.unwanted & class == 0
    }
}

/// Sends a response.
pub(crate) fn respond(state: &mut State, now: Instant, asked: &Asked, response: &Response) {
    let incoming = &asked.incoming;
    if !asked.asker.wants(response.code) {
        // A Confirmable request is acknowledged all the same (RFC 7967 section 2.1).
        state.endpoint.acknowledge(now, &mut incoming.clone());
        state.drain(asked.asker.local);
        return;
    }
    let sent =
        response.with_content(None, |content| state.endpoint.respond(now, incoming, content));
    match sent {
        Ok(None) => {}
        Ok(Some(exchange)) => {
            state.endpoint.limit_transmissions(exchange, asked.allowance);
            let (owner, remote) = (Owner::Response, incoming.remote);
            state.pending.opened(Open { exchange, owner, remote, local: asked.asker.local });
        }
        Err(error) => {
            tracing::warn!(peer = %incoming.remote, %error, "response not sent");
            let sorry = Response::new(Code::INTERNAL_SERVER_ERROR);
            // What then fails has been counted by the endpoint.
            let _ =
                sorry.with_content(None, |content| state.endpoint.respond(now, incoming, content));
        }
    }
    state.drain(asked.asker.local);
}

/// Waits for a slow handler. After a while the request is acknowledged, so that the client stops
/// repeating it (RFC 7252 section 5.2.2).
pub(crate) async fn finish(
    shared: Arc<Shared>,
    mut asked: Asked,
    request: Bytes,
    later: Later,
    working: Working,
) {
    let patience = working.0.config().acknowledge_after;
    let mut later = pin!(later);
    let response = match tokio::time::timeout(patience, later.as_mut()).await {
        Ok(response) => response,
        Err(_) => {
            shared.with(|state, now| {
                state.endpoint.acknowledge(now, &mut asked.incoming);
                state.drain(asked.asker.local);
            });
            asked.sent = HEADER_LEN + HEADERS;
            later.await
        }
    };
    let Ok(message) = Message::parse(&request) else { return };
    let response = working.0.complete(shared.clock.now(), &mut asked, &message, response);
    if asked.asker.group {
        working.0.at_leisure(&shared, asked, response);
    } else {
        shared.with(|state, now| respond(state, now, &asked, &response));
    }
}
