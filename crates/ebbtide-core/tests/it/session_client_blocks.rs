//! Bodies in blocks from the client's side, against a server that answers by a script.

use crate::common::transfer::{Driver, Sent, block, body, get, put};
use ebbtide_core::session::client::{Loss, Patience, TransferError, TransferSettings};
use ebbtide_core::session::{BlockSizes, Response};
use ebbtide_core::time::Duration;
use ebbtide_core::wire::{Code, OptionNumber};

const SECOND: Duration = Duration::from_secs(1);

/// An answer with Block1.
fn continued(code: Code, num: u32, more: bool, size: usize) -> Response {
    let value = block(num, more, size);
    let mut response = Response::new(code);
    response.options_mut().push_uint(OptionNumber::BLOCK1, value);
    response
}

/// A block of a response.
fn part(payload: &[u8], num: u32, more: bool, size: usize) -> Response {
    let mut response = Response::content(payload.to_vec());
    response.options_mut().push_uint(OptionNumber::BLOCK2, block(num, more, size));
    response
}

#[test]
fn a_body_that_fits_goes_in_one_message_without_block_options() {
    let mut driver = Driver::new(put(64), 2);
    let sent = driver.sent();
    assert_eq!((sent.payload.len(), sent.options.len()), (64, 0));
    driver.answer(sent.id, Response::new(Code::CHANGED));
    assert_eq!(driver.done().unwrap().code(), Code::CHANGED);
}

#[test]
fn after_a_smaller_size_the_body_goes_on_behind_the_whole_first_block() {
    // The exchange of RFC 7959 section 3.2, figure 9.
    for in_flight in [1, 8] {
        let mut driver = Driver::with(put(300), 3, |settings| settings.in_flight = in_flight);
        let first = driver.sent();
        assert_eq!(first.block1(), Some((0, true, 128)));
        assert_eq!(first.uint(OptionNumber::SIZE1), Some(300));
        driver.answer(first.id, continued(Code::CONTINUE, 0, true, 32));
        let second = driver.sent();
        assert_eq!(second.block1(), Some((4, true, 32)), "{in_flight} in flight");
        assert_eq!(second.payload, driver.body[128..160]);
        assert_eq!(second.uint(OptionNumber::SIZE1), None);
    }
}

#[test]
fn a_smaller_size_is_obeyed_in_the_middle_of_a_body_too() {
    let mut driver = Driver::new(put(300), 3);
    let first = driver.sent();
    driver.answer(first.id, continued(Code::CONTINUE, 0, true, 128));
    let second = driver.sent();
    assert_eq!(second.block1(), Some((1, true, 128)));
    // By its own number, or by that of the same bytes in smaller blocks: both acknowledge it.
    driver.answer(second.id, continued(Code::CONTINUE, 8, true, 16));
    let third = driver.sent();
    assert_eq!((third.block1(), third.payload.len()), (Some((16, true, 16)), 16));
}

#[test]
fn each_block_says_the_same_but_for_its_number() {
    let mut driver = Driver::new(put(300), 3);
    let mut tags = Vec::new();
    for num in 0..3 {
        let sent = driver.sent();
        assert_eq!(sent.block1(), Some((num, num < 2, 128)));
        tags.push(sent.options.get(OptionNumber::REQUEST_TAG).unwrap().value.to_vec());
        let code = if num < 2 { Code::CONTINUE } else { Code::CHANGED };
        driver.answer(sent.id, continued(code, num, num < 2, 128));
    }
    assert!(tags.windows(2).all(|pair| pair[0] == pair[1]) && tags[0].len() == 4);
    assert_eq!(driver.done().unwrap().code(), Code::CHANGED);
}

#[test]
fn a_server_that_acts_on_each_block_by_itself_gets_all_of_them() {
    // RFC 7959 section 3.2, figure 8: "2.04 1:0/0/128".
    for in_flight in [1, 4] {
        let mut driver = Driver::with(put(512), 3, |settings| settings.in_flight = in_flight);
        let mut bytes = 0;
        while let Some(sent) = driver.next() {
            bytes += sent.payload.len();
            let (num, ..) = sent.block1().unwrap();
            driver.answer(sent.id, continued(Code::CHANGED, num, false, 128));
        }
        assert_eq!((bytes, driver.done().unwrap().code()), (512, Code::CHANGED));
    }
}

#[test]
fn an_answer_that_acknowledges_another_block_is_an_error() {
    for (code, num) in [(Code::CONTINUE, 1), (Code::CHANGED, 7)] {
        let mut driver = Driver::new(put(300), 3);
        let first = driver.sent();
        driver.answer(first.id, continued(code, num, true, 128));
        assert!(matches!(driver.done(), Err(TransferError::Protocol(_))), "{code} {num}");
    }
    let mut driver = Driver::new(put(300), 3);
    for num in 0..2 {
        let sent = driver.sent();
        driver.answer(sent.id, continued(Code::CONTINUE, num, true, 128));
    }
    let last = driver.sent();
    driver.answer(last.id, continued(Code::CHANGED, 1, false, 128));
    assert!(matches!(driver.done(), Err(TransferError::Protocol(_))));
}

#[test]
fn a_continue_to_the_last_block_is_an_error() {
    for bytes in [10, 200] {
        let mut driver = Driver::new(put(bytes), 3);
        let mut answer = Response::new(Code::CONTINUE);
        while let Some(sent) = driver.next() {
            if let Some((num, more, _)) = sent.block1() {
                answer = continued(Code::CONTINUE, num, more, 128);
            }
            driver.answer(sent.id, answer.clone());
        }
        let done = driver.done();
        assert!(matches!(done, Err(TransferError::Protocol(_))), "{bytes} bytes: {done:?}");
    }
}

#[test]
fn a_hint_at_smaller_blocks_begins_the_body_anew() {
    let mut driver = Driver::new(put(300), 6);
    let first = driver.sent();
    assert_eq!(first.block1(), None);
    driver.answer(first.id, continued(Code::REQUEST_ENTITY_TOO_LARGE, 0, true, 32));
    assert_eq!(driver.sent().block1(), Some((0, true, 32)));
    let mut driver = Driver::new(put(3000), 6);
    let first = driver.sent();
    driver.answer(first.id, continued(Code::REQUEST_ENTITY_TOO_LARGE, 0, true, 64));
    let second = driver.sent();
    assert_eq!(second.block1(), Some((0, true, 64)));
    // Without a hint it is refused.
    driver.answer(second.id, Response::new(Code::REQUEST_ENTITY_TOO_LARGE));
    assert_eq!(driver.done().unwrap().code(), Code::REQUEST_ENTITY_TOO_LARGE);
}

#[test]
fn blocks_that_are_too_long_for_the_path_are_halved() {
    let mut driver = Driver::new(put(1000), 6);
    let first = driver.sent();
    assert_eq!((first.block1(), first.payload.len()), (None, 1000));
    driver.lose(first.id, Loss::TooLong);
    let second = driver.sent();
    assert_eq!((second.block1(), second.payload.len()), (Some((0, true, 512)), 512));
    assert!(second.options.get(OptionNumber::REQUEST_TAG).is_some());
}

#[test]
fn a_body_begins_again_in_smaller_blocks_if_they_become_too_long_under_way() {
    let mut driver = Driver::new(put(300), 3);
    let first = driver.sent();
    assert_eq!(first.block1(), Some((0, true, 128)));
    driver.answer(first.id, continued(Code::CONTINUE, 0, true, 128));
    let second = driver.sent();
    driver.lose(second.id, Loss::TooLong);
    let again = driver.sent();
    assert_eq!((again.block1(), again.payload.len()), (Some((0, true, 64)), 64));
    let tag = |sent: &Sent| sent.options.get(OptionNumber::REQUEST_TAG).unwrap().value.to_vec();
    assert_ne!(tag(&first), tag(&again));
}

#[test]
fn a_body_of_which_blocks_are_missing_is_sent_again_under_another_tag() {
    let mut driver = Driver::new(put(300), 3);
    let mut tags = Vec::new();
    for _ in 0..3 {
        let first = driver.sent();
        assert_eq!(first.block1(), Some((0, true, 128)));
        tags.push(first.options.get(OptionNumber::REQUEST_TAG).unwrap().value.to_vec());
        driver.answer(first.id, continued(Code::CONTINUE, 0, true, 128));
        let second = driver.sent();
        driver.answer(second.id, Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
    }
    assert!(tags[0] != tags[1] && tags[1] != tags[2]);
    assert_eq!(driver.done().unwrap().code(), Code::REQUEST_ENTITY_INCOMPLETE);
}

#[test]
fn an_echo_is_put_into_the_message_that_was_challenged_and_all_later_ones() {
    let mut driver = Driver::new(put(300), 3);
    let first = driver.sent();
    let challenge = Response::new(Code::UNAUTHORIZED).option(OptionNumber::ECHO, b"e1");
    driver.answer(first.id, challenge.clone());
    let again = driver.sent();
    assert_eq!((again.block1(), again.echo()), (first.block1(), Some(&b"e1"[..])));
    driver.answer(again.id, continued(Code::CONTINUE, 0, true, 128));
    let second = driver.sent();
    assert_eq!(second.echo(), Some(&b"e1"[..]));
}

#[test]
fn a_server_that_restarts_challenges_a_transfer_as_often_as_it_goes_on_but_not_three_times_in_a_row()
 {
    let challenge = Response::new(Code::UNAUTHORIZED).option(OptionNumber::ECHO, b"e1");
    let mut driver = Driver::new(put(1000), 3);
    for num in 0..4 {
        for _ in 0..2 {
            let sent = driver.sent();
            assert_eq!(sent.block1(), Some((num, true, 128)));
            driver.answer(sent.id, challenge.clone());
        }
        let sent = driver.sent();
        driver.answer(sent.id, continued(Code::CONTINUE, num, true, 128));
    }
    for _ in 0..3 {
        let sent = driver.sent();
        driver.answer(sent.id, challenge.clone());
    }
    assert_eq!(driver.done().unwrap().code(), Code::UNAUTHORIZED, "twice is enough");
}

#[test]
fn an_echo_of_a_length_that_is_not_allowed_is_not_echoed() {
    for length in [0, 41] {
        let mut driver = Driver::new(get(), 3);
        let first = driver.sent();
        let value = vec![7; length];
        driver
            .answer(first.id, Response::new(Code::UNAUTHORIZED).option(OptionNumber::ECHO, &value));
        assert_eq!(driver.done().unwrap().code(), Code::UNAUTHORIZED);
    }
}

#[test]
fn a_download_asks_for_the_bytes_that_follow_in_the_size_of_the_server() {
    let mut driver = Driver::new(get(), 6);
    let sent = driver.sent();
    driver.answer(sent.id, part(&[1; 32], 0, true, 32));
    let second = driver.sent();
    assert_eq!(second.block2(), Some((1, false, 32)));
    driver.answer(second.id, part(&[2; 16], 2, true, 16));
    let third = driver.sent();
    assert_eq!(third.block2(), Some((3, false, 16)));
    driver.answer(third.id, part(&[3; 5], 3, false, 16));
    let whole = driver.done().unwrap();
    assert_eq!(whole.body().as_ref(), [[1; 32].as_slice(), &[2; 16], &[3; 5]].concat());
    assert!(whole.options().get(OptionNumber::BLOCK2).is_none());
}

#[test]
fn a_resource_that_changes_under_way_is_asked_for_anew() {
    let mut driver = Driver::new(get(), 6);
    let sent = driver.sent();
    driver.answer(sent.id, part(&[1; 32], 0, true, 32).etag(b"1"));
    for version in 2..5 {
        let second = driver.sent();
        assert_eq!(second.block2(), Some((1, false, 32)));
        driver.answer(second.id, part(&[2; 32], 1, false, 32).etag(&[version]));
        let anew = driver.sent();
        assert_eq!(anew.block2(), None);
        driver.answer(anew.id, part(&[1; 32], 0, true, 32).etag(&[version]));
    }
    let second = driver.sent();
    driver.answer(second.id, part(&[2; 32], 1, false, 32).etag(b"x"));
    assert!(matches!(driver.done(), Err(TransferError::Protocol(_))));
}

#[test]
fn a_body_over_the_limit_is_refused_at_its_first_block_if_that_says_so() {
    let mut driver = Driver::with(get(), 6, |settings| settings.max_body = 100);
    let sent = driver.sent();
    let mut first = part(&[1; 32], 0, true, 32);
    first.options_mut().push_uint(OptionNumber::SIZE2, 101);
    driver.answer(sent.id, first);
    assert_eq!(driver.done().unwrap_err(), TransferError::TooLarge { limit: 100 });
}

#[test]
fn an_unanswered_transfer_fails_with_its_first_message() {
    let mut driver = Driver::with(get(), 6, |settings| settings.patience.silence = 90 * SECOND);
    let sent = driver.sent();
    driver.lose(sent.id, Loss::Unsent);
    assert_eq!(driver.done().unwrap_err(), TransferError::Lost);
}

#[test]
fn a_block_that_is_lost_for_good_is_sent_again_while_there_is_patience() {
    let mut driver = Driver::with(put(300), 3, |settings| settings.patience.silence = 60 * SECOND);
    let first = driver.sent();
    driver.answer(first.id, continued(Code::CONTINUE, 0, true, 128));
    let begun = driver.now;
    let mut tries = 0;
    while let Some(sent) = driver.next_after_pauses() {
        assert_eq!(sent.block1(), Some((1, true, 128)));
        tries += 1;
        let loss = if tries % 2 == 0 { Loss::Unsent } else { Loss::Unanswered };
        driver.lose(sent.id, loss);
    }
    assert_eq!(driver.done().unwrap_err(), TransferError::Lost);
    let tried = driver.now.saturating_since(begun);
    assert!((40 * SECOND..60 * SECOND).contains(&tried), "{tried:?}");
    assert!((5..12).contains(&tries), "{tries} tries: pauses grow");
}

#[test]
fn a_body_may_be_as_long_as_the_limit_and_not_a_byte_longer() {
    for (length, fits) in [(100, true), (101, false)] {
        let mut driver = Driver::with(get(), 2, |settings| settings.max_body = 100);
        let state = body(length);
        let first = driver.sent();
        driver.answer(first.id, part(&state[..64], 0, true, 64));
        let second = driver.sent();
        driver.answer(second.id, part(&state[64..], 1, false, 64));
        match driver.done() {
            Ok(response) => assert!(fits && response.body() == &state[..], "{length}"),
            Err(error) => {
                assert!(!fits, "{length}");
                assert_eq!(error, TransferError::TooLarge { limit: 100 });
            }
        }
    }
}

#[test]
fn a_limit_of_the_caller_is_patience_from_the_first_message_on() {
    let until = Driver::start() + 20 * SECOND;
    let mut driver = Driver::with(get(), 6, |settings| settings.patience.until = Some(until));
    for _ in 0..3 {
        let sent = driver.next_after_pauses().unwrap();
        driver.lose(sent.id, Loss::Unsent);
    }
    let sent = driver.next_after_pauses().unwrap();
    driver.answer(sent.id, Response::content("here again"));
    assert_eq!(driver.done().unwrap().text(), "here again");
}

#[test]
fn if_none_match_goes_with_the_first_block_only() {
    // RFC 7959 section 2.10.
    for in_flight in [1, 8] {
        let mut request = put(300);
        request.options.push(OptionNumber::IF_NONE_MATCH, &[]);
        request.options.push(OptionNumber::IF_MATCH, b"tag");
        let mut driver = Driver::with(request, 3, |settings| settings.in_flight = in_flight);
        let first = driver.sent();
        assert!(first.options.get(OptionNumber::IF_NONE_MATCH).is_some());
        driver.answer(first.id, continued(Code::CONTINUE, 0, true, 128));
        let second = driver.sent();
        assert_eq!(second.block1(), Some((1, true, 128)), "{in_flight} in flight");
        assert!(second.options.get(OptionNumber::IF_NONE_MATCH).is_none());
        assert!(second.options.get(OptionNumber::IF_MATCH).is_some());
    }
}

#[test]
fn a_request_that_is_not_idempotent_is_not_sent_twice() {
    let patience = Patience { until: Some(Driver::start() + 60 * SECOND), silence: SECOND };
    let with = |change: fn(&mut ebbtide_core::session::client::RequestParts)| {
        let mut request = put(50);
        change(&mut request);
        let mut driver = Driver::with(request, 6, |settings| settings.patience = patience);
        let sent = driver.sent();
        driver.lose(sent.id, Loss::Unanswered);
        driver.next_after_pauses().is_some()
    };
    assert!(with(|_| ()), "a PUT may be repeated");
    assert!(!with(|request| request.code = Code::POST));
    assert!(!with(|request| request.options.push(OptionNumber::IF_NONE_MATCH, &[])));
    // What did not leave was not done.
    let mut request = put(50);
    request.code = Code::POST;
    let mut driver = Driver::with(request, 6, |settings| settings.patience = patience);
    let sent = driver.sent();
    driver.lose(sent.id, Loss::Unsent);
    assert!(driver.next_after_pauses().is_some());
}

#[test]
fn only_the_last_message_of_a_long_body_registers() {
    let settings = |settings: &mut TransferSettings| settings.observe = true;
    let mut driver = Driver::with(put(300), 3, settings);
    let mut observed = Vec::new();
    while let Some(sent) = driver.next() {
        observed.push(sent.uint(OptionNumber::OBSERVE));
        let (num, more, _) = sent.block1().unwrap();
        let code = if more { Code::CONTINUE } else { Code::CONTENT };
        driver.answer(sent.id, continued(code, num, more, 128));
    }
    assert_eq!(observed, [None, None, Some(0)]);
}

#[test]
fn the_wish_for_the_size_of_the_answer_goes_with_the_last_block() {
    let mut request = put(40);
    request.block_size = Some(16);
    let mut driver = Driver::with(request, 6, |settings| {
        settings.sizes = BlockSizes::of_datagrams(16);
    });
    let sent = driver.sent();
    assert_eq!((sent.block1(), sent.block2()), (Some((0, true, 16)), None));
    driver.answer(sent.id, continued(Code::CONTINUE, 0, true, 16));
    let second = driver.sent();
    driver.answer(second.id, continued(Code::CONTINUE, 1, true, 16));
    assert_eq!(driver.sent().block2(), Some((0, false, 16)));
}
