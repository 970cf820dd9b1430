//! Events of `tracing`, at level DEBUG unless it is named, and spans of requests. Without an interested
//! subscriber each costs a comparison.
//!
//! | target | event or span | fields |
//! |---|---|---|
//! | `ebbtide::request` | span `request`, of a client | `method`, `path`, `peer` |
//! | `ebbtide::request` | `began`: a message of the request has this exchange | `exchange` |
//! | `ebbtide::request` | span `serve`, of a server's handler | `method`, `path`, `peer`, `mid` |
//! | `ebbtide::message` | `sent` | `peer`, `exchange`, `ordinal`, `timeout`, `datagram` |
//! | `ebbtide::message` | `received` | `peer`, `datagram` |
//! | `ebbtide::message` | `timeout`: the copy `ordinal` follows | `peer`, `exchange`, `ordinal` |
//! | `ebbtide::message` | `failed` | `exchange`, `reason` |
//! | `ebbtide::message` | `not sent` | `exchange`, `error` |
//! | `ebbtide::message` | WARN: messages wait for message IDs | `peer`, `seconds` |
//! | `ebbtide::control` | `learnt` | `peer`, `exchange`, `rtt`, `transmissions`, `answered`, `srtt`, `rto`, `state` |
//!
//! With the feature `tracing` the core adds `ebbtide::wait`, at level TRACE: why a message waits.
//!
//! The values of queries are left out of `datagram` unless the target `ebbtide::query` is enabled at level TRACE.
//!
//! `exchange` is a small number, unique among the exchanges that are open at one socket at the
//! same time. Datagrams sent in reply have none.

use crate::message::{DisplayMessage, Queries, Request};
use ebbtide_core::cc::{Metrics, Sample};
use ebbtide_core::endpoint::{Failure, Sent, Transmit};
use ebbtide_core::session::client::RequestParts;
use ebbtide_core::time::Micros;
use ebbtide_core::wire::{Code, Message, OptionNumber};
use ebbtide_core::{ExchangeId, PeerId};
use std::net::SocketAddr;
use std::time::Duration;
use tracing::{Level, Span, debug, debug_span, enabled, warn};

/// Whether messages are shown with the values of their queries.
pub(crate) fn queries() -> Queries {
    match enabled!(target: "ebbtide::query", Level::TRACE) {
        true => Queries::Shown,
        false => Queries::Hidden,
    }
}

#[inline]
pub(crate) fn received(peer: SocketAddr, datagram: &[u8]) {
    if enabled!(target: "ebbtide::message", Level::DEBUG)
        && let Ok(message) = Message::parse(datagram)
    {
        debug!(target: "ebbtide::message", %peer, datagram = %DisplayMessage(&message, queries()), "received");
    }
}

#[inline]
pub(crate) fn sent(transmit: &Transmit<'_>, peer: impl FnOnce() -> PeerId) {
    if !enabled!(target: "ebbtide::message", Level::DEBUG) {
        return;
    }
    let (peer, Ok(message)) = (peer(), Message::parse(transmit.datagram)) else { return };
    let datagram = DisplayMessage(&message, queries());
    match transmit.what {
        Sent::Reply => debug!(target: "ebbtide::message", %peer, %datagram, "sent"),
        Sent::Probe { exchange, timeout } => {
            let (exchange, timeout) = (exchange.index(), timeout.to_duration());
            debug!(target: "ebbtide::message", %peer, exchange, ?timeout, %datagram, "probe sent");
        }
        Sent::Exchange { exchange, ordinal, timeout } => {
            let exchange = exchange.index();
            if ordinal > 0 {
                debug!(target: "ebbtide::message", %peer, exchange, ordinal, "timeout");
            }
            // A Non-confirmable message is not retransmitted.
            let timeout = (timeout > Micros::ZERO).then(|| timeout.to_duration());
            debug!(
                target: "ebbtide::message",
                %peer, exchange, ordinal, timeout = timeout.map(tracing::field::debug), %datagram,
                "sent"
            );
        }
    }
}

/// A datagram of an exchange has not left.
pub(crate) fn unsent(exchange: ExchangeId, error: &std::io::Error) {
    debug!(target: "ebbtide::message", exchange = exchange.index(), %error, "not sent");
}

/// Warns that messages to a peer wait for message IDs.
pub(crate) fn no_message_id(peer: PeerId, wait: Duration) {
    let seconds = wait.as_secs();
    warn!(
        target: "ebbtide::message", %peer, seconds,
        "all message IDs for the peer were used within EXCHANGE_LIFETIME: messages to it wait"
    );
}

pub(crate) fn failed(exchange: ExchangeId, reason: Failure) {
    debug!(target: "ebbtide::message", exchange = exchange.index(), %reason, "failed");
}

/// Reports what congestion control learnt from an answer. `metrics` is called only if there is a
/// subscriber.
#[inline]
pub(crate) fn learnt(
    peer: SocketAddr,
    exchange: ExchangeId,
    sample: Option<&Sample>,
    metrics: impl FnOnce() -> Option<Metrics>,
) {
    if !enabled!(target: "ebbtide::control", Level::DEBUG) {
        return;
    }
    if let (Some(sample), Some(metrics)) = (sample, metrics()) {
        let span = |span: Micros| tracing::field::debug(span.to_duration());
        let rtt = match sample.answered {
            Some(answered) => Some(answered.since),
            None => (sample.transmissions == 1).then_some(sample.since_first),
        };
        debug!(
            target: "ebbtide::control",
            %peer,
            exchange = exchange.index(),
            rtt = rtt.map(span),
            transmissions = sample.transmissions,
            answered = sample.answered.map(|answered| answered.ordinal),
            srtt = metrics.srtt.map(span),
            rto = metrics.rto.map(span),
            interval = metrics.interval.map(span),
            state = metrics.state,
            "learnt"
        );
    }
}

/// The span of a client's request, including all its blocks.
pub(crate) fn request(request: &Request, peer: SocketAddr) -> Span {
    request_span(request.code, request.uri.path().map(str::as_bytes), peer)
}

/// As [`request`], of its parts.
pub(crate) fn parts(parts: &RequestParts, peer: SocketAddr) -> Span {
    let options = parts.options.iter();
    let path = options.filter(|opt| opt.number == OptionNumber::URI_PATH).map(|opt| opt.value);
    request_span(parts.code, path, peer)
}

fn request_span<'s>(
    code: Code,
    segments: impl Iterator<Item = &'s [u8]>,
    peer: SocketAddr,
) -> Span {
    if !enabled!(target: "ebbtide::request", Level::DEBUG) {
        return Span::none();
    }
    let (method, path) = (code.name(), path(segments));
    debug_span!(target: "ebbtide::request", "request", method, path, %peer)
}

/// Reports the exchange of the current request's next message. It is not a field of the span: a body of many blocks
/// has as many exchanges.
pub(crate) fn began(exchange: ExchangeId) {
    debug!(target: "ebbtide::request", exchange = exchange.index(), "began");
}

/// The span of a request that a handler answers.
#[inline]
pub(crate) fn serve(peer: SocketAddr, message: &Message<'_>) -> Span {
    if !enabled!(target: "ebbtide::request", Level::DEBUG) {
        return Span::none();
    }
    let (method, path, mid) = (message.code().name(), path(message.path()), message.message_id());
    debug_span!(target: "ebbtide::request", "serve", method, path, %peer, %mid)
}

/// A path in URI form.
fn path<'s>(segments: impl Iterator<Item = &'s [u8]>) -> String {
    segments.fold(String::new(), |path, segment| format!("{path}/{}", segment.escape_ascii()))
}
