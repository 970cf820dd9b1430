//! Recipe 1, hello: a resource with a name in its path, and a client that asks for it.
//!
//! `cargo run -p ebbtide --example hello`

use ebbtide::server::{Path, Router, get};
use ebbtide::{Client, Server};
use std::error::Error;

async fn hello(Path(name): Path<String>) -> String {
    format!("Hello, {name}!")
}

/// Serves, and asks once.
pub async fn run() -> Result<String, Box<dyn Error>> {
    let router = Router::new().route("/hello/{name}", get(hello));
    let server = Server::bind(router, ["127.0.0.1:0"])?;
    let uri = format!("coap://{}/hello/world", server.local_addrs()[0]);
    tokio::spawn(server.run());

    let response = Client::new().get(&*uri).await?.error_for_status()?;
    Ok(response.text().into_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run().await?);
    Ok(())
}
