//! EDHOC (RFC 9528): handshakes before the first request by OSCORE.

use crate::common::errors::source;
use crate::common::eventually::eventually;
use crate::common::many_clients::{GET, ManyClients, Outgoing};
use crate::common::relay::{Trouble, relay};
use ebbtide::edhoc::EdhocCredentials;
use ebbtide::server::{Call, Router, Server, get};
use ebbtide::stream::Listen;
use ebbtide::{Client, ClientConfig, Error, OscoreFailure, Response, ServerConfig};
use ebbtide_core::wire::{Code, Content, Message, OptionNumber, Type};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;

// The keys and credentials of RFC 9529 chapter 3.
pub(crate) const CLIENT_KEY: &str =
    "fb13adeb6518cee5f88417660841142e830a81fe334380a953406a1305e8706b";
pub(crate) const CLIENT: &str = "a2027734322d35302d33312d46462d45462d33372d33322d333908a101a5010202412b2001215820ac75e9ece3e50bfc8ed60399889522405c47bf16df96660a41298cb4307f7eb62258206e5de611388a4b8a8211334ac7d37ecb52a387d257e6db3c2a93df21ff3affc8";
pub(crate) const SERVER_KEY: &str =
    "72cc4761dbd4c78f758931aa589d348d1ef874a7e303ede2f140dcf3e6aa4aac";
pub(crate) const SERVER: &str = "a2026b6578616d706c652e65647508a101a501020241322001215820bbc34960526ea4d32e940cad2a234148ddc21791a12afbcbac93622046dd44f02258204519e257236b2a0ce2023f0931f1f386ca7afda64fcde0108c224c51eabf6072";

/// The client's ephemeral public key in message 1 for suite 2.
const SHARE: &str = "8af6f430ebe18d34184017a9a11bf511c8dff8f834730b96c1b7c8dbca2fc3b6";

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn of_client() -> EdhocCredentials {
    EdhocCredentials::new(&hex(CLIENT_KEY), &hex(CLIENT)).unwrap()
}

fn of_server() -> EdhocCredentials {
    EdhocCredentials::new(&hex(SERVER_KEY), &hex(SERVER)).unwrap()
}

fn config(credentials: EdhocCredentials) -> ClientConfig {
    let config = ClientConfig::new().edhoc(credentials).nstart(4);
    config.ack_timeout(Duration::from_millis(100)).max_retransmit(8)
}

fn server_config(credentials: EdhocCredentials) -> ServerConfig {
    let config = ServerConfig::new().edhoc(credentials).nstart(4);
    // Messages of a handshake wait for their turn, on a busy machine for long.
    let config = config.acknowledge_after(Duration::from_secs(5));
    config.ack_timeout(Duration::from_millis(100)).max_retransmit(8)
}

fn server_at(at: &[&str]) -> Server {
    let who = |call: &Call<'_>| {
        Response::content(call.identity().map_or_else(|| "nobody".into(), <[u8]>::to_vec))
    };
    let config =
        server_config(of_server().peer(&hex(CLIENT), "sensor").unwrap()).oscore_required(true);
    Server::with_config(Router::new().route("/who", get(who)), config, at).unwrap()
}

fn serve_at(at: &str) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let server = server_at(&[at]);
    let at = server.local_addrs()[0];
    let running = tokio::spawn(async move {
        let _ = server.run().await;
    });
    (at, running)
}

fn client() -> Client {
    Client::with_config(config(of_client().peer(&hex(SERVER), "cloud").unwrap()))
}

#[tokio::test]
async fn requests_at_the_same_time_share_one_handshake_through_loss() {
    for lost in [0, 20] {
        let (server, _) = serve_at("127.0.0.1:0");
        let trouble = Trouble { lost, repeated: lost, late: lost, damaged: 0 };
        let at = relay(server, trouble, 9528).await;
        let uri = format!("coap://{at}/who");
        let client = client();
        let asked = (0..8).map(|_| {
            let (client, uri) = (client.clone(), uri.clone());
            tokio::spawn(async move { client.get(uri.as_str()).await })
        });
        for asked in asked.collect::<Vec<_>>() {
            assert_eq!(asked.await.unwrap().unwrap().text(), "sensor");
        }
        let plain = Client::new().get(format!("coap://{server}/who").as_str()).await.unwrap();
        assert_eq!(plain.code(), Code::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn a_handshake_comes_before_the_first_request_over_a_connection_too() {
    let server = server_at(&[]).listen(Listen::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let uri = format!("coap+tcp://{}/who", server.listeners()[0].1);
    tokio::spawn(server.run());
    let client = client();
    for _ in 0..2 {
        assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "sensor");
    }
}

/// Passes a client's datagrams to a server and back one at a time, and notes those of the client.
/// Those with the option of EDHOC are answered with 4.02 if `refuses` is set, as by a server that
/// does not know it (RFC 7252 section 5.4.1).
async fn observed(
    server: SocketAddr,
    refuses: Option<Code>,
) -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    back.connect(server).await.unwrap();
    let (at, seen) = (front.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let notes = seen.clone();
    tokio::spawn(async move {
        let (mut up, mut down, mut client) = ([0; 1500], [0; 1500], None);
        loop {
            tokio::select! {
                Ok((len, from)) = front.recv_from(&mut up) => {
                    client = Some(from);
                    notes.lock().unwrap().push(up[..len].to_vec());
                    let message = Message::parse(&up[..len]).unwrap();
                    let combined = message.option(OptionNumber::EDHOC).is_some();
                    if let Some(code) = refuses.filter(|_| combined) {
                        let (mut answer, kind) = ([0; 16], Type::Acknowledgement);
                        let content = Content { code, options: &[], payload: &[] };
                        let (id, token) = (message.message_id(), message.token_bytes());
                        let len = content.encode(&mut answer, kind, id, token).unwrap().len;
                        let _ = front.send_to(&answer[..len], from).await;
                    } else {
                        let _ = back.send(&up[..len]).await;
                    }
                }
                Ok(len) = back.recv(&mut down) => {
                    let _ = front.send_to(&down[..len], client.unwrap()).await;
                }
            }
        }
    });
    (at, seen)
}

/// The requests that were seen, without copies, as their options' numbers.
fn requests(seen: &Mutex<Vec<Vec<u8>>>) -> Vec<(Code, Vec<OptionNumber>)> {
    let (seen, mut ids) = (seen.lock().unwrap().clone(), HashSet::new());
    let mut message = |bytes: &Vec<u8>| {
        let message = Message::parse(bytes).unwrap();
        let numbers = message.options().map(|opt| opt.number).collect();
        // A copy may be marked as one.
        let is_first = message.code().is_request() && ids.insert(message.message_id());
        is_first.then(|| (message.code(), numbers))
    };
    seen.iter().filter_map(&mut message).collect()
}

#[tokio::test]
async fn the_first_request_carries_the_last_message_of_the_handshake() {
    let (server, _) = serve_at("127.0.0.1:0");
    let (at, seen) = observed(server, None).await;
    let (client, uri) = (client(), format!("coap://{at}/who"));
    for _ in 0..2 {
        assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "sensor");
    }
    let handshake =
        vec![OptionNumber::URI_PATH, OptionNumber::URI_PATH, OptionNumber::CONTENT_FORMAT];
    // RFC 9668 section 3.2: the option of EDHOC is empty, and stands outside.
    let combined = vec![OptionNumber::OSCORE, OptionNumber::EDHOC];
    let expected =
        [handshake, combined, vec![OptionNumber::OSCORE]].map(|numbers| (Code::POST, numbers));
    assert_eq!(requests(&seen), expected);
}

#[tokio::test]
async fn a_long_first_request_and_an_observation_have_a_handshake_of_their_own_before() {
    let (server, _) = serve_at("127.0.0.1:0");
    let (at, seen) = observed(server, None).await;
    let long = client().put(format!("coap://{at}/who").as_str(), vec![0; 513]).await.unwrap();
    assert_eq!(long.code(), Code::METHOD_NOT_ALLOWED);
    let mut observation = client().observe(format!("coap://{at}/who").as_str()).await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), "sensor");
    assert!(requests(&seen).iter().all(|(_, numbers)| !numbers.contains(&OptionNumber::EDHOC)));
}

#[tokio::test]
async fn a_server_without_the_combined_request_gets_the_messages_one_by_one() {
    let (server, _) = serve_at("127.0.0.1:0");
    let (at, seen) = observed(server, Some(Code::BAD_OPTION)).await;
    let (client, uri) = (client(), format!("coap://{at}/who"));
    for _ in 0..3 {
        assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "sensor");
    }
    let requests = requests(&seen);
    let combined = |numbers: &[OptionNumber]| numbers.contains(&OptionNumber::EDHOC);
    let refused = requests.iter().filter(|(_, numbers)| combined(numbers));
    assert_eq!(refused.count(), 1, "it is remembered");
    // Message 1, the combined request; messages 1 and 3, three requests.
    assert_eq!(requests.len(), 2 + 2 + 3);
}

#[tokio::test]
async fn a_server_that_says_nothing_holds_up_no_other_and_no_later_request() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (server, _) = serve_at("127.0.0.1:0");
    let client = client();
    let (other, nowhere) = (client.clone(), format!("coap://{}/who", silent.local_addr().unwrap()));
    let asked = tokio::spawn(async move { other.get(nowhere.as_str()).await });
    silent.recv(&mut [0; 256]).await.unwrap();
    let uri = format!("coap://{server}/who");
    assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "sensor");
    assert!(!asked.is_finished(), "it still waits");
    asked.abort();
}

#[tokio::test]
async fn a_peer_whose_credential_is_not_known_gets_nothing() {
    let (at, _) = serve_at("127.0.0.1:0");
    let uri = format!("coap://{at}/who");
    let reason = |error: Error| source(&error).unwrap_or_else(|| panic!("{error}"));
    // The server is not the one that the client expects.
    let nobody = Client::with_config(config(of_client()));
    let refused = reason(nobody.get(uri.as_str()).await.unwrap_err());
    assert!(matches!(refused, OscoreFailure::Handshake(_)), "{refused}");
    // The client is not one that the server expects.
    let stranger = of_server().peer(&hex(SERVER), "cloud").unwrap();
    let refused =
        reason(Client::with_config(config(stranger)).get(uri.as_str()).await.unwrap_err());
    assert!(matches!(refused, OscoreFailure::Refused { code: Code::BAD_REQUEST, .. }), "{refused}");
}

#[tokio::test]
async fn a_server_that_was_restarted_is_asked_for_another_handshake() {
    let (at, running) = serve_at("127.0.0.1:0");
    let uri = format!("coap://{at}/who");
    let client = client();
    assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "sensor");
    running.abort();
    let _ = running.await;
    let again = async {
        loop {
            // Its socket is closed with its last task.
            if UdpSocket::bind(at).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.unwrap();
    let _again = serve_at(&at.to_string());
    let refused = client.get(uri.as_str()).await.unwrap_err();
    assert!(refused.to_string().contains("Security context not found"), "{refused}");
    assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "sensor");
}

#[tokio::test]
async fn strangers_cost_a_bounded_number_of_handshakes_and_prove_their_address_then() {
    let (at, _) = serve_at("127.0.0.1:0");
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    stranger.connect(at).await.unwrap();
    let mut challenged = 0;
    for id in 0..80_u8 {
        // POST /.well-known/edhoc with message 1 of RFC 9529, for suite 2.
        let mut message = vec![0x40, 2, 7, id, 0xbb];
        message.extend_from_slice(b".well-known");
        message.extend_from_slice(b"\x05edhoc\xff\xf5\x03\x02\x58\x20");
        message.extend(hex(SHARE));
        message.push(0x37);
        stranger.send(&message).await.unwrap();
        let mut buf = [0; 256];
        let len = stranger.recv(&mut buf).await.unwrap();
        assert!(len <= message.len(), "a forged address gets no more than was sent");
        let answer = Message::parse(&buf[..len]).unwrap();
        match answer.code() {
            Code::CHANGED => assert_eq!(challenged, 0),
            code => {
                assert_eq!(code, Code::UNAUTHORIZED);
                challenged += 1;
            }
        }
    }
    assert_eq!(challenged, 80 - 64);
    // A client echoes.
    assert_eq!(client().get(format!("coap://{at}/who").as_str()).await.unwrap().text(), "sensor");
    for wrong in [&b"\xf5"[..], b"", b"\x37\x40", b"\xf5\x03\x03\x58\x20"] {
        let mut message = vec![0x50, 2, 9, 9, 0xbb];
        message.extend_from_slice(b".well-known");
        message.extend_from_slice(b"\x05edhoc");
        if !wrong.is_empty() {
            message.push(0xff);
            message.extend_from_slice(wrong);
        }
        stranger.send(&message).await.unwrap();
    }
    assert_eq!(client().get(format!("coap://{at}/who").as_str()).await.unwrap().text(), "sensor");
}

#[tokio::test]
async fn messages_beyond_the_share_of_an_address_are_refused_before_a_handler_has_them() {
    let server = server_at(&["127.0.0.1:0"]);
    let (at, meter) = (server.local_addrs()[0], server.meter());
    tokio::spawn(server.run());
    let mut many = ManyClients::new(at);
    let message = [&b"\xf5\x03\x02\x58\x20"[..], &hex(SHARE), b"\x37"].concat();
    let path = [(11, &b".well-known"[..]), (11, b"edhoc")];
    let (post, mut id) = (Outgoing { code: Code::POST, payload: &message, ..GET }, 0);
    let mut echo = None;
    eventually(|| {
        many.say(0, &Outgoing { id, options: &path, ..post });
        many.flush();
        id += 1;
        many.hear(
            |_| true,
            |_, message| {
                echo = message.option(OptionNumber::ECHO).map(|option| option.value.to_vec());
            },
        );
        echo.is_some()
    })
    .await;
    let echo = echo.unwrap();
    let fresh = [&path[..], &[(252, &echo)]].concat();
    // Twice as many as may wait of one address, and most of its budget.
    for first in (0..1200).step_by(50) {
        for n in first..first + 50 {
            many.say(0, &Outgoing { id: id + n, options: &fresh, ..post });
        }
        many.flush();
        tokio::task::yield_now().await;
    }
    eventually(|| {
        many.hear(|_| true, |_, _| {});
        meter.snapshot().refused.get("no-room", "loopback") > 0
    })
    .await;
}
