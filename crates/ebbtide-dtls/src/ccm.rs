//! AES-128-CCM (NIST SP 800-38C) with nonces of 12 bytes, as RFC 6655 uses it.
//!
//! The blocks of a record are encrypted in one call of the block cipher. A record of CoAP has about a dozen blocks, and with
//! wide vector instructions the cipher prepares its round keys anew in each call, which takes longer than a block.

use aes::Aes128Enc;
use aes::cipher::consts::U16;
use aes::cipher::typenum::Unsigned;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, ParBlocks,
};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// The bytes of the counter and of the length (SP 800-38C appendix A: q = 15 - n).
const COUNTER: usize = 3;
/// The first length that does not fit in these bytes.
const TOO_LONG: usize = 1 << (8 * COUNTER);
/// From this length on the length of the additional data is encoded in another way.
const TOO_MUCH_AAD: usize = 0xff00;

/// The direction of a [`Pass`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Seal,
    Open,
}

/// Encrypts `data` in place and writes the tag, of 8 or 16 bytes. Returns false, having done nothing, if the data or
/// the additional data is too long.
pub(crate) fn seal(
    cipher: &Aes128Enc,
    nonce: &[u8; 12],
    aad: &[u8],
    data: &mut [u8],
    tag: &mut [u8],
) -> bool {
    let (tag_length, mut full) = (tag.len(), [0; 16]);
    let pass = Pass { direction: Direction::Seal, nonce, aad, tag_length, data, tag: &mut full };
    if !pass.run(cipher) {
        return false;
    }
    tag.copy_from_slice(full.get(..tag.len()).unwrap_or_default());
    true
}

/// Decrypts `data` in place and returns true if the tag is correct. Otherwise `data` is wiped.
pub(crate) fn open(
    cipher: &Aes128Enc,
    nonce: &[u8; 12],
    aad: &[u8],
    data: &mut [u8],
    tag: &[u8],
) -> bool {
    let (tag_length, mut full) = (tag.len(), [0; 16]);
    let direction = Direction::Open;
    let pass = Pass { direction, nonce, aad, tag_length, data: &mut *data, tag: &mut full };
    let is_authentic =
        pass.run(cipher) && full.get(..tag_length).is_some_and(|full| full.ct_eq(tag).into());
    if !is_authentic {
        data.zeroize();
    }
    is_authentic
}

/// One record in one call of the block cipher.
struct Pass<'a> {
    direction: Direction,
    nonce: &'a [u8; 12],
    aad: &'a [u8],
    tag_length: usize,
    data: &'a mut [u8],
    /// Receives the whole tag.
    tag: &'a mut [u8; 16],
}

impl Pass<'_> {
    /// Returns false, having done nothing, if a length is not allowed.
    fn run(self, cipher: &Aes128Enc) -> bool {
        // A tag of less than 8 bytes belongs to none of our suites; one of 0 would make every record authentic.
        let fits = self.data.len() < TOO_LONG
            && self.aad.len() < TOO_MUCH_AAD
            && matches!(self.tag_length, 8 | 16);
        if fits {
            cipher.encrypt_with_backend(self);
        }
        fits
    }
}

impl BlockSizeUser for Pass<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Pass<'_> {
    // The block cipher's instructions are available in its own function only, so all of this has to become a part of it.
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, cipher: &B) {
        let Self { direction, nonce, aad, tag_length, data, tag } = self;
        // SP 800-38C appendix A.2.1: flags, nonce, length.
        let has_aad = u8::from(!aad.is_empty()) << 6;
        let flags = has_aad | ((tag_length as u8 - 2) / 2) << 3 | (COUNTER as u8 - 1);
        let first = block_of(flags, nonce) | number_of(data.len() as u32);
        let zeroth = block_of(COUNTER as u8 - 1, nonce);
        let counter = |number| zeroth | number_of(number);

        let (mut mac, mask) = encrypt_two(cipher, first, counter(0));
        let mut stream = 0;
        let mut number = 1;
        // Appendix A.2.2: the additional data begins with its length.
        let (head, rest) = aad.split_at(aad.len().min(14));
        if !head.is_empty() {
            let mut block = [0; 16];
            let (length, room) = block.split_at_mut(2);
            length.copy_from_slice(&(aad.len() as u16).to_be_bytes());
            fill(room, head);
            (mac, stream) = encrypt_two(cipher, mac ^ u128::from_ne_bytes(block), counter(1));
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
            let output = (input ^ stream).to_ne_bytes();
            rest.copy_from_slice(output.get(..rest.len()).unwrap_or_default());
            let plain = if direction == Direction::Seal { input } else { load(rest) };
            (mac, _) = encrypt_two(cipher, mac ^ plain, 0);
        }
        *tag = (mac ^ mask).to_ne_bytes();
    }
}

/// A block of a byte, the nonce and three zeros.
#[inline(always)]
const fn block_of(flags: u8, nonce: &[u8; 12]) -> u128 {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *nonce;
    u128::from_ne_bytes([flags, a, b, c, d, e, f, g, h, i, j, k, l, 0, 0, 0])
}

/// A number of at most three bytes at the end of a block.
#[inline(always)]
const fn number_of(number: u32) -> u128 {
    (number as u128).to_be()
}

/// A block of at most 16 bytes, followed by zeros.
#[inline(always)]
fn load(bytes: &[u8]) -> u128 {
    if let Ok(whole) = bytes.try_into() {
        return u128::from_ne_bytes(whole);
    }
    let mut block = [0; 16];
    fill(&mut block, bytes);
    u128::from_ne_bytes(block)
}

/// Copies `from` to the beginning of `to`, which is longer.
#[inline(always)]
fn fill(to: &mut [u8], from: &[u8]) {
    if let Some(to) = to.get_mut(..from.len()) {
        to.copy_from_slice(from);
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
    use ::ccm::consts::{U8, U12};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// The ciphertext and the tag, of 8 or of 16 bytes, by the crate `ccm`.
    fn reference(
        [key, tag]: [usize; 2],
        nonce: &[u8; 12],
        aad: &[u8],
        data: &[u8],
    ) -> (Vec<u8>, Vec<u8>) {
        let cipher = Aes128Enc::new_from_slice(&[key as u8; 16]).unwrap();
        let mut out = data.to_vec();
        let buffer = InOutBuf::from(&mut out[..]);
        let tag = if tag == 8 {
            let ccm = ::ccm::Ccm::<_, U8, U12>::from(cipher);
            ccm.encrypt_inout_detached(nonce.into(), aad, buffer).unwrap().to_vec()
        } else {
            let ccm = ::ccm::Ccm::<_, U16, U12>::from(cipher);
            ccm.encrypt_inout_detached(nonce.into(), aad, buffer).unwrap().to_vec()
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

    proptest! {
        #[test]
        fn it_gives_what_another_implementation_gives_and_opens_only_that(
            key in 0_usize..256,
            tag in prop::sample::select(&[8_usize, 16][..]),
            nonce in any::<[u8; 12]>(),
            aad in prop::collection::vec(any::<u8>(), 0..70),
            data in prop::collection::vec(any::<u8>(), 0..200),
            flip in any::<prop::sample::Index>(),
        ) {
            let (expected, expected_tag) = reference([key, tag], &nonce, &aad, &data);
            let cipher = Aes128Enc::new_from_slice(&[key as u8; 16]).unwrap();
            let (mut sealed, mut made) = (data.clone(), alloc::vec![0; tag]);
            prop_assert!(seal(&cipher, &nonce, &aad, &mut sealed, &mut made));
            prop_assert_eq!(&sealed, &expected);
            prop_assert_eq!(&made, &expected_tag);
            let (mut four, mut four_tag) = (data.clone(), [0; 16]);
            let (nonce_of, direction) = (&nonce, Direction::Seal);
            let pass = Pass { direction, nonce: nonce_of, aad: &aad, tag_length: tag, data: &mut four, tag: &mut four_tag };
            pass.call(&FourAtOnce(&cipher));
            prop_assert!(four == expected && four_tag[..tag] == expected_tag);
            let mut opened = sealed.clone();
            prop_assert!(open(&cipher, &nonce, &aad, &mut opened, &made));
            prop_assert_eq!(&opened, &data);
            // One bit of the ciphertext, of the tag or of the additional data is wrong.
            let mut whole = [&sealed[..], &made, &aad].concat();
            let bit = flip.index(whole.len() * 8);
            whole[bit / 8] ^= 1 << (bit % 8);
            let (wrong, rest) = whole.split_at_mut(sealed.len());
            let (wrong_tag, wrong_aad) = rest.split_at(tag);
            prop_assert!(!open(&cipher, &nonce, wrong_aad, wrong, wrong_tag));
            prop_assert!(wrong.iter().all(|byte| *byte == 0), "nothing of it can be read");
        }
    }

    #[test]
    fn long_data_and_additional_data_with_long_connection_ids_are_the_same_too() {
        let nonce = [9; 12];
        for (aad, data) in [(278, 16_384), (23, 16_385), (14, 255), (15, 4096), (30, 4095)] {
            let (aad, data) = (alloc::vec![5; aad], alloc::vec![6; data]);
            let (expected, expected_tag) = reference([1, 8], &nonce, &aad, &data);
            let cipher = Aes128Enc::new_from_slice(&[1; 16]).unwrap();
            let (mut sealed, mut made) = (data, [0; 8]);
            assert!(seal(&cipher, &nonce, &aad, &mut sealed, &mut made));
            assert!(sealed == expected && made[..] == expected_tag);
        }
    }

    #[test]
    fn a_tag_of_another_length_and_too_much_additional_data_are_refused() {
        let cipher = Aes128Enc::new_from_slice(&[1; 16]).unwrap();
        for length in [0, 1, 4, 7, 9, 15, 17, 32] {
            let mut tag = alloc::vec![0; length];
            assert!(!seal(&cipher, &[0; 12], b"", &mut [1, 2, 3], &mut tag), "{length}");
            assert!(!open(&cipher, &[0; 12], b"", &mut [1, 2, 3], &tag), "{length}");
        }
        let aad = alloc::vec![0; TOO_MUCH_AAD];
        assert!(!seal(&cipher, &[0; 12], &aad, &mut [1], &mut [0; 8]));
    }
}
