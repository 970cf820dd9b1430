//! Sequence numbers in a file.

use crate::locked_file::LockedFile;
use ebbtide_core::oscore::{Numbering, SequenceStore};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The bytes of one record: twenty digits, as many as a `u64` has, and a line feed.
const RECORD: usize = 21;

/// A file with the two latest limits, and the number of its inode. A record that a crash has torn is the one that was being written,
/// whose limit no number has exceeded yet; the other one holds then.
///
/// A copy of the file has another inode. It may be older than the numbers that were used since, which would be used again, so it is
/// refused.
pub(super) struct SequenceFile {
    file: LockedFile,
    /// Which of the two records is written next.
    next: u64,
}

impl SequenceFile {
    /// Opens or makes the file, and locks it for as long as it is open.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind `ResourceBusy` if another program has opened it, and of the kind `InvalidData` if it holds
    /// something else.
    pub(super) fn open(path: &Path) -> io::Result<(Numbering, Self)> {
        let options = &mut OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let file = LockedFile::new(file)?;
        let mut text = Vec::new();
        (&*file).take(1024).read_to_end(&mut text)?;
        if text.is_empty() {
            let mut new = Self { file, next: 0 };
            // Which requests were accepted is not known after a restart, whether or not a number was used.
            new.write(0)?;
            new.name_inode()?;
            // The name of the file has to survive a loss of power as well.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
            return Ok((Numbering::Fresh, new));
        }
        let mut records: Vec<Option<u64>> = text.chunks(RECORD).map(number).collect();
        let inode = records.get(2).copied();
        records.truncate(2);
        let limits = records;
        let latest = limits.iter().flatten().max().copied();
        let latest = latest.filter(|_| text.len() <= 3 * RECORD).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "it does not contain sequence numbers")
        })?;
        // The older record is written next.
        let next = u64::from(limits.first() == Some(&Some(latest)));
        let state = Self { file, next };
        match inode {
            Some(inode) if inode != Some(state.file.metadata()?.ino()) => {
                let error = "it is a copy, and may be older than the numbers that were used: make new keys on both sides (state = \"renewed\", RFC 8613 appendix B.2), or share a new secret and remove it";
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            Some(_) => {}
            // A crash came before it.
            None => state.name_inode()?,
        }
        Ok((Numbering::Resumed(latest), state))
    }

    /// Writes the inode after the place of the limits.
    fn name_inode(&self) -> io::Result<()> {
        let inode = self.file.metadata()?.ino();
        // So that nothing between is empty.
        if self.file.metadata()?.len() < 2 * RECORD as u64 {
            self.file.write_all_at(format!("{:020}\n", 0).as_bytes(), RECORD as u64)?;
        }
        self.file.write_all_at(format!("{inode:020}\n").as_bytes(), 2 * RECORD as u64)?;
        self.file.sync_data()
    }

    fn write(&mut self, limit: u64) -> io::Result<()> {
        self.file.write_all_at(format!("{limit:020}\n").as_bytes(), self.next * RECORD as u64)?;
        self.file.sync_data()?;
        self.next = 1 - self.next;
        Ok(())
    }
}

fn number(record: &[u8]) -> Option<u64> {
    let digits = record.strip_suffix(b"\n").filter(|digits| digits.len() == RECORD - 1)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl SequenceStore for SequenceFile {
    fn reserve(&mut self, limit: u64) -> bool {
        let written = self.write(limit);
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
