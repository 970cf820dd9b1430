//! Replacing and deleting files.
//!
//! A file is replaced whole or not at all: it is written aside and renamed. After a crash of the
//! server, the file is the old one or the new one. After a loss of power, the same holds if
//! changes are durable ([`super::Access::durable`]): then the content reaches the disk before the
//! rename, and the rename before the answer. Otherwise, the system may lose changes of the last
//! seconds that were answered.

use super::disk::create_part;
use super::{Files, etag, options, relative};
use cap_std::fs::{File, Metadata};
use ebbtide::server::Call;
use ebbtide::{Code, Response};
use ebbtide_core::wire::OptionNumber;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::PoisonError;

impl Files {
    pub(super) fn put(&self, call: &Call<'_>) -> io::Result<Response> {
        let (message, body) = (&call.message(), call.payload());
        let Some(path) = relative(message) else { return Ok(Response::new(Code::FORBIDDEN)) };
        let Some(folder) = path.parent() else {
            return Ok(Response::new(Code::METHOD_NOT_ALLOWED));
        };
        let Some(disk) = &self.disk else { return Ok(Response::new(Code::METHOD_NOT_ALLOWED)) };
        let room = match disk.room(&self.root, call.remote().ip(), body.len() as u64) {
            Ok(room) => room,
            Err(full) => return Ok(full),
        };
        // Written aside and renamed: a reader meanwhile sees the one or the other.
        let (part, mut file) = create_part(&self.root, folder)?;
        let replaced = self.write(&mut file, body).and_then(|()| {
            let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            let before = self.existing(&path)?;
            if let Some(refused) = refused(call, before.as_ref()) {
                return Ok(Err(Response::new(refused)));
            }
            // A copy of a PUT makes no other version than the PUT did, whose ETag its client has:
            // copies of idempotent requests are processed too (RFC 7252 section 4.5).
            if let Some(before) = &before
                && self.holds(&path, body)?
            {
                return Ok(Err(Response::new(Code::CHANGED).etag(&etag(before))));
            }
            self.root.rename(&part, &self.root, &path)?;
            if let Some(room) = room {
                room.keep(path.clone(), before.as_ref().map(Metadata::len));
            }
            self.sync(folder)?;
            let code = if before.is_some() { Code::CHANGED } else { Code::CREATED };
            Ok(Ok(Response::new(code).etag(&etag(&file.metadata()?))))
        });
        match replaced {
            Ok(Ok(replaced)) => Ok(replaced),
            other => {
                // If it cannot be removed either, it stays hidden.
                let _ = self.root.remove_file(&part);
                other.map(|answer| answer.unwrap_or_else(|unchanged| unchanged))
            }
        }
    }

    /// Deletes a file. A file that does not exist counts as deleted already (RFC 7252 section 5.8.4).
    pub(super) fn delete(&self, call: &Call<'_>) -> io::Result<Response> {
        let message = &call.message();
        let Some(path) = relative(message) else { return Ok(Response::new(Code::FORBIDDEN)) };
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.existing(&path)?;
        if let Some(refused) = refused(call, before.as_ref()) {
            return Ok(Response::new(refused));
        }
        if before.is_some() {
            self.root.remove_file(&path)?;
            if let (Some(disk), Some(before)) = (&self.disk, &before) {
                disk.deleted(&path, before.len());
            }
            self.sync(path.parent().unwrap_or(Path::new("")))?;
        }
        Ok(Response::new(Code::DELETED))
    }

    fn write(&self, file: &mut File, body: &[u8]) -> io::Result<()> {
        file.write_all(body)?;
        if self.durable { file.sync_all() } else { Ok(()) }
    }

    /// Sees to it that the entries of a folder are on the disk, if changes are to be durable.
    fn sync(&self, folder: &Path) -> io::Result<()> {
        if !self.durable {
            return Ok(());
        }
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        self.root.open(folder)?.sync_all()
    }

    /// Whether a file has this content.
    fn holds(&self, path: &Path, mut content: &[u8]) -> io::Result<bool> {
        let mut file = self.root.open(path)?;
        let mut buffer = [0; 8192];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return Ok(content.is_empty());
            }
            match content.split_at_checked(read) {
                Some((same, rest)) if buffer.starts_with(same) => content = rest,
                _ => return Ok(false),
            }
        }
    }
}

/// Why a file must not be changed (RFC 7252 section 5.10.8); `None` if it may be.
fn refused(call: &Call<'_>, before: Option<&Metadata>) -> Option<Code> {
    if before.is_some_and(|before| !before.is_file()) {
        return Some(Code::METHOD_NOT_ALLOWED);
    }
    let message = call.message();
    let mut wanted = options(&message, OptionNumber::IF_MATCH).peekable();
    let current = before.map(etag);
    let any = |value: &[u8]| current.is_some_and(|etag| value.is_empty() || value == etag);
    let matches = wanted.peek().is_none() || wanted.any(any);
    let exists = call.if_none_match() && before.is_some();
    (!matches || exists).then_some(Code::PRECONDITION_FAILED)
}
