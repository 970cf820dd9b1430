//! Stateless cookies (RFC 6347 section 4.2.1): a client must show that it receives at its address
//! before the server keeps any state or sends more than it received.

use crate::prf::hmac_sha256;
use core::net::{IpAddr, SocketAddr};
use ebbtide_core::time::{Duration, Instant};
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

/// Bytes of a cookie.
pub(crate) const LENGTH: usize = 16;

/// The fields of a ClientHello that stay as they are when its client returns with the cookie.
pub(crate) type HelloFields<'a> = [&'a [u8]; 5];

/// Creates and verifies cookies under a key that changes with time. A cookie is valid in the
/// period in which it was created and in the next one.
#[derive(Debug)]
pub(crate) struct Cookies {
    secret: Zeroizing<[u8; 32]>,
    period: Duration,
    /// The period of `keys`, which are its key and that of the previous period.
    current: u64,
    keys: Zeroizing<[[u8; 32]; 2]>,
}

impl Cookies {
    pub(crate) fn new(secret: [u8; 32], period: Duration) -> Self {
        let mut cookies = Self {
            secret: Zeroizing::new(secret),
            period: period.max(Duration::from_secs(1)),
            current: 0,
            keys: Zeroizing::default(),
        };
        cookies.rotate(0);
        cookies
    }

    /// The cookie for a ClientHello, which is valid for all hellos with these parameters from one address.
    pub(crate) fn make(
        &mut self,
        now: Instant,
        from: SocketAddr,
        parameters: &HelloFields<'_>,
    ) -> [u8; LENGTH] {
        self.advance(now);
        mac(&self.keys[0], from, parameters)
    }

    /// Whether a cookie was created by [`Self::make`] for this address and these parameters.
    pub(crate) fn check(
        &mut self,
        now: Instant,
        from: SocketAddr,
        parameters: &HelloFields<'_>,
        cookie: &[u8],
    ) -> bool {
        if cookie.len() != LENGTH {
            return false;
        }
        self.advance(now);
        let equals = |key: &[u8; 32]| mac(key, from, parameters).ct_eq(cookie);
        self.keys.iter().map(equals).fold(Choice::from(0), |a, b| a | b).into()
    }

    fn advance(&mut self, now: Instant) {
        let nanos = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        let period = now.as_nanos() / nanos;
        if period != self.current {
            self.rotate(period);
        }
    }

    fn rotate(&mut self, period: u64) {
        let key = |period: u64| hmac_sha256(&*self.secret, &[&period.to_be_bytes()]);
        // The first period has no predecessor; its key was never used.
        *self.keys = [key(period), key(period.wrapping_sub(1))];
        self.current = period;
    }
}

fn mac(key: &[u8; 32], from: SocketAddr, parameters: &HelloFields<'_>) -> [u8; LENGTH] {
    let address = match from.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let port = from.port().to_be_bytes();
    let octets = address.octets();
    // Each parameter is preceded by its length so that no two hellos hash alike.
    let lengths = parameters.map(|parameter| (parameter.len() as u16).to_be_bytes());
    let [a, b, c, d, e] = parameters;
    let [of_a, of_b, of_c, of_d, of_e] = &lengths;
    let full = hmac_sha256(key, &[&octets, &port, of_a, a, of_b, b, of_c, c, of_d, d, of_e, e]);
    let mut cookie = [0; LENGTH];
    cookie.copy_from_slice(&full[..LENGTH]);
    cookie
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
        let hello: &HelloFields<'_> = &[b"version", b"random", b"", b"suites", b"null"];
        let cookie = cookies.make(at(10), from, hello);
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
        assert!(!cookies.check(at(10), from, hello, &cookie[..15]));
        assert!(!cookies.check(at(10), from, hello, &[]));
    }
}
