//! The cost of requests that a client makes one after the other, with both ways to receive: by the task of the caller, as
//! `Client::new` does, and by the task of the socket, as a client that serves does. Blocks of requests alternate, so that a busy
//! machine changes both.
//!
//! `cargo run --release -p ebbtide --example one_by_one -- 20000`

use ebbtide::server::{Router, get};
use ebbtide::{Client, ClientConfig, Server};
use std::error::Error;
use std::time::{Duration, Instant};

const BLOCKS: u32 = 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let requests: u32 = std::env::args().nth(1).map_or(Ok(2_000), |text| text.parse())?;
    let uri = serve()?;
    let callers = Client::new();
    let sockets = Client::serving(Router::new(), ClientConfig::new())?;
    let mut ratios = Vec::new();
    for _ in 0..BLOCKS {
        let caller = ask(&callers, &uri, requests / BLOCKS).await?;
        let socket = ask(&sockets, &uri, requests / BLOCKS).await?;
        println!("by the caller {caller:?}, by the socket's task {socket:?}");
        ratios.push(caller.as_secs_f64() / socket.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    println!("ratio: median {:.3}", ratios[ratios.len() / 2]);
    Ok(())
}

/// A server in a thread of its own.
fn serve() -> Result<String, Box<dyn Error>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let _ = runtime.map(|runtime| {
            runtime.block_on(async move {
                let router = Router::new().route("/x", get(|| "x"));
                let Ok(server) = Server::bind(router, ["127.0.0.1:0"]) else { return };
                let _ = sender.send(format!("coap://{}/x", server.local_addrs()[0]));
                let _ = server.run().await;
            });
        });
    });
    Ok(receiver.recv()?)
}

/// The time of a request.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall time")]
async fn ask(client: &Client, uri: &str, requests: u32) -> Result<Duration, ebbtide::Error> {
    let began = Instant::now();
    for _ in 0..requests {
        client.get(uri).await?;
    }
    Ok(began.elapsed() / requests)
}
