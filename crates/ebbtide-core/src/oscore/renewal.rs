//! New keys from a secret that was used before (RFC 8613 appendix B.2): both peers draw a part of
//! an ID Context of their own.
//!
//! The client sends a request under `ID1`, which the server answers under `R2 | ID1` without
//! processing it. The client's requests under `R2 | R3` are fresh then. Each value is sent as a
//! byte string of CBOR.

use super::short::{ContextId, MAX_CONTEXT_ID};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The length of what a client draws, `ID1` and `R3`, in bytes.
pub const DRAWN: usize = 8;
/// The length of what our server answers, `R2`, in bytes.
pub const ANSWERED: usize = 16;

/// Encodes a part of an ID Context as it is sent; `None` if it is too long.
#[must_use]
pub fn encode_part(part: &[u8]) -> Option<ContextId> {
    let mut bytes = [0; MAX_CONTEXT_ID];
    let head = match part.len() {
        len @ 0..24 => &[0x40 | len as u8][..],
        len => &[0x58, u8::try_from(len).ok()?],
    };
    bytes.get_mut(..head.len())?.copy_from_slice(head);
    bytes.get_mut(head.len()..head.len() + part.len())?.copy_from_slice(part);
    ContextId::new(bytes.get(..head.len() + part.len())?)
}

/// Decodes what [`encode_part`] has encoded.
#[must_use]
pub fn decode_part(sent: &[u8]) -> Option<&[u8]> {
    let (head, rest) = sent.split_first()?;
    let (len, part) = match head {
        0x40..=0x57 => (usize::from(head & 0x1f), rest),
        0x58 => rest.split_first().map(|(len, part)| (usize::from(*len), part))?,
        _ => return None,
    };
    (part.len() == len).then_some(part)
}

/// The parts of two peers, one after the other; `None` if they are too long.
#[must_use]
pub fn join(first: &[u8], second: &[u8]) -> Option<ContextId> {
    let mut bytes = [0; MAX_CONTEXT_ID];
    bytes.get_mut(..first.len())?.copy_from_slice(first);
    bytes.get_mut(first.len()..first.len() + second.len())?.copy_from_slice(second);
    ContextId::new(bytes.get(..first.len() + second.len())?)
}

/// The key with which a server recognises its own answers, so that it keeps nothing for a client
/// that only began. It must be drawn anew at each start.
pub struct AnswerKey(Zeroizing<[u8; 16]>);

/// The purpose of an answer.
#[derive(Copy, Clone, Debug)]
pub struct Renewed<'a> {
    /// The client's ID.
    pub kid: &'a [u8],
    /// How often the client has renewed the keys since the server's start. An answer holds for one
    /// of these times, so that a captured request under it is never new again.
    pub count: u32,
}

impl AnswerKey {
    /// The key of these random bytes.
    #[must_use]
    pub fn new(drawn: [u8; 16]) -> Self {
        Self(Zeroizing::new(drawn))
    }

    /// The answer `R2` to a client's `ID1`. It is the same for a copy.
    #[must_use]
    pub fn answer(&self, to: &Renewed<'_>, id1: &[u8]) -> [u8; ANSWERED] {
        let mut answer = [0; ANSWERED];
        let (drawn, proof) = answer.split_at_mut(DRAWN);
        self.derive(b"S2", to, id1, drawn);
        self.derive(b"R2", to, drawn, proof);
        answer
    }

    /// The answer with which an ID Context begins, if it is ours and holds.
    #[must_use]
    pub fn recognise<'i>(&self, of: &Renewed<'_>, id_context: &'i [u8]) -> Option<&'i [u8]> {
        let (answer, own) = id_context.split_at_checked(ANSWERED)?;
        let (drawn, proof) = answer.split_at_checked(DRAWN)?;
        let mut expected = [0; ANSWERED - DRAWN];
        self.derive(b"R2", of, drawn, &mut expected);
        // What it protects is the work of a derivation; the keys are authenticated by the message.
        (!own.is_empty() && expected == proof).then_some(answer)
    }

    fn derive(&self, label: &[u8], of: &Renewed<'_>, data: &[u8], out: &mut [u8]) {
        let hkdf = Hkdf::<Sha256>::new(None, &*self.0);
        let count = of.count.to_be_bytes();
        // HKDF gives up to 8,160 bytes, so this does not fail.
        let _ = hkdf.expand_multi_info(&[label, &count, &[of.kid.len() as u8], of.kid, data], out);
    }
}

/// Shows no key.
impl core::fmt::Debug for AnswerKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AnswerKey").finish_non_exhaustive()
    }
}
