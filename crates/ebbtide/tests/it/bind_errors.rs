//! What is said when there is nowhere to serve.

use ebbtide::server::Router;
use ebbtide::{Client, ClientConfig, Server, ServerConfig};
use std::time::Duration;

#[tokio::test]
async fn a_name_without_an_address_is_not_taken_for_an_address() {
    for name in ["no-port", "no-such-host.invalid:5683"] {
        let error = Server::bind(Router::new(), [name]).unwrap_err().to_string();
        assert!(error.starts_with("there is no address to bind to: "), "{error}");
    }
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = Server::bind(Router::new(), [address]).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{address} is in use")), "{error}");
}

#[tokio::test]
async fn a_span_above_a_day_is_refused_with_its_name_and_the_remedy() {
    let day = Duration::from_secs(86_400);
    let above = day + Duration::from_secs(1);
    let said = "ack_timeout is longer than a day: set at most 86400 s";
    let config = ServerConfig::new().ack_timeout(above);
    let server = Server::with_config(Router::new(), config, ["127.0.0.1:0"]);
    assert_eq!(server.unwrap_err().to_string(), said);
    let client = Client::with_config(ClientConfig::new().ack_timeout(above));
    let error = client.get("coap://127.0.0.1:9/x").await.unwrap_err().to_string();
    assert!(error.contains(said), "{error}");
    assert!(
        Server::with_config(Router::new(), ServerConfig::new().ack_timeout(day), ["127.0.0.1:0"])
            .is_ok()
    );
    let config = ServerConfig::new().transport(|transport| transport.max_latency(above));
    let error =
        Server::with_config(Router::new(), config, ["127.0.0.1:0"]).unwrap_err().to_string();
    assert!(error.starts_with("max_latency is longer than a day"), "{error}");
}
