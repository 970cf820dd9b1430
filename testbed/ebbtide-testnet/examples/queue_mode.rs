//! How long must a device in Queue Mode listen, and may a server have more than one request open? A
//! device wakes every five minutes, updates its registration, and sleeps once it has heard no
//! request for a time. The server has ten commands for it each time. Prints a table in CSV, for
//! `studies/scripts/queue_mode.py`.
//!
//!     cargo run --release -p ebbtide-testnet --example queue_mode > queue-mode.csv

use ebbtide::congestion::ControlConfig;
use ebbtide::server::{Call, Router, Server, post};
use ebbtide::{Client, Code, Peer, ServerConfig};
use ebbtide_sim::net::{Delay, RateStep, Schedule};
use ebbtide_testnet::{Conditions, TestNetwork, play};
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DEVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const COMMANDS: u8 = 10;
const SEEDS: u64 = 10;
const WAKES: u32 = 12;
const CYCLE: Duration = Duration::from_secs(300);
/// MAX_TRANSMIT_WAIT, the default of LwM2M, is 93 s (RFC 7252 section 4.8.2).
const LISTENS: [u64; 6] = [2, 5, 10, 20, 45, 93];
const MILLISECOND: u64 = 1_000_000;

/// The link to the device and the one back.
type Network = (&'static str, Conditions, Conditions);

fn networks() -> Result<Vec<Network>, Box<dyn Error>> {
    let span = |from, to| Duration::from_millis(from)..=Duration::from_millis(to);
    let down = Conditions::new().delay(span(406, 424)).rate(30_000, 1 << 20);
    let up = Conditions::new().delay(span(206, 224)).rate(60_000, 1 << 20);
    let delay = Delay { low: 396 * MILLISECOND, high: 404 * MILLISECOND };
    let step =
        |from, bits_per_second| RateStep { from: from * MILLISECOND, bits_per_second, delay };
    let windows = Schedule::new(vec![step(0, 30_000), step(2560, 0)], Some(40_960 * MILLISECOND));
    let paged = down.clone().schedule(windows.map_err(|error| format!("{error:?}"))?);
    Ok(vec![
        ("nb-iot", down.clone(), up.clone()),
        ("nb-iot, 10 % loss", down.loss(0.1), up.clone().loss(0.1)),
        ("edrx", paged, up),
    ])
}

/// What came of the commands of all wakes.
#[derive(Debug, Default)]
struct Tally {
    delivered: u32,
    radio_on: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "network,control,nstart,listens_s,delivered_percent,radio_on_s_per_wake,packets_down_per_wake"
    );
    for (name, down, up) in networks()? {
        for control in ["default", "ebb"] {
            for nstart in [1, 2, 4] {
                for listens in LISTENS {
                    let config =
                        ServerConfig::new().control(ControlConfig::parse(control)?).nstart(nstart);
                    let links = (down.clone(), up.clone());
                    let row = measure(&config, links, Duration::from_secs(listens));
                    println!("{name:?},{control},{nstart},{listens},{row}");
                }
            }
        }
    }
    Ok(())
}

fn measure(config: &ServerConfig, links: (Conditions, Conditions), listens: Duration) -> String {
    let ((down, up), mut sent) = (links, 0);
    let tally = Arc::new(Mutex::new(Tally::default()));
    for seed in 0..SEEDS {
        let trace = play(seed, Conditions::new(), async |network| {
            network.set_direction(SERVER, DEVICE, down.clone());
            network.set_direction(DEVICE, SERVER, up.clone());
            serve(&network, config);
            sleepy_device(&network, listens, &tally).await;
        });
        sent += trace.packets().iter().filter(|packet| packet.from.ip() == SERVER).count();
    }
    let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    let wakes = f64::from(WAKES) * SEEDS as f64;
    let delivered = 100.0 * f64::from(tally.delivered) / (wakes * f64::from(COMMANDS));
    let radio_on = tally.radio_on.as_secs_f64() / wakes;
    format!("{delivered:.1},{radio_on:.1},{:.1}", sent as f64 / wakes)
}

/// A server that sends all commands of a wake at once; NSTART decides how many are open.
fn serve(network: &TestNetwork, config: &ServerConfig) {
    let (tell, mut woken) = mpsc::unbounded_channel::<Peer>();
    let update = move |call: Call<'static>| {
        let _ = tell.send(call.peer());
        async { Code::CHANGED }
    };
    let router = Router::new().route("/rd", post(update));
    let config = config.clone().network(network.clone());
    let Ok(server) = Server::with_config(router, config, ["10.0.0.1:5683"]) else { return };
    tokio::spawn(server.run());
    tokio::spawn(async move {
        let mut open = JoinSet::new();
        while let Some(peer) = woken.recv().await {
            // What the device did not take while it listened is of no use any more.
            open.abort_all();
            for command in 0..COMMANDS {
                let (peer, name) = (peer.clone(), vec![command; 60]);
                open.spawn(async move { peer.post("/command", name).await });
            }
        }
    });
}

async fn sleepy_device(network: &TestNetwork, listens: Duration, tally: &Arc<Mutex<Tally>>) {
    let (tell, mut heard) = watch::channel(());
    let counted = tally.clone();
    // A POST, whose handler runs once, however often its message is transmitted.
    let command = move |_: &Call<'_>| {
        tell.send_replace(());
        counted.lock().unwrap_or_else(PoisonError::into_inner).delivered += 1;
        Code::CHANGED
    };
    let router = Router::new().route("/command", post(command));
    let config = network.client_config().local_address((DEVICE, 5683).into());
    let Ok(device) = Client::serving(router, config) else { return };
    for wake in 1..=WAKES {
        network.restore();
        let began = network.elapsed();
        let updated = device.post("coap://10.0.0.1/rd", "").await;
        heard.mark_unchanged();
        while updated.is_ok() && tokio::time::timeout(listens, heard.changed()).await.is_ok() {}
        network.cut(SERVER, DEVICE);
        let on = network.elapsed() - began;
        tally.lock().unwrap_or_else(PoisonError::into_inner).radio_on += on;
        tokio::time::sleep((CYCLE * wake).saturating_sub(network.elapsed())).await;
    }
}
