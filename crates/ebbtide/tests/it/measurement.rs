//! The option PM (draft-ietf-core-coap-pm) on real sockets.

use ebbtide::congestion::Measurement;
use ebbtide::server::{Call, Router, Server, get, put};
use ebbtide::{Client, ClientConfig, Code, Request, Response, ServerConfig};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;

fn blocks_of(block: u16) -> Measurement {
    Measurement::new(block)
}

fn hello() -> Router {
    Router::new().route("/a", get(|_: &Call<'_>| Response::content("hello")))
}

/// What passed a relay to the server and back, and the relay's address at the server.
struct Relay {
    front: SocketAddr,
    back: SocketAddr,
    up: Arc<Mutex<Vec<Vec<u8>>>>,
    down: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// Starts a relay to `server` for one client. It loses the datagrams to the server with these numbers.
async fn relay(server: SocketAddr, lost: &'static [usize]) -> Relay {
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    back.connect(server).await.unwrap();
    let (up, down) = (Arc::default(), Arc::default());
    let relay = Relay {
        front: front.local_addr().unwrap(),
        back: back.local_addr().unwrap(),
        up: Arc::clone(&up),
        down: Arc::clone(&down),
    };
    tokio::spawn(async move {
        let (mut there, mut here) = ([0; 2048], [0; 2048]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((len, from)) = front.recv_from(&mut there) => {
                    client = Some(from);
                    let number = up.lock().unwrap().len();
                    up.lock().unwrap().push(there[..len].to_vec());
                    if !lost.contains(&number) {
                        let _ = back.send(&there[..len]).await;
                    }
                }
                Ok(len) = back.recv(&mut here) => {
                    down.lock().unwrap().push(here[..len].to_vec());
                    if let Some(to) = client {
                        let _ = front.send_to(&here[..len], to).await;
                    }
                }
            }
        }
    });
    relay
}

/// What follows the token, the length of which is in the first byte (RFC 7252 section 3).
fn body(datagram: &[u8]) -> &[u8] {
    &datagram[4 + usize::from(datagram[0] & 0x0f)..]
}

#[tokio::test]
async fn client_and_server_send_the_option_and_measure_the_losses_of_each_other() {
    let config = ServerConfig::new().measurement(blocks_of(4));
    let server = Server::with_config(hello(), config, ["127.0.0.1:0"]).unwrap();
    // Of the server's second block; its copy has a place of its own.
    let relay = relay(server.local_addrs()[0], &[5]).await;
    let client = Client::with_config(
        ClientConfig::new()
            .measurement(blocks_of(4))
            .ack_timeout(std::time::Duration::from_millis(50)),
    );
    for _ in 0..19 {
        let response = client.get(format!("coap://{}/a", relay.front)).await.unwrap();
        assert_eq!(response.body().as_ref(), b"hello");
    }
    // Uri-Path (11) "a", then delta 65011 = 269 + 0xfce6 with the bit. A control may send pings, which are empty.
    let requests = relay.up.lock().unwrap().clone();
    let requests: Vec<&[u8]> = requests.iter().map(|datagram| body(datagram)).collect();
    let requests: Vec<&[u8]> = requests.into_iter().filter(|body| !body.is_empty()).collect();
    assert!(requests.len() >= 20, "19 and at least one copy: {}", requests.len());
    for (number, request) in requests.iter().enumerate() {
        let bit = if number / 4 % 2 == 1 { 0x80 } else { 0 };
        assert_eq!(*request, [0xb1, b'a', 0xe1, 0xfc, 0xe6, bit], "{number}");
    }
    // Delta 65022 = 269 + 0xfcf1.
    let answers = relay.down.lock().unwrap().clone();
    let first = answers.iter().map(|datagram| body(datagram)).find(|body| !body.is_empty());
    assert_eq!(first, Some(&b"\xe1\xfc\xf1\x00\xffhello"[..]));
    let up = server.measured(relay.back).expect("the client sends the option");
    assert!(up.sent >= 8, "blocks two and three: {up:?}");
    assert_eq!(up.sent - up.arrived, 1, "{up:?}");
    let down = client.measured(relay.front).expect("the server answers with the option");
    assert!(down.sent >= 8, "{down:?}");
    assert_eq!(down.arrived, down.sent);
}

#[tokio::test]
async fn a_server_without_the_option_ignores_it() {
    let server = Server::bind(hello(), ["127.0.0.1:0"]).unwrap();
    let relay = relay(server.local_addrs()[0], &[]).await;
    let client = Client::with_config(ClientConfig::new().measurement(Measurement::default()));
    let response = client.get(format!("coap://{}/a", relay.front)).await.unwrap();
    assert_eq!(response.body().as_ref(), b"hello");
    let answers = relay.down.lock().unwrap().clone();
    assert!(answers.iter().all(|answer| !answer.windows(2).any(|at| at == [0xe1, 0xfc])));
    assert_eq!((client.measured(relay.front), server.measured(relay.back)), (None, None));
}

/// The option differs between the blocks of a body, and is no part of what names the transfer.
#[tokio::test]
async fn bodies_in_blocks_pass_although_the_option_differs_between_their_messages() {
    let store = |call: &Call<'_>| {
        assert!(call.payload().iter().all(|byte| *byte == 7));
        Response::new(Code::CHANGED).payload(vec![8; call.payload().len()])
    };
    let router = Router::new().route("/a", put(store));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let uri = format!("coap://{}/a", server.local_addrs()[0]);
    tokio::spawn(server.run());
    let client = Client::with_config(ClientConfig::new().measurement(blocks_of(3)));
    let request = Request::put(&*uri).unwrap().payload(vec![7; 2000]).block_size(64);
    let answer = client.request(request).await.unwrap();
    assert_eq!((answer.code(), &answer.body()[..]), (Code::CHANGED, &[8; 2000][..]));
}
