//! The README's program: `cargo run -p ebbtide --example first`.

use ebbtide::server::{Path, Router, get};
use ebbtide::{Client, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hello = async |Path(name): Path<String>| format!("Hello, {name}!");
    let server = Server::bind(Router::new().route("/hello/{name}", get(hello)), ["127.0.0.1:0"])?;
    let uri = format!("coap://{}/hello/world", server.local_addrs()[0]);
    tokio::spawn(server.run());

    let answer = Client::new().get(uri).await?;
    println!("{} {}", answer.code(), answer.text());
    Ok(())
}
