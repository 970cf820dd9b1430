//! Recipe 6, a service: limits, a log, and a clean shutdown at Ctrl-C, as a container or systemd requests it.
//!
//! `cargo run -p ebbtide --example service`

use ebbtide::server::{AccessLog, ConcurrencyLimit, Router, Timeout, get, post};
use ebbtide::{Client, Code, Server};
use std::error::Error;
use std::future::Future;
use std::time::Duration;

async fn work() -> Code {
    tokio::time::sleep(Duration::from_millis(300)).await;
    Code::CHANGED
}

/// The routes and their layers.
pub fn router() -> Router {
    Router::new()
        .route("/health", get(|| "healthy"))
        .route("/work", post(work))
        // Of layers, the one that was added last sees a request first.
        .layer(Timeout(Duration::from_secs(5)))
        .layer(ConcurrencyLimit::new(1000))
        .layer(AccessLog)
}

/// Serves until `stop` is ready, and then until running handlers have finished.
pub async fn serve(
    server: Server,
    stop: impl Future<Output = ()>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    // After that, new requests and all observers receive 5.03, and acknowledged requests are answered.
    server.run_until(stop, Duration::from_secs(10)).await?;
    Ok(())
}

/// Sends a request, and shuts the service down while its handler runs.
pub async fn run() -> Result<(), Box<dyn Error>> {
    let server = Server::bind(router(), ["127.0.0.1:0"])?;
    let uri = format!("coap://{}/work", server.local_addrs()[0]);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(serve(server, async { stopped.await.unwrap_or_default() }));

    let asked = tokio::spawn(async move { Client::new().post(&*uri, "").await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    // In a program of yours, `stop` is `async { _ = tokio::signal::ctrl_c().await }`.
    let _ = stop.send(());
    assert_eq!(asked.await??.code(), Code::CHANGED);
    serving.await?.map_err(|error| error.to_string())?;
    println!("shut down cleanly");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
