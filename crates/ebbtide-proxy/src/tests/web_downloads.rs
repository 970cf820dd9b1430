//! Long answers of HTTP servers to clients whose requests for blocks are repeated, late or forged.

use super::web_bodies::{bytes, gateway, read_to};
use crate::downloads::MAX_BEGUN;
use crate::{Gateway, GatewayConfig};
use ebbtide::server::Verify;
use ebbtide::{Code, OptionNumber, Server, ServerConfig};
use ebbtide_core::wire::{Block, Content, Message, MessageId, Opt, Token, Type};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, mpsc};

/// A client whose test chooses the block of each request.
struct BlockClient {
    socket: UdpSocket,
    uri: String,
    sent: u16,
    echo: Vec<u8>,
}

/// A response.
#[derive(Debug, PartialEq)]
struct Got {
    code: Code,
    block: Option<Block>,
    etag: Vec<u8>,
    payload: Vec<u8>,
}

impl BlockClient {
    async fn new(proxy: SocketAddr, uri: &str) -> Self {
        Self::at("127.0.0.1", proxy, uri).await
    }

    async fn at(address: &str, proxy: SocketAddr, uri: &str) -> Self {
        let socket = UdpSocket::bind((address, 0)).await.unwrap();
        socket.connect(proxy).await.unwrap();
        Self { socket, uri: uri.to_owned(), sent: 0, echo: Vec::new() }
    }

    /// Sends a request for a block; returns its token.
    async fn send(&mut self, num: u32, szx: u8) -> Token {
        self.sent += 1;
        let token = Token::new(&self.sent.to_be_bytes()).unwrap();
        let block = Block::new(num, false, szx).unwrap().to_uint().to_be_bytes();
        let first = block.iter().position(|byte| *byte != 0).unwrap_or(block.len());
        let mut options = vec![
            Opt { number: OptionNumber::BLOCK2, value: &block[first..] },
            Opt { number: OptionNumber::PROXY_URI, value: self.uri.as_bytes() },
        ];
        if !self.echo.is_empty() {
            options.push(Opt { number: OptionNumber::ECHO, value: &self.echo });
        }
        let content = Content { code: Code::GET, options: &options, payload: b"" };
        let mut buf = [0; 256];
        let id = MessageId(self.sent);
        let encoded = content.encode(&mut buf, Type::Confirmable, id, token).unwrap();
        self.socket.send(&buf[..encoded.len]).await.unwrap();
        token
    }

    /// The response to the request with this token. Others are passed over.
    async fn receive(&mut self, token: Token) -> Got {
        loop {
            let mut buf = [0; 2048];
            let length = self.socket.recv(&mut buf).await.unwrap();
            let message = Message::parse(&buf[..length]).unwrap();
            if message.kind() == Type::Confirmable {
                let [high, low] = message.message_id().0.to_be_bytes();
                self.socket.send(&[0x60, 0, high, low]).await.unwrap();
            }
            if message.code() == Code::EMPTY || message.token() != Some(token) {
                continue;
            }
            let option = |number| message.option(number);
            let value = |number| option(number).map(|opt| opt.value.to_vec()).unwrap_or_default();
            let echo = value(OptionNumber::ECHO);
            if !echo.is_empty() {
                self.echo = echo;
            }
            return Got {
                code: message.code(),
                block: option(OptionNumber::BLOCK2).and_then(|opt| Block::from_option(&opt).ok()),
                etag: value(OptionNumber::ETAG),
                payload: message.payload().to_vec(),
            };
        }
    }

    /// Asks for a block, and shows that the client is at its address if the gateway wants to know.
    async fn get(&mut self, num: u32, szx: u8) -> Got {
        loop {
            let token = self.send(num, szx).await;
            let got = self.receive(token).await;
            if got.code != Code::UNAUTHORIZED {
                return got;
            }
        }
    }

    /// Asks for each block from one on, twice; returns their bytes.
    async fn rest(&mut self, from: u32, szx: u8, etag: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        for num in from.. {
            let got = self.get(num, szx).await;
            assert_eq!((got.code, &*got.etag), (Code::CONTENT, etag), "block {num}");
            assert_eq!(self.get(num, szx).await, got, "block {num} again");
            body.extend(&got.payload);
            if !got.block.unwrap().more() {
                break;
            }
        }
        body
    }
}

/// A server that announces this length, sends these bytes and closes the connection, each time when there is a permit.
/// Returns its URI, and a channel with an item for each connection.
async fn web(length: usize, body: Vec<u8>, may: Arc<Semaphore>) -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let (asked, connections) = mpsc::channel(1000);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (body, may, asked) = (body.clone(), may.clone(), asked.clone());
            tokio::spawn(async move {
                read_to(&mut stream, "\r\n\r\n").await;
                asked.send(()).await.unwrap();
                may.acquire().await.unwrap().forget();
                answer(stream, length, &body).await;
            });
        }
    });
    (uri, connections)
}

async fn answer(mut stream: TcpStream, length: usize, body: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // The gateway ends the connection of a client that has gone.
    let _ = stream.write_all(body).await;
}

/// Bodies of more than 32 KiB pass through.
fn config() -> GatewayConfig {
    GatewayConfig::new().max_body(40_000)
}

fn always() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1000))
}

#[tokio::test]
async fn a_block_after_the_break_of_an_answer_is_refused_however_often_it_is_asked_for() {
    let (uri, _connections) = web(100_000, bytes(0..12_500), always()).await;
    let (_gateway, proxy) = gateway(config());
    let mut client = BlockClient::new(proxy, &uri).await;
    let broken = 50_000 / 1024;
    for num in 0..broken {
        assert_eq!(client.get(num, 6).await.code, Code::CONTENT, "block {num}");
    }
    for again in 0..3 {
        let got = client.get(broken, 6).await;
        assert_eq!(
            (got.code, &*got.payload),
            (Code::BAD_GATEWAY, &b"the answer has no end"[..]),
            "{again}"
        );
    }
}

#[tokio::test]
async fn a_copy_of_the_first_request_gets_the_same_block_and_each_block_may_be_asked_for_twice() {
    let body = bytes(0..15_000);
    let (uri, mut connections) = web(body.len(), body.clone(), always()).await;
    let (gateway, proxy) = gateway(config());
    let mut client = BlockClient::new(proxy, &uri).await;
    let first = client.get(0, 6).await;
    assert_eq!((first.code, first.etag.len()), (Code::CONTENT, 8));
    assert_eq!(client.get(0, 6).await, first);
    let rest = client.rest(1, 6, &first.etag).await;
    assert_eq!([first.payload, rest].concat(), body);
    connections.recv().await.unwrap();
    assert!(connections.try_recv().is_err(), "the server is asked once");
    assert_eq!(gateway.inner.downloads.count(), 1);
    // Another transfer begins anew.
    let second = client.get(0, 6).await;
    connections.recv().await.unwrap();
    assert_eq!(client.rest(1, 6, &second.etag).await, body[1024..]);
}

#[tokio::test]
async fn a_late_copy_of_the_first_request_does_not_end_the_download_that_goes_on() {
    let body = bytes(0..15_000);
    let may = Arc::new(Semaphore::new(1));
    let (uri, mut connections) = web(body.len(), body.clone(), may.clone()).await;
    let (_gateway, proxy) = gateway(config());
    let mut client = BlockClient::new(proxy, &uri).await;
    let first = client.get(0, 6).await;
    connections.recv().await.unwrap();
    let second = client.get(1, 6).await;
    let late = client.send(0, 6).await;
    connections.recv().await.unwrap();
    let third = client.get(2, 6).await;
    may.add_permits(1);
    assert_eq!(client.receive(late).await, first);
    let rest = client.rest(3, 6, &first.etag).await;
    assert_eq!([first.payload, second.payload, third.payload, rest].concat(), body);
}

#[tokio::test]
async fn a_client_may_ask_for_smaller_blocks_midway() {
    let body = bytes(0..11_000);
    let (uri, _connections) = web(body.len(), body.clone(), always()).await;
    let (_gateway, proxy) = gateway(config());
    let mut client = BlockClient::new(proxy, &uri).await;
    let first = client.get(0, 6).await;
    let second = client.get(1, 6).await;
    // Blocks of 256 bytes from byte 2048 on.
    let rest = client.rest(8, 4, &first.etag).await;
    assert_eq!([first.payload, second.payload, rest].concat(), body);
}

/// A gateway that trusts no address before it has echoed, as one on the Internet.
fn wary_gateway() -> (Gateway, SocketAddr) {
    let gateway = Gateway::new(config().allow_http("127.0.0.0/8".parse().unwrap()));
    let wary = ServerConfig::new().verify(Verify::All);
    let server = Server::with_config(gateway.router(), wary, ["127.0.0.1:0"]).unwrap();
    let proxy = server.local_addrs()[0];
    tokio::spawn(server.run());
    (gateway, proxy)
}

#[tokio::test]
async fn a_stranger_who_forges_the_address_of_a_client_moves_no_download() {
    let body = bytes(0..15_000);
    let (uri, _connections) = web(body.len(), body.clone(), always()).await;
    let (_gateway, proxy) = wary_gateway();
    let mut client = BlockClient::new(proxy, &uri).await;
    let first = client.get(0, 6).await;
    let second = client.get(1, 6).await;
    let echo = std::mem::take(&mut client.echo);
    // The stranger knows port and URI, but sees no answer.
    for num in [9, 14, 0] {
        let forged = client.send(num, 6).await;
        client.receive(forged).await;
        client.echo.clear();
    }
    client.echo = echo;
    let rest = client.rest(2, 6, &first.etag).await;
    assert_eq!([first.payload, second.payload, rest].concat(), body);
}

#[tokio::test]
async fn a_client_that_does_not_show_its_address_holds_a_connection_for_a_short_time() {
    let body = bytes(0..15_000);
    let (uri, _connections) = web(body.len(), body, always()).await;
    let (gateway, proxy) = wary_gateway();
    let mut forged = BlockClient::new(proxy, &uri).await;
    for num in [0, 1] {
        let token = forged.send(num, 6).await;
        assert_eq!(forged.receive(token).await.code, Code::UNAUTHORIZED, "block {num}");
        forged.echo.clear();
    }
    assert_eq!(gateway.inner.downloads.count(), 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(16)).await;
    // The clock stands still while there is work.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(gateway.inner.downloads.count(), 0);
}

#[tokio::test]
async fn downloads_that_wait_for_their_second_block_leave_most_connections_to_others() {
    let body = bytes(0..15_000);
    let (uri, _connections) = web(body.len(), body.clone(), always()).await;
    let (gateway, proxy) = gateway(config());
    let mut client = BlockClient::new(proxy, &format!("{uri}goes-on")).await;
    let first = client.get(0, 6).await;
    let second = client.get(1, 6).await;
    // On Linux all of 127.0.0.0/8 is this machine.
    let address = if cfg!(target_os = "linux") { "127.0.0.2" } else { "127.0.0.1" };
    let mut greedy = BlockClient::at(address, proxy, &uri).await;
    let mut other = BlockClient::new(proxy, &format!("{uri}begun")).await;
    let begun = other.get(0, 6).await;
    for n in 0..MAX_BEGUN + 3 {
        greedy.uri = format!("{uri}{n}");
        assert_eq!(greedy.get(0, 6).await.code, Code::CONTENT);
    }
    assert_eq!(gateway.inner.downloads.count(), MAX_BEGUN + 1);
    let rest = client.rest(2, 6, &first.etag).await;
    assert_eq!([first.payload, second.payload, rest].concat(), body);
    if cfg!(target_os = "linux") {
        assert_eq!(other.rest(1, 6, &begun.etag).await, body[1024..]);
    }
}
