//! Honest devices: each asks one thing after another, and knows what was acknowledged.

use super::application::{Database, path, value, version};
use super::world::{DEVICES, PLAIN, SECOND, SECURE, millis, packets};
use ebbtide::dtls::{Credentials, Psk};
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::{Client, Code, Error, Request, Response};
use ebbtide_sim::random::uniform;
use ebbtide_testnet::TestNetwork;
use rand_chacha::ChaCha8Rng;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::time::{sleep, timeout};

const STEPS: u32 = 14;
/// The longest time that a client does not try again, and in which it finds that its session has ended.
const RECOVERY: u32 = 300;
/// The longest body that a client sends without blocks.
const BLOCK: usize = 1024;
/// A registration that a disk has lost is renewed 5 to 15 s after Max-Age (60 s).
const UP_TO_DATE: u32 = 120;

pub(super) const fn address(number: usize) -> SocketAddr {
    let host = Ipv4Addr::new(10, 2, 0, number as u8 + 1);
    SocketAddr::new(std::net::IpAddr::V4(host), 40_000)
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    None,
    Dtls,
    Oscore,
    /// Over TCP.
    Connection,
}

pub(super) const fn protection(number: usize) -> Protection {
    match number {
        DEVICES.. => Protection::Connection,
        1 | 3 => Protection::Dtls,
        4 => Protection::Oscore,
        _ => Protection::None,
    }
}

/// What a device and the server share, as the one with this ID uses it.
pub(super) fn oscore_context(own: &[u8], other: &[u8]) -> OscoreContext {
    OscoreContext::new(b"sixteen bytes 16", own, other)
}

pub(super) struct Device {
    number: usize,
    network: TestNetwork,
    client: Client,
    server: String,
    random: ChaCha8Rng,
    /// Versions of its value: the last that was put, and the last that was acknowledged.
    put: u32,
    acknowledged: u32,
    names: u32,
    /// Names of requests that were acknowledged.
    done: Vec<String>,
    /// The version that its observation has seen last.
    seen: Arc<AtomicU32>,
}

impl Device {
    pub(super) fn new(number: usize, network: &TestNetwork, random: ChaCha8Rng) -> Self {
        let credentials = Credentials::new("device", Psk::new(b"key").unwrap());
        let config = network.client_config().local_address(address(number));
        let plain = format!("coap://10.0.0.1:{PLAIN}");
        let (config, server) = match protection(number) {
            Protection::None => (config, plain),
            Protection::Connection => (config, format!("coap+tcp://10.0.0.1:{PLAIN}")),
            Protection::Dtls => {
                (config.credentials(credentials), format!("coaps://10.0.0.1:{SECURE}"))
            }
            Protection::Oscore => {
                let context = oscore_context(b"d", b"s");
                (config.oscore(OscoreContexts::new([context]).unwrap()), plain)
            }
        };
        Self {
            number,
            network: network.clone(),
            client: Client::with_config(config),
            server,
            random,
            put: 0,
            acknowledged: 0,
            names: 0,
            done: Vec::new(),
            seen: Arc::default(),
        }
    }

    pub(super) async fn live(mut self, database: Database, is_calm: Arc<AtomicBool>) {
        let observer = tokio::spawn(observe(
            self.client.clone(),
            format!("{}{}", self.server, path(self.number)),
            self.number,
            self.seen.clone(),
        ));
        for _ in 0..STEPS {
            sleep(millis(&mut self.random, 0, 20_000)).await;
            match uniform(&mut self.random, 0, 9) {
                0..=2 => drop(self.post("/log").await),
                3..=4 => drop(self.post("/later").await),
                5..=7 => drop(self.put().await),
                _ => drop(self.get().await),
            }
        }
        // Tokio's channel wakes those that wait in an order of its own.
        while !is_calm.load(Ordering::SeqCst) {
            sleep(SECOND).await;
        }
        sleep(RECOVERY * SECOND).await;
        let post = self.post("/log").await;
        self.is_served(&post);
        let put = self.put().await;
        self.is_served(&put);
        let get = self.get().await;
        self.is_served(&get);
        let is_up_to_date = async {
            while self.seen.load(Ordering::SeqCst) != self.put {
                sleep(SECOND).await;
            }
        };
        let told = timeout(UP_TO_DATE * SECOND, is_up_to_date).await;
        let (number, seen) = (self.number, self.seen.load(Ordering::SeqCst));
        assert!(told.is_ok(), "device {number}: told {seen}, not {}:{}", self.put, self.packets());
        assert!(!observer.is_finished());
        observer.abort();
        let records = database.records();
        for name in &self.done {
            assert!(records.done.contains_key(name), "{name} was acknowledged and is lost");
        }
    }

    async fn post(&mut self, path: &str) -> Result<(), Error> {
        let name = format!("{}-{}", self.number, self.names);
        self.names += 1;
        let request = Request::post(format!("{}{path}", self.server))?.payload(name.clone());
        self.request(request, None).await?;
        self.done.push(name);
        Ok(())
    }

    async fn put(&mut self) -> Result<(), Error> {
        self.put += 1;
        let length = uniform(&mut self.random, 0, 4000) as usize;
        let value = value(self.number, self.put, length);
        let request = Request::put(format!("{}{}", self.server, path(self.number)))?;
        // Starts and suspensions of a server can take the beginning of a body away three times. A client then gives up.
        let is_in_blocks = value.len() > BLOCK && protection(self.number) != Protection::Connection;
        let torn = is_in_blocks.then_some(Code::REQUEST_ENTITY_INCOMPLETE);
        let result = self.request(request.payload(value), torn).await;
        if result.is_ok() {
            self.acknowledged = self.put;
        }
        // A PUT is idempotent: its copies may be done again as long as they are under way.
        sleep(SECOND).await;
        result.map(drop)
    }

    async fn get(&mut self) -> Result<(), Error> {
        let request = Request::get(format!("{}{}", self.server, path(self.number)))?;
        let response = self.request(request, None).await?;
        let found = version(self.number, &response.text());
        let possible = self.acknowledged..=self.put;
        assert!(possible.contains(&found), "version {found}, of {possible:?}:{}", self.packets());
        Ok(())
    }

    fn is_served(&self, result: &Result<(), Error>) {
        let number = self.number;
        if let Err(error) = result {
            panic!("device {number} is locked out: {error}:{}", self.packets());
        }
    }

    /// What it has sent, and what was sent to it.
    fn packets(&self) -> String {
        // Its port may have changed.
        let own = address(self.number).ip();
        packets(&self.network, |packet| [packet.from.ip(), packet.to.ip()].contains(&own))
    }

    /// Success, or an error that is possible while misfortunes happen, among them `possible`.
    async fn request(&self, request: Request, possible: Option<Code>) -> Result<Response, Error> {
        let response = self.client.request(request).await?;
        let (device, code) = (self.number, response.code());
        assert!(code != Code::SERVICE_UNAVAILABLE, "device {device} does not get its share");
        // Starts and suspensions of a server can make three values stale in a row.
        let is_stale = code == Code::UNAUTHORIZED && protection(device) != Protection::Dtls;
        if is_stale || Some(code) == possible {
            return Ok(response.error_for_status()?);
        }
        assert!(response.is_success(), "device {device}: {code}:{}", self.packets());
        Ok(response)
    }
}

/// Observes a device's value for good, and begins again when the observation has ended.
async fn observe(client: Client, uri: String, device: usize, seen: Arc<AtomicU32>) {
    loop {
        if let Ok(mut states) = client.observe(uri.as_str()).await {
            while let Some(Ok(state)) = states.next().await {
                if state.is_success() {
                    seen.store(version(device, &state.text()), Ordering::SeqCst);
                }
            }
        }
        sleep(SECOND).await;
    }
}
