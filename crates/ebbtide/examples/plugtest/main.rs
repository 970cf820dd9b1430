//! A server for the CoAP plugtests of ETSI: `plugtest ADDRESS [SECONDS]`, such as
//! `cargo run -p ebbtide --example plugtest -- 0.0.0.0:5683 5`. The observable resources change every
//! SECONDS (5).

mod resources;

use ebbtide::ServerConfig;
use resources::Plugtest;
use std::error::Error;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().ok_or("plugtest ADDRESS [SECONDS]")?.parse()?;
    let period = words.next().map_or(Ok(5.0), |seconds| seconds.parse())?;
    let plugtest = Plugtest::new(Duration::try_from_secs_f64(period)?);
    let mut config = ServerConfig::new();
    // A path may lose as much as it does in TD_COAP_CORE_15 and 16.
    config = config.max_retransmit(8);
    println!("serving at coap://{address}");
    plugtest.serve(&config, address).await?;
    Ok(())
}
