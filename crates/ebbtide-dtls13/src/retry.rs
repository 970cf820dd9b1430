//! The HelloRetryRequest (RFC 9147 section 5.1): a client shows that it receives at its address before a handshake
//! begins.

use crate::hello::{self, Hello, KeyAgreement};
use crate::kept::KeptHellos;
use crate::provider::{hmac_sha256, provider_without_key, with_cookie};
use dimpl::{Config, Dtls, DtlsCertificate, Output};
use ebbtide_core::time::Instant;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// `dimpl` has no other length.
type Cookie = [u8; 32];

/// How long the key of cookies is used. A cookie is valid for one to two such periods.
const PERIOD: u64 = 60_000_000_000;

/// First ClientHellos without a key share that are kept.
const MOST_WITHOUT_SHARE: usize = 64;
/// Those with one, which only some clients need.
const MOST_WITH_SHARE: usize = 32;

/// A server's side of the retry. It needs no state for a client that repeats its first ClientHello and the key share in
/// it (RFC 8446 section 4.1.2). For one that has no key share at first, or that changes more, as wolfSSL does, the last
/// hellos are kept; many new ones displace them.
pub(crate) struct Retry {
    secret: [u8; 32],
    /// The configuration of engines that do nothing else.
    config: Arc<Config>,
    buffer: Vec<u8>,
    without_share: KeptHellos,
    with_share: KeptHellos,
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
        Some(Self {
            secret,
            config: Arc::new(config),
            buffer: vec![0; 512],
            without_share: KeptHellos::new(MOST_WITHOUT_SHARE),
            with_share: KeptHellos::new(MOST_WITH_SHARE),
        })
    }

    /// The HelloRetryRequest that answers a first ClientHello, at most one and a half times as long as that. An engine
    /// of `dimpl` creates it and is dropped; a later one creates the same bytes again.
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
        let Output::Packet(answer) = engine.poll_output(&mut self.buffer) else { return None };
        let kept = match hello.key_agreement {
            KeyAgreement::Share => &mut self.with_share,
            KeyAgreement::Group | KeyAgreement::Impossible => &mut self.without_share,
        };
        // One with the cookie of DTLS 1.2 gets no HelloRetryRequest.
        if !hello.has_cookie_of_1_2 {
            kept.keep(from, body);
        }
        Some(answer)
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
                let mut kept = self.without_share.of(from).chain(self.with_share.of(from));
                kept.find_map(|body| {
                    let first = hello::record(body);
                    let parsed = Hello::parse(&first)?;
                    let agrees = parsed.padding() == padding && parsed.has_fields_of(hello);
                    (agrees && is_cookie_for(body)).then_some(first)
                })?
            }
        };
        Some(Confirmed { cookie, first })
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
