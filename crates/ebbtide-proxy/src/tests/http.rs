//! Requests of HTTP clients, well-behaved and not.

use super::{config, serve};
use crate::Gateway;
use crate::GatewayConfig;
use ebbtide::server::{Call, Router, Subject, get};
use ebbtide::stream::{Identity, TlsServer, Trust};
use ebbtide::{Code, ContentFormat, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(super) async fn gateway(config: GatewayConfig) -> (Gateway, SocketAddr) {
    let gateway = Gateway::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, served) = (listener.local_addr().unwrap(), gateway.clone());
    tokio::spawn(async move { served.serve_http(listener).await });
    (gateway, address)
}

/// Sends these bytes, and reads until the gateway closes the connection.
pub(super) async fn exchange(gateway: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    // It may have been refused before its end.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request without further fields for a URI behind the gateway.
pub(super) async fn request(gateway: SocketAddr, method: &str, uri: &str, rest: &str) -> String {
    let head = format!("{method} /hc/{uri} HTTP/1.1\r\nHost: g\r\nConnection: close\r\n");
    exchange(gateway, &format!("{head}{rest}")).await
}

pub(super) fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[tokio::test]
async fn requests_and_answers_are_translated_with_their_bodies() {
    let store = |call: &Call<'_>| {
        assert_eq!(call.format(), Some(ContentFormat::JSON));
        Response::new(Code::CHANGED).payload(format!("{} bytes", call.payload().len()))
    };
    let read =
        |_: &Call<'_>| Response::content("x".repeat(3000)).format(ContentFormat::TEXT).etag(&[7]);
    let server = serve(Router::new().route("/r", get(read).put(store)));
    let (_, gateway) = gateway(config()).await;
    let uri = format!("coap://{server}/r");
    let got = request(gateway, "GET", &uri, "\r\n").await;
    assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with(&"x".repeat(3000)), "{got}");
    assert!(got.contains("content-type: text/plain; charset=utf-8\r\n"), "{got}");
    assert!(got.contains("etag: \"07\"\r\n") && got.contains("via: 1.1 ebbtide\r\n"), "{got}");
    let head = request(gateway, "HEAD", &uri, "\r\n").await;
    assert!(head.contains("content-length: 3000\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let known = request(gateway, "GET", &uri, "If-None-Match: \"07\"\r\n\r\n").await;
    assert_eq!(status(&known), "304");
    let body = format!(
        "Content-Type: application/json\r\nContent-Length: 2000\r\n\r\n{}",
        "y".repeat(2000)
    );
    let put = request(gateway, "PUT", &uri, &body).await;
    assert!(put.ends_with("2000 bytes"), "{put}");
    assert_eq!(
        status(&request(gateway, "GET", &format!("coap://{server}/none"), "\r\n").await),
        "404"
    );
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_request() {
    let began = Arc::new(AtomicUsize::new(0));
    let counted = began.clone();
    let slow = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Code::CONTENT
        }
    };
    let server = serve(Router::new().route("/slow", get(slow)));
    let (gateway, address) = gateway(config()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let text = format!("GET /hc/coap://{server}/slow HTTP/1.1\r\nHost: g\r\n\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    while began.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(gateway.inner.flights.count(), 1);
    drop(stream);
    while gateway.inner.flights.count() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_client_says_how_long_it_waits() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (_, gateway) = gateway(config()).await;
    let uri = format!("coap://{}/", silent.local_addr().unwrap());
    let late = request(gateway, "GET", &uri, "Prefer: wait=1\r\n\r\n").await;
    assert_eq!(status(&late), "504");
    let busy = request(gateway, "GET", &uri, "Prefer: wait=0\r\n\r\n").await;
    assert!(status(&busy) == "503" && busy.contains("retry-after: "), "{busy}");
}

#[tokio::test]
async fn states_of_an_observed_resource_are_events() {
    let (subject, count) = (Subject::new(), Arc::new(AtomicUsize::new(0)));
    let state = count.clone();
    let read = move |_: &Call<'_>| format!("state {}", state.load(Ordering::SeqCst));
    let server = serve(Router::new().route("/o", get(read).observable(&subject)));
    let (gateway, address) = gateway(config()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /hc/coap://{server}/o HTTP/1.1\r\nHost: g\r\nAccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut seen = String::new();
    for n in 0..3 {
        while !seen.contains(&format!("event: 2.05\ndata: state {n}\n\n")) {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).await.unwrap();
            assert!(count > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        count.fetch_add(1, Ordering::SeqCst);
        subject.changed();
    }
    assert_eq!((subject.observers(), gateway.inner.observations.count()), (1, 1));
}

#[tokio::test]
async fn one_connection_never_yields_answers_to_a_request_that_another_would_not_see() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let count = move |_: &Call<'_>| {
        counted.fetch_add(1, Ordering::SeqCst);
        Code::CONTENT
    };
    let server = serve(Router::new().route("/hidden", get(count)));
    let (_, gateway) = gateway(config()).await;
    let hidden = format!("GET /hc/coap://{server}/hidden HTTP/1.1\r\nHost: g\r\n\r\n");
    let long = hidden.len() + 5;
    for head in [
        format!("Content-Length: {long}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {long}\r\n\r\n0\r\n\r\n"),
        "Content-Length: 0\r\nContent-Length: 5\r\n\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n\r\n".to_owned(),
        "Transfer-Encoding: chunked, identity\r\n\r\n".to_owned(),
        "Content-Length: +0\r\n\r\n".to_owned(),
        "Content-Length : 0\r\n\r\n".to_owned(),
        " Content-Length: 0\r\n\r\n".to_owned(),
    ] {
        let text = format!("POST /hc/coap://{server}/none HTTP/1.1\r\nHost: g\r\n{head}{hidden}");
        let answer = exchange(gateway, &text).await;
        assert!(answer.matches("HTTP/1.1").count() <= 1, "{head:?}: {answer}");
        assert_eq!(asked.load(Ordering::SeqCst), 0, "{head:?}");
    }
}

#[tokio::test]
async fn heads_and_bodies_are_bounded() {
    let server = serve(Router::new());
    let (_, gateway) = gateway(config().max_body(1000)).await;
    let uri = format!("coap://{server}/");
    let many: String = (0..200).map(|n| format!("X-{n}: y\r\n")).collect();
    assert_eq!(status(&request(gateway, "GET", &uri, &format!("{many}\r\n")).await), "431");
    let long = format!("X: {}\r\n\r\n", "y".repeat(100_000));
    assert!(["431", "none"].contains(&status(&request(gateway, "GET", &uri, &long).await)));
    let announced = "Content-Length: 99999999999\r\n\r\n";
    assert_eq!(status(&request(gateway, "PUT", &uri, announced).await), "413");
    let endless = format!(
        "Transfer-Encoding: chunked\r\n\r\n{}",
        "400\r\n".to_owned() + &"y".repeat(0x400) + "\r\n"
    );
    assert_eq!(status(&request(gateway, "PUT", &uri, &endless).await), "413");
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let (_, gateway) = gateway(config()).await;
    for site in ["Sec-Fetch-Site: cross-site", "Origin: null", "Origin: http://other.example"] {
        let fields = format!("{site}\r\nContent-Length: 0\r\n\r\n");
        let answer = request(gateway, "POST", "coap://127.0.0.1/", &fields).await;
        assert_eq!(status(&answer), "403", "{site}");
    }
    // The gateway's own page is not one: it asks for something that does not exist.
    let fields = "Origin: http://g\r\nContent-Length: 0\r\n\r\n";
    assert_ne!(status(&request(gateway, "POST", "ftp://a/", fields).await), "403");
}

#[tokio::test(start_paused = true)]
async fn a_head_or_a_body_that_does_not_end_is_not_awaited_for_ever() {
    let (_, gateway) = gateway(config()).await;
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    stream.write_all(b"GET /hc/coap://127.0.0.1/ HTTP/1.1\r\nHost").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    let head = "PUT /hc/coap://127.0.0.1/ HTTP/1.1\r\nHost: g\r\nContent-Length: 9\r\n\r\n1";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_path_of_the_gateway_stands_for_a_server_over_http_as_over_coap() {
    let create = |_: &Call<'_>| {
        Response::new(Code::CREATED).option(ebbtide::OptionNumber::LOCATION_PATH, b"made")
    };
    let read = |call: &Call<'_>| format!("{} of the server", call.path());
    let server = serve(Router::new().fallback(get(read).post(create)));
    let config =
        GatewayConfig::new().backend("/floor/2", &format!("coap://{server}/").parse().unwrap());
    let (gateway, address) = gateway(config).await;
    let got =
        exchange(address, "GET /floor/2/kitchen HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n")
            .await;
    assert!(got.ends_with("/kitchen of the server"), "{got}");
    let post =
        "POST /floor/2 HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert!(exchange(address, post).await.contains("location: /floor/2/made\r\n"));
    let other =
        exchange(address, "GET /floor/3 HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&other), "404");
    let own = serve(gateway.router());
    let client = ebbtide::Client::new();
    let got = client.get(format!("coap://{own}/floor/2/hall")).await.unwrap();
    assert_eq!(got.text(), "/hall of the server");
    assert_eq!(client.get(format!("coap://{own}/floor/3")).await.unwrap().code(), Code::NOT_FOUND);
}

fn name() -> ServerName<'static> {
    ServerName::try_from("gateway.example").unwrap()
}

/// An identity of the gateway, the authority that certifies it, and a client that trusts it.
fn tls() -> (Identity, Trust, TlsConnector) {
    let made = rcgen::generate_simple_self_signed(vec!["gateway.example".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let authorities = Trust::authorities(chain.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let settings = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (identity, authorities, TlsConnector::from(Arc::new(settings)))
}

#[tokio::test]
async fn https_clients_see_the_certificate_and_may_be_asked_for_their_own() {
    let (identity, authorities, client) = tls();
    let open = TlsServer::new(identity);
    let closed = open.clone().require_client_certificates(&authorities).unwrap();
    let device = serve(Router::new().route("/r", get(|| async { "here" })));
    let gateway = Gateway::new(config());
    for (tls, expected) in [(open, "200"), (closed, "none")] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, served) = (listener.local_addr().unwrap(), gateway.clone());
        tokio::spawn(async move { served.serve_https(listener, &tls).await });
        let stream = TcpStream::connect(address).await.unwrap();
        let mut stream = client.connect(name(), stream).await.unwrap();
        let get =
            format!("GET /hc/coap://{device}/r HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n");
        // A refused client may learn it while it writes.
        let _ = stream.write_all(get.as_bytes()).await;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert_eq!(status(&answer), expected, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_https_client_that_does_not_read_is_not_awaited_for_ever() {
    // More than the system holds, and less than TLS does.
    const LENGTH: usize = 60 << 10;
    let (identity, _, client) = tls();
    let acceptor = TlsServer::new(identity).acceptor_of(b"http/1.1").unwrap();
    let listener = TcpSocket::new_v4().unwrap();
    listener.set_send_buffer_size(12 << 10).unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(8).unwrap();
    let address = listener.local_addr().unwrap();
    let answer = |_, _| async { hyper::Response::new(crate::http::whole(vec![b'x'; LENGTH])) };
    tokio::spawn(crate::http::serve(listener, Arc::new(acceptor), answer));
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(12 << 10).unwrap();
    let stream = socket.connect(address).await.unwrap();
    let mut stream = client.connect(name(), stream).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: g\r\n\r\n").await.unwrap();
    stream.flush().await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received).await;
    assert!(received.starts_with(b"HTTP/1.1 200") && received.len() < LENGTH, "{}", received.len());
}
