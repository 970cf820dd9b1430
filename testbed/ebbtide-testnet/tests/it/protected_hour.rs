//! An hour of observation within OSCORE (RFC 8613), with losses, reordering, restarts on both
//! sides, and someone who records all datagrams and sends them again.

use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Server, Subject, get, post};
use ebbtide::{Client, Code, Request, Response};
use ebbtide_sim::random::uniform;
use ebbtide_testnet::{Conditions, PacketTrace, TestNetwork, play};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const DEVICE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 40_000);
const STRANGER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), 1000);
/// The state changes so often.
const CHANGE: u32 = 5;
/// Each side is restarted so often, one half a period after the other.
const RESTART: u32 = 600;
const HOUR: u32 = 3600;

/// The context of a side, whose numbers are kept in this file.
pub(super) fn contexts(ours: &[u8], theirs: &[u8], state: Option<&Path>) -> OscoreContexts {
    let context = OscoreContext::new(b"sixteen bytes 16", ours, theirs);
    let context = match state {
        Some(file) => context.state_file(file),
        None => context,
    };
    OscoreContexts::new([context]).unwrap()
}

/// What the server keeps over its restarts.
#[derive(Clone, Default)]
struct Site {
    state: Arc<Mutex<u32>>,
    changes: Subject,
    /// The readings that its handler has taken.
    readings: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn serve(&self, network: &TestNetwork, file: &Path) -> JoinHandle<std::io::Result<()>> {
        let (state, readings) = (self.state.clone(), self.readings.clone());
        let read =
            move |_: &Call<'_>| Response::content(state.lock().unwrap().to_string()).max_age(30);
        let take = move |call: &Call<'_>| {
            readings.lock().unwrap().push(String::from_utf8_lossy(call.payload()).into_owned());
            Response::new(Code::CHANGED)
        };
        let router = Router::new()
            .route("/state", get(read).observable(&self.changes))
            .route("/readings", post(take));
        let config = network.server_config().oscore(contexts(b"s", b"c", Some(file)));
        tokio::spawn(Server::with_config(router, config, ["10.0.0.1:5683"]).unwrap().run())
    }

    fn change(&self) {
        *self.state.lock().unwrap() += 1;
        self.changes.changed();
    }
}

/// A device that observes the state, and sends a reading a minute.
async fn device(
    network: TestNetwork,
    file: PathBuf,
    seen: Arc<Mutex<Vec<u32>>>,
    answered: Arc<Mutex<Vec<String>>>,
) {
    let began = network.elapsed().as_secs();
    let config = network.client_config().local_address(DEVICE);
    let client = Client::with_config(config.oscore(contexts(b"c", b"s", Some(&file))));
    // It ends with the device.
    let mut observation = JoinSet::new();
    observation.spawn(observe(client.clone(), seen));
    for minute in 0.. {
        sleep(60 * SECOND).await;
        let reading = format!("{began} {minute}");
        let post = Request::post("coap://10.0.0.1/readings").unwrap().payload(reading.clone());
        if client.request(post).await.is_ok_and(|response| response.is_success()) {
            answered.lock().unwrap().push(reading);
        }
    }
}

async fn observe(client: Client, seen: Arc<Mutex<Vec<u32>>>) {
    loop {
        if let Ok(mut states) = client.observe("coap://10.0.0.1/state").await {
            while let Some(Ok(state)) = states.next().await {
                seen.lock().unwrap().push(state.text().parse().unwrap());
            }
        }
        sleep(SECOND).await;
    }
}

/// Sends what it has recorded again, at any later time, from its former address or from another one.
async fn replay(network: TestNetwork, mut random: ChaCha8Rng) {
    let mut recorded = Vec::new();
    for number in 0_u32.. {
        if number % 50 == 0 {
            recorded = network.trace().packets().to_vec();
        }
        sleep(SECOND).await;
        let place = uniform(&mut random, 0, recorded.len().saturating_sub(1) as u64);
        if let Some(packet) = recorded.get(place as usize) {
            let from = if uniform(&mut random, 0, 3) == 0 { STRANGER } else { packet.from };
            network.forge(from, packet.to, &packet.datagram);
        }
    }
}

fn hour(seed: u64) -> PacketTrace {
    let folder = tempfile::tempdir().unwrap();
    let files = ["server", "device"].map(|name| folder.path().join(name));
    // A state can overtake the one before.
    let delay = Duration::from_millis(20)..=Duration::from_secs(6);
    play(seed, Conditions::new().delay(delay).loss(0.1).duplicates(0.05), async |network| {
        let (site, seen, answered) = (Site::default(), Arc::default(), Arc::default());
        let start = || {
            let (file, seen, answered) =
                (files[1].clone(), Arc::clone(&seen), Arc::clone(&answered));
            tokio::spawn(device(network.clone(), file, seen, answered))
        };
        let (mut server, mut client) = (site.serve(&network, &files[0]), start());
        tokio::spawn(replay(network.clone(), ChaCha8Rng::seed_from_u64(seed)));
        for second in (CHANGE..=HOUR).step_by(CHANGE as usize) {
            sleep(CHANGE * SECOND).await;
            site.change();
            if second % RESTART == RESTART / 2 {
                server.abort();
                // All that it had is gone then, and its files are closed.
                sleep(SECOND).await;
                server = site.serve(&network, &files[0]);
            } else if second % RESTART == 0 {
                client.abort();
                sleep(SECOND).await;
                client = start();
            }
        }
        let last = *site.state.lock().unwrap();
        let arrives = async {
            while seen.lock().unwrap().last() != Some(&last) {
                sleep(SECOND).await
            }
        };
        assert!(timeout(300 * SECOND, arrives).await.is_ok(), "the last state does not arrive");
        check(&seen.lock().unwrap(), &answered.lock().unwrap(), &site.readings.lock().unwrap());
    })
}

fn check(seen: &[u32], answered: &[String], taken: &[String]) {
    assert!(seen.is_sorted(), "an older state came after a newer one: {seen:?}");
    assert!(seen.len() as u32 > HOUR / CHANGE / 3, "{} states arrived", seen.len());
    let mut once = taken.to_vec();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), taken.len(), "a reading was handled twice: {taken:?}");
    assert!(answered.len() > 40, "{} readings were answered", answered.len());
    assert!(answered.iter().all(|reading| taken.contains(reading)));
}

#[test]
fn nothing_is_handled_twice_and_no_older_state_is_shown_though_everything_is_replayed() {
    let first = hour(1);
    assert!(first == hour(1), "a seed gives the same packets");
    hour(2);
}
