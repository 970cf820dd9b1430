//! Sequence numbers in a file.

use crate::locked_file::LockedFile;
use ebbtide_core::oscore::{Numbering, SequenceStore};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The bytes of one record: twenty digits, as many as a `u64` has, and a line feed.
const RECORD: usize = 21;
/// How often to open a file that was replaced before it was locked.
const TRIES: u32 = 8;

/// A file with the latest limit, twice, and with its own inode and birth time, by which a copy of
/// it is recognised: a copy may be older than the numbers that were used since, which would be used
/// again.
///
/// A file that is written keeps both, and so would one into which an older copy is written. Each
/// limit therefore has a file of its own, which replaces the one before.
pub(super) struct SequenceFile {
    path: PathBuf,
    file: LockedFile,
}

impl SequenceFile {
    /// Opens or makes the file, and locks it for as long as it is open.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind `ResourceBusy` if another program has opened it, and of the
    /// kind `InvalidData` if it holds something else.
    pub(super) fn open(path: &Path) -> io::Result<(Numbering, Self)> {
        for _ in 0..TRIES {
            let options = &mut OpenOptions::new();
            let opened = options.read(true).write(true).mode(0o600).open(path);
            let is_new = matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound);
            let file = if is_new { options.create(true).open(path) } else { opened }?;
            // The program may move to another folder, and a link remains one.
            let mut state = Self { file: LockedFile::new(file)?, path: path.canonicalize()? };
            let data = state.file.metadata()?;
            if data.ino() != state.path.metadata()?.ino() {
                // Who had it locked has replaced it meanwhile.
                continue;
            }
            if is_new && data.len() == 0 {
                // Which requests were accepted is not known after a restart, whether or not a number was used.
                let begun = state.replace(0);
                if begun.is_err() {
                    // An empty file would be refused the next time.
                    let _ = std::fs::remove_file(&state.path);
                }
                begun?;
                return Ok((Numbering::Fresh, state));
            }
            return Ok((Numbering::Resumed(state.read()?), state));
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// The latest limit.
    fn read(&mut self) -> io::Result<u64> {
        let mut text = Vec::new();
        (&*self.file).take(1024).read_to_end(&mut text)?;
        let records: Vec<Option<u64>> = text.chunks(RECORD).map(number).collect();
        let latest = records.iter().take(2).flatten().max().copied();
        let latest = latest.filter(|_| records.len() <= 4).ok_or_else(|| {
            unusable("it does not contain sequence numbers, which may have been used")
        })?;
        let names = records.iter().skip(2).copied();
        if names.zip(own_names(&self.file)?).any(|(name, own)| name != Some(own)) {
            return Err(unusable("it is a copy, and may be older than the numbers that were used"));
        }
        if records.len() < 4 {
            // An earlier version has written it.
            self.replace(latest)?;
        }
        Ok(latest)
    }

    /// Puts a new file with this limit in the place of this one.
    fn replace(&mut self, limit: u64) -> io::Result<()> {
        self.replace_by(limit).map_err(|error| {
            let why = "it cannot be replaced by a newer one (its folder must be writable, and it must not be a mount itself)";
            io::Error::other(format!("{why}: {error}"))
        })
    }

    fn replace_by(&mut self, limit: u64) -> io::Result<()> {
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let new = Path::new(&new);
        // Left by a crash.
        match std::fs::remove_file(new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let options = &mut OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(new)?;
        let file = LockedFile::new(file)?;
        let before = self.file.metadata()?;
        file.set_permissions(before.permissions())?;
        if before.uid() != file.metadata()?.uid() {
            // What an administrator runs leaves the file to its owner; nobody else can give a file away.
            let _ = fchown(&*file, Some(before.uid()), Some(before.gid()));
        }
        let records = [limit, limit].into_iter().chain(own_names(&file)?);
        let text: String = records.map(|number| format!("{number:020}\n")).collect();
        (&*file).write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(new, &self.path)?;
        self.file = file;
        // The new name has to survive a loss of power as well.
        File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()
    }
}

fn unusable(why: &str) -> io::Error {
    let error = format!(
        "{why}: make new keys on both sides (state = \"renewed\", RFC 8613 appendix B.2), or share a new secret and remove it"
    );
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The inode and the birth time in nanoseconds, or 0 where the file system has no such times.
fn own_names(file: &File) -> io::Result<[u64; 2]> {
    let data = file.metadata()?;
    let born = data.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.and_then(|born| u64::try_from(born.as_nanos()).ok());
    Ok([data.ino(), born.unwrap_or(0)])
}

fn number(record: &[u8]) -> Option<u64> {
    let digits = record.strip_suffix(b"\n").filter(|digits| digits.len() == RECORD - 1)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl SequenceStore for SequenceFile {
    fn reserve(&mut self, limit: u64) -> bool {
        let written = self.replace(limit);
        if let Err(error) = &written {
            tracing::error!(%error, "sequence numbers of OSCORE cannot be stored");
        }
        written.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn limits_survive_and_a_second_program_is_kept_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let (numbering, mut file) = SequenceFile::open(&path).unwrap();
        assert_eq!(numbering, Numbering::Fresh);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        for limit in [64, 128, 192] {
            assert!(file.reserve(limit));
            let busy = SequenceFile::open(&path).map(|_| ()).unwrap_err();
            assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
        }
        drop(file);
        for _ in 0..2 {
            let (numbering, file) = SequenceFile::open(&path).unwrap();
            assert_eq!(numbering, Numbering::Resumed(192), "what was opened was used");
            drop(file);
        }
    }

    #[test]
    fn a_copy_is_refused_since_it_may_be_older_than_what_was_used() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("state"), folder.path().join("copy"));
        drop(SequenceFile::open(&path).unwrap());
        std::fs::copy(&path, &copy).unwrap();
        let (_, mut file) = SequenceFile::open(&path).unwrap();
        assert!(file.reserve(64));
        drop(file);
        let refused = SequenceFile::open(&copy).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("make new keys on both sides"), "{refused}");
        std::fs::rename(&copy, &path).unwrap();
        assert!(SequenceFile::open(&path).is_err(), "put in the place of the newer one");
    }

    #[test]
    fn an_older_copy_that_is_written_into_the_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let reserve = |limit| {
            let (numbering, mut file) = SequenceFile::open(&path).unwrap();
            assert!(file.reserve(limit));
            (numbering, std::fs::read(&path).unwrap())
        };
        let (_, copy) = reserve(64);
        let mut before = 64;
        // One of them has the inode of the copied file again where inodes are used again at once.
        for limit in [128, 256, 384] {
            let (numbering, newest) = reserve(limit);
            assert_eq!(numbering, Numbering::Resumed(before));
            let inode = path.metadata().unwrap().ino();
            std::fs::write(&path, &copy).unwrap();
            assert_eq!(path.metadata().unwrap().ino(), inode, "as by cp, or by rsync --inplace");
            let refused = SequenceFile::open(&path).map(|_| ()).unwrap_err();
            assert!(refused.to_string().contains("make new keys on both sides"), "{refused}");
            std::fs::write(&path, newest).unwrap();
            before = limit;
        }
    }

    #[test]
    fn an_emptied_file_is_refused_since_its_numbers_may_have_been_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        drop(SequenceFile::open(&path).unwrap());
        // As by cp on a full disk.
        std::fs::write(&path, "").unwrap();
        let refused = SequenceFile::open(&path).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("make new keys on both sides"), "{refused}");
    }

    #[test]
    fn a_state_that_cannot_be_replaced_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        std::fs::create_dir(folder.path().join("state.new")).unwrap();
        let refused = SequenceFile::open(&path).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("its folder must be writable"), "{refused}");
        assert_ne!(refused.kind(), io::ErrorKind::ResourceBusy);
        std::fs::remove_dir(folder.path().join("state.new")).unwrap();
        assert!(SequenceFile::open(&path).is_ok(), "nothing was begun");
    }

    #[test]
    fn a_torn_record_leaves_the_other_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        for (limit, torn) in [
            (64, "0000000"),
            (128, "00000000000000000128\n0000"),
            (128, "00000000000000000128\nxx"),
        ] {
            let (_, mut file) = SequenceFile::open(&path).unwrap();
            assert!(file.reserve(64));
            drop(file);
            let text = std::fs::read(&path).unwrap();
            if limit == 128 {
                std::fs::write(&path, torn).unwrap();
            } else {
                std::fs::write(&path, [&text[..RECORD], torn.as_bytes()].concat()).unwrap();
            }
            let (numbering, file) = SequenceFile::open(&path).unwrap();
            assert!(matches!(numbering, Numbering::Resumed(_)));
            drop(file);
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::write(&path, "something else").unwrap();
        let wrong = SequenceFile::open(&path).map(|_| ()).unwrap_err();
        assert_eq!(wrong.kind(), io::ErrorKind::InvalidData);
    }
}
