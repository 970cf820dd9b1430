//! What a client does about addresses and errors. Its patience is tested by crate `ebbtide-testnet`.

use ebbtide::server::{Router, Server};
use ebbtide::{Client, ClientConfig, Error, ErrorKind, Request, Response};
use ebbtide_core::wire::OptionNumber;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

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
async fn a_connection_leaves_from_a_link_local_address_of_its_interface() {
    // Whether or not this machine has the address: without the zone the system takes none of these for valid.
    let config = ClientConfig::new().local_address("[fe80::1%1]:9".parse().unwrap());
    let refused = Client::with_config(config).get("coap+tcp://[::1]:9/x").await.unwrap_err();
    let source = std::error::Error::source(&refused).unwrap();
    let source = source.downcast_ref::<std::io::Error>().unwrap();
    assert_ne!(source.kind(), std::io::ErrorKind::InvalidInput, "{source}");
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
