//! A server for the CoAP plugtests of ETSI: `plugtest ADDRESS [SECONDS]`, such as
//! `cargo run -p ebbtide --example plugtest -- 0.0.0.0:5683 5`. The observable resources change every
//! SECONDS (5). It has the resources and contexts of the OSCORE interop test specification, too.

mod oscore;
mod resources;

use ebbtide::ServerConfig;
use ebbtide::oscore::OscoreContexts;
use oscore::ContextPair;
use resources::Plugtest;
use std::error::Error;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().ok_or("plugtest ADDRESS [SECONDS]")?.parse()?;
    let period = words.next().map_or(Ok(5.0), |seconds| seconds.parse())?;
    let period = Duration::try_from_secs_f64(period)?;
    let mut plugtest = Plugtest::new(period);
    plugtest.router = oscore::protected(plugtest.router, period);
    let contexts = OscoreContexts::new(ContextPair::ALL.map(ContextPair::server))?;
    // A path may lose as much as it does in TD_COAP_CORE_15 and 16.
    let config = ServerConfig::new().max_retransmit(8).oscore(contexts);
    println!("serving at coap://{address}");
    plugtest.serve(&config, address).await?;
    Ok(())
}
