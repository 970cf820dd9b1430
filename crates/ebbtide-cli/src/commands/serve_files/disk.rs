//! Files that clients write: names that cannot meet, room on the disk, and shares of it.

use cap_std::fs::{Dir, DirEntry, File, OpenOptions};
use ebbtide::locked_file::LockedFile;
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
/// Files that others can still create: empty ones take no bytes on some file systems.
#[cfg(target_os = "linux")]
const RESERVED_FILES: u64 = 4096;
/// How often another random name is tried.
const TRIES: usize = 8;
/// Max-Age in seconds of an answer for want of room.
pub(super) const MAX_AGE: u32 = 60;

/// The room for files that clients write.
#[derive(Debug)]
pub(super) struct Disk {
    /// Shares of what all files of the folder may occupy, where that is limited.
    shares: Option<DiskShares>,
    /// Held while the folder is served, so that another server does not remove what this one is writing.
    _lock: Option<LockedFile>,
}

#[derive(Debug)]
struct DiskShares {
    /// Bytes that all files of the folder may occupy.
    limit: u64,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    bytes: u64,
    /// The files that clients have written since the start, with their sources and sizes.
    files: BTreeMap<PathBuf, (IpAddr, u64)>,
    /// Bytes of these files and of those that are being written.
    of_sources: BTreeMap<IpAddr, u64>,
}

impl Used {
    fn of(&self, from: IpAddr) -> u64 {
        self.of_sources.get(&from).copied().unwrap_or(0)
    }

    fn take(&mut self, from: IpAddr, bytes: u64) {
        self.bytes += bytes;
        *self.of_sources.entry(from).or_default() += bytes;
    }

    fn give_back(&mut self, from: IpAddr, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        match self.of(from).saturating_sub(bytes) {
            0 => drop(self.of_sources.remove(&from)),
            left => drop(self.of_sources.insert(from, left)),
        }
    }

    /// A file of so many bytes is gone.
    fn forget(&mut self, path: &Path, bytes: u64) {
        match self.files.remove(path) {
            Some((from, bytes)) => self.give_back(from, bytes),
            None => self.bytes = self.bytes.saturating_sub(bytes),
        }
    }
}

impl DiskShares {
    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for a file that is being written; given back if the file does not stay.
#[derive(Debug)]
pub(super) struct Reservation<'d> {
    shares: &'d DiskShares,
    from: IpAddr,
    bytes: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.shares.lock().give_back(self.from, self.bytes);
    }
}

impl Reservation<'_> {
    /// The file has its name, and replaces one of `before` bytes.
    pub(super) fn keep(mut self, path: PathBuf, before: Option<u64>) {
        let mut used = self.shares.lock();
        // Who else removes files of the folder may have removed one that is remembered here.
        used.forget(&path, before.map_or(0, occupied));
        used.files.insert(path, (self.from, self.bytes));
        drop(used);
        self.bytes = 0;
    }
}

impl Disk {
    /// Removes what a server left behind that was killed while it wrote, unless another one serves the folder, and
    /// counts the files if there is a limit.
    pub(super) fn open(root: &Dir, limit: Option<u64>) -> Self {
        // A handle of the folder that is open for reading can be locked; `root` may not be.
        let lock = root.open(".").map(File::into_std).ok();
        if lock.as_ref().is_some_and(|lock| lock.try_lock().is_ok()) {
            remove_parts(root);
        }
        let shares = limit.map(|limit| {
            let used = Used { bytes: bytes_below(root), ..Used::default() };
            DiskShares { limit, used: Mutex::new(used) }
        });
        // From the exclusive lock to one that others may hold as well. Without locks nothing is removed.
        let lock = lock.and_then(|lock| LockedFile::shared(lock).ok());
        Self { shares, _lock: lock }
    }

    /// Room for a file, or the answer to a client for whom there is none. A client has at most as much as is free
    /// to others. Without a limit there is nothing to reserve.
    pub(super) fn room(
        &self,
        root: &Dir,
        from: IpAddr,
        length: u64,
    ) -> Result<Option<Reservation<'_>>, Response> {
        let (from, bytes) = (sharing_prefix(from), occupied(length));
        let full =
            || Response::error(Code::SERVICE_UNAVAILABLE, "no room is left").max_age(MAX_AGE);
        if !has_free(root, bytes) {
            tracing::error!(target: "ebbtide::files", free = RESERVE, "a file cannot be stored: the disk has less free");
            return Err(full());
        }
        let Some(shares) = &self.shares else { return Ok(None) };
        if bytes > shares.limit {
            return Err(Response::new(Code::REQUEST_ENTITY_TOO_LARGE));
        }
        let mut used = shares.lock();
        let (free, own) = (shares.limit.saturating_sub(used.bytes), used.of(from));
        if bytes > free || own > 0 && own + bytes > free {
            tracing::warn!(target: "ebbtide::files", "a file cannot be stored: --max-disk is reached");
            return Err(full());
        }
        used.take(from, bytes);
        Ok(Some(Reservation { shares, from, bytes }))
    }

    /// A file of so many bytes has been deleted.
    pub(super) fn deleted(&self, path: &Path, length: u64) {
        if let Some(shares) = &self.shares {
            shares.lock().forget(path, occupied(length));
        }
    }
}

fn occupied(length: u64) -> u64 {
    length.max(1).div_ceil(BLOCK) * BLOCK
}

/// Whether the disk has room for a file of so many bytes. An error speaks when the file is written.
#[cfg(target_os = "linux")]
fn has_free(root: &Dir, bytes: u64) -> bool {
    nix::sys::statvfs::fstatvfs(root).map_or(true, |disk| {
        let free = disk.blocks_available() * disk.fragment_size();
        // Some file systems have no limit, and say 0.
        let has_files = disk.files() == 0 || disk.files_available() >= RESERVED_FILES;
        has_files && free >= bytes.saturating_add(RESERVE)
    })
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

/// The files below a folder, without those that cannot be read.
fn files_below(root: &Dir) -> impl Iterator<Item = (PathBuf, DirEntry)> {
    let (mut folders, mut entries) = (vec![PathBuf::from(".")], Vec::new());
    std::iter::from_fn(move || {
        loop {
            let Some((path, entry)) = entries.pop() else {
                let folder = folders.pop()?;
                let found = root.read_dir(&folder).into_iter().flatten().flatten();
                entries
                    .extend(found.map(|entry: DirEntry| (folder.join(entry.file_name()), entry)));
                continue;
            };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() => return Some((path, entry)),
                _ => {}
            }
        }
    })
}

fn remove_parts(root: &Dir) {
    for (path, entry) in files_below(root) {
        if entry.file_name().to_str().is_some_and(is_part) {
            // What cannot be removed stays hidden.
            let _ = root.remove_file(&path);
        }
    }
}

fn bytes_below(root: &Dir) -> u64 {
    let length =
        |(_, entry): (PathBuf, DirEntry)| entry.metadata().map_or(0, |m| occupied(m.len()));
    files_below(root).map(length).sum()
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

    fn keep(disk: &Disk, root: &Dir, from: IpAddr, length: u64, path: &str, before: Option<u64>) {
        disk.room(root, from, length).unwrap().unwrap().keep(path.into(), before);
    }

    fn bytes(disk: &Disk) -> u64 {
        disk.shares.as_ref().unwrap().lock().bytes
    }

    #[test]
    fn an_address_has_at_most_as_much_of_the_disk_as_is_free_to_others() {
        let (_folder, root) = folder();
        let disk = Disk::open(&root, Some(100 * BLOCK));
        for n in 0..50 {
            keep(&disk, &root, host(1), 1, &format!("a{n}"), None);
        }
        assert_eq!(
            code(disk.room(&root, host(1), 0)),
            Code::SERVICE_UNAVAILABLE,
            "half is its own"
        );
        keep(&disk, &root, host(2), 20 * BLOCK, "b", None);
        assert_eq!(code(disk.room(&root, host(2), 20 * BLOCK)), Code::SERVICE_UNAVAILABLE);
        assert_eq!(code(disk.room(&root, host(3), 101 * BLOCK)), Code::REQUEST_ENTITY_TOO_LARGE);
        // What is replaced or deleted is free again, and what was not kept has never been used.
        keep(&disk, &root, host(2), 1, "b", Some(20 * BLOCK));
        disk.deleted(Path::new("a0"), 1);
        drop(disk.room(&root, host(3), 50 * BLOCK).unwrap());
        assert_eq!(bytes(&disk), 50 * BLOCK);
    }

    #[test]
    fn files_that_an_address_is_writing_are_of_its_share() {
        let (_folder, root) = folder();
        let disk = Disk::open(&root, Some(100 * BLOCK));
        let room = |from: u8, length| disk.room(&root, host(from), length);
        let mut under_way: Vec<_> = (0..5).map(|_| room(1, 10 * BLOCK).unwrap()).collect();
        assert_eq!(code(room(1, 1)), Code::SERVICE_UNAVAILABLE, "half is reserved for it");
        let _other = room(2, 40 * BLOCK).unwrap();
        under_way.pop();
        assert_eq!(code(room(1, 1)), Code::SERVICE_UNAVAILABLE, "40 of its own, 20 free");
        under_way.truncate(1);
        drop(room(1, 40 * BLOCK).unwrap());
        assert_eq!(bytes(&disk), 50 * BLOCK);
    }

    #[test]
    fn a_file_that_someone_else_has_removed_and_a_client_writes_again_counts_once() {
        let (_folder, root) = folder();
        let disk = Disk::open(&root, Some(100 * BLOCK));
        keep(&disk, &root, host(1), 30 * BLOCK, "a", None);
        keep(&disk, &root, host(2), 10 * BLOCK, "a", None);
        let shares = disk.shares.as_ref().unwrap();
        let used = shares.lock();
        assert_eq!((used.bytes, used.of(host(1)), used.of(host(2))), (10 * BLOCK, 0, 10 * BLOCK));
    }

    #[test]
    fn parts_of_a_killed_server_are_removed_and_those_of_a_running_one_are_not() {
        let (folder, root) = folder();
        std::fs::create_dir(folder.path().join("rooms")).unwrap();
        std::fs::write(folder.path().join("kept.part"), "12").unwrap();
        let part = folder.path().join("rooms/.ebbtide-1-0.part");
        std::fs::write(&part, "left").unwrap();
        let first = Disk::open(&root, Some(100 * BLOCK));
        assert!(!part.exists());
        assert_eq!(bytes(&first), BLOCK);
        let (name, _file) = create_part(&root, Path::new("rooms")).unwrap();
        let second = Disk::open(&root, None);
        assert!(folder.path().join(&name).exists(), "another server is writing it");
        drop((first, second));
        drop(Disk::open(&root, None));
        assert!(!folder.path().join(&name).exists());
    }
}
