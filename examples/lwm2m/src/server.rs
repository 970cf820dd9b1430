//! A server: the devices that have registered, each with a handle to its session.

use ebbtide::server::{Call, Path, Query, Router, State, post};
use ebbtide::{Code, OptionNumber, Peer, Response};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;

/// A registration, which lasts until its lifetime has passed without an update.
#[derive(Debug)]
struct Registration {
    endpoint: String,
    peer: Peer,
    expiry: AbortHandle,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.expiry.abort();
    }
}

/// The registered devices; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Devices(Arc<Mutex<BTreeMap<u32, Registration>>>);

#[derive(serde::Deserialize)]
struct Lifetime {
    #[serde(default)]
    lt: Option<u64>,
}

impl Devices {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Registration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resources of the server.
    #[must_use]
    pub fn router(&self) -> Router {
        let router = Router::new().route("/rd", post(register));
        let router = router.route("/rd/{id}", post(update).delete(deregister));
        router.with_state(self.clone())
    }

    /// The session of a registered device; it fails with
    /// [`ErrorKind::Gone`](ebbtide::ErrorKind::Gone) once the device has another one.
    #[must_use]
    pub fn get(&self, endpoint: &str) -> Option<Peer> {
        let devices = self.lock();
        let newest = devices.values().rev().find(|device| device.endpoint == endpoint)?;
        Some(newest.peer.clone())
    }

    /// The names of all devices.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.lock().values().map(|device| device.endpoint.clone()).collect()
    }

    fn keep(&self, id: u32, endpoint: String, peer: Peer, lifetime: Option<u64>) {
        let (devices, lifetime) = (self.clone(), Duration::from_secs(lifetime.unwrap_or(86_400)));
        let expires = tokio::spawn(async move {
            tokio::time::sleep(lifetime).await;
            drop(devices.lock().remove(&id));
        });
        let expiry = expires.abort_handle();
        self.lock().insert(id, Registration { endpoint, peer, expiry });
    }
}

/// The name of a device is the identity that its session has proved, whatever it calls itself.
async fn register(
    call: Call<'static>,
    Query(Lifetime { lt }): Query<Lifetime>,
    State(devices): State<Devices>,
) -> Response {
    let Some(identity) = call.identity() else { return Response::new(Code::FORBIDDEN) };
    let endpoint = String::from_utf8_lossy(identity).into_owned();
    let id = {
        let mut known = devices.lock();
        known.retain(|_, device| device.endpoint != endpoint);
        known.last_key_value().map_or(0, |(last, _)| last + 1)
    };
    devices.keep(id, endpoint, call.peer(), lt);
    let created = Response::new(Code::CREATED).option(OptionNumber::LOCATION_PATH, b"rd");
    created.option(OptionNumber::LOCATION_PATH, id.to_string().as_bytes())
}

/// An update may come over another session than the registration did.
async fn update(
    Path(id): Path<u32>,
    Query(Lifetime { lt }): Query<Lifetime>,
    call: Call<'static>,
    State(devices): State<Devices>,
) -> Code {
    let Some(known) = owned(&devices, id, &call) else { return Code::NOT_FOUND };
    devices.keep(id, known, call.peer(), lt);
    Code::CHANGED
}

async fn deregister(
    Path(id): Path<u32>,
    call: Call<'static>,
    State(devices): State<Devices>,
) -> Code {
    if owned(&devices, id, &call).is_none() {
        return Code::NOT_FOUND;
    }
    devices.lock().remove(&id);
    Code::DELETED
}

/// The endpoint of a registration, if the caller is its device.
fn owned(devices: &Devices, id: u32, call: &Call<'_>) -> Option<String> {
    let devices = devices.lock();
    let known = devices.get(&id).filter(|known| call.identity() == Some(known.endpoint.as_bytes()));
    known.map(|known| known.endpoint.clone())
}
