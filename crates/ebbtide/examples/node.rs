//! Recipe 11, a device and its server: the device opens the session, and the server asks it over the same one.
//!
//! `cargo run -p ebbtide --example node`

use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Router, State, get, post};
use ebbtide::{Client, ClientConfig, Code, Peer, Server, ServerConfig};
use std::error::Error;
use std::net::SocketAddr;
use tokio::sync::mpsc;

fn key(_: &[u8]) -> Option<Psk> {
    Psk::new(b"secret").ok()
}

async fn register(peer: Peer, State(devices): State<mpsc::Sender<Peer>>) -> Code {
    let _ = devices.send(peer).await;
    Code::CREATED
}

/// What the valve says when its server asks.
pub async fn run() -> Result<String, Box<dyn Error>> {
    let (sender, mut devices) = mpsc::channel(8);
    let router = Router::new().route("/rd", post(register)).with_state(sender);
    let config = ServerConfig::new().bind_dtls(DtlsBind::new(([127, 0, 0, 1], 0), key));
    let server = Server::with_config(router, config, Vec::<SocketAddr>::new())?;
    let base = format!("coaps://{}", server.dtls_addrs()[0]);
    tokio::spawn(server.run());

    let router = Router::new().route("/valve", get(|| "open"));
    let config = ClientConfig::new()
        .credentials(Psk::new(b"secret").map(|key| Credentials::new("valve", key)).ok());
    let device = Client::serving(router, config)?;
    device.post(format!("{base}/rd"), "").await?;

    let valve = devices.recv().await.ok_or("no device has registered")?;
    Ok(valve.get("/valve").await?.text().into_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}
