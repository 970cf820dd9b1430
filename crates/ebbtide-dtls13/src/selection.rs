//! The selection of `dimpl` from a ClientHello, and its HelloRetryRequest, without one of its engines.
//!
//! A HelloRetryRequest commits a client to DTLS 1.3, so a hello that `dimpl` would refuse must get none. And the engine
//! that serves the client later puts its own into the transcript, so both have the same bytes. A test compares them.

use crate::hello::{self, Hello};
use crate::reader::{
    COOKIE, Extensions, KEY_SHARE, Reader, SIGNATURE_ALGORITHMS, SUPPORTED_GROUPS,
    SUPPORTED_VERSIONS, USE_SRTP,
};

/// The parameters that the server selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    suite: u16,
    /// The group in which the client has to send a key share; `None` if it has sent one that we can use.
    pub(crate) group: Option<u16>,
}

/// The extensions that `dimpl` reads.
const EXTENSIONS: [u16; 6] =
    [SUPPORTED_GROUPS, SIGNATURE_ALGORITHMS, USE_SRTP, SUPPORTED_VERSIONS, COOKIE, KEY_SHARE];

const SUITES: [u16; 3] = [0x1301, 0x1302, 0x1303];
/// X25519, P-256 and P-384, the preferred one first.
const GROUPS: [u16; 3] = [0x001d, 0x0017, 0x0018];
/// And P-521, which it knows and does not use.
const KNOWN_GROUPS: [u16; 4] = [0x001d, 0x0017, 0x0018, 0x0019];
const SIGNATURE_SCHEMES: [u16; 2] = [0x0403, 0x0503];
const SRTP_PROFILES: [u16; 3] = [1, 7, 8];
const VERSIONS: [u16; 3] = [0xfeff, 0xfefd, 0xfefc];

/// The random value that makes a ServerHello a HelloRetryRequest (RFC 8446 section 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
const SERVER_HELLO: u8 = 2;

impl Selection {
    /// `None` if `dimpl` refuses the hello, or has no group in common with it. A cookie of DTLS 1.2, which it refuses as
    /// well, does not count.
    pub(crate) fn of(hello: &Hello<'_>) -> Option<Self> {
        let [before, after] = hello.fields;
        // The session ID ends the first part, and has 32 bytes at most.
        if !before.starts_with(&[0xfe, 0xfd]) || before.len() > 2 + 32 + 1 + 32 {
            return None;
        }
        let mut after = Reader(after);
        let suite = names(after.vector16()?, &SUITES)?.next()?;
        if after.vector8()?.iter().filter(|method| **method == 0).count() != 1 {
            return None;
        }
        let (mut read, mut groups, mut has_share) = ([false; EXTENSIONS.len()], None, false);
        for extension in Extensions(Reader(hello.extensions)) {
            let (kind, content) = extension?;
            let known = EXTENSIONS.iter().position(|known| *known == kind);
            let Some(read) = known.and_then(|known| read.get_mut(known)) else { continue };
            if core::mem::replace(read, true) {
                return None;
            }
            let mut content = Reader(content);
            match kind {
                SUPPORTED_GROUPS => groups = Some(names(content.last_vector16()?, &KNOWN_GROUPS)?),
                SIGNATURE_ALGORITHMS => {
                    names(content.last_vector16()?, &SIGNATURE_SCHEMES).map(drop)?;
                }
                SUPPORTED_VERSIONS => {
                    let list = content.vector8().filter(|_| content.0.is_empty())?;
                    names(list, &VERSIONS).map(drop)?;
                }
                KEY_SHARE => has_share = has_usable_share(content.last_vector16()?)?,
                USE_SRTP => {
                    names(content.vector16()?, &SRTP_PROFILES).map(drop)?;
                    content.vector8().filter(|_| content.0.is_empty())?;
                }
                // A cookie.
                _ => {
                    content.last_vector16().filter(|cookie| !cookie.is_empty())?;
                }
            }
        }
        let offers =
            |group: &u16| groups.clone().is_some_and(|mut named| named.any(|it| it == *group));
        let group = match has_share {
            true => None,
            false => Some(GROUPS.into_iter().find(offers)?),
        };
        Some(Self { suite, group })
    }

    /// The HelloRetryRequest with this cookie (RFC 8446 section 4.1.4, RFC 9147 section 5.1).
    pub(crate) fn hello_retry_request(&self, cookie: &[u8; 32]) -> Vec<u8> {
        let group = self.group.map(u16::to_be_bytes);
        let group = group.as_ref().map_or(&[][..], |group| &group[..]);
        let of_group = if group.is_empty() { &[][..] } else { &[0, KEY_SHARE as u8, 0, 2] };
        let parts: [&[u8]; 5] = [
            &[0, SUPPORTED_VERSIONS as u8, 0, 2, 0xfe, 0xfc],
            of_group,
            group,
            &[0, COOKIE as u8, 0, 34, 0, 32],
            cookie,
        ];
        let extensions: usize = parts.iter().map(|part| part.len()).sum();
        let mut datagram = hello::headers(SERVER_HELLO, 2 + 32 + 1 + 2 + 1 + 2 + extensions);
        datagram.extend_from_slice(&[0xfe, 0xfd]);
        datagram.extend_from_slice(&RETRY);
        // RFC 9147 section 5.3: the session ID is not repeated.
        datagram.push(0);
        datagram.extend_from_slice(&self.suite.to_be_bytes());
        datagram.push(0);
        datagram.extend_from_slice(&(extensions as u16).to_be_bytes());
        parts.iter().for_each(|part| datagram.extend_from_slice(part));
        datagram
    }
}

/// Those members of a list of numbers of two bytes that are known. `None` if `dimpl` refuses the list: it is empty, cut off,
/// or has more of these than there are, since it makes room for so many.
fn names<'a>(list: &'a [u8], known: &'a [u16]) -> Option<impl Iterator<Item = u16> + Clone + 'a> {
    let (numbers, rest) = list.as_chunks::<2>();
    let named = numbers.iter().map(|number| u16::from_be_bytes(*number));
    let named = named.filter(|number| known.contains(number));
    let is_read = !numbers.is_empty() && rest.is_empty() && named.clone().count() <= known.len();
    is_read.then_some(named)
}

/// Whether there is a key share in one of our groups. `None` if `dimpl` refuses the list.
fn has_usable_share(list: &[u8]) -> Option<bool> {
    let (mut shares, mut known, mut usable) = (Reader(list), 0, false);
    while !shares.0.is_empty() {
        let group = shares.u16()?;
        shares.vector16().filter(|share| !share.is_empty())?;
        known += usize::from(KNOWN_GROUPS.contains(&group));
        usable |= GROUPS.contains(&group);
    }
    (known <= KNOWN_GROUPS.len()).then_some(usable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{provider_without_key, with_cookie};
    use dimpl::{Config, Dtls, DtlsCertificate, Output};
    use rand_chacha::ChaCha8Rng;
    use rand_core::{Rng as _, SeedableRng as _};
    use std::sync::Arc;

    const ROUNDS: u32 = 4000;
    const GIVEN: [u8; 32] = [0xc0; 32];

    /// The answer of an engine to a first hello.
    struct Engines {
        config: Arc<Config>,
        now: std::time::Instant,
    }

    impl Engines {
        #[expect(clippy::disallowed_methods, reason = "the standard library has no other instant")]
        fn new() -> Self {
            let config = Config::builder().with_crypto_provider(provider_without_key()).build();
            Self { config: Arc::new(config.unwrap()), now: std::time::Instant::now() }
        }

        fn answer(&self, body: &[u8]) -> Option<Vec<u8>> {
            let none = DtlsCertificate { certificate: Vec::new(), private_key: Vec::new() };
            let mut engine = Dtls::new_13(Arc::clone(&self.config), none, self.now);
            let (record, mut buffer) = (hello::record(body), [0; 512]);
            let handled = with_cookie(GIVEN, || {
                engine.handle_timeout(self.now)?;
                engine.handle_packet(&record)
            });
            handled.ok()?;
            match engine.poll_output(&mut buffer) {
                Output::Packet(answer) => Some(answer.to_vec()),
                _ => None,
            }
        }
    }

    struct Dice(ChaCha8Rng);

    impl Dice {
        fn below(&mut self, end: usize) -> usize {
            self.0.next_u32() as usize % end
        }

        /// Numbers of two bytes out of those that are given.
        fn numbers(&mut self, most: usize, of: &[u16]) -> Vec<u8> {
            let count = if self.below(30) == 0 { 0 } else { 1 + self.below(most) };
            let drawn = (0..count).map(|_| of[self.below(of.len())]);
            let mut list: Vec<u8> = drawn.flat_map(u16::to_be_bytes).collect();
            if self.below(60) == 0 {
                list.push(0);
            }
            list
        }

        fn extension(&mut self, kind: u16) -> (u16, Vec<u8>) {
            const GROUPS: [u16; 6] = [0x1d, 0x17, 0x18, 0x19, 0x1e, 0x11ec];
            const SCHEMES: [u16; 4] = [0x0403, 0x0503, 0x0804, 0x0603];
            let mut content = match kind {
                43 => with_length8(&self.numbers(3, &[0xfefd, 0xfefc, 0xfeff, 0x7f1c])),
                10 => with_length16(&self.numbers(4, &GROUPS)),
                13 => with_length16(&self.numbers(3, &SCHEMES)),
                14 => [with_length16(&self.numbers(3, &[1, 2, 7, 8])), vec![0]].concat(),
                51 => {
                    let shares = (0..self.below(4)).flat_map(|_| {
                        let group = GROUPS[self.below(GROUPS.len())].to_be_bytes();
                        let length = if self.below(20) == 0 { 0 } else { 32 };
                        [&group[..], &with_length16(&vec![9; length])].concat()
                    });
                    with_length16(&shares.collect::<Vec<u8>>())
                }
                _ => vec![0; self.below(300)],
            };
            if self.below(60) == 0 {
                content.push(0);
            }
            (kind, content)
        }

        /// The body of a hello, which a server may refuse.
        fn hello(&mut self) -> Vec<u8> {
            let mut body = if self.below(40) > 0 { vec![0xfe, 0xfd] } else { vec![0xfe, 0xff] };
            body.extend([7; 32]);
            let session = [0, 0, 0, 0, 8, 16, 32, 33][self.below(8)];
            body.extend(with_length8(&vec![1; session]));
            body.push(0);
            body.extend(with_length16(&self.numbers(4, &[0x1301, 0x1302, 0x1303, 0x1304, 0xc0ae])));
            let methods = [&[0][..], &[0], &[0], &[0], &[0], &[1, 0], &[1, 0], &[1], &[0, 0], &[]]
                [self.below(10)];
            body.extend(with_length8(methods));
            let mut extensions = vec![(43, vec![2, 0xfe, 0xfc])];
            for kind in [10, 13, 51, 14, 21, 0, 65281, 43, 10] {
                // The last ones are there for a second time.
                let rarely = if extensions.len() > 6 || kind == 43 { 30 } else { 2 };
                if self.below(rarely) == 0 {
                    extensions.push(self.extension(kind));
                }
            }
            let first = self.below(extensions.len());
            extensions.rotate_left(first);
            let list: Vec<u8> = extensions
                .iter()
                .flat_map(|(kind, content)| {
                    [&kind.to_be_bytes()[..], &with_length16(content)].concat()
                })
                .collect();
            body.extend(with_length16(&list));
            for _ in 0..[0, 0, 0, 1][self.below(4)] {
                let place = self.below(body.len());
                body[place] ^= 1 << self.below(8);
            }
            body
        }
    }

    /// Whether a hello that an engine can read has a group of ours.
    fn has_group(hello: &Hello<'_>) -> bool {
        let ours = |group: u16| GROUPS.contains(&group);
        Extensions(Reader(hello.extensions)).flatten().any(|(kind, content)| {
            let mut list = Reader(Reader(content).vector16().unwrap_or_default());
            match kind {
                SUPPORTED_GROUPS => core::iter::from_fn(|| list.u16()).any(ours),
                KEY_SHARE => core::iter::from_fn(|| list.u16().zip(list.vector16()))
                    .any(|(group, _)| ours(group)),
                _ => false,
            }
        })
    }

    fn with_length8(bytes: &[u8]) -> Vec<u8> {
        [&[bytes.len() as u8], bytes].concat()
    }

    fn with_length16(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
    }

    #[test]
    fn our_answers_have_the_bytes_of_an_engine_and_go_to_those_whom_it_answers() {
        let (engines, mut dice) = (Engines::new(), Dice(ChaCha8Rng::seed_from_u64(30)));
        let (mut with_share, mut without, mut refused) = (0, 0, 0);
        for round in 0..ROUNDS {
            let body = dice.hello();
            let record = hello::record(&body);
            let Some(hello) = Hello::parse(&record) else { continue };
            if hello.cookie.is_some() || hello.has_cookie_of_1_2 {
                continue;
            }
            let answer = engines.answer(&body);
            let Some(selection) = Selection::of(&hello) else {
                // An engine answers those as well with which it has no group in common, and refuses the second hello.
                assert!(answer.is_none() || !has_group(&hello), "{round}: {body:x?}");
                refused += u32::from(answer.is_none());
                continue;
            };
            assert_eq!(Some(selection.hello_retry_request(&GIVEN)), answer, "{round}: {body:x?}");
            match selection.group {
                None => with_share += 1,
                Some(_) => without += 1,
            }
        }
        assert!(
            with_share > 200 && without > 200 && refused > 200,
            "{with_share} {without} {refused}"
        );
    }
}
