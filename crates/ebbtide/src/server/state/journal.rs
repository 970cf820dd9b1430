//! The stored form of a map from bytes to bytes: records with checksums, so that a change is appended instead of
//! storing everything again, and damage is noticed.
//!
//! A record is its length with a checksum of that, a checksum of what follows, one byte that says
//! whether an entry is put or removed, and the key with its length, which the value follows.
//! Numbers are in network byte order.

use crate::state_store::StateStore;
use bytes::{Buf, BufMut};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// The first bytes of a stored state; the number is the version of the format.
const MAGIC: &[u8] = b"ebbtide state 3\n";
/// Appended bytes beyond which everything is stored again, if the whole is not longer.
const MIN_APPENDED: usize = 1 << 16;

pub(super) const PUT: u8 = 0;
pub(super) const REMOVE: u8 = 1;

/// The contents of a state.
pub(super) type Entries = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// Why stored bytes are not a state.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    Empty,
    /// Other bytes, or those of another version.
    Foreign,
    /// A checksum is wrong, or a value.
    Broken,
}

impl Damage {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Empty => "it is empty",
            Self::Foreign => "it is not a state of this version",
            Self::Broken => "it is damaged",
        }
    }
}

/// The entries of a stored state, and whether its last record is cut, as after a crash while it was appended.
pub(super) fn decode(stored: &[u8]) -> Result<(Entries, bool), Damage> {
    if stored.is_empty() {
        return Err(Damage::Empty);
    }
    let mut input = stored.strip_prefix(MAGIC).ok_or(Damage::Foreign)?;
    let mut entries = Entries::new();
    while !input.is_empty() {
        let header = (input.try_get_u32(), input.try_get_u32(), input.try_get_u64());
        let (Ok(length), Ok(of_length), Ok(sum)) = header else {
            return Ok((entries, true));
        };
        let is_length = of_length == checksum_of_length(length);
        let record = input.split_at_checked(if is_length { length as usize } else { 0 });
        let Some((record, rest)) = record else {
            return Ok((entries, true));
        };
        if !is_length || checksum(record) != sum {
            // Some file systems lengthen a file before they write to it: after a loss of power the
            // last change can have its length and not its contents, or neither.
            let is_last = rest.iter().all(|byte| *byte == 0) && (is_length || sum == 0);
            return if is_last { Ok((entries, true)) } else { Err(Damage::Broken) };
        }
        apply(&mut entries, record).ok_or(Damage::Broken)?;
        input = rest;
    }
    Ok((entries, false))
}

fn apply(entries: &mut Entries, mut record: &[u8]) -> Option<()> {
    let (kind, length) = (record.try_get_u8().ok()?, record.try_get_u16().ok()?);
    let (key, value) = record.split_at_checked(length.into())?;
    match kind {
        PUT => entries.insert(key.into(), value.into()),
        REMOVE => entries.remove(key),
        _ => return None,
    };
    Some(())
}

pub(super) fn put_record(out: &mut Vec<u8>, kind: u8, key: &[u8], value: &[u8]) {
    let mut record = Vec::with_capacity(3 + key.len() + value.len());
    record.put_u8(kind);
    record.put_u16(key.len() as u16);
    record.put_slice(key);
    record.put_slice(value);
    let length = record.len() as u32;
    out.put_u32(length);
    out.put_u32(checksum_of_length(length));
    out.put_u64(checksum(&record));
    out.put_slice(&record);
}

pub(super) fn encode(entries: &Entries) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    entries.iter().for_each(|(key, value)| put_record(&mut out, PUT, key, value));
    out
}

/// A length that damage makes too long would look like a cut end.
fn checksum_of_length(length: u32) -> u32 {
    checksum(&length.to_be_bytes()) as u32
}

/// FNV-1a with 64 bits. It notices damage, not an attack: the file is its owner's.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The contents of a store: all entries at one time, and behind them the records that were appended since.
#[derive(Debug)]
pub(super) struct RecordLog {
    store: Arc<dyn StateStore>,
    whole: usize,
    appended: usize,
    /// Whether nothing can be appended to what is stored, since a part of a record may be its end.
    is_torn: bool,
}

impl RecordLog {
    /// The log of a store in which all entries take `whole` bytes, with so many more of earlier changes.
    pub(super) fn new(store: Arc<dyn StateStore>, whole: usize, appended: usize) -> Self {
        Self { store, whole, appended, is_torn: false }
    }

    /// The end of what is stored is not known: everything is stored again.
    pub(super) fn set_torn(&mut self) {
        self.is_torn = true;
    }

    /// Appends records, or stores all entries if that is shorter or necessary.
    pub(super) fn write(
        &mut self,
        records: &[u8],
        all: impl FnOnce() -> Vec<u8>,
    ) -> io::Result<()> {
        if records.is_empty() && !self.is_torn {
            return Ok(());
        }
        let length = self.appended + records.len();
        let appends = !self.is_torn && length <= self.whole.max(MIN_APPENDED);
        self.is_torn = true;
        if appends && self.store.append(records)? {
            self.appended = length;
        } else {
            let all = all();
            self.store.save(&all)?;
            (self.whole, self.appended) = (all.len(), 0);
        }
        self.is_torn = false;
        Ok(())
    }
}

/// Keeps a store equal to changing entries.
#[derive(Debug)]
pub(super) struct Journal {
    log: RecordLog,
    /// A checksum of each stored value.
    stored: BTreeMap<Box<[u8]>, u64>,
}

impl Journal {
    /// A journal whose store has these entries.
    pub(super) fn new(store: Arc<dyn StateStore>, entries: &Entries) -> Self {
        let log = RecordLog::new(store, encode(entries).len(), 0);
        Self { log, stored: checksums(entries) }
    }

    /// Stores what differs.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be stored. The next call tries again.
    pub(super) fn write(&mut self, entries: &Entries) -> io::Result<()> {
        let sums = checksums(entries);
        let mut changes = Vec::new();
        for ((key, value), sum) in entries.iter().zip(sums.values()) {
            if self.stored.get(key) != Some(sum) {
                put_record(&mut changes, PUT, key, value);
            }
        }
        for key in self.stored.keys().filter(|key| !entries.contains_key(*key)) {
            put_record(&mut changes, REMOVE, key, &[]);
        }
        self.log.write(&changes, || encode(entries))?;
        self.stored = sums;
        Ok(())
    }
}

fn checksums(entries: &Entries) -> BTreeMap<Box<[u8]>, u64> {
    entries.iter().map(|(key, value)| (key.clone(), checksum(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_store::StateFile;
    use std::sync::Mutex;

    fn entries(all: &[(&str, &str)]) -> Entries {
        all.iter().map(|(key, value)| (key.as_bytes().into(), value.as_bytes().into())).collect()
    }

    #[test]
    fn a_state_is_read_as_it_was_written_and_a_cut_one_up_to_its_last_whole_record() {
        let all = entries(&[("a", "1"), ("b", ""), ("", "3")]);
        let stored = encode(&all);
        assert_eq!(decode(&stored), Ok((all, false)));
        assert_eq!(decode(&[]), Err(Damage::Empty));
        for end in 1..stored.len() {
            match decode(&stored[..end]) {
                Ok((some, is_cut)) => assert!(some.len() < 3 && (is_cut || some.len() * 19 < end)),
                Err(damage) => assert!(end < MAGIC.len() && damage == Damage::Foreign),
            }
        }
    }

    #[test]
    fn a_changed_byte_is_noticed_wherever_it_is() {
        let all = entries(&[("a", "one"), ("b", "two")]);
        let stored = encode(&all);
        // What is wrong in the last record may be a change that a crash has cut; before it, it is damage.
        let last = stored.len() - encode(&entries(&[("b", "two")])).len() + MAGIC.len();
        for at in 0..stored.len() {
            let mut changed = stored.clone();
            changed[at] ^= 0x10;
            match decode(&changed) {
                Err(damage) => assert_eq!(damage == Damage::Foreign, at < MAGIC.len(), "{at}"),
                Ok((some, is_cut)) => assert!(at >= last && is_cut && some.len() == 1, "{at}"),
            }
        }
        assert_eq!(decode(b"ebbtide state 2\nolder"), Err(Damage::Foreign));
    }

    /// A store in memory that counts bytes, and may be full.
    #[derive(Debug, Default)]
    struct Memory(Mutex<Disk>);

    #[derive(Debug, Default)]
    struct Disk {
        file: Vec<u8>,
        written: usize,
        is_full: bool,
    }

    impl StateStore for Memory {
        fn load(&self) -> io::Result<Option<Vec<u8>>> {
            Ok(Some(self.0.lock().unwrap().file.clone()))
        }

        fn save(&self, state: &[u8]) -> io::Result<()> {
            let mut disk = self.0.lock().unwrap();
            if disk.is_full {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.file = state.to_vec();
            disk.written += state.len();
            Ok(())
        }

        fn append(&self, changes: &[u8]) -> io::Result<bool> {
            let mut disk = self.0.lock().unwrap();
            if disk.is_full {
                // A part of its first record was written.
                disk.file.extend_from_slice(&changes[..10]);
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.file.extend_from_slice(changes);
            disk.written += changes.len();
            Ok(true)
        }
    }

    #[test]
    fn a_change_costs_its_own_bytes_and_not_those_of_all() {
        let store = Arc::new(Memory::default());
        let mut all: Entries =
            (0..8000u32).map(|n| (n.to_be_bytes().into(), [7; 70].into())).collect();
        store.save(&encode(&all)).unwrap();
        let whole = store.0.lock().unwrap().written;
        let mut journal = Journal::new(store.clone(), &all);
        for round in 0..100u8 {
            journal.write(&all).unwrap();
            all.insert([round].into(), [round; 70].into());
            all.remove(&u32::from(round).to_be_bytes()[..]);
            journal.write(&all).unwrap();
        }
        let disk = store.0.lock().unwrap();
        assert!(disk.written < whole + 100 * 200, "{} of {whole}", disk.written);
        assert_eq!(decode(&disk.file), Ok((all, false)));
    }

    #[test]
    fn what_is_appended_never_grows_beyond_the_whole() {
        let store = Arc::new(Memory::default());
        let mut journal = Journal::new(store.clone(), &Entries::new());
        for round in 0..10_000u32 {
            journal.write(&entries(&[("a", &round.to_string())])).unwrap();
        }
        let disk = store.0.lock().unwrap();
        assert!(disk.file.len() <= 2 * MIN_APPENDED, "{}", disk.file.len());
        assert_eq!(decode(&disk.file), Ok((entries(&[("a", "9999")]), false)));
    }

    #[test]
    fn after_a_full_disk_everything_is_stored_again() {
        let store = Arc::new(Memory::default());
        let before = entries(&[("a", "1")]);
        store.save(&encode(&before)).unwrap();
        let mut journal = Journal::new(store.clone(), &before);
        let after = entries(&[("a", "2"), ("b", "3")]);
        store.0.lock().unwrap().is_full = true;
        journal.write(&after).unwrap_err();
        journal.write(&after).unwrap_err();
        assert_eq!(decode(&store.0.lock().unwrap().file), Ok((before, true)));
        store.0.lock().unwrap().is_full = false;
        journal.write(&after).unwrap();
        assert_eq!(decode(&store.0.lock().unwrap().file), Ok((after, false)));
    }

    #[test]
    fn a_file_is_extended_by_what_is_appended() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateFile::new(folder.path().join("state")));
        let (before, after) = (entries(&[("a", "1")]), entries(&[("a", "1"), ("b", "2")]));
        store.save(&encode(&before)).unwrap();
        let mut journal = Journal::new(store.clone(), &before);
        journal.write(&after).unwrap();
        let stored = store.load().unwrap().unwrap();
        assert!(stored.starts_with(&encode(&before)));
        assert_eq!(decode(&stored), Ok((after, false)));
    }
}
