//! The answers to the blocks of a body that is sent as its bytes come.

use ebbtide::{Client, Code, ErrorKind, Request};
use ebbtide_core::wire::{Block, Content, Message, Opt, OptionNumber, Type, encode_uint};
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;

/// The code of an answer and the block that it names.
type BlockReply = (Code, Option<Block>);

/// A server that answers each block by `answer`, and the bytes that it has received.
async fn server(answer: fn(Block) -> BlockReply) -> (String, Arc<Mutex<Vec<u8>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/x", socket.local_addr().unwrap());
    let received = Arc::new(Mutex::new(Vec::new()));
    let kept = received.clone();
    tokio::spawn(async move {
        let (mut buf, mut last) = ([0; 1500], None);
        loop {
            let (len, from) = socket.recv_from(&mut buf).await.unwrap();
            let message = Message::parse(&buf[..len]).unwrap();
            // A retransmission brings nothing new.
            if last.replace(message.message_id()) != Some(message.message_id()) {
                kept.lock().unwrap().extend_from_slice(message.payload());
            }
            let block = message.option(OptionNumber::BLOCK1);
            let block = block.map_or(Block::new(0, false, 6), |block| Block::from_option(&block));
            let (code, named) = answer(block.unwrap());
            let mut value = [0; 4];
            let value = named.map(|block| encode_uint(block.to_uint(), &mut value));
            let option = value.map(|value| Opt { number: OptionNumber::BLOCK1, value });
            let options: Vec<_> = option.into_iter().collect();
            let content = Content { code, options: &options, payload: b"" };
            let mut out = [0; 64];
            let (id, token) = (message.message_id(), message.token_bytes());
            let encoded = content.encode(&mut out, Type::Acknowledgement, id, token).unwrap();
            socket.send_to(&out[..encoded.len], from).await.unwrap();
        }
    });
    (uri, received)
}

async fn send(uri: &str, length: usize) -> Result<Code, ErrorKind> {
    let request = Request::put(uri).unwrap();
    let sent = Client::new().send_from(request, &*vec![7; length], |_| ()).await;
    sent.map(|response| response.code()).map_err(|error| error.kind())
}

#[tokio::test]
async fn a_server_that_acts_on_each_block_by_itself_gets_all_of_them() {
    // RFC 7959 section 2.3: the M bit of an answer is not set, and its code is a final one.
    let (uri, received) =
        server(|block| (Code::CHANGED, Block::new(block.num(), false, block.szx()).ok())).await;
    assert_eq!(send(&uri, 10_000).await, Ok(Code::CHANGED));
    assert_eq!(received.lock().unwrap().len(), 10_000);
}

#[tokio::test]
async fn an_answer_that_acknowledges_another_block_is_an_error() {
    let (uri, received) = server(|block| {
        let code = if block.more() { Code::CONTINUE } else { Code::CHANGED };
        (code, Block::new(block.num() / 2, block.more(), block.szx()).ok())
    })
    .await;
    assert_eq!(send(&uri, 10_000).await, Err(ErrorKind::Protocol));
    assert_eq!(received.lock().unwrap().len(), 2048);
}

#[tokio::test]
async fn a_continue_to_the_last_block_is_an_error() {
    let (uri, _) = server(|block| (Code::CONTINUE, Some(block))).await;
    for length in [10, 1024, 3000] {
        assert_eq!(send(&uri, length).await, Err(ErrorKind::Protocol), "{length}");
    }
}

#[tokio::test]
async fn a_hint_at_smaller_blocks_is_followed_from_the_beginning_and_from_the_middle() {
    let (uri, received) = server(|block| match (block.szx(), block.more()) {
        (3.., _) if block.num() == 0 => {
            (Code::REQUEST_ENTITY_TOO_LARGE, Block::new(0, true, 2).ok())
        }
        (szx, true) => (Code::CONTINUE, Block::new(block.num(), true, szx.min(1)).ok()),
        _ => (Code::CHANGED, Some(block)),
    })
    .await;
    for length in [1000, 3000] {
        received.lock().unwrap().clear();
        assert_eq!(send(&uri, length).await, Ok(Code::CHANGED));
        // The refused one came first.
        assert_eq!(received.lock().unwrap().len(), length + length.min(1024));
    }
}
