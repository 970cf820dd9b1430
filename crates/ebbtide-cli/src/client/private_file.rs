//! Files with secrets, which their owner alone may read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file with secrets.
///
/// # Errors
///
/// Returns an error if it cannot be read, or if other users can read it, too.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    refuse_if_shared(path, &file)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text with secrets.
///
/// # Errors
///
/// As [`read`], and if it is not UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "the file is not UTF-8 text");
    String::from_utf8(read(path)?).map_err(wrong)
}

#[cfg(unix)]
fn refuse_if_shared(path: &Path, file: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    const GROUP_READS: u32 = 0o040;
    let metadata = file.metadata()?;
    // A file of root may be one that the system hands to a service by its group.
    let allowed = if metadata.uid() == 0 { GROUP_READS } else { 0 };
    // Of a pipe the mode says nothing.
    if !metadata.is_file() || metadata.mode() & 0o077 & !allowed == 0 {
        return Ok(());
    }
    let shared =
        format!("the file has secrets, and others can use it: run chmod 600 {}", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, shared))
}

#[cfg(not(unix))]
fn refuse_if_shared(_: &Path, _: &File) -> io::Result<()> {
    Ok(())
}

/// Writes a file with secrets as its owner would.
#[cfg(test)]
pub(super) fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    #[cfg(unix)]
    set_mode(path, 0o600);
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "in a test a panic is how it fails")]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_can_use_is_refused_with_its_path_and_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        write(&path, "device:secret\n");
        for mode in [0o600, 0o400, 0o700] {
            set_mode(&path, mode);
            assert!(read(&path).is_ok(), "{mode:o}");
        }
        set_mode(&path, 0o640);
        let is_of_root = std::os::unix::fs::MetadataExt::uid(&path.metadata().unwrap()) == 0;
        assert_eq!(read(&path).is_ok(), is_of_root);
        for mode in [0o644, 0o604, 0o602, 0o620, 0o601] {
            set_mode(&path, mode);
            let error = read_text(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("chmod 600 {}", path.display())), "{mode:o}: {error}");
            assert!(!error.contains("secret\n"), "{error}");
        }
    }
}
