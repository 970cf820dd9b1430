//! The payload of 4.08 that names missing blocks (RFC 9177 section 5).

use ebbtide_core::wire::{Block, MissingBlocks, MissingError, OptionNumber};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

fn read(payload: &[u8]) -> Result<Vec<u32>, MissingError> {
    Ok(MissingBlocks::parse(payload)?.iter().collect())
}

#[test]
fn numbers_are_a_sequence_of_cbor_integers() {
    let numbers = [0, 23, 24, 255, 256, 65_535, 65_536, Block::MAX_NUM];
    let mut buf = [0; 64];
    let len = MissingBlocks::encode(numbers, &mut buf);
    let expected = [
        0x00, 0x17, 0x18, 0x18, 0x18, 0xff, 0x19, 0x01, 0x00, 0x19, 0xff, 0xff, 0x1a, 0x00, 0x01,
        0x00, 0x00, 0x1a, 0x00, 0x0f, 0xff, 0xff,
    ];
    assert_eq!(buf[..len], expected);
    assert_eq!(read(&expected).unwrap(), numbers);
}

#[test]
fn a_longer_form_than_the_shortest_is_read() {
    assert_eq!(read(&[0x18, 0x01, 0x1b, 0, 0, 0, 0, 0, 0, 0, 2]).unwrap(), [1, 2]);
}

#[test]
fn block_numbers_that_do_not_ascend_are_refused() {
    for (payload, error) in [
        (&[][..], MissingError::Empty),
        (&[0x01, 0x01], MissingError::Order),
        (&[0x02, 0x01], MissingError::Order),
        // -1, a string, an array, an indefinite length, a reserved length.
        (&[0x20], MissingError::NotUnsigned),
        (&[0x41, 0x01], MissingError::NotUnsigned),
        (&[0x81, 0x01], MissingError::NotUnsigned),
        (&[0x1f], MissingError::NotUnsigned),
        (&[0x1c], MissingError::NotUnsigned),
        (&[0x01, 0x18], MissingError::Truncated),
        (&[0x1a, 0x00, 0x01], MissingError::Truncated),
        (&[0x1a, 0x00, 0x10, 0x00, 0x00], MissingError::TooLarge),
        (&[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], MissingError::TooLarge),
    ] {
        assert_eq!(read(payload), Err(error), "{payload:?}");
    }
}

#[test]
fn numbers_that_do_not_fit_are_left_for_another_message() {
    let mut buf = [0; 4];
    assert_eq!(MissingBlocks::encode([1, 300, 301], &mut buf), 4);
    assert_eq!(read(&buf).unwrap(), [1, 300]);
    assert_eq!(MissingBlocks::encode([70_000], &mut buf), 0);
}

#[test]
fn the_options_are_critical_and_unsafe_to_forward_and_one_is_repeatable() {
    for number in [OptionNumber::Q_BLOCK1, OptionNumber::Q_BLOCK2] {
        assert!(number.is_critical() && number.is_unsafe_to_forward(), "{number}");
        assert_eq!(number.length_bounds(), Some((0, 3)), "{number}");
    }
    assert_eq!((OptionNumber::Q_BLOCK1.0, OptionNumber::Q_BLOCK2.0), (19, 31));
    assert!(OptionNumber::Q_BLOCK2.is_repeatable() && !OptionNumber::Q_BLOCK1.is_repeatable());
}

proptest! {
    #[test]
    fn a_written_message_is_read_back(numbers in btree_set(0..=Block::MAX_NUM, 1..100)) {
        let mut buf = vec![0; numbers.len() * MissingBlocks::MAX_NUMBER_LEN];
        let len = MissingBlocks::encode(numbers.iter().copied(), &mut buf);
        prop_assert!(read(&buf[..len]).unwrap().into_iter().eq(numbers));
    }

    #[test]
    fn any_bytes_are_refused_or_ascend(payload in vec(prop_oneof![0..=0x1b_u8, any::<u8>()], 0..40)) {
        if let Ok(numbers) = read(&payload) {
            prop_assert!(!numbers.is_empty() && numbers.is_sorted_by(|a, b| a < b));
            prop_assert!(numbers.iter().all(|&number| number <= Block::MAX_NUM));
            prop_assert!(numbers.len() <= payload.len());
        }
    }
}
