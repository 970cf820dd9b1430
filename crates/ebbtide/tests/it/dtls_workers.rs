//! Several workers at one address over DTLS.

use crate::dtls::nat;
use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, Server, get};
use ebbtide::{Client, ClientConfig, Response, ServerConfig};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn a_session_is_found_by_its_worker_whichever_of_them_its_new_address_leads_to() {
    const CLIENTS: u64 = 12;
    let keys = |_: &[u8]| Psk::new(b"secret").ok();
    let at = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = ServerConfig::new().workers(3).bind_dtls(DtlsBind::new(at, keys)).server_id(7);
    let who = |call: &Call<'_>| Response::content(call.identity().unwrap_or_default().to_vec());
    let none: [&str; 0] = [];
    let server = Server::with_config(Router::new().route("/who", get(who)), config, none).unwrap();
    let addresses = server.dtls_addrs();
    assert_eq!(addresses.len(), 1, "the workers share it");
    for number in 0..CLIENTS {
        let (front, rebound) = nat(addresses[0]).await;
        let identity = format!("device {number}");
        let credentials = Credentials::new(&*identity, Psk::new(b"secret").unwrap());
        let client = Client::with_config(ClientConfig::new().credentials(credentials));
        let uri = format!("coaps://{front}/who");
        assert_eq!(client.get(&*uri).await.unwrap().text(), identity);
        rebound.store(true, Ordering::Relaxed);
        assert_eq!(client.get(&*uri).await.unwrap().text(), identity);
    }
    // Of twelve addresses two thirds lead to another worker, where the session would not be known,
    // and its client would begin another one.
    assert_eq!(server.snapshot().dtls.established(), CLIENTS);
}
