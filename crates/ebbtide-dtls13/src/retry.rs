//! The HelloRetryRequest without state (RFC 9147 section 5.1): a client shows that it receives at its
//! address before the server keeps anything about it.

use crate::hello::{self, Hello};
use crate::provider::{hmac_sha256, provider_without_key, with_cookie};
use dimpl::{Config, Dtls, DtlsCertificate, Output};
use ebbtide_core::time::Instant;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// `dimpl` has no other length.
type Cookie = [u8; 32];

/// How long the key of cookies is used. A cookie is valid for one to two such periods.
const PERIOD: u64 = 60_000_000_000;

/// First ClientHellos that are kept, each of at most [`MAX_HANDSHAKE_DATAGRAM`](hello::MAX_HANDSHAKE_DATAGRAM) bytes.
const MOST_KEPT: usize = 64;

/// A server's side of the retry. It needs no state for a client that repeats its first ClientHello as RFC 8446 section
/// 4.1.2 has it. For one that has another key share then, or that changes more, as wolfSSL does, the last hellos are
/// kept; many new ones displace them.
pub(crate) struct Retry {
    secret: [u8; 32],
    /// The configuration of engines that do nothing else.
    config: Arc<Config>,
    buffer: Vec<u8>,
    /// The bodies, and who sent them; the oldest first.
    kept: VecDeque<(SocketAddr, Vec<u8>)>,
}

/// A second ClientHello whose cookie is correct.
pub(crate) struct Confirmed {
    pub(crate) cookie: Cookie,
    /// The record of the first ClientHello.
    pub(crate) first: Vec<u8>,
}

impl Retry {
    pub(crate) fn new(secret: [u8; 32]) -> Option<Self> {
        let config = Config::builder().with_crypto_provider(provider_without_key()).build().ok()?;
        Some(Self { secret, config: Arc::new(config), buffer: vec![0; 512], kept: VecDeque::new() })
    }

    /// The HelloRetryRequest that answers a first ClientHello. An engine of `dimpl` creates it and is
    /// dropped; a later one creates the same bytes again.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        std_now: std::time::Instant,
        from: SocketAddr,
        hello: &Hello<'_>,
    ) -> Option<&[u8]> {
        let padding = hello.padding();
        let body = hello.first(padding)?;
        let cookie = self.cookie(period(now), from, padding, &body)?;
        let none = DtlsCertificate { certificate: Vec::new(), private_key: Vec::new() };
        let mut engine = Dtls::new_13(Arc::clone(&self.config), none, std_now);
        let record = hello::record(&body);
        let handled = with_cookie(cookie, || {
            engine.handle_timeout(std_now)?;
            engine.handle_packet(&record)
        });
        handled.ok()?;
        self.kept.retain(|(sender, _)| *sender != from);
        if self.kept.len() == MOST_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((from, body));
        match engine.poll_output(&mut self.buffer) {
            Output::Packet(answer) => Some(answer),
            _ => None,
        }
    }

    /// The first ClientHello, if the cookie in the second one was created for it and this address.
    pub(crate) fn confirm(
        &self,
        now: Instant,
        from: SocketAddr,
        hello: &Hello<'_>,
    ) -> Option<Confirmed> {
        let cookie: Cookie = hello.cookie?.try_into().ok()?;
        let padding = u16::from_be_bytes([cookie[0], cookie[1]]);
        let now = period(now);
        let is_cookie_for = |body: &[u8]| {
            let expected = [now, now.wrapping_sub(1)];
            let expected = expected.map(|period| self.cookie(period, from, padding, body));
            let found = expected
                .iter()
                .flatten()
                .fold(subtle::Choice::from(0), |found, expected| found | expected.ct_eq(&cookie));
            bool::from(found)
        };
        let restored = hello.first(padding).filter(|body| is_cookie_for(body));
        let first = match restored {
            Some(body) => hello::record(&body),
            None => {
                self.kept_first(from, padding, hello).filter(|(body, _)| is_cookie_for(body))?.1
            }
        };
        Some(Confirmed { cookie, first })
    }

    /// The kept body and record of the first ClientHello from an address, if the second one agrees with it.
    fn kept_first(
        &self,
        from: SocketAddr,
        padding: u16,
        second: &Hello<'_>,
    ) -> Option<(&[u8], Vec<u8>)> {
        let (_, body) = self.kept.iter().find(|(sender, _)| *sender == from)?;
        let record = hello::record(body);
        let first = Hello::parse(&record)?;
        let agrees = first.padding() == padding && first.has_fields_of(second);
        agrees.then_some((body, record))
    }

    /// The length of the padding, and an authentication tag over address and ClientHello.
    fn cookie(&self, period: u64, from: SocketAddr, padding: u16, body: &[u8]) -> Option<Cookie> {
        let key = hmac_sha256(&self.secret, &period.to_be_bytes())?;
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let port = from.port().to_be_bytes();
        let mut cookie = hmac_sha256(&key, &[&ip.octets()[..], &port, body].concat())?;
        cookie[..2].copy_from_slice(&padding.to_be_bytes());
        Some(cookie)
    }
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD
}
