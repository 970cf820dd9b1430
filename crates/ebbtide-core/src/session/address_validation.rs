//! Address validation, which protects the victims of forged addresses (RFC 9175 section 2.4).
//!
//! Two facts count. A request is *proved* if it carries a fresh value that this server has sent to its address and
//! port: only then may its answers be long. That an address was proved within the hour does not suffice, since a
//! stranger forges exactly such an address; it decides who has precedence where memory and work are scarce.

use super::message::Response;
use super::recency::RecencyMap;
use crate::exchange::echo::{Echo, EchoValue, Name, Values};
use crate::peer::{PeerId, Source};
use crate::time::{Duration, Instant};
use crate::wire::{Code, OptionNumber};
use core::net::IpAddr;
use rand_core::Rng;

/// How long an address stays verified.
const VERIFIED: Duration = Duration::from_secs(3600);
/// Which addresses must be verified before they receive long responses.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// All except this machine's own.
    #[default]
    Remote,
    /// All.
    All,
    /// None: the network keeps forged addresses out.
    None,
}

impl Verify {
    /// Whether an address must be verified.
    pub(super) fn concerns(self, from: Source) -> bool {
        match (self, from) {
            // The handshake of a session has verified its peer.
            (_, Source::Session(_)) | (Self::None, _) => false,
            (Self::Remote, Source::Address(address)) => !address.is_loopback(),
            (Self::All, _) => true,
        }
    }
}

/// The addresses that have echoed a challenge within the last hour.
#[derive(Debug)]
pub struct AddressValidation {
    verify: Verify,
    values: Values,
    /// The instants at which they did.
    verified: RecencyMap<IpAddr, Instant>,
    max_addresses: usize,
    challenged: u64,
    /// When a request was last challenged without being remembered, and how long its copies may
    /// arrive.
    forgot: Option<Instant>,
    exchange_lifetime: Duration,
}

impl AddressValidation {
    /// Creates a table without addresses. `rng` supplies the key of the challenges, so it must be
    /// unpredictable. Beyond `max_addresses`, the address that was verified first has to echo
    /// again. An echoed value must be younger than `exchange_lifetime`, EXCHANGE_LIFETIME (RFC 9175
    /// section 2.3: the server decides what is fresh).
    #[must_use]
    pub fn new(
        verify: Verify,
        max_addresses: usize,
        exchange_lifetime: Duration,
        rng: &mut dyn Rng,
    ) -> Self {
        let key = (rng.next_u64(), rng.next_u64());
        Self {
            verify,
            values: Values::new(key, exchange_lifetime),
            verified: RecencyMap::new(),
            max_addresses,
            challenged: 0,
            forgot: None,
            exchange_lifetime,
        }
    }

    /// Whether an address is verified, or need not be.
    pub fn trusts(&mut self, now: Instant, from: Source) -> bool {
        match from {
            Source::Address(address) if self.verify.concerns(from) => {
                self.expire(now);
                self.verified.get(&address).is_some()
            }
            _ => true,
        }
    }

    /// Whether the value of a request's Echo option proves that its sender receives at this address and port. If so,
    /// the address is verified.
    pub fn learn(&mut self, now: Instant, from: PeerId, echo: &[u8]) -> bool {
        self.read(now, from, echo).is_some_and(|echo| echo.fresh)
    }

    /// Verifies the address if the value is fresh, and returns the meaning of the value; `None` if it
    /// was not made for this address and port.
    pub(super) fn read(&mut self, now: Instant, from: PeerId, value: &[u8]) -> Option<Echo> {
        let echo = self.values.read(now, from, value)?;
        if echo.fresh
            && let Source::Address(from) = from.source()
        {
            self.expire(now);
            if self.verified.len() >= self.max_addresses && self.verified.get(&from).is_none() {
                self.verified.pop_oldest(now, Duration::ZERO);
            }
            self.verified.insert(now, from, now, 0);
        }
        Some(echo)
    }

    /// Returns a challenge and counts it: 4.01 with an Echo option (RFC 9175 section 2.3).
    pub fn challenge(&mut self, now: Instant, from: PeerId) -> Response {
        self.challenge_to(now, from, None)
    }

    /// Returns a challenge for a request that must not be processed twice.
    pub(super) fn challenge_to(
        &mut self,
        now: Instant,
        from: PeerId,
        request: Option<Name>,
    ) -> Response {
        self.challenged += 1;
        let value = self.values.make(now, from, request);
        Response::new(Code::UNAUTHORIZED).option(OptionNumber::ECHO, value.as_slice())
    }

    /// The value for the next request of this address and port, which a response carries (RFC 9175
    /// section 2.3), so that a client that goes on asking is challenged once.
    pub(super) fn next_value(&self, now: Instant, from: PeerId) -> EchoValue {
        self.values.make(now, from, None)
    }

    /// Records that a request was challenged without being remembered.
    pub(super) fn forgets(&mut self, now: Instant) {
        self.forgot = Some(now);
    }

    /// Whether copies of a request that was challenged without being remembered may still arrive.
    pub(super) fn has_forgotten(&self, now: Instant) -> bool {
        self.forgot.is_some_and(|at| now.saturating_since(at) < self.exchange_lifetime)
    }

    /// The number of challenges.
    #[must_use]
    pub fn challenged(&self) -> u64 {
        self.challenged
    }

    /// The verified addresses with the instants of verification, for storage.
    pub fn saved(&self) -> impl Iterator<Item = (IpAddr, Instant)> {
        self.verified.entries().map(|(from, at)| (*from, *at))
    }

    /// Restores an address that was verified before a restart, at an instant of this clock or
    /// before its epoch.
    pub fn restore(&mut self, now: Instant, address: IpAddr, ago: Duration) {
        if ago < VERIFIED && self.verified.len() < self.max_addresses {
            // It remains verified for the rest of an hour at least, and for a whole one at most.
            self.verified.insert(now, address, now, 0);
        }
    }

    /// The number of verified addresses.
    pub fn verified(&mut self, now: Instant) -> usize {
        self.expire(now);
        self.verified.len()
    }

    fn expire(&mut self, now: Instant) {
        while self.verified.pop_oldest(now, VERIFIED).is_some() {}
    }
}
