//! Long bodies between CoAP clients and HTTP servers, which pass through as they come.

use super::rfc_examples::{answer, message};
use super::serve;
use crate::{Gateway, GatewayConfig};
use ebbtide::{Client, Code, OptionNumber, Request};
use ebbtide_core::wire::Message;
use futures_util::future::join_all;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(super) fn gateway(config: GatewayConfig) -> (Gateway, SocketAddr) {
    let gateway = Gateway::new(config.allow_http("127.0.0.0/8".parse().unwrap()));
    let address = serve(gateway.router());
    (gateway, address)
}

fn through(proxy: SocketAddr, request: impl Fn(String) -> Request, uri: &str) -> Request {
    request(format!("coap://{proxy}/")).option(OptionNumber::PROXY_URI, uri.as_bytes())
}

fn get(uri: String) -> Request {
    Request::get(uri).unwrap()
}

fn put(uri: String) -> Request {
    Request::put(uri).unwrap()
}

/// Reads until the text has come; returns all of it.
pub(super) async fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(end) {
        assert!(
            stream.read_buf(&mut seen).await.unwrap() > 0,
            "{}",
            String::from_utf8_lossy(&seen)
        );
    }
    String::from_utf8_lossy(&seen).into_owned()
}

/// Bytes that are the same nowhere else in the body.
pub(super) fn bytes(range: std::ops::Range<u32>) -> Vec<u8> {
    range.flat_map(u32::to_be_bytes).collect()
}

#[tokio::test]
async fn an_answer_longer_than_the_gateway_holds_comes_block_by_block() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let body = bytes(0..50_000);
    let sent = body.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            read_to(&mut stream, "\r\n\r\n").await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sent.len());
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&sent).await.unwrap();
        }
    });
    // Less than the body: what passes through is not held.
    let (gateway, proxy) = gateway(GatewayConfig::new().max_body(100_000));
    let client = Client::new();
    for size in [None, Some(64)] {
        let request = through(proxy, get, &uri);
        let request = match size {
            Some(size) => request.block_size(size),
            None => request,
        };
        let answer = client.request(request).await.unwrap();
        assert_eq!((answer.code(), answer.body().as_ref()), (Code::CONTENT, &*body), "{size:?}");
        let tag = answer.options().get(OptionNumber::ETAG).map(|opt| opt.value.len());
        assert_eq!(tag, Some(8), "each block shows of which answer it is");
    }
    assert_eq!(gateway.inner.downloads.count(), 1, "one for the client and the URI");
}

#[tokio::test]
async fn a_client_that_stops_asking_is_forgotten_and_the_connection_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let (gateway, proxy) =
        gateway(GatewayConfig::new().max_body(1000).deadline(Duration::from_millis(400)));
    let client = Client::new();
    let endless = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_to(&mut stream, "\r\n\r\n").await;
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
        while stream.write_all(chunk.as_bytes()).await.is_ok() {}
    });
    let mut download = client.download(through(proxy, get, &uri)).await.unwrap();
    for _ in 0..100 {
        assert_eq!(download.chunk().await.unwrap().unwrap().len(), 1024);
    }
    assert_eq!(gateway.inner.downloads.count(), 1);
    // It ends only with an error of the connection.
    endless.await.unwrap();
    assert_eq!(gateway.inner.downloads.count(), 0);
    assert!(download.chunk().await.is_err(), "what follows has gone");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_of_the_gateway_and_not_a_shorter_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            read_to(&mut stream, "\r\n\r\n").await;
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&[b'x'; 50_000]).await.unwrap();
        }
    });
    // Held as a whole, and passed through.
    for max_body in [1 << 20, 40_000] {
        let (_gateway, proxy) = gateway(GatewayConfig::new().max_body(max_body));
        let answer = Client::new().request(through(proxy, get, &uri)).await.unwrap();
        assert_eq!(
            (answer.code(), answer.text().as_ref()),
            (Code::BAD_GATEWAY, "the answer has no end"),
            "{max_body}"
        );
    }
}

/// Answers each connection after a moment, in which other clients can ask for the same; returns the URI and the number
/// of connections.
async fn slow_web(body: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let body = body.clone();
            tokio::spawn(async move {
                read_to(&mut stream, "\r\n\r\n").await;
                tokio::time::sleep(Duration::from_millis(100)).await;
                let fields = format!("Cache-Control: max-age=60\r\nContent-Length: {}", body.len());
                let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                let _ = stream.write_all(&body).await;
            });
        }
    });
    (uri, count)
}

#[tokio::test]
async fn clients_that_ask_at_once_share_an_answer_that_can_be_held() {
    let body = bytes(0..10_000);
    let (uri, connections) = slow_web(body.clone()).await;
    let (_gateway, proxy) = gateway(GatewayConfig::new().max_body(40_000));
    let clients: Vec<_> = (0..8).map(|_| Client::new()).collect();
    let answers = clients.iter().map(|client| client.request(through(proxy, get, &uri)));
    for answer in join_all(answers).await {
        assert_eq!(answer.unwrap().body().as_ref(), body);
    }
    let later = Client::new().request(through(proxy, get, &uri)).await.unwrap();
    assert_eq!(later.body().as_ref(), body);
    assert_eq!(connections.load(Ordering::SeqCst), 1, "it was shared, and then stored");
}

#[tokio::test]
async fn clients_that_ask_at_once_for_a_longer_answer_all_receive_it() {
    let body = bytes(0..10_001);
    let (uri, _) = slow_web(body.clone()).await;
    let (_gateway, proxy) = gateway(GatewayConfig::new().max_body(40_000));
    let clients: Vec<_> = (0..4).map(|_| Client::new()).collect();
    let answers = clients.iter().map(|client| client.request(through(proxy, get, &uri)));
    for answer in join_all(answers).await {
        let answer = answer.unwrap();
        assert_eq!((answer.code(), answer.body().as_ref()), (Code::CONTENT, &*body));
    }
}

#[tokio::test]
async fn a_body_for_an_http_server_reaches_it_as_it_arrives() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let (_, proxy) = gateway(GatewayConfig::new());
    let client = Client::new();
    let mut upload = client.begin_upload(through(proxy, put, &uri));
    upload.push(&[b'a'; 3000]);
    // Of 3000 bytes a block of 1024 waits for what follows.
    assert!(upload.send().await.unwrap().is_none());
    assert!(upload.send().await.unwrap().is_none());
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = read_to(&mut stream, &"a".repeat(1024)).await;
    assert!(head.starts_with("PUT / HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
    upload.push(b"end");
    upload.end();
    let server = tokio::spawn(async move {
        let rest = read_to(&mut stream, "\r\n0\r\n\r\n").await;
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        rest
    });
    let answer = loop {
        if let Some(answer) = upload.send().await.unwrap() {
            break answer;
        }
    };
    assert_eq!(answer.code(), Code::CHANGED);
    assert!(server.await.unwrap().contains("end"));
}

#[tokio::test]
async fn a_body_of_a_single_block_reaches_an_http_server_with_its_length() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let (_gateway, proxy) = gateway(GatewayConfig::new());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_to(&mut stream, "whole").await;
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        request
    });
    // Block1 is 0/0/1024.
    let options = [(OptionNumber::BLOCK1, &[6][..]), (OptionNumber::PROXY_URI, uri.as_bytes())];
    let answer = answer(proxy, &message(Code::PUT, &options, b"whole")).await;
    assert_eq!(Message::parse(&answer).unwrap().code(), Code::CHANGED);
    let request = server.await.unwrap();
    assert!(request.contains("content-length: 5\r\n"), "{request}");
    assert!(!request.contains("chunked"), "{request}");
}

#[tokio::test]
async fn a_body_that_its_client_gives_up_ends_the_request_without_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let (_, proxy) = gateway(GatewayConfig::new().deadline(Duration::from_millis(400)));
    let client = Client::new();
    let mut upload = client.begin_upload(through(proxy, put, &uri));
    upload.push(&[b'a'; 2000]);
    assert!(upload.send().await.unwrap().is_none());
    drop(upload);
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut seen = Vec::new();
    // The connection ends, or breaks; the last chunk never comes.
    let _ = stream.read_to_end(&mut seen).await;
    let seen = String::from_utf8_lossy(&seen).into_owned();
    assert!(seen.contains("aaaa") && !seen.ends_with("0\r\n\r\n"), "{seen}");
}
