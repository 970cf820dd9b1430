//! AES-128-CCM (NIST SP 800-38C) for messages of a few blocks, with nonces of 7 to 13 bytes: 12 in
//! DTLS (RFC 6655), 13 in OSCORE.
//!
//! The blocks of a message are encrypted in one call of the block cipher. A message of CoAP has
//! about a dozen blocks, and with wide vector instructions the cipher prepares its round keys anew
//! in each call, which takes longer than a block. Each block of the tag needs the one before, so
//! its chain is as long as the message; a block of the key stream is encrypted beside each of them,
//! and more at a time would not end sooner.
//!
//! Key schedules are made for each message: they would be most of the memory of an idle session.

use aes::Aes128Enc;
use aes::cipher::consts::U16;
use aes::cipher::typenum::Unsigned;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, KeyInit as _,
    ParBlocks,
};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// From this length on the length of the additional data is encoded in another way.
const TOO_MUCH_AAD: usize = 0xff00;

/// The direction of a [`Pass`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Seal,
    Open,
}

/// Encrypts `data` in place and writes the tag, of 8 or 16 bytes. Returns false, having done
/// nothing, if the data or the additional data is too long, or the tag has another length.
#[must_use]
pub fn seal<const NONCE: usize>(
    key: &[u8; 16],
    nonce: &[u8; NONCE],
    aad: &[u8],
    data: &mut [u8],
    tag: &mut [u8],
) -> bool {
    let (tag_length, mut full) = (tag.len(), [0; 16]);
    let pass = Pass { direction: Direction::Seal, nonce, aad, tag_length, data, tag: &mut full };
    if !pass.run(key) {
        return false;
    }
    tag.copy_from_slice(full.get(..tag.len()).unwrap_or_default());
    true
}

/// Decrypts `data` in place and returns true if the tag is correct. Otherwise `data` is wiped.
#[must_use]
pub fn open<const NONCE: usize>(
    key: &[u8; 16],
    nonce: &[u8; NONCE],
    aad: &[u8],
    data: &mut [u8],
    tag: &[u8],
) -> bool {
    let (tag_length, mut full) = (tag.len(), [0; 16]);
    let direction = Direction::Open;
    let pass = Pass { direction, nonce, aad, tag_length, data: &mut *data, tag: &mut full };
    let is_authentic = pass.run(key) && is_tag(&full, tag);
    if !is_authentic {
        data.zeroize();
    }
    is_authentic
}

/// Whether a tag is the beginning of the whole one, or all of it. It takes the same time wherever they differ.
fn is_tag(whole: &[u8; 16], tag: &[u8]) -> bool {
    let [short @ .., _, _, _, _, _, _, _, _] = *whole;
    match tag.try_into() {
        // As a number, since it is the frequent one.
        Ok(tag) => u64::from_ne_bytes(short).ct_eq(&u64::from_ne_bytes(tag)).into(),
        Err(_) => whole.ct_eq(tag).into(),
    }
}

/// One message in one call of the block cipher.
struct Pass<'a, const NONCE: usize> {
    direction: Direction,
    nonce: &'a [u8; NONCE],
    aad: &'a [u8],
    tag_length: usize,
    data: &'a mut [u8],
    /// Receives the whole tag.
    tag: &'a mut [u8; 16],
}

impl<const NONCE: usize> Pass<'_, NONCE> {
    /// The bytes of the counter and of the length (SP 800-38C appendix A: q = 15 - n).
    const COUNTER: usize = {
        assert!(NONCE >= 7 && NONCE <= 13, "SP 800-38C appendix A.1");
        15 - NONCE
    };

    /// Returns false, having done nothing, if a length is not allowed.
    fn run(self, key: &[u8; 16]) -> bool {
        // A tag of less than 8 bytes belongs to none of our protocols; one of 0 would make every message authentic.
        let fits = self.data.len() as u64 >> (8 * Self::COUNTER) == 0
            && u32::try_from(self.data.len()).is_ok()
            && self.aad.len() < TOO_MUCH_AAD
            && matches!(self.tag_length, 8 | 16);
        if fits {
            Aes128Enc::new(key.into()).encrypt_with_backend(self);
        }
        fits
    }

    /// A block of a byte, the nonce, and zeros in the place of a number.
    #[inline(always)]
    fn block_of(&self, flags: u8) -> u128 {
        let mut block = [0; 16];
        let [first, rest @ ..] = &mut block;
        *first = flags;
        put(rest.first_chunk_mut(), *self.nonce);
        u128::from_ne_bytes(block)
    }
}

impl<const NONCE: usize> BlockSizeUser for Pass<'_, NONCE> {
    type BlockSize = U16;
}

impl<const NONCE: usize> BlockCipherEncClosure for Pass<'_, NONCE> {
    // The block cipher's instructions are available in its own function only, so all of this has to
    // become a part of it.
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, cipher: &B) {
        // SP 800-38C appendix A.2.1: flags, nonce, length.
        let has_aad = u8::from(!self.aad.is_empty()) << 6;
        let counter_length = Self::COUNTER as u8 - 1;
        let flags = has_aad | ((self.tag_length as u8 - 2) / 2) << 3 | counter_length;
        let first = self.block_of(flags) | number_of(self.data.len() as u32);
        let zeroth = self.block_of(counter_length);
        let Self { direction, aad, data, tag, .. } = self;
        let counter = |number| zeroth | number_of(number);

        let (mut mac, mask) = encrypt_two(cipher, first, counter(0));
        let mut stream = 0;
        let mut number = 1;
        // Appendix A.2.2: the additional data begins with its length.
        let (head, rest) = aad.split_at(aad.len().min(14));
        if !head.is_empty() {
            let length = u128::from((aad.len() as u16).swap_bytes());
            let block = (little_endian(head) << 16 | length).to_le();
            (mac, stream) = encrypt_two(cipher, mac ^ block, counter(1));
        }
        for chunk in rest.chunks(16) {
            (mac, stream) = encrypt_two(cipher, mac ^ load(chunk), counter(1));
        }
        if aad.is_empty() {
            (_, stream) = encrypt_two(cipher, 0, counter(1));
        }
        let (whole, rest) = data.as_chunks_mut::<16>();
        for block in whole {
            let input = u128::from_ne_bytes(*block);
            let output = input ^ stream;
            *block = output.to_ne_bytes();
            let plain = if direction == Direction::Seal { input } else { output };
            number += 1;
            (mac, stream) = encrypt_two(cipher, mac ^ plain, counter(number));
        }
        if !rest.is_empty() {
            let input = load(rest);
            store(input ^ stream, rest);
            let plain = if direction == Direction::Seal { input } else { load(rest) };
            (mac, _) = encrypt_two(cipher, mac ^ plain, 0);
        }
        *tag = (mac ^ mask).to_ne_bytes();
    }
}

/// A number at the end of a block.
#[inline(always)]
const fn number_of(number: u32) -> u128 {
    (number as u128).to_be()
}

/// A block of at most 16 bytes, followed by zeros.
#[inline(always)]
fn load(bytes: &[u8]) -> u128 {
    little_endian(bytes).to_le()
}

/// Whether two accesses that overlap are better than a loop over at most 15 bytes, which becomes a
/// call of `memcpy`. They need more flash than a microcontroller should spend.
const OVERLAPPING: bool = !cfg!(target_os = "none");

/// At most 16 bytes as a number.
#[inline(always)]
fn little_endian(bytes: &[u8]) -> u128 {
    let bits = 8 * bytes.len();
    if let (Some(first), Some(last), true) = (bytes.first_chunk(), bytes.last_chunk(), OVERLAPPING)
    {
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        return u128::from(first) | u128::from(last) << (bits - 64);
    }
    if let (Some(first), Some(last), true) = (bytes.first_chunk(), bytes.last_chunk(), OVERLAPPING)
    {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u128::from(first) | u128::from(last) << (bits - 32);
    }
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Writes the beginning of a block into at most 16 bytes.
#[inline(always)]
fn store(block: u128, to: &mut [u8]) {
    let (number, bits) = (u128::from_le(block), 8 * to.len());
    if OVERLAPPING && bits >= 64 {
        put(to.first_chunk_mut(), (number as u64).to_le_bytes());
        put(to.last_chunk_mut(), ((number >> (bits - 64)) as u64).to_le_bytes());
    } else if OVERLAPPING && bits >= 32 {
        put(to.first_chunk_mut(), (number as u32).to_le_bytes());
        put(to.last_chunk_mut(), ((number >> (bits - 32)) as u32).to_le_bytes());
    } else {
        let bytes = number.to_le_bytes();
        to.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    }
}

#[inline(always)]
fn put<const N: usize>(place: Option<&mut [u8; N]>, bytes: [u8; N]) {
    if let Some(place) = place {
        *place = bytes;
    }
}

/// Encrypts two blocks that do not depend on each other: a processor with instructions for AES works on both at once,
/// and an implementation in software takes a few blocks with one call.
#[inline(always)]
fn encrypt_two<B: BlockCipherEncBackend<BlockSize = U16>>(
    cipher: &B,
    one: u128,
    two: u128,
) -> (u128, u128) {
    if matches!(B::ParBlocksSize::USIZE, 2..=4) {
        let mut blocks = ParBlocks::<B>::default();
        if let [first, second, ..] = &mut blocks[..] {
            (*first, *second) = (one.to_ne_bytes().into(), two.to_ne_bytes().into());
        }
        cipher.encrypt_par_blocks_inplace(&mut blocks);
        if let [first, second, ..] = &blocks[..] {
            return (u128::from_ne_bytes((*first).into()), u128::from_ne_bytes((*second).into()));
        }
    }
    let (mut one, mut two) = (one.to_ne_bytes().into(), two.to_ne_bytes().into());
    cipher.encrypt_block_inplace(&mut one);
    cipher.encrypt_block_inplace(&mut two);
    (u128::from_ne_bytes(one.into()), u128::from_ne_bytes(two.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::ccm::aead::inout::InOutBuf;
    use ::ccm::aead::{AeadInOut, KeyInit};
    use ::ccm::consts::{U8, U12, U13};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// The ciphertext and the tag, of 8 or of 16 bytes, by the crate `ccm`.
    fn reference<const NONCE: usize>(
        key: &[u8; 16],
        tag: usize,
        nonce: &[u8; NONCE],
        aad: &[u8],
        data: &[u8],
    ) -> (Vec<u8>, Vec<u8>) {
        let cipher = || Aes128Enc::new_from_slice(key).unwrap();
        let mut out = data.to_vec();
        let buffer = InOutBuf::from(&mut out[..]);
        let tag = match (tag, &nonce[..]) {
            (8, nonce @ [_, _, _, _, _, _, _, _, _, _, _, _]) => {
                let ccm = ::ccm::Ccm::<_, U8, U12>::from(cipher());
                let nonce = nonce.try_into().unwrap();
                ccm.encrypt_inout_detached(nonce, aad, buffer).unwrap().to_vec()
            }
            (8, nonce) => {
                let ccm = ::ccm::Ccm::<_, U8, U13>::from(cipher());
                let nonce = nonce.try_into().unwrap();
                ccm.encrypt_inout_detached(nonce, aad, buffer).unwrap().to_vec()
            }
            (_, nonce) => {
                let ccm = ::ccm::Ccm::<_, U16, U12>::from(cipher());
                let nonce = nonce.try_into().unwrap();
                ccm.encrypt_inout_detached(nonce, aad, buffer).unwrap().to_vec()
            }
        };
        (out, tag)
    }

    /// A cipher that takes four blocks at once, as one in software does.
    struct FourAtOnce<'a>(&'a Aes128Enc);

    impl BlockSizeUser for FourAtOnce<'_> {
        type BlockSize = U16;
    }

    impl aes::cipher::ParBlocksSizeUser for FourAtOnce<'_> {
        type ParBlocksSize = aes::cipher::consts::U4;
    }

    impl BlockCipherEncBackend for FourAtOnce<'_> {
        fn encrypt_block(&self, block: aes::cipher::InOut<'_, '_, aes::Block>) {
            self.0.encrypt_block_inout(block);
        }
    }

    /// Whether one message is what the reference makes of it, and opens only as that.
    fn is_right<const NONCE: usize>(
        key: &[u8; 16],
        tag: usize,
        nonce: &[u8; NONCE],
        aad: &[u8],
        data: &[u8],
        flip: prop::sample::Index,
    ) {
        let (expected, expected_tag) = reference(key, tag, nonce, aad, data);
        let (mut sealed, mut made) = (data.to_vec(), alloc::vec![0; tag]);
        assert!(seal(key, nonce, aad, &mut sealed, &mut made));
        assert_eq!((&sealed, &made), (&expected, &expected_tag));
        let (mut four, mut four_tag) = (data.to_vec(), [0; 16]);
        let direction = Direction::Seal;
        let (data_of, tag_of) = (&mut four, &mut four_tag);
        let pass = Pass { direction, nonce, aad, tag_length: tag, data: data_of, tag: tag_of };
        pass.call(&FourAtOnce(&Aes128Enc::new_from_slice(key).unwrap()));
        assert!(four == expected && four_tag[..tag] == expected_tag);
        let mut opened = sealed.clone();
        assert!(open(key, nonce, aad, &mut opened, &made));
        assert_eq!(&opened, &data);
        // One bit of the ciphertext, of the tag or of the additional data is wrong.
        let mut whole = [&sealed[..], &made, aad].concat();
        let bit = flip.index(whole.len() * 8);
        whole[bit / 8] ^= 1 << (bit % 8);
        let (wrong, rest) = whole.split_at_mut(sealed.len());
        let (wrong_tag, wrong_aad) = rest.split_at(tag);
        assert!(!open(key, nonce, wrong_aad, wrong, wrong_tag));
        assert!(wrong.iter().all(|byte| *byte == 0), "nothing of it can be read");
    }

    proptest! {
        #[test]
        fn it_gives_what_another_implementation_gives_and_opens_only_that(
            key in any::<[u8; 16]>(),
            tag in prop::sample::select(&[8_usize, 16][..]),
            nonce in any::<[u8; 13]>(),
            aad in prop::collection::vec(any::<u8>(), 0..70),
            data in prop::collection::vec(any::<u8>(), 0..200),
            flip in any::<prop::sample::Index>(),
        ) {
            let (dtls, _) = nonce.split_last_chunk::<1>().unwrap();
            is_right::<12>(&key, tag, dtls.try_into().unwrap(), &aad, &data, flip);
            is_right::<13>(&key, 8, &nonce, &aad, &data, flip);
        }
    }

    #[test]
    fn long_data_and_additional_data_with_long_connection_ids_are_the_same_too() {
        let (key, nonce) = ([1; 16], [9; 12]);
        for (aad, data) in [(278, 16_384), (23, 16_385), (14, 255), (15, 4096), (30, 4095)] {
            let (aad, data) = (alloc::vec![5; aad], alloc::vec![6; data]);
            let (expected, expected_tag) = reference(&key, 8, &nonce, &aad, &data);
            let (mut sealed, mut made) = (data, [0; 8]);
            assert!(seal(&key, &nonce, &aad, &mut sealed, &mut made));
            assert!(sealed == expected && made[..] == expected_tag);
        }
    }

    #[test]
    fn what_is_too_long_for_the_nonce_and_a_tag_of_another_length_are_refused() {
        let key = [1; 16];
        for length in [0, 1, 4, 7, 9, 15, 17, 32] {
            let mut tag = alloc::vec![0; length];
            assert!(!seal(&key, &[0; 12], b"", &mut [1, 2, 3], &mut tag), "{length}");
            assert!(!open(&key, &[0; 12], b"", &mut [1, 2, 3], &tag), "{length}");
        }
        let aad = alloc::vec![0; TOO_MUCH_AAD];
        assert!(!seal(&key, &[0; 12], &aad, &mut [1], &mut [0; 8]));
        let mut long = alloc::vec![0; 1 << 16];
        assert!(!seal(&key, &[0; 13], b"", &mut long, &mut [0; 8]), "two bytes count to 65,535");
        assert!(seal(&key, &[0; 13], b"", &mut long[1..], &mut [0; 8]));
        assert!(seal(&key, &[0; 12], b"", &mut long, &mut [0; 8]));
    }
}
