//! One story: a server and its devices, what befalls them, and what must hold meanwhile and at the end.

use super::application::Database;
use super::devices::{Device, address, oscore_context};
use super::misfortunes::{Disk, Misfortunes, break_connections};
use super::strangers;
use ebbtide::dtls::{DtlsBind, Psk};
use ebbtide::metrics::Snapshot;
use ebbtide::oscore::OscoreContexts;
use ebbtide::stream::Listen;
use ebbtide::{Server, ServerConfig};
use ebbtide_sim::random::{Streams, uniform};
use ebbtide_testnet::{Conditions, TestNetwork, TracedPacket};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

pub(super) const SERVER: [u8; 4] = [10, 0, 0, 1];
pub(super) const PLAIN: u16 = 5683;
pub(super) const SECURE: u16 = 5684;
pub(super) const DEVICES: usize = 5;
/// Further ones, with connections.
pub(super) const CONNECTED: usize = 2;
pub(super) const SECOND: Duration = Duration::from_secs(1);
/// IPv4 and UDP.
const HEADERS: usize = 28;

const REMEMBERED: usize = 256;
const OBSERVERS: usize = 32;
const WORKING: usize = 32;
const BLOCK_BYTES: usize = 65_536;
const OUTBOX: usize = 100_000;
const PEERS: usize = 256;
/// The stored state: an address takes 25 bytes, an observer 60 and its request. Changes of 65,536
/// bytes are appended to it.
const STATE: usize = 20_000 + 65_536;

pub(super) fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    Streams::new(seed, 0).stream(&format!("story/{name}"))
}

pub(super) fn millis(random: &mut ChaCha8Rng, low: u64, high: u64) -> Duration {
    Duration::from_millis(uniform(random, low, high))
}

/// The links of a seed.
pub(super) fn conditions(seed: u64) -> Conditions {
    let mut random = stream(seed, "conditions");
    let short = millis(&mut random, 1, 100);
    let long = short + millis(&mut random, 0, 400);
    let share = |random: &mut ChaCha8Rng, most| uniform(random, 0, most) as f64 / 100.0;
    let (loss, duplicates) = (share(&mut random, 20), share(&mut random, 10));
    Conditions::new().delay(short..=long).loss(loss).duplicates(duplicates)
}

/// The server, in its present life.
pub(super) struct Life {
    task: JoinHandle<std::io::Result<()>>,
    watch: JoinHandle<()>,
}

impl Life {
    /// Starts a server; its disk may be one that cannot be read.
    pub(super) fn start(network: &TestNetwork, database: &Database, disk: &Disk) -> Option<Self> {
        // The numbers of its own that a server uses are for notifications and challenges.
        let context = oscore_context(b"s", b"d").state_file(disk.sequence_numbers());
        let contexts = OscoreContexts::new([context]).ok()?;
        let config = bounds(network.server_config()).state(disk.clone()).oscore(contexts);
        let keys = |_: &[u8]| Psk::new(b"key").ok();
        let config = config.bind_dtls(DtlsBind::new((SERVER, SECURE), keys));
        let router = database.router(DEVICES + CONNECTED);
        let server = Server::with_config(router, config, [(IpAddr::from(SERVER), PLAIN)]).ok()?;
        let server = server.listen(Listen::Tcp((SERVER, PLAIN).into())).ok()?;
        let meter = server.meter();
        let watch = tokio::spawn(async move {
            loop {
                sleep(2 * SECOND).await;
                within_bounds(&meter.snapshot());
            }
        });
        Some(Self { task: tokio::spawn(server.run()), watch })
    }

    /// As `kill -9`: nothing is said and nothing stored.
    pub(super) async fn kill(self, network: &TestNetwork) {
        assert!(!self.task.is_finished(), "the server has ended by itself");
        for number in DEVICES..DEVICES + CONNECTED {
            network.reset_connections(SERVER, address(number).ip());
        }
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        self.watch.abort();
        if let Err(error) = self.watch.await {
            assert!(error.is_cancelled(), "memory: {error}");
        }
    }
}

fn bounds(config: ServerConfig) -> ServerConfig {
    config.limits(|limits| {
        limits
            .remembered_messages(REMEMBERED)
            .observers(OBSERVERS)
            .working(WORKING)
            .block_bytes(BLOCK_BYTES)
            .outbox_bytes(OUTBOX)
            .peers(PEERS)
    })
}

fn within_bounds(now: &Snapshot) {
    // Each of the two sockets has such tables.
    assert!(now.remembered <= 2 * REMEMBERED, "{} remembered", now.remembered);
    assert!(now.observers <= 2 * OBSERVERS, "{} observers", now.observers);
    assert!(now.peers <= 2 * PEERS, "{} peers", now.peers);
    assert!(now.outbox.bytes <= 2 * OUTBOX, "{:?}", now.outbox);
    assert!(now.load.working <= WORKING, "{:?}", now.load);
    assert!(now.load.block_bytes <= BLOCK_BYTES, "{:?}", now.load);
}

/// Every second story has devices with connections, so that the others remain as they were when they found a fault.
const fn connected(seed: u64) -> usize {
    if seed % 2 == 1 { CONNECTED } else { 0 }
}

/// Plays the story of a seed.
pub(super) async fn story(seed: u64, network: TestNetwork) {
    let (database, disk) = (Database::new(&network), Disk::new(&network));
    let life = Life::start(&network, &database, &disk).unwrap();
    let is_calm = Arc::new(AtomicBool::new(false));
    let mut devices = JoinSet::new();
    let connected = connected(seed);
    for number in 0..DEVICES + connected {
        let device = Device::new(number, &network, stream(seed, &format!("device/{number}")));
        let (database, is_calm) = (database.clone(), is_calm.clone());
        devices.spawn(async move { device.live(database, is_calm).await });
    }
    let mut random = stream(seed, "strangers");
    let strangers = tokio::spawn(strangers::rage(network.clone(), stream(seed, "forgeries")));
    let breaking = tokio::spawn(break_connections(network.clone(), stream(seed, "connections")));
    let misfortunes = Misfortunes::new(&network, &database, &disk, stream(seed, "misfortunes"));
    let life = misfortunes.befall(life).await;
    breaking.abort();
    if uniform(&mut random, 0, 1) == 0 {
        strangers.abort();
    }
    // Now everything works again, and what did not get through so far does.
    network.restore();
    disk.mend();
    network.set_conditions(Conditions::new());
    is_calm.store(true, Ordering::SeqCst);
    while let Some(device) = devices.join_next().await {
        device.unwrap();
    }
    strangers.abort();
    if let Err(error) = strangers.await {
        assert!(error.is_cancelled(), "{error}");
    }
    life.kill(&network).await;
    for (name, done) in &database.records().done {
        let mut lives: Vec<_> = done.iter().map(|(life, _)| life).collect();
        lives.dedup();
        let told = || packets(&network, |packet| packet.datagram.ends_with(name.as_bytes()));
        assert_eq!(lives.len(), done.len(), "{name} was done twice in a life: {done:?}{}", told());
    }
    assert!(disk.longest() <= STATE, "{} bytes of state", disk.longest());
    amplifies_nothing(&network, &disk);
}

/// The packets of which this holds, a line each.
pub(super) fn packets(network: &TestNetwork, these: impl Fn(&TracedPacket) -> bool) -> String {
    let trace = network.trace();
    let found = trace.packets().iter().filter(|packet| these(packet));
    found.map(|packet| format!("\n{packet}")).collect()
}

/// Strangers answer nothing, so none may get more than three times what it sent. What a server sent
/// after its state was stored last is not known to the one that follows, which may send as much
/// again to observers.
fn amplifies_nothing(network: &TestNetwork, disk: &Disk) {
    let mut bytes: BTreeMap<SocketAddr, (usize, usize)> = BTreeMap::new();
    for packet in network.trace().packets() {
        let length = packet.datagram.len() + HEADERS;
        if strangers::is_one(packet.from) {
            bytes.entry(packet.from).or_default().0 += length;
        } else if strangers::is_one(packet.to) && !disk.has_lost(packet.at) {
            bytes.entry(packet.to).or_default().1 += length;
        }
    }
    for (stranger, (came, left)) in bytes {
        let said = || packets(network, |packet| [packet.from, packet.to].contains(&stranger));
        assert!(left <= 3 * came, "{stranger}: {left} bytes for {came}:{}", said());
    }
}
