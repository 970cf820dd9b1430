//! Folders as links (RFC 6690). A list is made once and kept until its folder changes, so that
//! asking for it again costs one look at the folder, however long the list is.

use super::{format_of, hash};
use bytes::Bytes;
use cap_std::fs::{Dir, Metadata, MetadataExt};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Entries of a folder that is listed.
const MAX_ENTRIES: usize = 10_000;
/// Folders whose lists are kept, and the bytes of all lists together.
const MAX_KEPT: usize = 256;
const MAX_KEPT_BYTES: usize = 8 << 20;
/// How long a list may be kept: a file that grows in place changes its size in the list, but
/// not its folder.
const MAX_AGE: Duration = Duration::from_secs(2);
/// A folder that changed within this time before its list was made may change again without a
/// new time of modification, because the file system's clock advances in steps.
const SETTLED: Duration = Duration::from_millis(50);

/// A folder's list.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    pub(super) body: Bytes,
    /// Follows from the list, so that a client does not mix two versions (RFC 7959 section 2.4).
    pub(super) etag: [u8; 8],
    folder: Version,
    made: SystemTime,
}

/// The version of a folder: its identity, and its time of modification, which changes when entries are
/// added or removed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Version {
    place: (u64, u64),
    modified: (i64, i64),
}

impl Version {
    fn of_folder(folder: &Metadata) -> Self {
        Self {
            place: (folder.dev(), folder.ino()),
            modified: (folder.mtime(), folder.mtime_nsec()),
        }
    }

    /// Whether the folder was left alone for long enough before `now`, so that any later change
    /// shows in its time of modification.
    fn is_settled(&self, now: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.modified;
        let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let modified = SystemTime::UNIX_EPOCH + seconds;
        let modified = modified + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0));
        now.duration_since(modified).is_ok_and(|since| since >= SETTLED)
    }
}

/// The lists that are kept.
#[derive(Debug, Default)]
pub(super) struct Listings {
    kept: Mutex<BTreeMap<PathBuf, Arc<FolderEntry>>>,
}

/// The list of one folder. The thread that makes the list holds the lock, so that other threads wait
/// for this list instead of making it as well.
#[derive(Debug, Default)]
struct FolderEntry {
    listing: Mutex<Option<Listing>>,
}

impl Listings {
    /// The list of a folder below `root`, the empty path being `root` itself; `folder` is its
    /// metadata, and `now` the time of the clock that gives files their times.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read or has more than 10,000 entries.
    pub(super) fn get(
        &self,
        root: &Dir,
        path: &Path,
        folder: &Metadata,
        now: SystemTime,
    ) -> io::Result<Listing> {
        let version = Version::of_folder(folder);
        let place = self.place(path);
        let mut listing = place.listing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = listing.as_ref()
            && kept.folder == version
            && now.duration_since(kept.made).is_ok_and(|age| age < MAX_AGE)
        {
            return Ok(kept.clone());
        }
        *listing = None;
        let body = Bytes::from(list(root, path)?);
        let made = Listing { etag: hash(&body), body, folder: version, made: now };
        if version.is_settled(now) {
            *listing = Some(made.clone());
        }
        drop(listing);
        self.make_room(now);
        Ok(made)
    }

    fn place(&self, path: &Path) -> Arc<FolderEntry> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(path.to_owned()).or_default().clone()
    }

    /// Forgets lists while there are too many or they are too long, those of no use first.
    fn make_room(&self, now: SystemTime) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // A place in use is left alone: its list is being made or read.
        let length = |place: &FolderEntry| {
            let listing = place.listing.try_lock().ok()?;
            let fresh = listing
                .as_ref()
                .filter(|listing| now.duration_since(listing.made).is_ok_and(|age| age < MAX_AGE));
            Some(fresh.map_or(0, |listing| listing.body.len()))
        };
        let (mut count, mut bytes) = (0, 0);
        kept.retain(|_, place| {
            let Some(length) = length(place) else { return true };
            let fits = length > 0 && count < MAX_KEPT && bytes + length <= MAX_KEPT_BYTES;
            if fits {
                count += 1;
                bytes += length;
            }
            fits
        });
    }
}

/// The entries of a folder as links, sorted.
fn list(root: &Dir, path: &Path) -> io::Result<String> {
    let folder = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut entries = Vec::new();
    for entry in root.read_dir(folder)? {
        let entry = entry?;
        // A name that is not UTF-8 cannot be asked for.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') {
            continue;
        }
        // Links are followed; those that lead nowhere or out of the folder are not listed.
        let place = folder.join(&name);
        let Ok(metadata) = root.metadata(&place) else { continue };
        if entries.len() >= MAX_ENTRIES {
            let text = format!("the folder has more than {MAX_ENTRIES} entries");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let reference = reference(&path.join(&name));
        if metadata.is_dir() {
            entries.push(format!("<{reference}/>"));
        } else if metadata.is_file() {
            let format = format_of(&place);
            entries.push(format!("<{reference}>;ct={};sz={}", format.0, metadata.len()));
        }
    }
    entries.sort_unstable();
    Ok(entries.join(","))
}

/// A path as the reference of a link (RFC 3986 section 3.3).
fn reference(path: &Path) -> String {
    let mut text = String::new();
    for name in path.iter().filter_map(|name| name.to_str()) {
        text.push('/');
        for byte in name.bytes() {
            let c = char::from(byte);
            if c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c) {
                text.push(c);
            } else {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> (tempfile::TempDir, Dir) {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        (folder, dir)
    }

    /// The list of a folder, `after` its last change.
    fn get(listings: &Listings, root: &Dir, path: &str, after: Duration) -> Listing {
        let path = Path::new(path);
        let folder = if path.as_os_str().is_empty() {
            root.dir_metadata().unwrap()
        } else {
            root.metadata(path).unwrap()
        };
        let now = folder.modified().unwrap().into_std() + after;
        listings.get(root, path, &folder, now).unwrap()
    }

    #[test]
    fn a_list_is_made_once_and_made_again_when_the_folder_changes() {
        let (_folder, root) = root();
        root.write("a", "1").unwrap();
        let listings = Listings::default();
        let first = get(&listings, &root, "", SETTLED);
        assert_eq!(first.body, "</a>;ct=42;sz=1");
        let again = get(&listings, &root, "", MAX_AGE);
        // The very same bytes, not equal ones.
        assert_eq!(again.body.as_ptr(), first.body.as_ptr());
        root.write("b", "22").unwrap();
        let changed = get(&listings, &root, "", SETTLED);
        assert_eq!(changed.body, "</a>;ct=42;sz=1,</b>;ct=42;sz=2");
        assert_ne!(changed.etag, first.etag);
    }

    #[test]
    fn a_list_grows_old_because_files_change_in_place() {
        let (_folder, root) = root();
        root.write("a", "1").unwrap();
        let listings = Listings::default();
        get(&listings, &root, "", SETTLED);
        root.open_with("a", cap_std::fs::OpenOptions::new().append(true))
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"2"))
            .unwrap();
        let later = get(&listings, &root, "", SETTLED + MAX_AGE);
        assert_eq!(later.body, "</a>;ct=42;sz=2");
    }

    #[test]
    fn a_list_of_a_folder_that_has_just_changed_is_not_kept() {
        let (_folder, root) = root();
        let listings = Listings::default();
        for number in 0..50 {
            root.write(format!("{number}"), "").unwrap();
            let list = get(&listings, &root, "", Duration::ZERO);
            assert_eq!(list.body.iter().filter(|&&byte| byte == b'<').count(), number + 1);
        }
    }

    #[test]
    fn the_lists_that_are_kept_are_bounded_in_number() {
        let (_folder, root) = root();
        for number in 0..2 * MAX_KEPT {
            root.create_dir(format!("{number}")).unwrap();
            root.write(format!("{number}/file"), "").unwrap();
        }
        let listings = Listings::default();
        for number in 0..2 * MAX_KEPT {
            get(&listings, &root, &number.to_string(), SETTLED);
        }
        let kept = listings.kept.lock().unwrap();
        assert!((1..=MAX_KEPT).contains(&kept.len()), "{}", kept.len());
    }
}
