//! The HelloRetryRequest (RFC 9147 section 5.1): a client shows that it receives at its address before a handshake
//! begins.

use crate::hello::{self, Hello, Replaced};
use crate::kept::KeptHellos;
use crate::selection::Selection;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_dtls::Cookies;
use std::net::SocketAddr;

/// [`Replaced`], and the beginning of a tag over address, that, and the first hello. `dimpl` has no other length.
type Cookie = [u8; 32];

/// How long the key of cookies is used. A cookie is valid for one to two such periods.
const PERIOD: Duration = Duration::from_secs(60);

/// First ClientHellos that are kept because they cannot be restored from the second ones.
const MOST_NEEDED: usize = 64;
/// Those that can, unless the client changes more than it should.
const MOST_RESTORABLE: usize = 32;

/// A server's side of the retry. It needs no state for a client that repeats its first ClientHello and the key share in
/// it, or adds the first one (RFC 8446 section 4.1.2). For one that has key shares of other groups at first, or that changes
/// more, as wolfSSL does, the last hellos are kept; many new ones displace them.
pub(crate) struct Retry {
    cookies: Cookies,
    needed: KeptHellos,
    restorable: KeptHellos,
}

/// A second ClientHello whose cookie is correct.
pub(crate) struct Confirmed {
    pub(crate) cookie: Cookie,
    /// The record of the first ClientHello.
    pub(crate) first: Vec<u8>,
}

impl Retry {
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self {
            cookies: Cookies::new(secret, PERIOD),
            needed: KeptHellos::new(MOST_NEEDED),
            restorable: KeptHellos::new(MOST_RESTORABLE),
        }
    }

    /// The HelloRetryRequest that answers a first ClientHello, at most one and a half times as long as that.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        from: SocketAddr,
        hello: &Hello<'_>,
        selection: Selection,
    ) -> Vec<u8> {
        let replaced = hello.replaced().to_be_bytes();
        let tag = self.cookies.tag(now, from, &[&replaced, hello.body]);
        let mut cookie: Cookie = [0; 32];
        let (of_replaced, of_tag) = cookie.split_at_mut(replaced.len());
        of_replaced.copy_from_slice(&replaced);
        of_tag.copy_from_slice(&tag[..of_tag.len()]);
        let is_restorable = selection.group.is_none() || hello.has_empty_key_share();
        let kept = if is_restorable { &mut self.restorable } else { &mut self.needed };
        kept.keep(from, cookie, hello.body);
        selection.hello_retry_request(&cookie)
    }

    /// The first ClientHello, if the cookie in the second one was created for it and this address.
    pub(crate) fn confirm(
        &mut self,
        now: Instant,
        from: SocketAddr,
        hello: &Hello<'_>,
    ) -> Option<Confirmed> {
        let cookie: Cookie = hello.cookie?.try_into().ok()?;
        let [first, second, tag @ ..] = &cookie;
        let replaced = [*first, *second];
        let mut is_for = |body: &[u8]| self.cookies.check(now, from, &[&replaced, body], tag);
        let restored = hello.first(Replaced::from_be_bytes(replaced)).filter(|body| is_for(body));
        let first = match restored {
            Some(body) => hello::record(&body),
            None => {
                let kept = self.needed.find(from, &cookie);
                let kept = kept.or_else(|| self.restorable.find(from, &cookie))?;
                let first = hello::record(kept);
                let agrees = Hello::parse(&first)?.has_fields_of(hello);
                // It may be too old by now.
                (agrees && is_for(kept)).then_some(first)?
            }
        };
        Some(Confirmed { cookie, first })
    }
}
