//! Contexts whose keys are made anew with the peer at each start (RFC 8613 appendix B.2).

use crate::common::errors::source;
use crate::common::relay::{Trouble, relay};
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Server, get, post};
use ebbtide::{Client, ClientConfig, OscoreFailure, Request, Response, ServerConfig};
use ebbtide_core::oscore::renewal::ANSWERED;
use ebbtide_core::oscore::{Algorithm, MasterSecret, OscoreOption, SecurityContext, Volatile};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;

fn context(ours: &[u8], theirs: &[u8]) -> OscoreContext {
    OscoreContext::new(&[7; 16], ours, theirs).renewed()
}

fn config(contexts: impl IntoIterator<Item = OscoreContext>) -> ClientConfig {
    ClientConfig::new().oscore(OscoreContexts::new(contexts).unwrap())
}

fn client_with(contexts: impl IntoIterator<Item = OscoreContext>) -> Client {
    let config = config(contexts);
    Client::with_config(config.ack_timeout(Duration::from_millis(100)).max_retransmit(8))
}

fn client() -> Client {
    client_with([context(b"c", b"s")])
}

/// A server that counts POSTs.
fn serve(at: &str) -> (SocketAddr, Arc<AtomicUsize>, tokio::task::JoinHandle<()>) {
    let who = |call: &Call<'_>| {
        Response::content(call.identity().map_or_else(|| "nobody".into(), <[u8]>::to_vec))
    };
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let change = move || {
        let count = counted.fetch_add(1, Ordering::SeqCst) + 1;
        Response::new(Code::CHANGED).payload(count.to_string())
    };
    let who = get(who).put(who).delete(who).fetch(who);
    let router = Router::new().route("/who", who).route("/count", post(change));
    let contexts = [context(b"s", b"c").name("sensor")];
    let config = ServerConfig::new()
        .oscore(OscoreContexts::new(contexts).unwrap())
        .oscore_required(true)
        .ack_timeout(Duration::from_millis(100));
    let server = Server::with_config(router, config, [at]).unwrap();
    let at = server.local_addrs()[0];
    let running = tokio::spawn(async move {
        let _ = server.run().await;
    });
    (at, count, running)
}

#[tokio::test]
async fn clients_that_start_with_a_secret_that_was_used_are_served_through_loss() {
    for lost in [0, 10] {
        let (server, ..) = serve("127.0.0.1:0");
        let trouble = Trouble { lost, repeated: lost, late: lost, damaged: 0 };
        let at = relay(server, trouble, 8613).await;
        for _ in 0..4 {
            let client = client();
            // Requests at the same time share one exchange.
            let asked = (0..4).map(|_| {
                let (client, uri) = (client.clone(), format!("coap://{at}/who"));
                tokio::spawn(async move { client.get(uri.as_str()).await })
            });
            for asked in asked.collect::<Vec<_>>() {
                assert_eq!(asked.await.unwrap().unwrap().text(), "sensor");
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_was_restarted_gives_new_keys_too() {
    let (at, _, running) = serve("127.0.0.1:0");
    let (client, uri) = (client(), format!("coap://{at}/who"));
    assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "sensor");
    running.abort();
    let _ = running.await;
    let again = async {
        while UdpSocket::bind(at).await.is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.unwrap();
    let _again = serve(&at.to_string());
    let refused = client.get(uri.as_str()).await.unwrap_err();
    assert!(refused.to_string().contains("Security context not found"), "{refused}");
    assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "sensor");
}

#[tokio::test]
async fn captured_requests_of_an_exchange_are_never_handled_again() {
    let (server, count, _) = serve("127.0.0.1:0");
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    back.connect(server).await.unwrap();
    let uri = format!("coap://{}/count", front.local_addr().unwrap());
    let mut captured = Vec::new();
    for life in 1..=3 {
        let asked = tokio::spawn({
            let uri = uri.clone();
            async move {
                // Nothing is lost.
                let patient = config([context(b"c", b"s")]).ack_timeout(Duration::from_secs(60));
                let client = Client::with_config(patient);
                for _ in 0..2 {
                    client.post(uri.as_str(), "").await.unwrap();
                }
            }
        });
        // The first request of the exchange, the one that ends it, and one after it.
        let mut buf = [0; 512];
        while captured.len() < 3 * life {
            let (len, from) = front.recv_from(&mut buf).await.unwrap();
            if captured.iter().any(|before: &Vec<u8>| before[..] == buf[..len]) {
                // Where the machine is busy, a client repeats what is about to be answered.
                continue;
            }
            captured.push(buf[..len].to_vec());
            back.send(&buf[..len]).await.unwrap();
            let len = back.recv(&mut buf).await.unwrap();
            front.send_to(&buf[..len], from).await.unwrap();
        }
        asked.await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 2 * life);
        for (at, datagram) in captured.iter().enumerate() {
            let attacker = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            attacker.send_to(datagram, server).await.unwrap();
            let len = attacker.recv(&mut buf).await.unwrap();
            let answer = Message::parse(&buf[..len]).unwrap();
            let is_protected = answer.option(OptionNumber::OSCORE).is_some();
            assert_eq!(is_protected, at % 3 == 0, "the first one is answered and not processed");
            assert!(answer.code() == Code::UNAUTHORIZED || is_protected, "{}", answer.code());
            assert!(len <= 3 * datagram.len());
        }
        assert_eq!(count.load(Ordering::SeqCst), 2 * life, "nothing was handled again");
    }
    let with_context = |datagram: &Vec<u8>| {
        let message = Message::parse(datagram).unwrap();
        let value = message.option(OptionNumber::OSCORE).unwrap().value.to_vec();
        OscoreOption::decode(&value).unwrap().kid_context.map_or(0, <[u8]>::len)
    };
    let lengths: Vec<usize> = captured.iter().take(3).map(with_context).collect();
    assert_eq!(lengths, [1 + 8, 2 + 24, 2 + 24], "ID1; R2 and R3, which a POST always names");
}

#[tokio::test]
async fn a_peer_that_does_not_renew_or_has_another_key_is_told_so() {
    let (at, ..) = serve("127.0.0.1:0");
    let uri = format!("coap://{at}/who");
    for (name, contexts) in [
        ("other key", OscoreContext::new(&[8; 16], b"c", b"s").renewed()),
        ("unknown ID", context(b"d", b"s")),
        ("not renewed", OscoreContext::new(&[7; 16], b"c", b"s")),
    ] {
        let refused = client_with([contexts]).get(uri.as_str()).await.unwrap_err();
        let reason = source(&refused).unwrap_or_else(|| panic!("{name}: {refused}"));
        let OscoreFailure::Refused { code, .. } = reason else { panic!("{name}: {reason}") };
        let expected = if name == "other key" { Code::BAD_REQUEST } else { Code::UNAUTHORIZED };
        assert_eq!(code, expected, "{name}");
    }
    let same = [context(b"c", b"s"), OscoreContext::new(&[1; 16], b"x", b"s").renewed()];
    assert!(OscoreContexts::new(same).is_err(), "two contexts of one peer");
}

#[tokio::test]
async fn a_server_that_finds_keys_by_the_id_context_only_is_sent_it_again() {
    let (server, count, _) = serve("127.0.0.1:0");
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    back.connect(server).await.unwrap();
    let at = front.local_addr().unwrap();
    // As libcoap 4.3.4, which decrypts what has no ID Context with the keys of before.
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = refused.clone();
    tokio::spawn(async move {
        let mut buf = [0; 512];
        loop {
            let (len, from) = front.recv_from(&mut buf).await.unwrap();
            let message = Message::parse(&buf[..len]).unwrap();
            let value = message.option(OptionNumber::OSCORE).unwrap().value;
            if OscoreOption::decode(value).unwrap().kid_context.is_none() {
                counted.fetch_add(1, Ordering::SeqCst);
                let token = message.token_bytes().len();
                (buf[0], buf[1]) = (0x60 | token as u8, Code::BAD_REQUEST.0);
                front.send_to(&buf[..4 + token], from).await.unwrap();
                continue;
            }
            back.send(&buf[..len]).await.unwrap();
            let len = back.recv(&mut buf).await.unwrap();
            front.send_to(&buf[..len], from).await.unwrap();
        }
    });
    for (nth, method) in [Code::GET, Code::PUT, Code::DELETE, Code::FETCH].into_iter().enumerate() {
        let patient = config([context(b"c", b"s")]).ack_timeout(Duration::from_secs(60));
        let client = Client::with_config(patient);
        for round in 1..=2 {
            let count = client.post(format!("coap://{at}/count"), "").await.unwrap();
            assert_eq!(count.text(), (2 * nth + round).to_string());
            let request = Request::new(method, format!("coap://{at}/who")).unwrap();
            assert_eq!(client.request(request).await.unwrap().text(), "sensor");
        }
        let refused = refused.load(Ordering::SeqCst);
        assert_eq!(refused, nth + 1, "one {method} without the ID Context was tried");
    }
    assert_eq!(count.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn a_client_that_sends_id_contexts_as_they_are_is_answered_in_the_same_form() {
    const SECRET: MasterSecret<'_> = MasterSecret {
        secret: &[7; 16],
        salt: &[],
        id_context: None,
        algorithm: Algorithm::AesCcm16_64_128,
    };
    let (server, count, _) = serve("127.0.0.1:0");
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server).await.unwrap();
    let path = [Opt { number: OptionNumber::URI_PATH, value: b"count" }];
    let post = Content { code: Code::POST, options: &path, payload: &[] };
    // The first one could be taken for a byte string of CBOR.
    for (nth, id1) in [&b"\x47seven 7"[..], b"eight  8"].into_iter().enumerate() {
        let ask = async |id_context: &[u8]| {
            let secret = MasterSecret { id_context: Some(id_context), ..SECRET };
            let mut context = SecurityContext::new(&secret, b"c", b"s", Volatile).unwrap();
            let mut sealed = [0; 64];
            let (outer, _) = context.protect_request(&post, &mut sealed).unwrap();
            let value = outer.value;
            let option = [Opt { number: OptionNumber::OSCORE, value: value.as_slice() }];
            let content = Content { code: outer.code, options: &option, payload: outer.payload };
            let mut buf = [0; 256];
            let id = MessageId(u16::from_be_bytes([id_context[0], id_context[1]]));
            let encoded = content.encode(&mut buf, Type::Confirmable, id, Token::EMPTY).unwrap();
            socket.send(&buf[..encoded.len]).await.unwrap();
            let len = socket.recv(&mut buf).await.unwrap();
            let answer = Message::parse(&buf[..len]).unwrap();
            let value = answer.option(OptionNumber::OSCORE).map(|option| option.value.to_vec());
            value.unwrap_or_else(|| panic!("{} is not protected", answer.code()))
        };
        let value = ask(id1).await;
        let answered = OscoreOption::decode(&value).unwrap().kid_context.unwrap();
        assert_eq!(answered.len(), ANSWERED, "R2 as it is");
        assert_eq!(count.load(Ordering::SeqCst), nth);
        ask(&[answered, b"R3"].concat()).await;
        assert_eq!(count.load(Ordering::SeqCst), nth + 1);
    }
}
