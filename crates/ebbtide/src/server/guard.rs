//! What keeps a server from being used against others, or up by one: Echo (RFC 9175), request
//! rates (RFC 8516).

use crate::message::Response;
use crate::net::dtls::address::is_stand_in;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

/// Addresses that are remembered as verified, and addresses whose rate is watched.
const MAX_ADDRESSES: usize = 65_536;
/// How long an Echo value is good (RFC 9175 section 2.3: the server decides what is fresh).
const FRESH: u64 = 60;
/// How long an address stays verified.
const VERIFIED: Duration = Duration::from_secs(3600);
/// Bytes of IPv4 and UDP headers, which an amplification counts on both sides.
pub(crate) const HEADERS: usize = 28;
/// How many times the bytes of a request its response may have, if the address may be forged
/// (RFC 9175 section 2.4: "anti-amplification").
const FACTOR: usize = 3;

/// Which addresses must show that they receive what is sent to them, before they are sent much.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// All but this machine's own.
    #[default]
    Remote,
    /// All.
    All,
    /// None: the network keeps forged addresses out.
    None,
}

/// What is known about addresses.
#[derive(Debug)]
pub(crate) struct Guard {
    verify: Verify,
    rate: Option<u32>,
    secret: RandomState,
    verified: HashMap<IpAddr, Instant>,
    rates: HashMap<IpAddr, Bucket>,
    pub(crate) refusals: Refusals,
}

/// What a server has turned away, by reason, since it was made.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusals {
    /// Requests answered 4.01 with an Echo option: the address has to show that it is there before
    /// it is sent or kept much (RFC 9175 section 2.4).
    pub challenged: u64,
    /// Requests answered 4.29 (RFC 8516).
    pub too_many_requests: u64,
    /// Requests answered 5.03 because [`ServerConfig::max_working`](super::ServerConfig) handlers
    /// were at work.
    pub overloaded: u64,
    /// Uploads given up for want of room, the one that had not advanced for longest each time.
    pub uploads_evicted: u64,
    /// Registrations of observers that were answered as plain requests for want of room.
    pub observers_refused: u64,
    /// Observers removed because they did not acknowledge a notification.
    pub observers_vanished: u64,
}

/// Requests that an address may still make.
#[derive(Copy, Clone, Debug)]
struct Bucket {
    left: u32,
    since: Instant,
}

impl Guard {
    #[expect(clippy::disallowed_methods, reason = "a secret, which no answer's content depends on")]
    pub(crate) fn new(verify: Verify, rate: Option<u32>) -> Self {
        Self {
            verify,
            rate,
            secret: RandomState::new(),
            verified: HashMap::new(),
            rates: HashMap::new(),
            refusals: Refusals::default(),
        }
    }

    /// Whether the rate of requests is bounded.
    #[inline]
    pub(crate) fn watches_rates(&self) -> bool {
        self.rate.is_some()
    }

    /// Counts a request. The answer if there were too many: 4.29, with Max-Age saying when to come
    /// again (RFC 8516 section 4).
    pub(crate) fn admit(&mut self, now: Instant, from: IpAddr) -> Option<Response> {
        let rate = self.rate?;
        if self.rates.len() >= MAX_ADDRESSES && !self.rates.contains_key(&from) {
            // Forgetting all is kind to everyone for a second; keeping the first would punish late
            // comers.
            self.rates.clear();
        }
        let bucket = self.rates.entry(from).or_insert(Bucket { left: rate, since: now });
        if now.saturating_since(bucket.since) >= Duration::from_secs(1) {
            *bucket = Bucket { left: rate, since: now };
        }
        if bucket.left == 0 {
            self.refusals.too_many_requests += 1;
            return Some(Response::new(Code::TOO_MANY_REQUESTS).max_age(1));
        }
        bucket.left -= 1;
        None
    }

    /// Whether an address has shown that it is there, or need not.
    pub(crate) fn trusts(&self, from: IpAddr) -> bool {
        match self.verify {
            Verify::None => true,
            // A session's handshake has shown it (RFC 6347 section 4.2.1).
            _ if is_stand_in(from) => true,
            Verify::Remote if from.is_loopback() => true,
            Verify::Remote | Verify::All => self.verified.contains_key(&from),
        }
    }

    /// How often so long a message may be sent to an address after a request, and `before`
    /// datagrams of so many bytes together: as often as one likes only if it is trusted.
    #[inline]
    pub(crate) fn allowance(
        &self,
        from: IpAddr,
        request: usize,
        (before, message): (usize, usize),
    ) -> u8 {
        let times = (FACTOR * (request + HEADERS)).saturating_sub(before) / (message + HEADERS);
        if times < usize::from(u8::MAX) && !self.trusts(from) { times as u8 } else { u8::MAX }
    }

    /// Learns from a request's Echo option, if it has one.
    pub(crate) fn learn(&mut self, now: Instant, from: IpAddr, message: &Message<'_>) {
        let Some(opt) = message.option(OptionNumber::ECHO) else { return };
        let seconds = now.as_nanos() / 1_000_000_000;
        let Some((stamp, _)) = opt.value.split_first_chunk::<4>() else { return };
        let stamp = u64::from(u32::from_be_bytes(*stamp));
        let fresh = stamp <= seconds && seconds - stamp <= FRESH;
        if !fresh || self.echo(stamp, from) != opt.value {
            return;
        }
        if self.verified.len() >= MAX_ADDRESSES {
            #[expect(clippy::disallowed_methods, reason = "forgets what is old, in any order")]
            self.verified.retain(|_, at| *at + VERIFIED > now);
            if self.verified.len() >= MAX_ADDRESSES {
                self.verified.clear();
            }
        }
        self.verified.insert(from, now);
    }

    /// The challenge, counted: 4.01 with an Echo option (RFC 9175 section 2.3).
    pub(crate) fn challenge(&mut self, now: Instant, from: IpAddr) -> Response {
        self.refusals.challenged += 1;
        let value = self.echo(now.as_nanos() / 1_000_000_000, from);
        Response::new(Code::UNAUTHORIZED).option(OptionNumber::ECHO, &value)
    }

    /// When, and a keyed hash of when and who.
    fn echo(&self, seconds: u64, from: IpAddr) -> [u8; 12] {
        let stamp = seconds as u32;
        let proof = self.secret.hash_one((stamp, from));
        let mut value = [0; 12];
        value[..4].copy_from_slice(&stamp.to_be_bytes());
        value[4..].copy_from_slice(&proof.to_be_bytes());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_core::wire::{Encoder, MessageId, Token, Type};

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn echoed(guard: &mut Guard, now: Instant, from: IpAddr, value: &[u8]) {
        let mut buf = [0; 64];
        let mut request =
            Encoder::new(&mut buf, Type::Confirmable, Code::GET, MessageId(1), Token::EMPTY)
                .unwrap();
        request.option(OptionNumber::ECHO, value).unwrap();
        guard.learn(now, from, &Message::parse(request.finish()).unwrap());
    }

    #[test]
    fn an_address_that_echoes_is_verified_and_no_other() {
        let mut guard = Guard::new(Verify::All, None);
        let (a, b): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        assert_eq!(guard.allowance(a, 20, (0, 116)), 1, "three times, headers included");
        assert_eq!(guard.allowance(a, 20, (0, 117)), 0);
        assert_eq!(guard.allowance(a, 20, (32, 26)), 2, "three times less what was sent before");
        let challenge = guard.challenge(at(100), a);
        let value = challenge.options().get(OptionNumber::ECHO).unwrap().value.to_vec();
        echoed(&mut guard, at(100), b, &value);
        assert!(!guard.trusts(b), "the value is another address's");
        echoed(&mut guard, at(161), a, &value);
        assert!(!guard.trusts(a), "it is too old");
        echoed(&mut guard, at(160), a, &value);
        assert!(guard.trusts(a));
    }

    #[test]
    fn an_address_that_asks_too_often_is_told_when_to_come_again() {
        let mut guard = Guard::new(Verify::None, Some(2));
        let from: IpAddr = [192, 0, 2, 1].into();
        assert!(guard.admit(at(0), from).is_none());
        assert!(guard.admit(at(0), from).is_none());
        let answer = guard.admit(at(0), from).unwrap();
        assert_eq!(answer.code(), Code::TOO_MANY_REQUESTS);
        assert!(guard.admit(at(1), from).is_none());
    }
}
