//! Stateless cookies (RFC 6347 section 4.2.1): a client must show that it receives at its address
//! before the server keeps any state or sends more than it received.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use ebbtide_core::time::{Duration, Instant};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

/// The shortest part of a tag that is accepted in its place, in bytes: it cannot be guessed.
const SHORTEST: usize = 16;

/// Creates and verifies the tags of stateless cookies under a key that changes with time. A tag is valid in the
/// period in which it was created and in the next one.
pub struct Cookies {
    secret: Zeroizing<[u8; 32]>,
    period: Duration,
    /// The period of `keyed`.
    current: u64,
    /// With the key of the period, and with that of the previous one. Computing them takes as long as a short tag.
    keyed: [Hmac<Sha256>; 2],
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies").finish_non_exhaustive()
    }
}

impl Cookies {
    /// Derives the keys from `secret`, which must be unpredictable. A period is at least a second.
    #[must_use]
    pub fn new(secret: [u8; 32], period: Duration) -> Self {
        let period = period.max(Duration::from_secs(1));
        let secret = Zeroizing::new(secret);
        // The first period has no predecessor; its key was never used.
        let keyed = [of_period(&secret, 0), of_period(&secret, u64::MAX)];
        Self { secret, period, current: 0, keyed }
    }

    /// The tag for these fields of a ClientHello, which is valid for all hellos with the same ones from one address. No
    /// field has more than 65,535 bytes.
    pub fn tag(&mut self, now: Instant, from: SocketAddr, fields: &[&[u8]]) -> [u8; 32] {
        self.advance(now);
        let [current, _] = &self.keyed;
        tag(current, from, fields)
    }

    /// Whether `tag` is the beginning, of 16 bytes or more, of what [`Self::tag`] has returned for this address and these
    /// fields.
    pub fn check(
        &mut self,
        now: Instant,
        from: SocketAddr,
        fields: &[&[u8]],
        tag_of_peer: &[u8],
    ) -> bool {
        if tag_of_peer.len() < SHORTEST {
            return false;
        }
        self.advance(now);
        let equals = |keyed: &Hmac<Sha256>| {
            let expected = tag(keyed, from, fields);
            // One that is longer than a tag equals none.
            expected.get(..tag_of_peer.len()).unwrap_or_default().ct_eq(tag_of_peer)
        };
        self.keyed.iter().map(equals).fold(Choice::from(0), |a, b| a | b).into()
    }

    fn advance(&mut self, now: Instant) {
        let nanos = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        let period = now.as_nanos() / nanos;
        if period != self.current {
            self.keyed =
                [period, period.wrapping_sub(1)].map(|period| of_period(&self.secret, period));
            self.current = period;
        }
    }
}

/// HMAC with the key of a period.
fn of_period(secret: &[u8; 32], period: u64) -> Hmac<Sha256> {
    let mut mac = keyed(secret);
    mac.update(&period.to_be_bytes());
    let key = Zeroizing::new(<[u8; 32]>::from(mac.finalize().into_bytes()));
    keyed(&key)
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    // RFC 2104 section 2: zeros are appended to a key that is shorter than a block.
    let mut block = Zeroizing::new([0; 64]);
    block[..32].copy_from_slice(key);
    Hmac::new(&(*block).into())
}

fn tag(keyed: &Hmac<Sha256>, from: SocketAddr, fields: &[&[u8]]) -> [u8; 32] {
    let address = match from.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut mac = keyed.clone();
    mac.update(&address.octets());
    mac.update(&from.port().to_be_bytes());
    for field in fields {
        // The length precedes each, so that no two hellos hash alike.
        mac.update(&(field.len() as u16).to_be_bytes());
        mac.update(field);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_cookie_answers_one_hello_of_one_address_for_two_periods_at_most() {
        let mut cookies = Cookies::new([7; 32], Duration::from_secs(60));
        let from: SocketAddr = "192.0.2.1:5683".parse().unwrap();
        let hello: &[&[u8]; 5] = &[b"version", b"random", b"", b"suites", b"null"];
        let cookie = cookies.tag(at(10), from, hello);
        assert!(cookies.check(at(59), from, hello, &cookie));
        assert!(cookies.check(at(119), from, hello, &cookie), "in the next period");
        assert!(!cookies.check(at(120), from, hello, &cookie), "and no later");
        assert!(!cookies.check(at(10), "192.0.2.1:5684".parse().unwrap(), hello, &cookie));
        assert!(!cookies.check(at(10), "192.0.2.2:5683".parse().unwrap(), hello, &cookie));
        for changed in 0..hello.len() {
            let mut other = *hello;
            other[changed] = b"other";
            assert!(!cookies.check(at(10), from, &other, &cookie), "parameter {changed}");
        }
        let shifted = [hello[0], hello[1], b"s", b"uites", hello[4]];
        assert!(!cookies.check(at(10), from, &shifted, &cookie));
        assert!(cookies.check(at(10), from, hello, &cookie[..16]));
        assert!(!cookies.check(at(10), from, hello, &cookie[..15]));
        assert!(!cookies.check(at(10), from, hello, &[&cookie[..], &[0]].concat()));
        assert!(!cookies.check(at(10), from, hello, &[]));
    }
}
