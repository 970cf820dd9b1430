//! Objects 1 (Server), 3 (Device), 5 (Firmware Update) and 3303 (Temperature), one instance of each.

use crate::senml::{self, SENML_JSON, Value};
use bytes::Bytes;
use ebbtide::server::{Accept, Path, Router, State, Subject, get};
use ebbtide::{Code, Response};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Object, instance and resource.
pub type Id = (u16, u16, u16);
pub(crate) const LIFETIME: Id = (1, 0, 1);
pub(crate) const PACKAGE: Id = (5, 0, 0);
pub(crate) const PACKAGE_URI: Id = (5, 0, 1);
pub(crate) const UPDATE: Id = (5, 0, 2);
/// The version of the package; here its SHA-256.
const VERSION: Id = (5, 0, 7);
const NUMBERS: [Id; 5] = [LIFETIME, (3, 0, 11), (5, 0, 3), (5, 0, 5), (3303, 0, 5700)];
const EXECUTABLE: [Id; 4] = [(1, 0, 8), (3, 0, 4), UPDATE, (3303, 0, 5605)];

/// A device; clones are the same.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) endpoint: Arc<str>,
    values: Arc<Mutex<BTreeMap<Id, String>>>,
    changes: Subject,
    wanted: UnboundedSender<Id>,
}

impl Device {
    /// A device of this name, and what its server writes and executes.
    #[must_use]
    pub fn new(endpoint: &str, lifetime: u32) -> (Self, UnboundedReceiver<Id>) {
        let (wanted, commands) = unbounded_channel();
        let lifetime = lifetime.to_string();
        let values = [
            (LIFETIME, &*lifetime),
            ((3, 0, 0), "Ebbtide"),
            ((3, 0, 3), "1.0"),
            ((3, 0, 11), "0"),
            ((3, 0, 16), "U"),
            ((5, 0, 3), "0"),
            ((5, 0, 5), "0"),
            ((3303, 0, 5700), "21.5"),
            ((3303, 0, 5701), "Cel"),
        ];
        let values = values.map(|(id, value)| (id, value.to_owned())).into();
        let (values, changes) = (Arc::new(Mutex::new(values)), Subject::new());
        (Self { endpoint: endpoint.into(), values, changes, wanted }, commands)
    }

    pub(crate) fn values(&self) -> MutexGuard<'_, BTreeMap<Id, String>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets values, and notifies those who observe them or their instances.
    pub fn set<const N: usize>(&self, values: [(Id, &str); N]) {
        for (id @ (object, instance, resource), value) in values {
            self.values().insert(id, value.to_owned());
            self.changes.changed_at(&format!("/{object}/{instance}/{resource}"));
            self.changes.changed_at(&format!("/{object}/{instance}"));
        }
    }

    /// A package has arrived whole.
    pub(crate) fn downloaded(&self, package: &[u8]) {
        let digest = Sha256::digest(package).into_iter().map(|byte| format!("{byte:02x}"));
        let (length, digest) = (package.len().to_string(), digest.collect::<String>());
        self.set([(PACKAGE, &*length), (VERSION, &*digest), ((5, 0, 3), "2")]);
    }

    /// The resources, for the server.
    pub(crate) fn router(&self) -> Router {
        let resource = get(read).put(write).post(execute).observable(&self.changes);
        let router = Router::new().route("/{object}/{instance}/{resource}", resource);
        let router = router.route("/{object}/{instance}", get(read_all).observable(&self.changes));
        router.with_state(self.clone())
    }
}

async fn read(Path(id): Path<Id>, State(device): State<Device>) -> Option<String> {
    device.values().get(&id).cloned()
}

async fn read_all(
    Path((object, instance)): Path<(u16, u16)>,
    Accept(accept): Accept,
    State(device): State<Device>,
) -> Result<Response, Code> {
    if accept.is_some_and(|format| format != SENML_JSON) {
        return Err(Code::NOT_ACCEPTABLE);
    }
    let values = device.values();
    let values = values.range((object, instance, 0)..=(object, instance, u16::MAX));
    let typed = |id: &Id, value| match (NUMBERS.contains(id), str::parse(value)) {
        (true, Ok(number)) => Value::Number(number),
        _ => Value::Text(value),
    };
    let values = values.map(|(id, value)| (id.2.to_string(), typed(id, value)));
    let pack = senml::write(&format!("/{object}/{instance}/"), values);
    Ok(Response::content(pack.map_err(|_| Code::INTERNAL_SERVER_ERROR)?).format(SENML_JSON))
}

async fn write(Path(id): Path<Id>, State(device): State<Device>, body: Bytes) -> Code {
    match (id, String::from_utf8(body.to_vec())) {
        (PACKAGE, _) => device.downloaded(&body),
        (LIFETIME | PACKAGE_URI, Ok(text)) => {
            device.set([(id, &text)]);
            let _ = device.wanted.send(id);
        }
        (LIFETIME | PACKAGE_URI, Err(_)) => return Code::BAD_REQUEST,
        _ => return Code::METHOD_NOT_ALLOWED,
    }
    Code::CHANGED
}

async fn execute(Path(id): Path<Id>, State(device): State<Device>) -> Code {
    if !EXECUTABLE.contains(&id) {
        return Code::METHOD_NOT_ALLOWED;
    }
    let _ = device.wanted.send(id);
    Code::CHANGED
}
