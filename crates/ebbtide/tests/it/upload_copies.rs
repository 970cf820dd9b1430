//! Copies of the last block of an upload, while its handler is at work and afterwards.

use ebbtide::server::{Call, Router, Server, put};
use ebbtide::{Code, Response};
use std::time::Duration;
use tokio::net::UdpSocket;

/// PUT /put with a Block1 option and sixteen bytes.
fn block(id: u8, option: u8) -> Vec<u8> {
    let head = [0x40, 3, 0, id, 0xb3, b'p', b'u', b't', 0xd1, 3, option, 0xff];
    [head.as_slice(), &[7; 16]].concat()
}

#[tokio::test]
async fn a_copy_of_the_last_block_is_not_answered_with_blocks_missing() {
    let handler = put(|call: Call<'static>| async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Response::new(Code::CHANGED).payload(call.payload().len().to_string())
    });
    let server = Server::bind(Router::new().route("/put", handler), ["127.0.0.1:0"]).unwrap();
    let meter = server.meter();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    let mut answer = [0; 64];
    socket.send(&block(1, 0x08)).await.unwrap();
    socket.recv(&mut answer).await.unwrap();
    assert_eq!(Code(answer[1]), Code::CONTINUE);
    for _ in 0..3 {
        socket.send(&block(2, 0x10)).await.unwrap();
    }
    // The first answer is to all copies that arrived before it.
    for round in 0..3 {
        if round > 0 {
            socket.send(&block(2, 0x10)).await.unwrap();
        }
        let length = socket.recv(&mut answer).await.unwrap();
        assert_eq!(Code(answer[1]), Code::CHANGED);
        assert!(answer[..length].ends_with(b"\xff32"), "the whole body: {:?}", &answer[..length]);
    }
    assert_eq!(meter.snapshot().load.block_bytes, 0, "once it is answered, it is not kept");
}
