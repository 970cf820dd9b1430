//! The contents of a client's messages.

use ebbtide::{Client, Code, Request};
use ebbtide_core::wire::{Content, Message, Opt, OptionNumber, Type};
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;

/// The Echo option and the payload of a request.
type Seen = (Option<Vec<u8>>, Vec<u8>);

/// A server that answers its request number n with `codes[n]` and with n as Echo option.
async fn server(codes: &'static [Code]) -> (String, Arc<Mutex<Vec<Seen>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let base = format!("coap://{}", socket.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    tokio::spawn(async move {
        let mut buf = [0; 1500];
        for (number, code) in (0u8..).zip(codes) {
            let (len, from) = socket.recv_from(&mut buf).await.unwrap();
            let message = Message::parse(&buf[..len]).unwrap();
            let echo = message.option(OptionNumber::ECHO).map(|opt| opt.value.to_vec());
            seen.lock().unwrap().push((echo, message.payload().to_vec()));
            let value = [number];
            let options = [Opt { number: OptionNumber::ECHO, value: &value }];
            let content = Content { code: *code, options: &options, payload: b"" };
            let mut out = [0; 64];
            let (id, token) = (message.message_id(), message.token_bytes());
            let encoded = content.encode(&mut out, Type::Acknowledgement, id, token).unwrap();
            socket.send_to(&out[..encoded.len], from).await.unwrap();
        }
    });
    (base, requests)
}

#[tokio::test]
async fn a_get_or_delete_is_sent_without_a_payload() {
    let (base, seen) = server(&[Code::CONTENT, Code::DELETED, Code::CONTENT]).await;
    let client = Client::new();
    for code in [Code::GET, Code::DELETE, Code::FETCH] {
        let request = Request::new(code, format!("{base}/x")).unwrap().payload("body");
        client.request(request).await.unwrap();
    }
    let payloads: Vec<_> = seen.lock().unwrap().iter().map(|(_, body)| body.clone()).collect();
    // RFC 7252 section 5.5.
    assert_eq!(payloads, [b"".as_slice(), b"", b"body"]);
}

#[tokio::test]
async fn an_echo_value_of_any_response_is_in_the_next_request_to_its_server() {
    let (base, seen) = server(&[Code::CONTENT, Code::NOT_FOUND, Code::CONTENT]).await;
    let (other, nothing) = server(&[Code::CONTENT]).await;
    let client = Client::new();
    client.get(format!("{base}/a")).await.unwrap();
    client.get(format!("{other}/a")).await.unwrap();
    client.get(format!("{base}/b")).await.unwrap();
    client.put(format!("{base}/c"), "x").await.unwrap();
    let echoes: Vec<_> = seen.lock().unwrap().iter().map(|(echo, _)| echo.clone()).collect();
    // RFC 9175 section 2.3.
    assert_eq!(echoes, [None, Some(vec![0]), Some(vec![1])]);
    assert_eq!(nothing.lock().unwrap()[0].0, None, "another server");
}

#[tokio::test]
async fn an_echo_value_is_replaced_by_that_of_a_challenge() {
    let (base, seen) = server(&[Code::CONTENT, Code::UNAUTHORIZED, Code::CONTENT]).await;
    let client = Client::new();
    for _ in 0..2 {
        client.get(format!("{base}/a")).await.unwrap();
    }
    let echoes: Vec<_> = seen.lock().unwrap().iter().map(|(echo, _)| echo.clone()).collect();
    assert_eq!(echoes, [None, Some(vec![0]), Some(vec![1])]);
}
