//! Recipe 9, congestion control: one for all peers, another for one of them, and one of your own.
//!
//! `cargo run -p ebbtide --example control`; examples/custom-control tries such a control on the simulator.

use ebbtide::congestion::Micros;
use ebbtide::congestion::{
    CongestionControl, Context, ControlConfig, ControlFactory, Custom, DynControl, Metrics,
    Registry, Sample, Slot, Transmission,
};
use ebbtide::server::{Router, get};
use ebbtide::{Client, ClientConfig, Server};
use std::error::Error;

/// Waits three times the last round trip, twice as long after each retransmission.
#[derive(Debug, Default)]
struct Threefold {
    round_trip: Option<Micros>,
}

impl CongestionControl for Threefold {
    fn on_transmit(&mut self, sent: &Transmission, _: &mut Slot, cx: &mut Context<'_>) -> Micros {
        let known = self.round_trip.map(|round_trip| round_trip.scale(3, 1));
        let first = known.unwrap_or(cx.params.ack_timeout);
        // Drawn, so that clients that began together do not stay together.
        cx.uniform(first, first.scale(3, 2)).scale(1 << sent.ordinal.min(10), 1)
    }

    fn on_feedback(&mut self, _: &Slot, sample: &Sample, _: &mut Context<'_>) {
        if sample.retransmissions() == 0 {
            self.round_trip = Some(sample.since_first);
        }
    }

    fn metrics(&self) -> Metrics {
        Metrics::default().with_srtt(self.round_trip)
    }
}

/// Makes one for each peer.
#[derive(Debug)]
struct Threefolds;

impl ControlFactory for Threefolds {
    fn name(&self) -> &'static str {
        "threefold"
    }

    fn build(&self) -> Box<dyn DynControl> {
        Box::new(Threefold::default())
    }
}

/// Asks under a control of its own.
pub async fn run() -> Result<(), Box<dyn Error>> {
    let server = Server::bind(Router::new().route("/x", get(|| "x")), ["127.0.0.1:0"])?;
    let remote = server.local_addrs()[0];
    tokio::spawn(server.run());

    // For all peers; `ebbtide list congestion-controls` prints the names.
    let config = ClientConfig::new().control(ControlConfig::parse("cocoa:nstart=2")?);
    let client = Client::with_config(config);
    // For one of them, by a name that the registry knows.
    let registry = Registry::new([Custom::new(Threefolds)])?;
    client.set_control(remote, registry.parse("threefold")?)?;
    for _ in 0..10 {
        client.get(format!("coap://{remote}/x")).await?;
    }
    let learnt = client.metrics(remote).ok_or("nothing is known of the peer")?;
    println!("round trip {:?}", learnt.srtt.ok_or("nothing was measured")?);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}
