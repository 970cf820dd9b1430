//! Options: their format (RFC 7252 section 3.1), their values (3.2), and which of them a message
//! may have (5.4).

use ebbtide_core::wire::{
    Body, EncodeError, MAX_OPTION_LEN, Message, Opt, OptionNumber, encode_option, encode_uint,
};

/// A CON GET with these bytes after the header.
fn get(options: &[u8]) -> Vec<u8> {
    [&[0x40, 0x01, 0x12, 0x34], options].concat()
}

/// What [`encode_option`] writes.
fn encoded(previous: u16, number: u16, len: usize) -> Result<Vec<u8>, EncodeError> {
    let mut buf = vec![0xaa; len + 5];
    let value = vec![0x55; len];
    let written = encode_option(&mut buf, OptionNumber(previous), OptionNumber(number), &value)?;
    buf.truncate(written);
    Ok(buf)
}

#[test]
fn a_delta_takes_the_shortest_of_three_forms() {
    let cases: [(u16, &[u8]); 10] = [
        (0, &[0x00]),
        (1, &[0x10]),
        (12, &[0xc0]),
        (13, &[0xd0, 0]),
        (14, &[0xd0, 1]),
        (268, &[0xd0, 255]),
        (269, &[0xe0, 0, 0]),
        (270, &[0xe0, 0, 1]),
        (525, &[0xe0, 1, 0]),
        (65535, &[0xe0, 0xfe, 0xf2]),
    ];
    for (delta, bytes) in cases {
        assert_eq!(encoded(0, delta, 0).unwrap(), bytes, "{delta}");
        let datagram = get(bytes);
        let message = Message::parse(&datagram).unwrap();
        let options: Vec<_> = message.options().collect();
        assert_eq!(options, [Opt { number: OptionNumber(delta), value: &[] }]);
    }
}

#[test]
fn a_length_takes_the_shortest_of_three_forms() {
    let cases: [(usize, &[u8]); 9] = [
        (0, &[0x10]),
        (1, &[0x11]),
        (12, &[0x1c]),
        (13, &[0x1d, 0]),
        (14, &[0x1d, 1]),
        (268, &[0x1d, 255]),
        (269, &[0x1e, 0, 0]),
        (270, &[0x1e, 0, 1]),
        (65535 + 269, &[0x1e, 255, 255]),
    ];
    for (len, header) in cases {
        let bytes = encoded(0, 1, len).unwrap();
        assert_eq!(&bytes[..header.len()], header, "{len}");
        assert_eq!(bytes[header.len()..], vec![0x55; len], "{len}");
        let datagram = get(&bytes);
        let message = Message::parse(&datagram).unwrap();
        let options: Vec<_> = message.options().collect();
        assert_eq!(options, [Opt { number: OptionNumber(1), value: &vec![0x55; len] }]);
    }
}

#[test]
fn both_may_be_extended_the_delta_first() {
    assert_eq!(encoded(0, 13, 13).unwrap()[..3], [0xdd, 0, 0]);
    assert_eq!(encoded(0, 14, 269).unwrap()[..4], [0xde, 1, 0, 0]);
    assert_eq!(encoded(0, 300, 15).unwrap()[..4], [0xed, 0, 31, 2]);
    assert_eq!(encoded(1000, 1300, 300).unwrap()[..5], [0xee, 0, 31, 0, 31]);
}

#[test]
fn a_value_of_more_than_65804_bytes_cannot_be_written() {
    assert_eq!(MAX_OPTION_LEN, 65804);
    let number = OptionNumber(1);
    let error = encoded(0, 1, MAX_OPTION_LEN + 1);
    assert_eq!(error, Err(EncodeError::OptionTooLong { number, len: 65805 }));
}

#[test]
fn an_option_cannot_come_before_a_smaller_one() {
    let (previous, number) = (OptionNumber(11), OptionNumber(3));
    assert_eq!(encoded(11, 3, 0), Err(EncodeError::OptionOrder { previous, number }));
}

#[test]
fn an_option_fits_exactly_or_not_at_all() {
    for len in [0, 1, 12, 13, 268, 269] {
        for delta in [1, 13, 269] {
            let whole = encoded(0, delta, len).unwrap();
            let value = vec![0x55; len];
            for size in 0..=whole.len() {
                let mut buf = vec![0; size];
                let result = encode_option(&mut buf, OptionNumber(0), OptionNumber(delta), &value);
                if size == whole.len() {
                    assert_eq!(result, Ok(size));
                } else {
                    assert_eq!(result, Err(EncodeError::BufferTooSmall));
                }
            }
        }
    }
}

#[test]
fn an_integer_takes_as_few_bytes_as_possible() {
    let cases: [(u32, &[u8]); 8] = [
        (0, &[]),
        (1, &[1]),
        (255, &[255]),
        (256, &[1, 0]),
        (65535, &[255, 255]),
        (65536, &[1, 0, 0]),
        (0x0100_0000, &[1, 0, 0, 0]),
        (u32::MAX, &[255; 4]),
    ];
    for (value, bytes) in cases {
        assert_eq!(encode_uint(value, &mut [0xaa; 4]), bytes);
        let opt = Opt { number: OptionNumber::MAX_AGE, value: bytes };
        assert_eq!(opt.as_uint(), Some(value));
    }
}

#[test]
fn an_integer_may_have_leading_zeros_but_not_five_bytes() {
    let uint = |value| Opt { number: OptionNumber::MAX_AGE, value }.as_uint();
    assert_eq!(uint(&[0, 0, 0, 7]), Some(7));
    assert_eq!(uint(&[0, 7]), Some(7));
    assert_eq!(uint(&[0, 0, 0, 0, 7]), None);
}

#[test]
fn the_number_says_how_to_treat_an_unknown_option() {
    // RFC 7252 table 4: C, U, N.
    let table = [
        (OptionNumber::IF_MATCH, true, false, false),
        (OptionNumber::URI_HOST, true, true, false),
        (OptionNumber::ETAG, false, false, false),
        (OptionNumber::IF_NONE_MATCH, true, false, false),
        (OptionNumber::URI_PORT, true, true, false),
        (OptionNumber::LOCATION_PATH, false, false, false),
        (OptionNumber::URI_PATH, true, true, false),
        (OptionNumber::CONTENT_FORMAT, false, false, false),
        (OptionNumber::MAX_AGE, false, true, false),
        (OptionNumber::URI_QUERY, true, true, false),
        (OptionNumber::ACCEPT, true, false, false),
        (OptionNumber::LOCATION_QUERY, false, false, false),
        (OptionNumber::PROXY_URI, true, true, false),
        (OptionNumber::PROXY_SCHEME, true, true, false),
        (OptionNumber::SIZE1, false, false, true),
        (OptionNumber::SIZE2, false, false, true),
        (OptionNumber::ECHO, false, false, true),
    ];
    for (number, critical, unsafe_to_forward, no_cache_key) in table {
        assert_eq!(number.is_critical(), critical, "{number}");
        assert_eq!(number.is_unsafe_to_forward(), unsafe_to_forward, "{number}");
        assert_eq!(number.is_no_cache_key(), no_cache_key, "{number}");
        assert!(number.is_known(), "{number}");
    }
}

#[test]
fn every_option_with_a_format_has_a_name() {
    for number in (0..=u16::MAX).map(OptionNumber) {
        assert!(number.length_bounds().is_none() || number.name().is_some(), "{number}");
        assert!(!number.is_known() || number.length_bounds().is_some(), "{number}");
    }
}

#[test]
fn a_known_option_of_an_allowed_length_is_accepted() {
    let datagram = get(b"\x33abc\x81a\x01b");
    let message = Message::parse(&datagram).unwrap();
    assert_eq!(message.first_unknown_critical(), None);
    assert!(message.path().eq([b"a", b"b"]));
    assert_eq!(message.option(OptionNumber::URI_HOST).and_then(|o| o.as_str()), Some("abc"));
}

#[test]
fn an_unknown_critical_option_is_found() {
    // 65001 is odd; 65000 is not.
    let critical = get(&[0xe0, 0xfc, 0xdc]);
    let elective = get(&[0xe0, 0xfc, 0xdb]);
    let found = |datagram: &[u8]| Message::parse(datagram).unwrap().first_unknown_critical();
    assert_eq!(found(&critical), Some(OptionNumber(65001)));
    assert_eq!(found(&elective), None);
}

#[test]
fn a_critical_option_of_a_wrong_length_counts_as_unknown() {
    let found = |options: &[u8]| Message::parse(&get(options)).unwrap().first_unknown_critical();
    // Uri-Host of no bytes, Uri-Port of three, If-None-Match of one.
    assert_eq!(found(&[0x30]), Some(OptionNumber::URI_HOST));
    assert_eq!(found(&[0x73, 1, 2, 3]), Some(OptionNumber::URI_PORT));
    assert_eq!(found(&[0x51, 1]), Some(OptionNumber::IF_NONE_MATCH));
    assert_eq!(found(&[0x50]), None);
}

#[test]
fn a_critical_option_too_many_counts_as_unknown() {
    let datagram = get(&[0x31, b'a', 0x01, b'b']);
    let message = Message::parse(&datagram).unwrap();
    assert_eq!(message.first_unknown_critical(), Some(OptionNumber::URI_HOST));
    assert_eq!(message.option(OptionNumber::URI_HOST).unwrap().value, b"a");
}

#[test]
fn an_elective_option_of_a_wrong_length_is_ignored() {
    // Max-Age of five bytes, then one of one byte, which is one too many.
    let datagram = get(&[0xd5, 1, 0, 0, 0, 0, 9, 0x01, 7]);
    let message = Message::parse(&datagram).unwrap();
    assert_eq!(message.first_unknown_critical(), None);
    assert_eq!(message.option(OptionNumber::MAX_AGE), None);
    assert_eq!(message.options().count(), 2);
    // ETag of no bytes, then a good one: ETags may be many.
    let datagram = get(&[0x40, 0x01, 7]);
    let message = Message::parse(&datagram).unwrap();
    assert_eq!(message.option(OptionNumber::ETAG).unwrap().value, [7]);
}

#[test]
fn the_caller_determines_which_options_are_known() {
    let datagram = get(&[0x90]);
    let message = Message::parse(&datagram).unwrap();
    assert_eq!(message.first_unknown_critical(), Some(OptionNumber::OSCORE));
    let with_oscore = |number: OptionNumber| number.is_known() || number == OptionNumber::OSCORE;
    assert_eq!(message.body().first_critical_unless(with_oscore), None);
}

#[test]
fn a_body_needs_no_header() {
    let body = Body::parse(2, b"tk\xb1a\xffpayload").unwrap();
    assert_eq!(body.token_bytes(), b"tk");
    assert!(body.path().eq([b"a"]));
    assert_eq!(body.payload(), b"payload");
}

#[test]
fn an_option_is_found_by_its_number_and_under_no_other() {
    // The numbers up to 63 and those beyond are told apart by different means.
    let numbers = [0, 2, 10, 62, 63, 64, 66, 128, 2054, 65534, 65535].map(OptionNumber);
    for here in numbers {
        let datagram = get(&encoded(0, here.0, 0).unwrap());
        let message = Message::parse(&datagram).unwrap();
        for number in numbers {
            let found = message.option(number).map(|option| option.number);
            assert_eq!(found, (number == here).then_some(here), "{here:?} asked for {number:?}");
        }
    }
}
