//! A thermometer that can be observed, and lamps that can be switched: `cargo run -p ebbtide
//! --example server`, then `ebbtide discover coap://127.0.0.1`.

use ebbtide::server::{Call, Router, Subject, get, put};
use ebbtide::{Code, ContentFormat, Response, Server};
use std::time::Duration;

/// Observers of `/temperature` are notified through `changed`.
pub fn router(changed: &Subject) -> Router {
    let temperature =
        |_: &Call<'_>| Response::content("22.3 C").format(ContentFormat::TEXT).max_age(60);
    Router::new()
        .route("/temperature", get(temperature).observable(changed).attribute("rt", "temperature"))
        .route("/lamps/{lamp}", put(switch).attribute("rt", "lamp"))
}

/// An asynchronous handler: the client receives an acknowledgement, and the response when it is
/// done.
async fn switch(call: Call<'static>) -> Response {
    tokio::time::sleep(Duration::from_millis(200)).await;
    match call.param("lamp") {
        Some("kitchen") => Response::new(Code::CHANGED),
        _ => Response::error(Code::NOT_FOUND, "no such lamp"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let changed = Subject::new();
    let server = Server::bind(router(&changed), ["0.0.0.0:5683", "[::]:5683"])?;
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            changed.changed();
        }
    });
    server.run().await?;
    Ok(())
}
