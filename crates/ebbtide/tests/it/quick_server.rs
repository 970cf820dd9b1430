//! A server that gets blocks of RFC 9177 one by one, from whoever: what it answers, and what it keeps.

use crate::common::eventually::eventually;
use ebbtide::QBlockParameters;
use ebbtide::server::{Call, Router, Server, Verify, put};
use ebbtide::{Code, Response, ServerConfig};
use ebbtide_core::time::Micros;
use ebbtide_core::wire::{
    Block, Content, Message, MessageId, MissingBlocks, Opt, OptionNumber, Token, Type, encode_uint,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;

/// Bodies of three blocks of 16 bytes, the last one of 8.
const SIZE: u32 = 40;

fn serve(change: impl FnOnce(ServerConfig) -> ServerConfig) -> Server {
    serve_with(change, |call| {
        Response::new(Code::CHANGED).payload(bytes::Bytes::copy_from_slice(call.payload()))
    })
}

fn serve_with(
    change: impl FnOnce(ServerConfig) -> ServerConfig,
    handler: impl Fn(&Call<'_>) -> Response + Send + Sync + 'static,
) -> Server {
    let quick = QBlockParameters {
        non_timeout: Micros::from_millis(20),
        non_max_retransmit: 1,
        max_latency: Micros::from_millis(5_000),
        ..QBlockParameters::DEFAULT
    };
    let config = change(ServerConfig::new().transport(|transport| transport.q_block(quick)));
    Server::with_config(Router::new().route("/put", put(handler)), config, ["127.0.0.1:0"]).unwrap()
}

struct Peer {
    socket: UdpSocket,
    id: u16,
}

/// What the server said.
#[derive(Debug)]
struct Said {
    kind: Type,
    code: Code,
    token: Vec<u8>,
    format: Option<u32>,
    payload: Vec<u8>,
}

impl Peer {
    async fn new(server: &Server) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(server.local_addrs()[0]).await.unwrap();
        Self { socket, id: 0 }
    }

    async fn send(&mut self, kind: Type, options: &[(OptionNumber, u32)], payload: &[u8]) {
        self.id += 1;
        let values: Vec<Vec<u8>> =
            options.iter().map(|(_, value)| encode_uint(*value, &mut [0; 4]).to_vec()).collect();
        let mut all = vec![Opt { number: OptionNumber::URI_PATH, value: b"put" }];
        all.extend(
            options.iter().zip(&values).map(|((number, _), value)| Opt { number: *number, value }),
        );
        let content = Content { code: Code::PUT, options: &all, payload };
        let token = Token::new(&self.id.to_be_bytes()).unwrap();
        let mut bytes = vec![0; 6 + content.encoded_len()];
        content.encode(&mut bytes, kind, MessageId(self.id), token).unwrap();
        self.socket.send(&bytes).await.unwrap();
    }

    /// Sends a block of the body with this tag.
    async fn block(&mut self, kind: Type, num: u32, tag: u32) {
        let more = num < 2;
        let block = Block::new(num, more, 0).unwrap().to_uint();
        let options = [
            (OptionNumber::Q_BLOCK1, block),
            (OptionNumber::SIZE1, SIZE),
            (OptionNumber::REQUEST_TAG, tag),
        ];
        let payload = [b'0' + num as u8; 16];
        self.send(kind, &options, if more { &payload } else { &payload[..8] }).await;
    }

    async fn hear(&self) -> Option<Said> {
        let mut bytes = [0; 1500];
        let heard = tokio::time::timeout(Duration::from_secs(30), self.socket.recv(&mut bytes));
        let length = heard.await.ok()?.unwrap();
        let message = Message::parse(&bytes[..length]).unwrap();
        Some(Said {
            kind: message.kind(),
            code: message.code(),
            token: message.token_bytes().to_vec(),
            format: message.option(OptionNumber::CONTENT_FORMAT).and_then(|opt| opt.as_uint()),
            payload: message.payload().to_vec(),
        })
    }
}

#[tokio::test]
async fn missing_blocks_are_named_with_the_token_of_the_last_one_that_came() {
    let server = serve(|config| config);
    let mut peer = Peer::new(&server).await;
    peer.block(Type::NonConfirmable, 2, 7).await;
    peer.block(Type::NonConfirmable, 0, 7).await;
    let said = peer.hear().await.unwrap();
    assert_eq!((said.kind, said.code), (Type::NonConfirmable, Code::REQUEST_ENTITY_INCOMPLETE));
    assert_eq!(said.format, Some(MissingBlocks::CONTENT_FORMAT.into()));
    assert_eq!((said.token, said.payload), (vec![0, 2], vec![1]));
    peer.block(Type::NonConfirmable, 1, 7).await;
    let said = peer.hear().await.unwrap();
    assert_eq!(said.code, Code::CHANGED);
    assert_eq!(said.payload, b"0000000000000000111111111111111122222222");
    // A duplicate is answered as the block was.
    peer.block(Type::NonConfirmable, 2, 7).await;
    let again = peer.hear().await.unwrap();
    assert_eq!((again.code, again.token), (Code::CHANGED, vec![0, 4]));
    assert_eq!(server.snapshot().load.block_bytes, 0);
}

#[tokio::test]
async fn confirmable_blocks_are_acknowledged_and_the_last_one_is_answered() {
    let server = serve(|config| config);
    let mut peer = Peer::new(&server).await;
    for num in [1, 0, 2] {
        peer.block(Type::Confirmable, num, 7).await;
        let said = peer.hear().await.unwrap();
        let expected = if num == 2 { Code::CHANGED } else { Code::EMPTY };
        assert_eq!((said.kind, said.code), (Type::Acknowledgement, expected), "block {num}");
    }
}

#[tokio::test]
async fn a_partial_body_is_dropped_when_its_rest_does_not_come() {
    let server = serve(|config| config);
    let mut peer = Peer::new(&server).await;
    peer.block(Type::NonConfirmable, 0, 7).await;
    let held = || server.snapshot().load.uploads;
    eventually(|| held() == 1).await;
    let bytes = server.snapshot().load.block_bytes;
    assert!(bytes > 64, "a block of 16 bytes takes more than these: {bytes}");
    eventually(|| held() == 0).await;
    assert_eq!(server.snapshot().load.block_bytes, 0);
}

#[tokio::test]
async fn however_many_bodies_are_begun_memory_is_bounded_and_whole_ones_get_through() {
    let server = serve(|config| {
        config
            .limits(|limits| limits.block_bytes(4096))
            .transport(|transport| transport.q_block(QBlockParameters::DEFAULT))
    });
    let mut peer = Peer::new(&server).await;
    for tag in 0..3000 {
        peer.block(Type::NonConfirmable, 0, tag).await;
        if tag % 50 == 0 {
            tokio::task::yield_now().await;
            let load = server.snapshot().load;
            assert!(load.block_bytes <= 4096 && load.uploads <= 1024, "{load:?}");
        }
    }
    for num in [0, 1, 2] {
        peer.block(Type::NonConfirmable, num, 9_999).await;
    }
    // On a slow machine it has asked for the rest of others by now.
    let answer = loop {
        let said = peer.hear().await.unwrap();
        if said.token == peer.id.to_be_bytes() {
            break said;
        }
    };
    assert_eq!(answer.code, Code::CHANGED);
}

#[tokio::test]
async fn blocks_without_what_they_need_are_refused_and_nothing_is_kept() {
    let server = serve(|config| config);
    let mut peer = Peer::new(&server).await;
    let block = |num, more| Block::new(num, more, 0).unwrap().to_uint();
    let (q1, q2) = (OptionNumber::Q_BLOCK1, OptionNumber::Q_BLOCK2);
    let (size, tag) = ((OptionNumber::SIZE1, SIZE), (OptionNumber::REQUEST_TAG, 7));
    let refused = [
        (vec![(q1, block(0, true)), size], Code::BAD_REQUEST),
        (vec![(q1, block(0, true)), tag], Code::BAD_REQUEST),
        (vec![(q1, block(5, true)), size, tag], Code::BAD_REQUEST),
        (vec![(q1, 0xf), size, tag], Code::BAD_REQUEST),
        (vec![(q1, 8), (OptionNumber::BLOCK2, 0), size, tag], Code::BAD_OPTION),
        (vec![(q2, block(3, false)), (q2, block(2, false))], Code::BAD_REQUEST),
        (vec![(q2, block(3, false))], Code::REQUEST_ENTITY_INCOMPLETE),
    ];
    for (mut options, code) in refused {
        options.sort_by_key(|(number, _)| *number);
        peer.send(Type::NonConfirmable, &options, &[0; 16]).await;
        assert_eq!(peer.hear().await.unwrap().code, code, "{options:?}");
    }
    let load = server.snapshot().load;
    assert_eq!((load.block_bytes, load.uploads), (0, 0));
}

#[tokio::test]
async fn an_address_that_has_not_echoed_has_nothing_kept_for_it() {
    let server = serve(|config| config.verify(Verify::All));
    let mut peer = Peer::new(&server).await;
    peer.block(Type::NonConfirmable, 0, 7).await;
    assert_eq!(peer.hear().await.unwrap().code, Code::UNAUTHORIZED);
    assert_eq!(server.snapshot().load.uploads, 0);
}

#[tokio::test]
async fn a_copy_of_the_last_block_is_answered_when_the_handler_serves_blocks_itself() {
    let block = |_: &Call<'_>| {
        Response::new(Code::CHANGED).option(OptionNumber::BLOCK2, &[0x08]).payload([7; 16].to_vec())
    };
    let server = serve_with(|config| config, block);
    let mut peer = Peer::new(&server).await;
    for num in [0, 1, 2, 2] {
        peer.block(Type::NonConfirmable, num, 7).await;
    }
    for token in [[0, 3], [0, 4]] {
        let said = peer.hear().await.unwrap();
        assert_eq!((said.code, said.token), (Code::CHANGED, token.to_vec()));
    }
}

#[tokio::test]
async fn an_address_that_has_not_echoed_has_no_handler_run_for_a_body_of_one_block() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    let long = move |_: &Call<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        Response::new(Code::CHANGED).payload(vec![7; 5000])
    };
    let server = serve_with(|config| config.verify(Verify::All), long);
    let mut peer = Peer::new(&server).await;
    let (size, tag) = ((OptionNumber::SIZE1, 8), (OptionNumber::REQUEST_TAG, 7));
    peer.send(Type::NonConfirmable, &[(OptionNumber::Q_BLOCK1, 0), size, tag], &[7; 8]).await;
    assert_eq!(peer.hear().await.unwrap().code, Code::UNAUTHORIZED);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}
