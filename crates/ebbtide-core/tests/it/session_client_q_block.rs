//! A request and its response in Non-confirmable blocks (RFC 9177) from the client's side, against a server
//! that answers by a script.

use crate::common::transfer::{Driver, Sent, block, body, get, put};
use ebbtide_core::q_block::QBlockParameters;
use ebbtide_core::session::Response;
use ebbtide_core::session::client::{RequestParts, TransferError};
use ebbtide_core::time::Duration;
use ebbtide_core::wire::{Block, Code, MissingBlocks, OptionNumber};

const SIZE: usize = 64;
const LENGTH: usize = 24 * SIZE + 10;
const TEXT: u32 = 0;

fn driver(request: RequestParts) -> Driver {
    Driver::with(request, 2, |settings| settings.q_block = Some(QBlockParameters::DEFAULT))
}

/// A block of a version of a body.
fn part(body: &[u8], num: u32, version: u8) -> Response {
    let start = num as usize * SIZE;
    let end = (start + SIZE).min(body.len());
    let mut response = Response::content(body[start..end].to_vec());
    let options = response.options_mut();
    options.push(OptionNumber::ETAG, &[version]);
    options.push_uint(OptionNumber::CONTENT_FORMAT, TEXT);
    options.push_uint(OptionNumber::Q_BLOCK2, block(num, end < body.len(), SIZE));
    options.push_uint(OptionNumber::SIZE2, body.len() as u32);
    response
}

/// Number and M of each Q-Block2 of a message.
fn wanted(sent: &Sent) -> Vec<(u32, bool)> {
    let values = sent.options.iter().filter(|opt| opt.number == OptionNumber::Q_BLOCK2);
    let blocks = values.map(|opt| Block::from_option(&opt).unwrap());
    blocks.inspect(|block| assert_eq!(block.size(), SIZE)).map(|b| (b.num(), b.more())).collect()
}

fn numbers(response: &Response) -> Vec<OptionNumber> {
    response.options().iter().map(|opt| opt.number).collect()
}

#[test]
fn blocks_may_come_in_any_order_and_the_response_keeps_its_other_options() {
    let (mut driver, state) = (driver(get()), body(LENGTH));
    let sent = driver.sent();
    assert_eq!((sent.q_block, wanted(&sent)), (true, vec![(0, true)]));
    for num in (0..25).rev() {
        driver.answer(sent.id, part(&state, num, 1));
    }
    let response = driver.done().unwrap();
    assert_eq!(response.body(), &state[..]);
    assert_eq!(numbers(&response), [OptionNumber::ETAG, OptionNumber::CONTENT_FORMAT]);
}

#[test]
fn after_a_whole_set_the_client_asks_to_continue_behind_it() {
    let (mut driver, state) = (driver(get()), body(LENGTH));
    let first = driver.sent();
    (0..10).for_each(|num| driver.answer(first.id, part(&state, num, 1)));
    let next = driver.sent();
    assert_eq!(wanted(&next), [(10, true)]);
    assert!(next.payload.is_empty());
}

#[test]
fn what_is_missing_is_asked_for_by_number_and_completes_the_body() {
    let (mut driver, state) = (driver(get()), body(LENGTH));
    let first = driver.sent();
    (0..25)
        .filter(|num| !matches!(num, 3 | 7))
        .for_each(|num| driver.answer(first.id, part(&state, num, 1)));
    let again = driver.next_after_pauses().unwrap();
    assert_eq!(wanted(&again), [(3, false), (7, false)]);
    driver.answer(again.id, part(&state, 7, 1));
    driver.answer(again.id, part(&state, 3, 1));
    assert_eq!(driver.done().unwrap().body(), &state[..]);
}

#[test]
fn a_block_of_another_version_begins_the_body_anew() {
    let (mut driver, old, new) = (driver(get()), body(LENGTH), body(LENGTH + 100)[100..].to_vec());
    let first = driver.sent();
    (0..8).for_each(|num| driver.answer(first.id, part(&old, num, 1)));
    (0..25).for_each(|num| driver.answer(first.id, part(&new, num, 2)));
    assert_eq!(driver.done().unwrap().body(), &new[..]);
}

#[test]
fn a_body_goes_in_sets_and_the_lost_blocks_are_sent_once_more() {
    let mut driver = driver(put(LENGTH));
    let mut blocks = Vec::new();
    let mut last = 0;
    while let Some(sent) = driver.next() {
        let value = sent.uint(OptionNumber::Q_BLOCK1).unwrap();
        let told = Block::from_uint(value).unwrap();
        assert_eq!(sent.uint(OptionNumber::SIZE1), Some(LENGTH as u32));
        assert_eq!(
            sent.payload,
            driver.body.slice(told.offset() as usize..(told.offset() as usize + SIZE).min(LENGTH))
        );
        assert_eq!(told.more(), told.num() < 24);
        blocks.push(told.num());
        last = sent.id;
    }
    assert_eq!(blocks, (0..10).collect::<Vec<_>>(), "a set");
    let mut list = [0; 8];
    let length = MissingBlocks::encode([2, 5], &mut list);
    let mut missing =
        Response::new(Code::REQUEST_ENTITY_INCOMPLETE).payload(list[..length].to_vec());
    missing
        .options_mut()
        .push_uint(OptionNumber::CONTENT_FORMAT, u32::from(MissingBlocks::CONTENT_FORMAT));
    driver.answer(last, missing);
    let again: Vec<u32> = std::iter::from_fn(|| driver.next())
        .map(|sent| Block::from_uint(sent.uint(OptionNumber::Q_BLOCK1).unwrap()).unwrap().num())
        .collect();
    assert_eq!(again[..2], [2, 5]);
    driver.answer(last, Response::new(Code::CHANGED));
    assert_eq!(driver.done().unwrap().code(), Code::CHANGED);
}

#[test]
fn blocks_that_contradict_each_other_end_the_request() {
    let state = body(LENGTH);
    let edited = |change: &dyn Fn(&mut Response)| {
        let mut response = part(&state, 1, 1);
        change(&mut response);
        response
    };
    for (second, what) in [
        (
            edited(&|r| r.options_mut().set_uint(OptionNumber::Q_BLOCK2, block(1, true, 32))),
            "several sizes",
        ),
        (
            edited(&|r| r.options_mut().set_uint(OptionNumber::Q_BLOCK2, block(1, false, SIZE))),
            "the last one too early",
        ),
        (part(&state[..100], 1, 1), "a length of its own"),
    ] {
        let mut driver = driver(get());
        let sent = driver.sent();
        driver.answer(sent.id, part(&state, 0, 1));
        driver.answer(sent.id, second);
        assert!(matches!(driver.done(), Err(TransferError::Protocol(_))), "{what}");
    }
    let mut driver = driver(get());
    let sent = driver.sent();
    driver.answer(
        sent.id,
        edited(&|r| {
            r.options_mut().remove(OptionNumber::SIZE2);
        }),
    );
    assert!(matches!(driver.done(), Err(TransferError::Protocol(_))), "no length");
}

#[test]
fn a_request_without_an_answer_is_repeated_and_given_up() {
    let mut driver = driver(get());
    let (begun, mut sent) = (driver.now, 0);
    while let Some(message) = driver.next_after_pauses() {
        assert_eq!(wanted(&message), [(0, true)]);
        sent += 1;
    }
    assert!(sent > 1, "{sent}");
    assert!(driver.now > begun + Duration::from_secs(10));
    assert_eq!(driver.done().unwrap_err(), TransferError::NoResponse);
}
