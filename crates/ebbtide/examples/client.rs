//! Sends requests: `cargo run -p ebbtide --example client -- coap://127.0.0.1:5683`, with the
//! example `server` running.

use ebbtide::{Client, ContentFormat, Error, Request};

/// Reads the temperature and switches the lamp on.
pub async fn ask(base: &str) -> Result<String, Error> {
    let client = Client::new();
    let temperature = client.get(format!("{base}/temperature")).await?;
    let lamp = Request::put(format!("{base}/lamps/kitchen"))?
        .payload("{\"on\":true}")
        .format(ContentFormat::JSON);
    let switched = client.request(lamp).await?;
    // An error response is a response: 4.04 says more than an error would.
    if !switched.is_success() {
        eprintln!("the lamp: {} {}", switched.code(), switched.text());
    }
    Ok(temperature.text().into_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let base = std::env::args().nth(1).unwrap_or_else(|| "coap://127.0.0.1".into());
    println!("{}", ask(&base).await?);
    Ok(())
}
