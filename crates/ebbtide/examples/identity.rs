//! Recipe 5, authorisation: who may do what, by the identity that DTLS has proved. Over TLS it is the name
//! in the client's certificate (`ebbtide::stream::TlsServer`), and the handlers are the same.
//!
//! `cargo run -p ebbtide --example identity`

use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, get};
use ebbtide::{Client, ClientConfig, Code, Response, Server, ServerConfig};
use std::error::Error;

/// The keys of those who may connect.
fn key(identity: &[u8]) -> Option<Psk> {
    match identity {
        b"alice" => Psk::new(b"alice's secret").ok(),
        b"bob" => Psk::new(b"bob's secret").ok(),
        _ => None,
    }
}

/// Whoever connects may read, alice may write. It is asked at a body's first block, before anything of it is
/// stored.
fn authorize(call: &Call<'_>) -> Result<(), Response> {
    match (call.identity(), call.method()) {
        (None, _) => Err(Response::new(Code::UNAUTHORIZED)),
        (Some(_), Code::GET) | (Some(b"alice"), _) => Ok(()),
        (Some(_), _) => Err(Response::error(Code::FORBIDDEN, "only alice may write")),
    }
}

async fn write(call: Call<'static>) -> (Code, String) {
    let name = String::from_utf8_lossy(call.identity().unwrap_or_default()).into_owned();
    (Code::CHANGED, format!("{} bytes of {name}", call.payload().len()))
}

fn client(identity: &str, secret: &[u8]) -> Client {
    let credentials = Psk::new(secret).map(|psk| Credentials::new(identity, psk)).ok();
    Client::with_config(ClientConfig::new().credentials(credentials))
}

/// Asks as several clients.
pub async fn run() -> Result<(), Box<dyn Error>> {
    let resource = get(|| "settings").put(write).authorize(authorize).max_body(100_000);
    let router = Router::new().route("/settings", resource);
    let config = ServerConfig::new().bind_dtls(DtlsBind::new(([127, 0, 0, 1], 0), key));
    let server = Server::with_config(router, config, ["127.0.0.1:0"])?;
    let (secured, plain) = (server.dtls_addrs()[0], server.local_addrs()[0]);
    tokio::spawn(server.run());

    let uri = format!("coaps://{secured}/settings");
    let (alice, bob) = (client("alice", b"alice's secret"), client("bob", b"bob's secret"));
    assert_eq!(alice.put(&*uri, vec![0; 5000]).await?.text(), "5000 bytes of alice");
    assert_eq!(bob.get(&*uri).await?.text(), "settings");
    assert_eq!(bob.put(&*uri, "x").await?.code(), Code::FORBIDDEN);
    let anonymous = Client::new().get(format!("coap://{plain}/settings")).await?;
    assert_eq!(anonymous.code(), Code::UNAUTHORIZED);
    let mallory = client("mallory", b"a guess").get(&*uri).await;
    println!("{}", mallory.err().ok_or("mallory was let in")?);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
