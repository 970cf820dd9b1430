//! What does a device pay for security when it wakes up and asks one question? Bytes, packets and
//! seconds to the answer without security, over DTLS 1.2 with a handshake and with a connection ID,
//! by OSCORE, and by OSCORE after EDHOC: one device, and storms of 40 and 400 behind one link.
//! Prints a table in CSV, for `studies/scripts/what_a_device_pays.py`.
//!
//!     cargo run --release -p ebbtide-testnet --example what_a_device_pays > what-a-device-pays.csv
//!
//! Arguments are the names of networks, if not all of them are wanted. `packets` shows each packet
//! of one device without losses instead.

#![expect(clippy::panic, reason = "all parameters are constants")]

use ebbtide::dtls::{Credentials, DtlsBind, DtlsConfig, Psk};
use ebbtide::edhoc::EdhocCredentials;
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Router, Server, get};
use ebbtide::{Client, ClientConfig};
use ebbtide_sim::net::{Delay, RateStep, Schedule};
use ebbtide_testnet::{Conditions, PacketFate, TestNetwork, TracedPacket, play};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// All devices are behind one address, and so share a link.
const DEVICES: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const FIRST_PORT: u16 = 10_000;
const SEEDS: u64 = 20;
const STORMS: [u16; 2] = [40, 400];
const STORM_SEEDS: u64 = 3;
/// How long a storm is watched.
const WATCHED: Duration = Duration::from_secs(2 * 60 * 60);
const MILLISECOND: u64 = 1_000_000;

// The keys and credentials of RFC 9529 chapter 3.
const DEVICE_KEY: &str = "fb13adeb6518cee5f88417660841142e830a81fe334380a953406a1305e8706b";
/// In two parts, between which is the `kid` of a device.
const DEVICE: [&str; 2] = [
    "a2027734322d35302d33312d46462d45462d33372d33322d333908a101a5010202",
    "2001215820ac75e9ece3e50bfc8ed60399889522405c47bf16df96660a41298cb4307f7eb62258206e5de611388a4b8a8211334ac7d37ecb52a387d257e6db3c2a93df21ff3affc8",
];
const CLOUD_KEY: &str = "72cc4761dbd4c78f758931aa589d348d1ef874a7e303ede2f140dcf3e6aa4aac";
const CLOUD: &str = "a2026b6578616d706c652e65647508a101a501020241322001215820bbc34960526ea4d32e940cad2a234148ddc21791a12afbcbac93622046dd44f02258204519e257236b2a0ce2023f0931f1f386ca7afda64fcde0108c224c51eabf6072";

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Security {
    None,
    DtlsHandshake,
    DtlsConnectionId,
    Oscore,
    OscoreAfterEdhoc,
}

impl Security {
    const ALL: [Self; 5] = [
        Self::None,
        Self::DtlsConnectionId,
        Self::Oscore,
        Self::DtlsHandshake,
        Self::OscoreAfterEdhoc,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::DtlsHandshake => "DTLS handshake",
            Self::DtlsConnectionId => "DTLS connection ID",
            Self::Oscore => "OSCORE",
            Self::OscoreAfterEdhoc => "OSCORE after EDHOC",
        }
    }

    /// Whether the device and its server have a session from before, or a shared secret.
    const fn has_met(self) -> bool {
        !matches!(self, Self::DtlsHandshake | Self::OscoreAfterEdhoc)
    }

    const fn uri(self) -> &'static str {
        match self {
            Self::DtlsHandshake | Self::DtlsConnectionId => "coaps://10.0.0.1/temperature",
            Self::None | Self::Oscore | Self::OscoreAfterEdhoc => "coap://10.0.0.1/temperature",
        }
    }
}

/// A network with the links to the server and back.
type Network = (&'static str, Conditions, Conditions);

fn networks() -> Result<Vec<Network>, Box<dyn Error>> {
    let span = |from, to| Duration::from_millis(from)..=Duration::from_millis(to);
    let buffer = 1 << 24;
    let down = Conditions::new().delay(span(396, 404)).rate(30_000, buffer);
    let up = Conditions::new().delay(span(196, 204)).rate(60_000, buffer);
    let delay = Delay { low: 396 * MILLISECOND, high: 404 * MILLISECOND };
    let step =
        |from, bits_per_second| RateStep { from: from * MILLISECOND, bits_per_second, delay };
    let windows = Schedule::new(vec![step(0, 30_000), step(2560, 0)], Some(40_960 * MILLISECOND));
    let paged = down.clone().schedule(windows.map_err(|error| format!("{error:?}"))?);
    // One hop at 250 kbit/s, of which acknowledgements and backoffs leave less than half.
    let hop = Conditions::new().delay(span(4, 12)).rate(100_000, buffer);
    // SF9, and the first window a second after each frame.
    let uplink = Conditions::new().delay(span(40, 44)).rate(1_760, buffer);
    let downlink = Conditions::new().delay(span(1000, 1004)).rate(1_760, buffer);
    Ok(vec![
        ("nb-iot", up.clone(), down),
        ("edrx", up, paged),
        ("802.15.4", hop.clone(), hop),
        ("LoRaWAN", uplink, downlink),
    ])
}

/// What came of one device or of storms.
#[derive(Debug, Default)]
struct Tally {
    seconds: Vec<f64>,
    packets: [u64; 2],
    bytes: [u64; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let (options, wanted): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument == "packets");
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let networks = networks()?.into_iter().filter(|(name, ..)| is_wanted(name));
    if !options.is_empty() {
        for (name, up, down) in networks {
            for security in Security::ALL {
                println!("{name}, {}:", security.name());
                let (.., packets) = observe(security, 1, &(up.clone(), down.clone()), 0);
                packets.iter().for_each(|packet| println!("{packet}"));
            }
        }
        return Ok(());
    }
    println!(
        "network,loss_percent,devices,security,packets_up,packets_down,bytes_up,bytes_down,answered,median_s,last_s"
    );
    for (name, up, down) in networks {
        for loss in [0, 5, 20] {
            for devices in [1].into_iter().chain(STORMS) {
                for security in Security::ALL {
                    let share = f64::from(loss) / 100.0;
                    let links = (up.clone().loss(share), down.clone().loss(share));
                    let row = measure(security, devices, &links);
                    println!("{name},{loss},{devices},{},{row}", security.name());
                }
            }
        }
    }
    Ok(())
}

/// The figures of a row. A device without an answer counts as the last one.
fn measure(security: Security, devices: u16, links: &(Conditions, Conditions)) -> String {
    let seeds = if devices == 1 { SEEDS } else { STORM_SEEDS };
    let mut tally = Tally::default();
    for seed in 0..seeds {
        let (seconds, packets) = observe(security, devices, links, seed);
        tally.seconds.extend(seconds);
        // What is sent to its former address ends at the translator that has forgotten it.
        for packet in packets.iter().filter(|packet| packet.fate != PacketFate::Cut) {
            let way = usize::from(packet.from.ip() == SERVER);
            tally.packets[way] += 1;
            tally.bytes[way] += packet.datagram.len() as u64;
        }
    }
    tally.seconds.sort_by(f64::total_cmp);
    let each = seeds * u64::from(devices);
    let at = |share: f64| {
        let seconds = tally.seconds.get(((each - 1) as f64 * share) as usize);
        seconds.map_or_else(String::new, |seconds| format!("{seconds:.2}"))
    };
    let mean = |counts: [u64; 2]| {
        counts.map(|count| format!("{:.1}", count as f64 / each as f64)).join(",")
    };
    let answered = tally.seconds.len() as f64 / each as f64;
    format!("{},{},{answered:.3},{},{}", mean(tally.packets), mean(tally.bytes), at(0.5), at(1.0))
}

/// The seconds to each answer, and the packets, from when the devices ask.
fn observe(
    security: Security,
    devices: u16,
    (up, down): &(Conditions, Conditions),
    seed: u64,
) -> (Vec<f64>, Vec<TracedPacket>) {
    let (before, seconds) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
    let trace = play(seed, Conditions::new(), async |network| {
        serve(&network, devices);
        let mut clients = Vec::new();
        for number in 0..devices {
            let local = SocketAddr::from((DEVICES, FIRST_PORT + number));
            let client = Client::with_config(config(&network, security, number, local));
            if security.has_met() {
                assert!(client.get(security.uri()).await.is_ok(), "they have met");
                // It comes back with another address.
                assert!(network.rebind(local).is_ok());
            }
            clients.push(client);
        }
        // Nothing of what was before is under way.
        tokio::time::sleep(Duration::from_secs(300)).await;
        network.set_direction(DEVICES, SERVER, up.clone());
        network.set_direction(SERVER, DEVICES, down.clone());
        *lock(&before) = network.trace().packets().len();
        ask(&network, security, clients, &seconds).await;
    });
    let packets = trace.packets().iter().skip(*lock(&before)).cloned().collect();
    let seconds = std::mem::take(&mut *lock(&seconds));
    (seconds, packets)
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All devices ask at once, and again until they have an answer.
async fn ask(
    network: &TestNetwork,
    security: Security,
    clients: Vec<Client>,
    seconds: &Arc<Mutex<Vec<f64>>>,
) {
    let (began, mut asking) = (network.elapsed(), JoinSet::new());
    for client in clients {
        let (network, seconds) = (network.clone(), seconds.clone());
        asking.spawn(async move {
            while client.get(security.uri()).await.is_err() {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            lock(&seconds).push((network.elapsed() - began).as_secs_f64());
        });
    }
    let all = async { while asking.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(WATCHED, all).await;
}

fn psk() -> Psk {
    Psk::new(b"0123456789abcdef").unwrap_or_else(|_| unreachable!("it is not empty"))
}

fn context(number: u16, ours: &[u8], theirs: &[u8]) -> OscoreContext {
    let mut secret = [7; 16];
    secret[..2].copy_from_slice(&number.to_be_bytes());
    OscoreContext::new(&secret, ours, theirs)
}

/// The credential of a device.
fn credential(number: u16) -> Vec<u8> {
    let [before, after] = DEVICE;
    // A `kid` of one byte, as in RFC 9529, as long as there are enough.
    let kid = match u8::try_from(number) {
        Ok(kid) => format!("41{kid:02x}"),
        Err(_) => format!("42{number:04x}"),
    };
    hex(&[before, &kid, after].concat())
}

fn edhoc(key: &str, own: &[u8], peers: impl Iterator<Item = Vec<u8>>) -> EdhocCredentials {
    let own = EdhocCredentials::new(&hex(key), own);
    let mut named = peers.enumerate();
    let all = named
        .try_fold(own.unwrap_or_else(|error| panic!("{error}")), |all, (number, peer)| {
            all.peer(&peer, &format!("peer {number}"))
        });
    all.unwrap_or_else(|error| panic!("{error}"))
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, d| byte << 4 | digit(d)))
        .collect()
}

fn config(
    network: &TestNetwork,
    security: Security,
    number: u16,
    local: SocketAddr,
) -> ClientConfig {
    let config = network.client_config().local_address(local);
    match security {
        Security::None => config,
        Security::DtlsHandshake | Security::DtlsConnectionId => {
            config.credentials(Credentials::new(format!("device-{number:03}"), psk()))
        }
        Security::Oscore => {
            let context = context(number, &number.to_be_bytes(), b"s");
            config.oscore(OscoreContexts::new([context]).unwrap_or_else(|error| panic!("{error}")))
        }
        Security::OscoreAfterEdhoc => {
            let own = credential(number);
            config.edhoc(edhoc(DEVICE_KEY, &own, std::iter::once(hex(CLOUD))))
        }
    }
}

fn serve(network: &TestNetwork, devices: u16) {
    let contexts = (0..devices).map(|number| context(number, b"s", &number.to_be_bytes()));
    let contexts = OscoreContexts::new(contexts).unwrap_or_else(|error| panic!("{error}"));
    let dtls = DtlsBind::new((SERVER, 5684), |_| Some(psk()));
    let config = network
        .server_config()
        .oscore(contexts)
        .edhoc(edhoc(CLOUD_KEY, &hex(CLOUD), (0..devices).map(credential)))
        .dtls(DtlsConfig::default())
        .bind_dtls(dtls);
    let router = Router::new().route("/temperature", get(|| "22.5"));
    let server = Server::with_config(router, config, [(SERVER, 5683)]);
    tokio::spawn(server.unwrap_or_else(|error| panic!("{error}")).run());
}
