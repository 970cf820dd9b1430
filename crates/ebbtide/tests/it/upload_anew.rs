//! Uploads that follow others to the same resource, by a client that sends no Request-Tag: RFC 7959
//! section 2.5 has the new one overwrite what is left of the old one.

use ebbtide::server::{Call, Router, Server, put};
use ebbtide::{Code, Response};
use ebbtide_core::wire::Message;
use std::time::Duration;
use tokio::net::UdpSocket;

/// M of a Block1 option, and SZX for blocks of 16 bytes.
const MORE: u8 = 8;
const LAST: u8 = 0;

/// Has a server take these blocks, each (number, M, what its bytes are), and gives what it answers. Its
/// handler answers with the bytes that it got.
async fn answers<const N: usize>(blocks: [(u8, u8, u8); N]) -> [(Code, Vec<u8>); N] {
    let handler =
        put(|call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().to_vec()));
    let server = Server::bind(Router::new().route("/put", handler), ["127.0.0.1:0"]).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    let mut got = Vec::new();
    for (id, (number, more, byte)) in blocks.into_iter().enumerate() {
        let head =
            [0x40, 3, 1, id as u8, 0xb3, b'p', b'u', b't', 0xd1, 3, number << 4 | more, 0xff];
        socket.send(&[&head, &[byte; 16][..]].concat()).await.unwrap();
        let mut answer = [0; 256];
        let received = tokio::time::timeout(Duration::from_secs(30), socket.recv(&mut answer));
        let length = received.await.expect("an answer").unwrap();
        let message = Message::parse(&answer[..length]).unwrap();
        got.push((message.code(), message.payload().to_vec()));
    }
    got.try_into().unwrap()
}

fn body(bytes: &[u8]) -> (Code, Vec<u8>) {
    (Code::CHANGED, bytes.iter().flat_map(|&byte| [byte; 16]).collect())
}

fn is(code: Code) -> (Code, Vec<u8>) {
    (code, Vec::new())
}

const NEXT: Code = Code::CONTINUE;
const MISSING: Code = Code::REQUEST_ENTITY_INCOMPLETE;

#[tokio::test]
async fn a_shorter_body_gets_nothing_of_a_longer_one_that_was_not_finished() {
    let old = [(0, MORE, 7), (1, MORE, 7), (2, MORE, 7)];
    let new = [(0, MORE, 7), (1, LAST, 7)];
    let got = answers([old[0], old[1], old[2], new[0], new[1], new[0], new[1]]).await;
    assert_eq!(got[3..], [is(NEXT), is(MISSING), is(NEXT), body(&[7, 7])]);
}

#[tokio::test]
async fn another_body_with_the_same_first_block_is_taken_when_it_begins_again() {
    let old = [(0, MORE, 7), (1, MORE, 7)];
    let new = [(0, MORE, 7), (1, MORE, 8), (2, LAST, 9)];
    let got = answers([old[0], old[1], new[0], new[1], new[0], new[1], new[2]]).await;
    assert_eq!(got[3..], [is(MISSING), is(NEXT), is(NEXT), body(&[7, 8, 9])]);
}

#[tokio::test]
async fn a_body_of_one_block_is_not_a_copy_of_the_upload_before() {
    let got = answers([(0, MORE, 7), (1, LAST, 7), (0, LAST, 9)]).await;
    assert_eq!(got[1..], [body(&[7, 7]), body(&[9])]);
}

#[tokio::test]
async fn a_body_with_a_missing_block_is_not_answered_with_the_success_of_an_older_one() {
    let old = [(0, MORE, 7), (1, MORE, 8), (2, LAST, 9)];
    let got = answers([old[0], old[1], old[2], old[0], old[2]]).await;
    assert_eq!(got[2..], [body(&[7, 8, 9]), is(NEXT), is(MISSING)]);
}

#[tokio::test]
async fn a_block_after_a_body_of_one_block_is_not_answered_with_the_success_of_an_older_one() {
    let got = answers([(0, MORE, 7), (1, LAST, 8), (0, LAST, 9), (1, LAST, 8)]).await;
    assert_eq!(got[1..], [body(&[7, 8]), body(&[9]), is(MISSING)]);
}

#[tokio::test]
async fn only_a_copy_of_the_last_block_gets_the_answer_to_the_whole_body() {
    let old = [(0, MORE, 7), (1, MORE, 8), (2, LAST, 9)];
    let got = answers([old[0], old[1], old[2], old[1], (1, LAST, 8), old[2]]).await;
    let whole = body(&[7, 8, 9]);
    assert_eq!(got[2..], [whole.clone(), is(MISSING), is(MISSING), whole]);
}

#[tokio::test]
async fn no_body_is_whole_while_blocks_before_its_last_one_are_missing() {
    let got = answers([(0, MORE, 7), (2, MORE, 9), (2, LAST, 9), (1, MORE, 8), (2, LAST, 9)]).await;
    assert_eq!(got[2..], [is(MISSING), is(NEXT), body(&[7, 8, 9])]);
}

#[tokio::test]
async fn nothing_that_waits_is_added_after_the_last_block() {
    let got = answers([(0, MORE, 7), (2, MORE, 9), (1, LAST, 8), (0, MORE, 7), (1, LAST, 8)]).await;
    assert_eq!(got[2..], [is(MISSING), is(NEXT), body(&[7, 8])]);
}
