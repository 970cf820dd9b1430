//! Files that clients write: names that cannot meet, room on the disk, and shares of it.

use cap_std::fs::{Dir, File, OpenOptions};
use ebbtide::{Code, Response};
use ebbtide_core::sharing_prefix;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file occupies whole blocks, and an empty one its entry.
const BLOCK: u64 = 4096;
/// Bytes of the disk that stay free for others.
#[cfg(target_os = "linux")]
const RESERVE: u64 = 64 << 20;
/// How often another random name is tried.
const TRIES: usize = 8;
/// Max-Age in seconds of an answer for want of room.
pub(super) const MAX_AGE: u32 = 60;

/// The room for files that clients write.
#[derive(Debug)]
pub(super) struct Disk {
    /// Bytes that all files of the folder may occupy.
    limit: Option<u64>,
    used: Mutex<Used>,
    /// Held while the folder is served, so that another server does not remove what this one is writing.
    _lock: Option<std::fs::File>,
}

#[derive(Debug, Default)]
struct Used {
    bytes: u64,
    /// The files that clients have written since the start, with their sources and sizes.
    files: BTreeMap<PathBuf, (IpAddr, u64)>,
    of_sources: BTreeMap<IpAddr, u64>,
}

impl Used {
    fn of(&self, from: IpAddr) -> u64 {
        self.of_sources.get(&from).copied().unwrap_or(0)
    }

    fn remember(&mut self, path: PathBuf, from: IpAddr, bytes: u64) {
        self.files.insert(path, (from, bytes));
        *self.of_sources.entry(from).or_default() += bytes;
    }

    fn forget(&mut self, path: &Path, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let Some((from, bytes)) = self.files.remove(path) else { return };
        let left = self.of(from).saturating_sub(bytes);
        match left {
            0 => drop(self.of_sources.remove(&from)),
            left => drop(self.of_sources.insert(from, left)),
        }
    }
}

/// Room for a file that is being written; given back if the file does not stay.
#[derive(Debug)]
pub(super) struct Reservation<'d> {
    disk: &'d Disk,
    from: IpAddr,
    bytes: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut used = self.disk.lock();
        used.bytes = used.bytes.saturating_sub(self.bytes);
    }
}

impl Reservation<'_> {
    /// The file has its name, and replaces one of `before` bytes.
    pub(super) fn keep(mut self, path: PathBuf, before: Option<u64>) {
        let mut used = self.disk.lock();
        if let Some(before) = before {
            used.forget(&path, occupied(before));
        }
        if self.disk.limit.is_some() {
            used.remember(path, self.from, self.bytes);
        }
        self.bytes = 0;
    }
}

impl Disk {
    /// Removes what a server left behind that was killed while it wrote, unless another one serves the folder, and
    /// counts the files.
    pub(super) fn open(root: &Dir, limit: Option<u64>) -> Self {
        // A handle of the folder that is open for reading can be locked; `root` may not be.
        let lock = root.open(".").map(File::into_std).ok();
        let alone = lock.as_ref().is_some_and(|lock| lock.try_lock().is_ok());
        let bytes = survey(root, alone);
        // From the exclusive lock to one that others may hold as well. Without locks nothing is removed.
        let lock = lock.filter(|lock| lock.lock_shared().is_ok());
        Self { limit, used: Mutex::new(Used { bytes, ..Used::default() }), _lock: lock }
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for a file, or the answer to a client for whom there is none. A client has at most as much as is free
    /// to others.
    pub(super) fn room(
        &self,
        root: &Dir,
        from: IpAddr,
        length: u64,
    ) -> Result<Reservation<'_>, Response> {
        let (from, bytes) = (sharing_prefix(from), occupied(length));
        let full =
            || Response::error(Code::SERVICE_UNAVAILABLE, "no room is left").max_age(MAX_AGE);
        if !has_free(root, bytes) {
            return Err(full());
        }
        let mut used = self.lock();
        if let Some(limit) = self.limit {
            if bytes > limit {
                return Err(Response::new(Code::REQUEST_ENTITY_TOO_LARGE));
            }
            let free = limit.saturating_sub(used.bytes);
            let own = used.of(from);
            if bytes > free || own > 0 && own + bytes > free {
                return Err(full());
            }
        }
        used.bytes += bytes;
        Ok(Reservation { disk: self, from, bytes })
    }

    /// A file of so many bytes has been deleted.
    pub(super) fn deleted(&self, path: &Path, length: u64) {
        self.lock().forget(path, occupied(length));
    }
}

fn occupied(length: u64) -> u64 {
    length.max(1).div_ceil(BLOCK) * BLOCK
}

/// Whether the disk has room for so many bytes. An error speaks when the file is written.
#[cfg(target_os = "linux")]
fn has_free(root: &Dir, bytes: u64) -> bool {
    let free = nix::sys::statvfs::fstatvfs(root)
        .map(|disk| disk.blocks_available() * disk.fragment_size());
    free.map_or(true, |free| free >= bytes.saturating_add(RESERVE))
}

#[cfg(not(target_os = "linux"))]
fn has_free(_: &Dir, _: u64) -> bool {
    true
}

/// Creates a file under a name that no other file has.
pub(super) fn create_part(root: &Dir, folder: &Path) -> io::Result<(PathBuf, File)> {
    let mut tries = 0;
    loop {
        #[expect(clippy::disallowed_methods, reason = "a name that no other process chooses")]
        let number = RandomState::new().hash_one(tries);
        let part = folder.join(format!(".ebbtide-{number:016x}.part"));
        match root.open_with(&part, OpenOptions::new().write(true).create_new(true)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                tries += 1
            }
            created => return created.map(|file| (part, file)),
        }
    }
}

fn is_part(name: &str) -> bool {
    name.starts_with(".ebbtide-") && name.ends_with(".part")
}

/// The bytes that the files below a folder occupy, without those that cannot be read. Parts are removed if no other
/// server may be writing them.
fn survey(root: &Dir, removes: bool) -> u64 {
    let (mut bytes, mut folders) = (0, vec![PathBuf::from(".")]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = root.read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let (name, kind) = (entry.file_name(), entry.file_type());
            let path = folder.join(&name);
            match kind {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() && removes && name.to_str().is_some_and(is_part) => {
                    // What cannot be removed stays hidden.
                    let _ = root.remove_file(&path);
                }
                Ok(kind) if kind.is_file() => {
                    bytes += entry.metadata().map_or(0, |metadata| occupied(metadata.len()));
                }
                _ => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn folder() -> (tempfile::TempDir, Dir) {
        let folder = tempfile::tempdir().unwrap();
        let root = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        (folder, root)
    }

    fn code<T: std::fmt::Debug>(answer: Result<T, Response>) -> Code {
        answer.unwrap_err().code()
    }

    #[test]
    fn an_address_has_at_most_as_much_of_the_disk_as_is_free_to_others() {
        let (_folder, root) = folder();
        let disk = Disk::open(&root, Some(100 * BLOCK));
        for n in 0..50 {
            disk.room(&root, host(1), 1).unwrap().keep(format!("a{n}").into(), None);
        }
        assert_eq!(
            code(disk.room(&root, host(1), 0)),
            Code::SERVICE_UNAVAILABLE,
            "half is its own"
        );
        disk.room(&root, host(2), 20 * BLOCK).unwrap().keep("b".into(), None);
        assert_eq!(code(disk.room(&root, host(2), 20 * BLOCK)), Code::SERVICE_UNAVAILABLE);
        assert_eq!(code(disk.room(&root, host(3), 101 * BLOCK)), Code::REQUEST_ENTITY_TOO_LARGE);
        // What is replaced or deleted is free again, and what was not kept has never been used.
        disk.room(&root, host(2), 1).unwrap().keep("b".into(), Some(20 * BLOCK));
        disk.deleted(Path::new("a0"), 1);
        drop(disk.room(&root, host(3), 50 * BLOCK).unwrap());
        assert_eq!(disk.lock().bytes, 50 * BLOCK);
    }

    #[test]
    fn parts_of_a_killed_server_are_removed_and_those_of_a_running_one_are_not() {
        let (folder, root) = folder();
        std::fs::create_dir(folder.path().join("rooms")).unwrap();
        std::fs::write(folder.path().join("kept.part"), "12").unwrap();
        let part = folder.path().join("rooms/.ebbtide-1-0.part");
        std::fs::write(&part, "left").unwrap();
        let first = Disk::open(&root, None);
        assert!(!part.exists());
        assert_eq!(first.lock().bytes, BLOCK);
        let (name, _file) = create_part(&root, Path::new("rooms")).unwrap();
        let second = Disk::open(&root, None);
        assert!(folder.path().join(&name).exists(), "another server is writing it");
        drop((first, second));
        drop(Disk::open(&root, None));
        assert!(!folder.path().join(&name).exists());
    }
}
