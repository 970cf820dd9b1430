//! Watches a resource: `cargo run -p ebbtide --example observe -- coap://127.0.0.1/temperature`.

use ebbtide::{Client, Error};

/// Prints each state until there were `count` of them, or until the server ends the observation.
pub async fn watch(uri: &str, count: usize) -> Result<usize, Error> {
    let client = Client::new();
    let mut states = client.observe(uri).await?;
    let mut seen = 0;
    while let Some(state) = states.next().await {
        println!("{}", state?.text());
        seen += 1;
        if seen == count {
            break;
        }
    }
    // Dropping it ends the observation.
    Ok(seen)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let uri = std::env::args().nth(1);
    watch(uri.as_deref().unwrap_or("coap://127.0.0.1/temperature"), 10).await?;
    Ok(())
}
