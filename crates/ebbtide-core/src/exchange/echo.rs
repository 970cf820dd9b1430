//! The values of Echo options (RFC 9175 section 2). The server stores nothing about a challenge,
//! since the value contains all the facts.
//!
//! A value contains the time, the address and the port for which it was made, and the request that it
//! answers if that matters. A non-idempotent request consists of two messages once it is challenged: the
//! one that was challenged and the one that echoes. Only one of them may be processed, so the value
//! names the first.

use crate::time::{Duration, Instant};
use crate::wire::MessageId;
use core::hash::{Hash, Hasher};
use siphasher::sip::SipHasher24;

/// The maximum length of a value in bytes: a time, the name of a request, and a keyed hash (RFC
/// 9175 section 2.1 allows 40).
const MAX_LEN: usize = STAMP + NAME + HASH;
const STAMP: usize = 4;
const NAME: usize = 9;
const HASH: usize = 8;

/// The fate of a non-idempotent request that was answered with a challenge.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenged {
    /// It was neither processed nor remembered: the message with this ID. Its later copies look
    /// new.
    Forgotten(MessageId),
    /// It was processed, and its answer is withheld under this number.
    Answered(u32),
}

/// A request that is answered with a challenge.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) what: Challenged,
    /// A hash of the request: a client may include a value in other requests as well (section 2.3).
    pub(crate) fingerprint: u32,
}

/// The meaning of a value that this server made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Echo {
    /// Whether it is recent enough to prove that the client receives at its address and port.
    pub(crate) fresh: bool,
    name: Option<Name>,
}

impl Echo {
    /// The fate of the request with this fingerprint, if the value was sent in answer to it.
    pub(crate) fn answers(&self, fingerprint: impl FnOnce() -> u32) -> Option<Challenged> {
        let name = self.name?;
        (name.fingerprint == fingerprint()).then_some(name.what)
    }
}

/// The bytes of a value.
#[derive(Copy, Clone, Debug)]
pub(crate) struct EchoValue {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl EchoValue {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// Creates and reads values.
#[derive(Debug)]
pub(crate) struct Values {
    key: (u64, u64),
    /// How long a value is fresh.
    fresh: Duration,
}

impl Values {
    /// Creates a source of values. The key must be unpredictable. A value is fresh for less than
    /// EXCHANGE_LIFETIME (RFC 7252 section 4.8.2), for as long as the endpoint remembers a copy
    /// that was processed after the challenge.
    pub(crate) const fn new(key: (u64, u64), fresh: Duration) -> Self {
        Self { key, fresh }
    }

    pub(crate) fn make(&self, now: Instant, from: impl Hash, name: Option<Name>) -> EchoValue {
        let stamp = seconds(now) as u32;
        let mut value = EchoValue { bytes: [0; MAX_LEN], len: 0 };
        value.push(&stamp.to_be_bytes());
        if let Some(Name { what, fingerprint }) = name {
            let (kind, number) = match what {
                Challenged::Forgotten(id) => (0, u32::from(id.0)),
                Challenged::Answered(number) => (1, number),
            };
            value.push(&[kind]);
            value.push(&number.to_be_bytes());
            value.push(&fingerprint.to_be_bytes());
        }
        let hash = self.hash(from, value.as_slice());
        value.push(&hash);
        value
    }

    /// The meaning of a value; `None` if this server did not make it for this address and port.
    pub(crate) fn read(&self, now: Instant, from: impl Hash, value: &[u8]) -> Option<Echo> {
        let (said, hash) = value.split_last_chunk::<HASH>()?;
        if self.hash(from, said) != *hash {
            return None;
        }
        let (stamp, name) = said.split_first_chunk::<STAMP>()?;
        let age = seconds(now).checked_sub(u32::from_be_bytes(*stamp).into());
        // Times are whole seconds, so a value may look one second younger than it is.
        let fresh = age.is_some_and(|age| age < self.fresh.as_secs());
        let name = match *name {
            [kind, a, b, c, d, ref fingerprint @ ..] => {
                let number = u32::from_be_bytes([a, b, c, d]);
                let what = match kind {
                    0 => Challenged::Forgotten(MessageId(number as u16)),
                    _ => Challenged::Answered(number),
                };
                let fingerprint = u32::from_be_bytes(fingerprint.try_into().ok()?);
                Some(Name { what, fingerprint })
            }
            _ => None,
        };
        Some(Echo { fresh, name })
    }

    fn hash(&self, from: impl Hash, said: &[u8]) -> [u8; HASH] {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        from.hash(&mut hasher);
        hasher.write(said);
        hasher.finish().to_be_bytes()
    }
}

fn seconds(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::PeerId;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_value_says_what_it_was_made_of_to_nobody_but_its_address_and_port() {
        let values = Values::new((1, 2), Duration::from_secs(247));
        let [here, there, elsewhere] = ["192.0.2.1:7", "192.0.2.2:7", "192.0.2.1:8"]
            .map(|at| PeerId::Address(at.parse().unwrap()));
        let forgotten = Name { what: Challenged::Forgotten(MessageId(0xfffe)), fingerprint: 7 };
        let answered = Name { what: Challenged::Answered(u32::MAX), fingerprint: 0 };
        for name in [None, Some(forgotten), Some(answered)] {
            let value = values.make(at(100), here, name);
            assert_eq!(
                values.read(at(346), here, value.as_slice()),
                Some(Echo { fresh: true, name })
            );
            assert_eq!(
                values.read(at(347), here, value.as_slice()),
                Some(Echo { fresh: false, name })
            );
            assert!(!values.read(at(99), here, value.as_slice()).unwrap().fresh, "of the future");
            assert_eq!(values.read(at(100), there, value.as_slice()), None);
            assert_eq!(values.read(at(100), elsewhere, value.as_slice()), None, "of another port");
            for at_bit in 0..8 * value.len {
                let mut forged = value;
                forged.bytes[at_bit / 8] ^= 1 << (at_bit % 8);
                assert_eq!(values.read(at(100), here, forged.as_slice()), None);
            }
        }
        for length in 0..MAX_LEN {
            assert_eq!(values.read(at(0), here, &[0; MAX_LEN][..length]), None);
        }
        let echo = values.make(at(0), here, Some(forgotten));
        let echo = values.read(at(0), here, echo.as_slice()).unwrap();
        assert_eq!(echo.answers(|| 7), Some(forgotten.what));
        assert_eq!(echo.answers(|| 8), None, "of another request");
    }
}
