//! Recipe 10, metrics: what a server and a client have counted, for Prometheus.
//!
//! `cargo run -p ebbtide --example metrics`

use ebbtide::server::{Router, get};
use ebbtide::{Client, Server};
use std::error::Error;

/// Asks, and says what was counted.
pub async fn run() -> Result<String, Box<dyn Error>> {
    let server = Server::bind(Router::new().route("/x", get(|| "x")), ["127.0.0.1:0"])?;
    let uri = format!("coap://{}/x", server.local_addrs()[0]);
    // It stays readable while the server runs.
    let meter = server.meter();
    tokio::spawn(server.run());

    let client = Client::new();
    for _ in 0..10 {
        let response = client.get(&*uri).await?;
        println!("{:?} from {:?}", response.round_trip(), response.remote());
    }
    let (asked, answered) = (client.snapshot(), meter.snapshot());
    assert_eq!(asked.counters.sent, answered.counters.received);
    // Serve this text where Prometheus scrapes it; `families` has the same as values.
    Ok(answered.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}
