//! Recipe 7, a client of a thousand devices: all are asked at once, each as its congestion control allows, and
//! those that did not answer are asked again later.
//!
//! `cargo run -p ebbtide --example fleet`

use ebbtide::server::{Path, Router, get};
use ebbtide::{Client, Error, Request, Response, Server};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::time::Duration;

/// How often a device is asked.
const TRIES: u32 = 3;

/// Asks one device until it answers or a retry cannot help. A GET may be repeated. Repeat a request that is not
/// idempotent only after errors which show that it had no effect.
async fn ask(client: &Client, uri: &str) -> Result<Response, Error> {
    let mut pause = Duration::from_secs(1);
    for _ in 1..TRIES {
        let request = Request::get(uri)?.timeout(Duration::from_secs(20));
        match client.request(request).await {
            // The server states when it accepts the next request.
            Ok(busy) if busy.retry_after().is_some() => {
                pause = busy.retry_after().unwrap_or(pause);
            }
            Err(error) if error.may_retry() => eprintln!("{uri}: {error}"),
            answered => return answered,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    client.get(uri).await
}

/// Asks all of them at once, and returns how many have answered.
pub async fn ask_all(uris: &[String]) -> Result<usize, Error> {
    // One client for all: they share its socket and its measurements of each path.
    let client = Client::new();
    let mut asked: FuturesUnordered<_> = uris.iter().map(|uri| ask(&client, uri)).collect();
    let mut answered = 0;
    while let Some(answer) = asked.next().await {
        match answer {
            Ok(response) if response.is_success() => answered += 1,
            Ok(response) => eprintln!("{} {}", response.code(), response.text()),
            Err(error) if error.is_timeout() => eprintln!("no answer: {error}"),
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(answered)
}

/// Serves devices at ten ports, and asks all of them.
pub async fn run(devices: usize) -> Result<usize, Box<dyn std::error::Error>> {
    let state = |Path(device): Path<u32>| format!("device {device} is well");
    let mut uris = Vec::new();
    for port in 0..10 {
        let router = Router::new().route("/devices/{device}", get(state));
        let server = Server::bind(router, ["127.0.0.1:0"])?;
        let address = server.local_addrs()[0];
        let here = (0..devices).filter(|device| device % 10 == port);
        uris.extend(here.map(|device| format!("coap://{address}/devices/{device}")));
        tokio::spawn(server.run());
    }
    Ok(ask_all(&uris).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{} of 1000 devices have answered", run(1000).await?);
    Ok(())
}
