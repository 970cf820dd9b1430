//! What is said when there is nowhere to serve.

use ebbtide::Server;
use ebbtide::server::Router;

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
