//! ETags for bodies that are sent in blocks without one: a hash of the body, computed once for each
//! representation however often it is requested.

use super::message::Response;
use crate::wire::OptionNumber;
use alloc::collections::VecDeque;
use bytes::Bytes;
use core::hash::Hasher;
use siphasher::sip::SipHasher13;

/// The maximum number of bodies whose hashes are kept.
const MAX_KNOWN: usize = 16;
/// The maximum number of bytes of these bodies, which stay in memory with their hashes.
const MAX_BYTES: usize = 16 << 20;
/// The minimum length of a body whose hash is kept: a shorter one is hashed in less than a
/// microsecond.
const MIN_LENGTH: usize = 2048;

/// The most recent bodies and their hashes.
#[derive(Debug, Default)]
pub(super) struct ETags {
    known: VecDeque<(Bytes, [u8; 8])>,
    bytes: usize,
    /// The number of computed hashes.
    hashed: u64,
}

impl ETags {
    /// Adds an ETag to a response that has none, derived from the body, so that a client does not
    /// mix two versions (RFC 7959 section 2.4).
    pub(super) fn with_etag(&mut self, response: Response) -> Response {
        if response.options.get(OptionNumber::ETAG).is_some() {
            return response;
        }
        let etag = self.etag(&response.payload);
        response.etag(&etag)
    }

    fn etag(&mut self, body: &Bytes) -> [u8; 8] {
        // While a body is kept here, its memory is not reused, so its address identifies it.
        let is_it = |known: &Bytes| known.as_ptr() == body.as_ptr() && known.len() == body.len();
        if let Some((_, etag)) = self.known.iter().find(|(known, _)| is_it(known)) {
            return *etag;
        }
        self.hashed += 1;
        let mut hasher = SipHasher13::new();
        hasher.write(body);
        let etag = hasher.finish().to_be_bytes();
        if (MIN_LENGTH..=MAX_BYTES).contains(&body.len()) {
            self.bytes += body.len();
            self.known.push_back((body.clone(), etag));
            while self.known.len() > MAX_KNOWN || self.bytes > MAX_BYTES {
                let Some((gone, _)) = self.known.pop_front() else { break };
                self.bytes -= gone.len();
            }
        }
        etag
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn etag(etags: &mut ETags, body: &Bytes) -> vec::Vec<u8> {
        let response = etags.with_etag(Response::content(body.clone()));
        response.options.get(OptionNumber::ETAG).unwrap().value.to_vec()
    }

    #[test]
    fn a_representation_is_hashed_once_however_often_it_is_asked_for() {
        let mut etags = ETags::default();
        let body = Bytes::from(vec![b'x'; 100_000]);
        let first = etag(&mut etags, &body);
        for _ in 0..100 {
            assert_eq!(etag(&mut etags, &body), first);
        }
        assert_eq!(etags.hashed, 1);
        // A copy has the same ETag, a part has a different one.
        assert_eq!(etag(&mut etags, &Bytes::copy_from_slice(&body)), first);
        assert_ne!(etag(&mut etags, &body.slice(..50_000)), first);
        assert_eq!(etags.hashed, 3);
    }

    #[test]
    fn a_new_body_in_the_place_of_one_that_is_gone_has_its_own_etag() {
        let mut etags = ETags::default();
        let mut seen = alloc::collections::BTreeSet::new();
        for n in 0..200_u32 {
            // Each body is dropped before the next one is created.
            let mut body = vec![b'x'; 4096];
            body[..4].copy_from_slice(&n.to_be_bytes());
            assert!(seen.insert(etag(&mut etags, &Bytes::from(body))), "{n}");
        }
        assert_eq!((etags.known.len(), etags.bytes), (MAX_KNOWN, MAX_KNOWN * 4096));
    }

    #[test]
    fn the_handlers_etag_stays() {
        let mut etags = ETags::default();
        let response = Response::content(vec![0; 5000]).etag(b"mine");
        let response = etags.with_etag(response);
        assert_eq!(response.options.get(OptionNumber::ETAG).unwrap().value, b"mine");
        assert_eq!(etags.hashed, 0);
    }
}
