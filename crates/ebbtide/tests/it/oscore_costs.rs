//! What OSCORE costs: memory, bytes, and time. `cargo test --release -p ebbtide --test it
//! oscore_costs -- --ignored --nocapture --test-threads 1` prints the times.

use crate::common::counting::bytes_in_use;
use crate::edhoc::{CLIENT, CLIENT_KEY, SERVER, SERVER_KEY, hex};
use ebbtide::edhoc::EdhocCredentials;
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, get};
use ebbtide::{Client, ClientConfig, Request, Response, Server, ServerConfig};
use ebbtide_core::aes_ccm;
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::UdpSocket;

const WINDOW: usize = 64;
/// Fewer than there are message IDs for in EXCHANGE_LIFETIME.
const REQUESTS: usize = 10_000;

fn contexts(ours: &[u8], theirs: &[u8]) -> OscoreContexts {
    OscoreContexts::new([OscoreContext::new(&[7; 16], ours, theirs)]).unwrap()
}

fn serve(config: ServerConfig) -> SocketAddr {
    let text = "0123456789".repeat(6);
    let answer = get(move |_: &Call<'_>| Response::content(text.clone()));
    let router = Router::new().route("/test", answer);
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let at = server.local_addrs()[0];
    tokio::spawn(async move { drop(server.run().await) });
    at
}

#[test]
fn a_context_takes_less_than_300_bytes_with_its_replay_window_and_names() {
    const MANY: u16 = 1000;
    let secret = [7; 16];
    let before = bytes_in_use();
    let given = (0..MANY).map(|number| OscoreContext::new(&secret, b"s", &number.to_be_bytes()));
    let contexts = OscoreContexts::new(given).unwrap();
    let each = (bytes_in_use() - before) / MANY as isize;
    drop(contexts);
    println!("{each} bytes");
    assert!((200..300).contains(&each), "{each} bytes");
}

/// How long the requests of a client take.
#[expect(clippy::disallowed_methods, reason = "a measurement")]
async fn time(client: &Client, at: SocketAddr) -> Duration {
    let uri = format!("coap://{at}/test");
    assert!(client.get(uri.as_str()).await.unwrap().is_success());
    let ask = || async {
        let request = Request::get(uri.as_str()).unwrap();
        for _ in 0..REQUESTS / WINDOW {
            assert!(client.request(request.clone()).await.unwrap().is_success());
        }
    };
    let began = std::time::Instant::now();
    futures_util::future::join_all((0..WINDOW).map(|_| ask())).await;
    began.elapsed()
}

/// How long the cipher takes for a request and its answer at both ends, with key schedules.
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn time_of_cipher(exchanges: u32) -> Duration {
    let (key, nonce, aad, mut tag) = ([7; 16], [1; 13], [2; 22], [0; 8]);
    // Code, Uri-Path; code, marker, 60 digits.
    let (mut request, mut answer) = ([3; 6], [4; 62]);
    let began = std::time::Instant::now();
    for _ in 0..exchanges {
        for data in [&mut request[..], &mut answer[..]] {
            assert!(aes_ccm::seal(black_box(&key), &nonce, &aad, data, &mut tag));
            assert!(aes_ccm::open(black_box(&key), &nonce, &aad, data, &tag));
        }
    }
    began.elapsed() / exchanges
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "a measurement, for release builds"]
async fn requests_beside_plain_ones() {
    let mut shares = Vec::new();
    for round in 0..15 {
        // New ones, which have all message IDs before them.
        let config = ClientConfig::new().nstart(WINDOW as u16);
        let secured = config.clone().oscore(contexts(b"\x01", b"\x02"));
        let plain = time(&Client::with_config(config), serve(ServerConfig::new())).await;
        let server = serve(ServerConfig::new().oscore(contexts(b"\x02", b"\x01")));
        let secured = time(&Client::with_config(secured), server).await;
        let each = |span: Duration| span.as_secs_f64() * 1e6 / REQUESTS as f64;
        let share = plain.as_secs_f64() / secured.as_secs_f64();
        let (plain, secured) = (each(plain), each(secured));
        let cipher = time_of_cipher(10_000).as_secs_f64() * 1e6;
        println!(
            "round {round}: {plain:.2} us plain, {secured:.2} us by OSCORE, {cipher:.2} us of it for the cipher: {share:.2}"
        );
        shares.push(share);
    }
    shares.sort_by(f64::total_cmp);
    println!("median {:.2}", shares[shares.len() / 2]);
}

/// The lengths of a request and of its answer on the wire.
async fn lengths(client: ClientConfig, server: ServerConfig) -> [usize; 2] {
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    back.connect(serve(server)).await.unwrap();
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/test", front.local_addr().unwrap());
    let pass = async {
        let (mut request, mut answer) = ([0; 512], [0; 512]);
        let (asked, from) = front.recv_from(&mut request).await.unwrap();
        back.send(&request[..asked]).await.unwrap();
        let answered = back.recv(&mut answer).await.unwrap();
        front.send_to(&answer[..answered], from).await.unwrap();
        [asked, answered]
    };
    let client = Client::with_config(client.ack_timeout(Duration::from_secs(60)));
    let (response, lengths) = tokio::join!(client.get(uri.as_str()), pass);
    assert!(response.unwrap().is_success());
    lengths
}

#[tokio::test]
async fn a_get_is_13_bytes_longer_and_its_answer_11() {
    let plain = lengths(ClientConfig::new(), ServerConfig::new()).await;
    // A client's ID of no bytes, and one of one byte. An answer has none.
    for (id, more) in [(&b""[..], 13), (b"\x01", 14)] {
        let client = ClientConfig::new().oscore(contexts(id, b"\x02"));
        let secured = lengths(client, ServerConfig::new().oscore(contexts(b"\x02", id))).await;
        // The option with flags and number, or with nothing; marker, code and tag.
        assert_eq!([secured[0] - plain[0], secured[1] - plain[1]], [more, 11], "{id:?}");
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "a measurement, for release builds"]
#[expect(clippy::disallowed_methods, reason = "a measurement")]
async fn handshakes_by_edhoc() {
    const MANY: u32 = 200;
    let credentials = |key: &str, own: &str, peer: &str| {
        EdhocCredentials::new(&hex(key), &hex(own)).unwrap().peer(&hex(peer), "peer").unwrap()
    };
    let server = ServerConfig::new().edhoc(credentials(SERVER_KEY, SERVER, CLIENT));
    let at = serve(server);
    let client = ClientConfig::new().edhoc(credentials(CLIENT_KEY, CLIENT, SERVER));
    let began = std::time::Instant::now();
    for _ in 0..MANY {
        let client = Client::with_config(client.clone());
        assert!(client.get(format!("coap://{at}/test")).await.unwrap().is_success());
    }
    let each = (began.elapsed() / MANY).as_secs_f64() * 1000.0;
    println!("{each:.2} ms of one core at both ends together, with the first request");
}
