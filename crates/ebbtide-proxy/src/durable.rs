//! State that outlives the program: a change is acknowledged when it is stored.

use crate::outcome;
use bytes::{Buf, BufMut};
use ebbtide::Response;
use ebbtide::server::StoredMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How long a client waits until its change is stored.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait after something could not be stored.
const RETRY: Duration = Duration::from_secs(1);
/// When a client whose change could not be stored may try again.
const LATER: Duration = Duration::from_secs(60);

/// The change of a key to be stored: its value, or `None` if it is removed.
pub(crate) type StoredChange = (Vec<u8>, Option<Vec<u8>>);

/// Changes to be stored.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) stored: Vec<StoredChange>,
    /// The number of changes before and with these.
    pub(crate) version: u64,
}

/// Something whose changes are stored.
pub(crate) trait DurableState: Send + Sync + 'static {
    /// The changes since the last call.
    fn take_changes(&self) -> Changes;
}

/// The task that stores changes. All that come while it writes are written next, at once.
#[derive(Debug)]
pub(crate) struct Durable {
    wake: Arc<Notify>,
    /// The version that is stored.
    stored: watch::Receiver<u64>,
}

impl Durable {
    /// Stores the changes of a state until it is dropped.
    pub(crate) fn start(map: StoredMap, state: Weak<impl DurableState>) -> Self {
        let wake = Arc::new(Notify::new());
        let (written, stored) = watch::channel(0);
        tokio::spawn(store(map, state, wake.clone(), written));
        Self { wake, stored }
    }

    /// There are changes.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until a version is stored.
    ///
    /// # Errors
    ///
    /// The answer, if it is not stored in time.
    pub(crate) async fn settle(&self, version: u64) -> Result<(), Response> {
        self.wake();
        let mut stored = self.stored.clone();
        let waiting = stored.wait_for(|stored| *stored >= version);
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(outcome::unavailable(LATER, "it cannot be stored")),
        }
    }
}

/// Restores what a map has under numbers by `keep`, which returns whether a value is valid and within the bounds. Any
/// others are removed from the map, which would keep them forever.
///
/// # Errors
///
/// Returns an error if that cannot be stored.
pub(crate) fn restore(
    map: &mut StoredMap,
    mut keep: impl FnMut(u32, &[u8]) -> bool,
) -> io::Result<()> {
    let mut is_kept = |key: &[u8], value: &[u8]| {
        key.try_into().is_ok_and(|number| keep(u32::from_be_bytes(number), value))
    };
    let rejected = map.iter().filter(|(key, value)| !is_kept(key, value));
    let rejected: Vec<StoredChange> = rejected.map(|(key, _)| (key.to_vec(), None)).collect();
    if rejected.is_empty() {
        return Ok(());
    }
    let lost = rejected.len();
    tracing::warn!(target: "ebbtide::state", lost, "what is stored is not valid, or exceeds the limit");
    map.write(rejected)
}

impl Drop for Durable {
    fn drop(&mut self) {
        // The task sees that its state is gone.
        self.wake.notify_one();
    }
}

async fn store(
    mut map: StoredMap,
    state: Weak<impl DurableState>,
    wake: Arc<Notify>,
    written: watch::Sender<u64>,
) {
    loop {
        wake.notified().await;
        let Some(state) = state.upgrade() else { return };
        let Changes { stored, version } = state.take_changes();
        drop(state);
        let writing = tokio::task::spawn_blocking(move || {
            let outcome = map.write(stored);
            (map, outcome)
        });
        // The runtime ends.
        let Ok((again, outcome)) = writing.await else { return };
        map = again;
        match outcome {
            Ok(()) => {
                written.send_replace(version);
            }
            Err(error) => {
                tracing::error!(target: "ebbtide::state", %error, "changes cannot be stored; it is tried again");
                tokio::time::sleep(RETRY).await;
                // The map has the changes, and stores them with the next ones.
                wake.notify_one();
            }
        }
    }
}

/// Appends a field of a stored value.
pub(crate) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.put_slice(bytes);
}

/// Reads a field; `None` if the value is cut.
pub(crate) fn get<'i>(input: &mut &'i [u8]) -> Option<&'i [u8]> {
    let length = input.try_get_u32().ok()?;
    let (bytes, rest) = input.split_at_checked(length as usize)?;
    *input = rest;
    Some(bytes)
}

/// Appends a field that may be absent.
pub(crate) fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    out.put_u8(u8::from(bytes.is_some()));
    put(out, bytes.unwrap_or_default());
}

/// Reads a field that may be absent; the outer `None` if the value is cut.
pub(crate) fn get_optional<'i>(input: &mut &'i [u8]) -> Option<Option<&'i [u8]>> {
    let is_there = input.try_get_u8().ok()? != 0;
    Some(Some(get(input)?).filter(|_| is_there))
}

/// Appends an address.
pub(crate) fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address.to_canonical() {
        IpAddr::V4(ip) => out.put_u128(ip.to_ipv6_mapped().to_bits()),
        IpAddr::V6(ip) => out.put_u128(ip.to_bits()),
    }
}

/// Reads an address; `None` if the value is cut.
pub(crate) fn get_address(input: &mut &[u8]) -> Option<IpAddr> {
    Some(IpAddr::V6(input.try_get_u128().ok()?.into()).to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide::server::StateFile;

    #[test]
    fn what_is_not_restored_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let load = || StoredMap::load(StateFile::new(folder.path().join("state"))).unwrap();
        let mut map = load();
        let put = |key: &[u8]| (key.to_vec(), Some(b"value".to_vec()));
        map.write([put(&1_u32.to_be_bytes()), put(&2_u32.to_be_bytes()), put(b"other")]).unwrap();
        let mut seen = Vec::new();
        let keep = |number, value: &[u8]| {
            assert_eq!(value, b"value");
            seen.push(number);
            number != 2
        };
        restore(&mut map, keep).unwrap();
        assert_eq!(seen, [1, 2]);
        for map in [map, load()] {
            assert!(map.iter().map(|(key, _)| key).eq([1_u32.to_be_bytes()]));
        }
    }
}
