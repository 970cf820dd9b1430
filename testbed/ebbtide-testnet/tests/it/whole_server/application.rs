//! The application of the server, whose data outlives it, and what it remembers of each request that it has done.

use ebbtide::server::{Call, Router, State, Subject, get, post, put};
use ebbtide::{Code, Response};
use ebbtide_testnet::TestNetwork;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// Of a resource that a request without proof of its address does not get.
pub(super) const LONG: usize = 3000;

#[derive(Debug, Default)]
pub(super) struct Records {
    /// The present life of the server.
    pub(super) life: u32,
    /// The lives in which a request with this name was done, and when.
    pub(super) done: BTreeMap<String, Vec<(u32, Duration)>>,
    /// By device.
    values: BTreeMap<usize, String>,
}

/// A database of its own, which is durable before the server answers.
#[derive(Clone, Debug)]
pub(super) struct Database {
    network: TestNetwork,
    records: Arc<Mutex<Records>>,
    /// Of each device's value. They belong to a life of the server.
    changes: Arc<Vec<Subject>>,
}

impl Database {
    pub(super) fn new(network: &TestNetwork) -> Self {
        Self { network: network.clone(), records: Arc::default(), changes: Arc::default() }
    }

    pub(super) fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn do_once(&self, name: &str) {
        let mut records = self.records();
        let done = (records.life, self.network.elapsed());
        records.done.entry(name.to_owned()).or_default().push(done);
    }

    fn value(&self, device: usize) -> String {
        self.records().values.get(&device).cloned().unwrap_or_default()
    }

    /// The routes of a new life of the server.
    pub(super) fn router(&self, devices: usize) -> Router {
        let changes = Arc::new((0..devices).map(|_| Subject::new()).collect::<Vec<_>>());
        self.records().life += 1;
        let database = Self { changes: changes.clone(), ..self.clone() };
        let now = {
            let database = database.clone();
            move |call: &Call<'_>| {
                database.do_once(&String::from_utf8_lossy(call.payload()));
                Response::new(Code::CHANGED)
            }
        };
        let mut router = Router::<Self>::new()
            .route("/log", post(now))
            .route("/later", post(later))
            .route("/long", get(|| async { Response::content("7".repeat(LONG)) }))
            .route("/scratch", put(|| async { Code::CHANGED }));
        for (device, change) in changes.iter().enumerate() {
            let (shown, stored) = (database.clone(), database.clone());
            // A device whose registration a disk has lost asks again a minute later.
            let show = move |_: &Call<'_>| Response::content(shown.value(device)).max_age(60);
            let store = move |call: &Call<'_>| {
                let value = String::from_utf8_lossy(call.payload()).into_owned();
                stored.records().values.insert(device, value);
                stored.changes[device].changed();
                Response::new(Code::CHANGED)
            };
            router = router.route(&path(device), get(show).put(store).observable(change));
        }
        router.with_state(database)
    }
}

pub(super) fn path(device: usize) -> String {
    format!("/values/{device}")
}

/// Answers after a while, so that the answer is a message of its own.
async fn later(State(database): State<Database>, name: String) -> Code {
    let wait: u64 = name.bytes().map(u64::from).sum::<u64>() % 7;
    sleep(Duration::from_secs(wait)).await;
    database.do_once(&name);
    Code::CHANGED
}

/// A value with its version, that cannot be taken for a part of another.
pub(super) fn value(device: usize, version: u32, length: usize) -> String {
    let unit = format!("{device}.{version}.{length};");
    unit.repeat(1 + length / unit.len())
}

/// The version of a value; a part, or a mixture, has none.
pub(super) fn version(device: usize, text: &str) -> u32 {
    if text.is_empty() {
        return 0;
    }
    let mut parts = text.split([';', '.']).map(|part| part.parse().unwrap());
    let (of, version, length) =
        (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    assert_eq!(of, device as u32);
    assert_eq!(text, value(device, version, length as usize), "not whole");
    version
}
