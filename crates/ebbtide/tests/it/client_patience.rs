//! What a client does about paths that fail for a while, and for how long it waits.

use ebbtide::server::{Call, Router, Server, put};
use ebbtide::{Client, ClientConfig, Code, Error, ErrorKind, Request, Response};
use ebbtide_core::wire::OptionNumber;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

/// Gives a message up within a second.
fn hasty() -> Client {
    let config = ClientConfig::new()
        .control(ebbtide::congestion::ControlConfig::parse("default").unwrap())
        .ack_timeout(Duration::from_millis(50))
        .max_retransmit(2);
    Client::with_config(config)
}

/// A relay to `server` that loses everything while it is told to.
async fn relay(
    server: SocketAddr,
    silent: Arc<AtomicBool>,
    passed: Arc<AtomicUsize>,
) -> SocketAddr {
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    back.connect(server).await.unwrap();
    let address = front.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut request, mut answer) = ([0; 2048], [0; 2048]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((len, from)) = front.recv_from(&mut request) => {
                    client = Some(from);
                    if !silent.load(Ordering::SeqCst) {
                        passed.fetch_add(1, Ordering::SeqCst);
                        let _ = back.send(&request[..len]).await;
                    }
                }
                Ok(len) = back.recv(&mut answer) => {
                    if let Some(client) = client.filter(|_| !silent.load(Ordering::SeqCst)) {
                        let _ = front.send_to(&answer[..len], client).await;
                    }
                }
            }
        }
    });
    address
}

#[tokio::test]
async fn an_upload_goes_on_after_a_silence_that_outlasts_the_retransmissions() {
    let echo = |call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().to_vec());
    let server = Server::bind(Router::new().route("/file", put(echo)), ["127.0.0.1:0"]).unwrap();
    let (silent, passed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let way = relay(server.local_addrs()[0], silent.clone(), passed.clone()).await;
    let body: Vec<u8> = (0..40_000u32).map(|n| (n / 7) as u8).collect();
    let request = Request::put(format!("coap://{way}/file")).unwrap().payload(body.clone());
    let uploading =
        tokio::spawn(
            async move { hasty().request(request.timeout(Duration::from_secs(30))).await },
        );
    while passed.load(Ordering::SeqCst) < 10 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    silent.store(true, Ordering::SeqCst);
    // Three transmissions are given up after 0.5 s.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!uploading.is_finished());
    silent.store(false, Ordering::SeqCst);
    let answer = uploading.await.unwrap().unwrap();
    assert_eq!(answer.code(), Code::CHANGED);
    assert!(*answer.body() == body);
}

#[tokio::test]
async fn an_unanswered_request_fails_when_the_message_layer_gives_up() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let request = Request::put(format!("coap://{}/", silent.local_addr().unwrap())).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), hasty().request(request)).await;
    let error = ended.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::GaveUp, "{error}");
    assert!(error.is_timeout() && error.may_retry() && !error.is_connect());
}

#[tokio::test]
async fn a_non_confirmable_request_is_waited_for_as_long_as_a_confirmable_one_is_repeated() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let request = Request::get(format!("coap://{}/", silent.local_addr().unwrap())).unwrap();
    let client = hasty();
    let asked = client.request(request.non_confirmable());
    // 50 ms x 3 x 1.5: MAX_TRANSMIT_SPAN.
    let ended = tokio::time::timeout(Duration::from_secs(20), asked).await.unwrap();
    assert!(matches!(&ended, Err(error) if error.kind() == ErrorKind::TimedOut), "{ended:?}");
}

#[tokio::test]
async fn a_client_sends_from_the_address_that_it_is_told() {
    let free = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Client::with_config(ClientConfig::new().local_address(free));
    let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/", peer.local_addr().unwrap());
    let asked = tokio::spawn(async move { client.get(uri).await });
    let mut buf = [0; 64];
    let heard = tokio::time::timeout(Duration::from_secs(10), peer.recv_from(&mut buf)).await;
    assert_eq!(heard.unwrap().unwrap().1, free);
    asked.abort();
}

#[tokio::test]
async fn an_error_of_the_server_can_be_an_error_of_the_caller() {
    let server = Server::bind(Router::new(), ["127.0.0.1:0"]).unwrap();
    let uri = format!("coap://{}/x", server.local_addrs()[0]);
    let response = Client::new().get(uri).await.unwrap();
    let error = Error::from(response.error_for_status().unwrap_err());
    assert!(error.to_string().starts_with("4.04 Not Found"), "{error}");
    assert!(Response::content("fine").error_for_status().is_ok());
}

#[tokio::test]
async fn a_link_local_address_needs_its_interface() {
    let refused = Client::new().get("coap://[fe80::1]/x").await.unwrap_err();
    let said = refused.to_string();
    assert!(refused.kind() == ErrorKind::Uri && said.contains("[fe80::1%25eth0]"), "{said}");
}

#[tokio::test]
async fn a_request_with_a_condition_is_not_repeated_over_another_connection() {
    for (conditional, times) in [(false, 2), (true, 1)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut buf = [0; 256];
                // An empty CSM (RFC 8323 section 5.3); then the request is read, and the connection ends.
                stream.write_all(&[0x00, 0xe1]).await.unwrap();
                let mut read = 0;
                while read < 12 {
                    read += stream.read(&mut buf).await.unwrap();
                }
            }
        });
        let mut request = Request::put(format!("coap+tcp://{address}/x")).unwrap().payload("1");
        if conditional {
            request = request.option(OptionNumber::IF_NONE_MATCH, &[]);
        }
        let request = request.timeout(Duration::from_secs(10));
        assert!(Client::new().request(request).await.is_err());
        assert_eq!(connections.load(Ordering::SeqCst), times, "conditional: {conditional}");
    }
}
