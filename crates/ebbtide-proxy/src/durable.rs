//! State that outlives the program: a change is acknowledged when it is stored.

use crate::outcome;
use bytes::{Buf, BufMut};
use ebbtide::Response;
use ebbtide::server::StoredMap;
use std::collections::BTreeSet;
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

/// The fate of a stored value at the start.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredFate {
    Kept,
    /// It has expired, or another one has its place.
    Over,
    /// It exceeds the limit, or this program cannot read it: another one, or a higher limit, may.
    Rejected,
}

/// The key of a value that is set aside has this behind the number.
const ASIDE: &[u8] = b"aside";

/// Restores by `keep` the values that a map has under numbers. Rejected ones were acknowledged all the same: each is set
/// aside, under a key that no other value gets, and tried again at the next start after all others.
pub(crate) fn restore(map: &mut StoredMap, mut keep: impl FnMut(u32, &[u8]) -> StoredFate) {
    let (mut kept, mut changes, mut rejected) = (BTreeSet::new(), Vec::new(), 0_usize);
    let keys: BTreeSet<&[u8]> = map.iter().map(|(key, _)| key).collect();
    for (key, value) in map.iter() {
        let Ok(number) = key.try_into().map(u32::from_be_bytes) else { continue };
        match keep(number, value) {
            StoredFate::Kept => {
                kept.insert(number);
            }
            StoredFate::Over => changes.push((key.to_vec(), None)),
            StoredFate::Rejected => {
                rejected += 1;
                let mut aside = [key, ASIDE].concat();
                while keys.contains(&*aside) {
                    aside.push(0);
                }
                changes.extend([(key.to_vec(), None), (aside, Some(value.to_vec()))]);
            }
        }
    }
    for (key, value) in map.iter() {
        let Some(number) = number_of_aside(key) else { continue };
        let fate = match kept.contains(&number) {
            true => StoredFate::Rejected,
            false => keep(number, value),
        };
        match fate {
            StoredFate::Kept => {
                kept.insert(number);
                let again = (number.to_be_bytes().to_vec(), Some(value.to_vec()));
                changes.extend([(key.to_vec(), None), again]);
            }
            StoredFate::Over => changes.push((key.to_vec(), None)),
            StoredFate::Rejected => rejected += 1,
        }
    }
    if rejected > 0 {
        tracing::warn!(
            target: "ebbtide::state",
            rejected,
            "what is stored exceeds the limit, or cannot be read: it is set aside until a start at which it can be used"
        );
    }
    if !changes.is_empty()
        && let Err(error) = map.write(changes)
    {
        tracing::error!(target: "ebbtide::state", %error, "what was set aside cannot be stored; it is tried again with the next change");
    }
}

/// The number of a value that is set aside.
fn number_of_aside(key: &[u8]) -> Option<u32> {
    let (number, rest) = key.split_first_chunk()?;
    rest.starts_with(ASIDE).then_some(u32::from_be_bytes(*number))
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
    use ebbtide::server::{StateFile, StateStore};
    use std::io;

    fn put(key: &[u8], value: u8) -> StoredChange {
        (key.to_vec(), Some(vec![value]))
    }

    /// Restores at most `room` values above zero. Returns them by number.
    fn restored(map: &mut StoredMap, room: usize) -> Vec<(u32, u8)> {
        let mut all = Vec::new();
        restore(map, |number, value| match value {
            [0] => StoredFate::Over,
            [value] if all.len() < room => {
                all.push((number, *value));
                StoredFate::Kept
            }
            _ => StoredFate::Rejected,
        });
        all
    }

    #[test]
    fn what_was_acknowledged_and_exceeds_the_limit_is_there_again_when_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let load = || StoredMap::load(StateFile::new(folder.path().join("state"))).unwrap();
        let [one, two, three, over] = [1_u32, 2, 3, 4].map(u32::to_be_bytes);
        load().write([put(&one, 1), put(&two, 2), put(&three, 3), put(&over, 0)]).unwrap();
        assert_eq!(restored(&mut load(), 1), [(1, 1)]);
        // The number of one that is set aside is given to another, which is in use.
        load().write([(one.to_vec(), None), put(&two, 22)]).unwrap();
        assert_eq!(restored(&mut load(), 1), [(2, 22)]);
        // Now two of this number are.
        assert!(restored(&mut load(), 0).is_empty());
        let mut all = restored(&mut load(), 9);
        all.sort_unstable();
        assert_eq!(all, [(2, 2), (3, 3)]);
        load().write([(two.to_vec(), None)]).unwrap();
        assert_eq!(restored(&mut load(), 9), [(3, 3), (2, 22)]);
        assert_eq!(load().iter().count(), 2, "what is over is removed");
    }

    /// A store that cannot be written.
    #[derive(Debug)]
    struct ReadOnly(Vec<u8>);

    impl StateStore for ReadOnly {
        fn load(&self) -> io::Result<Option<Vec<u8>>> {
            Ok(Some(self.0.clone()))
        }

        fn save(&self, _: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::ReadOnlyFilesystem.into())
        }
    }

    #[test]
    fn a_start_needs_no_disk_that_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut map = StoredMap::load(StateFile::new(&path)).unwrap();
        map.write([put(&1_u32.to_be_bytes(), 1), put(&2_u32.to_be_bytes(), 2)]).unwrap();
        let mut map = StoredMap::load(ReadOnly(std::fs::read(&path).unwrap())).unwrap();
        assert_eq!(restored(&mut map, 1), [(1, 1)]);
    }
}
