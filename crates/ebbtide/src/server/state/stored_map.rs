//! A map that outlives its program.

use super::journal::{self, Entries, PUT, REMOVE, RecordLog, put_record};
use crate::state_store::StateStore;
use std::io;
use std::sync::Arc;

/// A map from bytes to bytes that a [`StateStore`] keeps, for what an application has acknowledged and must not lose.
/// A change costs its own bytes, not those of the whole map.
///
/// It has to be the only one that uses its store: a server's own state
/// ([`ServerConfig::state`](crate::ServerConfig::state)) needs another one.
///
/// ```
/// use ebbtide::server::{StateFile, StoredMap};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("state");
/// let mut map = StoredMap::load(StateFile::new(&path))?;
/// map.write([(b"key".to_vec(), Some(b"value".to_vec()))])?;
/// let again = StoredMap::load(StateFile::new(&path))?;
/// assert!(again.iter().eq([(&b"key"[..], &b"value"[..])]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct StoredMap {
    entries: Entries,
    log: RecordLog,
}

impl StoredMap {
    /// Loads the map; without a stored one it is empty. A store whose contents are not such a map is
    /// [set aside](StateStore::set_aside), which is logged.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read, or what it has cannot be set aside.
    pub fn load(store: impl StateStore) -> io::Result<Self> {
        let stored = store.load()?;
        let store: Arc<dyn StateStore> = Arc::new(store);
        let length = stored.as_ref().map_or(0, Vec::len);
        let mut log = RecordLog::new(store.clone(), 0, 0);
        let decoded = stored.as_deref().map(journal::decode);
        let entries = match decoded {
            Some(Ok((entries, false))) => {
                let whole = journal::encode(&entries).len();
                let log = RecordLog::new(store, whole, length.saturating_sub(whole));
                return Ok(Self { entries, log });
            }
            Some(Ok((entries, true))) => {
                tracing::warn!(target: "ebbtide::state", "the last change of what is stored is cut, and is left out");
                entries
            }
            Some(Err(damage)) => {
                let (reason, kept) = (damage.text(), store.set_aside()?);
                tracing::warn!(target: "ebbtide::state", reason, kept, "what is stored is not valid, and is not used");
                Entries::new()
            }
            None => Entries::new(),
        };
        log.set_torn();
        Ok(Self { entries, log })
    }

    /// The entries in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Changes entries: `Some` puts a value, `None` removes the key. When it returns, they are stored. It blocks the
    /// calling thread.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be stored. The map has them all the same, and the next call
    /// stores them. A key of more than 65535 bytes is an error before anything is changed.
    pub fn write(
        &mut self,
        changes: impl IntoIterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
    ) -> io::Result<()> {
        let changes: Vec<_> = changes.into_iter().collect();
        if changes.iter().any(|(key, _)| key.len() > usize::from(u16::MAX)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a key of more than 65535 bytes",
            ));
        }
        let mut records = Vec::new();
        for (key, value) in changes {
            match value {
                Some(value) => {
                    put_record(&mut records, PUT, &key, &value);
                    self.entries.insert(key.into(), value.into());
                }
                None => {
                    put_record(&mut records, REMOVE, &key, &[]);
                    self.entries.remove(&*key);
                }
            }
        }
        let Self { entries, log } = self;
        log.write(&records, || journal::encode(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_store::StateFile;

    #[test]
    fn what_was_written_is_there_after_a_restart_even_if_the_file_is_cut_or_of_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let load = || StoredMap::load(StateFile::new(&path)).unwrap();
        let put = |n: u32| (n.to_be_bytes().to_vec(), Some(vec![7; 1000]));
        let mut map = load();
        map.write([put(1), put(2)]).unwrap();
        map.write([(1u32.to_be_bytes().to_vec(), None), put(3)]).unwrap();
        let keys = |map: &StoredMap| map.iter().map(|(key, _)| key[3]).collect::<Vec<_>>();
        assert_eq!(keys(&load()), [2, 3]);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let mut cut = load();
        assert_eq!(keys(&cut), [2]);
        cut.write([put(4)]).unwrap();
        assert_eq!(keys(&load()), [2, 4]);
        for _ in 0..200 {
            map = load();
            map.write([put(5)]).unwrap();
        }
        let length = path.metadata().unwrap().len();
        assert!(length < 80_000, "{length}: what is appended is bounded, over restarts too");
        let long = map.write([(vec![0; 65_536], None), put(6)]).unwrap_err();
        assert_eq!(long.kind(), std::io::ErrorKind::InvalidInput);
        assert!(!keys(&load()).contains(&6));
        std::fs::write(&path, "something else").unwrap();
        assert_eq!(keys(&load()), [0u8; 0]);
        assert!(folder.path().join("state.bad").exists());
    }
}
