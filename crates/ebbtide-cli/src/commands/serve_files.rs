//! `serve --dir PATH`: the files of a folder as resources.
//!
//! All access goes through a handle on the folder (`cap-std`): no segment of a path and no symbolic
//! link leads out of it, whatever becomes of the tree meanwhile. A file is read a block at a time,
//! so that memory does not grow with it; its ETag comes from its place, time and size, so that a
//! client does not mix two versions (RFC 7959 section 2.4). Names that begin with a dot are neither
//! served nor listed.

use bytes::Bytes;
use cap_std::fs::{Dir, FileExt, Metadata, MetadataExt, OpenOptions};
use ebbtide::core::wire::{Block, Message, OptionNumber, encode_uint};
use ebbtide::server::{OwnedCall, Router, get_async};
use ebbtide::{Code, ContentFormat, Response};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Entries of a folder that is listed.
const MAX_ENTRIES: usize = 10_000;
/// Bodies that are written at once, each as long as the endpoint takes at most; more are told to
/// come again.
const WRITERS: usize = 4;

/// The files of a folder; `writable` if they may be replaced and deleted.
pub(crate) fn router(root: Dir, writable: bool) -> Router {
    let files = Arc::new(Files { root, changes: Mutex::new(()), parts: AtomicU64::new(0) });
    let mut resource = get_async(blocking(&files, None, Files::get));
    if writable {
        let writers = Arc::new(Semaphore::new(WRITERS));
        resource = resource
            .put_async(blocking(&files, Some(&writers), Files::put))
            .delete_async(blocking(&files, Some(&writers), Files::delete));
    }
    Router::new().route("/{*path}", resource.conditional())
}

type Answer = fn(&Files, &Message<'_>, &[u8]) -> io::Result<Response>;
type Later = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler that works on the files on a thread that may block; at most as many at once as there
/// are `places`.
fn blocking(
    files: &Arc<Files>,
    places: Option<&Arc<Semaphore>>,
    answer: Answer,
) -> impl Fn(OwnedCall) -> Later + Send + Sync + 'static {
    let (files, places) = (files.clone(), places.cloned());
    move |call| {
        let place = match places.clone().map(Semaphore::try_acquire_owned).transpose() {
            Ok(place) => place,
            Err(_) => {
                let busy = Response::new(Code::SERVICE_UNAVAILABLE).max_age(1);
                return Box::pin(std::future::ready(busy));
            }
        };
        let files = files.clone();
        let work = tokio::task::spawn_blocking(move || {
            let _place = place;
            let message = call.message().ok_or(io::ErrorKind::InvalidData)?;
            answer(&files, &message, call.payload())
        });
        Box::pin(async move {
            match work.await {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => refusal(&error),
                Err(_) => Response::new(Code::INTERNAL_SERVER_ERROR),
            }
        })
    }
}

/// What a client is told of an error: not more than it asked for.
fn refusal(error: &io::Error) -> Response {
    use io::ErrorKind::{
        FileTooLarge, InvalidFilename, NotADirectory, NotFound, PermissionDenied, StorageFull,
    };
    match error.kind() {
        NotFound | NotADirectory | InvalidFilename => Response::new(Code::NOT_FOUND),
        // Also what leads out of the folder.
        PermissionDenied => Response::new(Code::FORBIDDEN),
        StorageFull => Response::error(Code::INTERNAL_SERVER_ERROR, "no space is left"),
        FileTooLarge => Response::error(Code::INTERNAL_SERVER_ERROR, error.to_string()),
        _ => Response::new(Code::INTERNAL_SERVER_ERROR),
    }
}

#[derive(Debug)]
struct Files {
    root: Dir,
    /// Held while a file is replaced or deleted, so that its preconditions still hold then.
    changes: Mutex<()>,
    /// Numbers files that are being written.
    parts: AtomicU64,
}

impl Files {
    fn get(&self, message: &Message<'_>, _: &[u8]) -> io::Result<Response> {
        if message.path().eq([b".well-known".as_slice(), b"core"]) {
            return self.list(Path::new(""));
        }
        let Some(path) = relative(message) else { return Ok(Response::new(Code::NOT_FOUND)) };
        let metadata = self.metadata(&path)?;
        if metadata.is_dir() {
            return self.list(&path);
        }
        if !metadata.is_file() {
            // To open a pipe would wait for who writes to it.
            return Ok(Response::new(Code::NOT_FOUND));
        }
        let file = self.root.open(&path)?;
        let metadata = file.metadata()?;
        let etag = etag(&metadata);
        if options(message, OptionNumber::ETAG).any(|known| known == etag) {
            return Ok(Response::new(Code::VALID).etag(&etag));
        }
        let format = format_of(&path);
        let accept = message.option(OptionNumber::ACCEPT).and_then(|opt| opt.as_uint());
        if accept.is_some_and(|accept| accept != u32::from(format.0)) {
            return Ok(Response::new(Code::NOT_ACCEPTABLE));
        }
        let response = Response::new(Code::CONTENT).format(format).etag(&etag);
        one_block(message, response, metadata.len(), |buf, offset| file.read_at(buf, offset))
    }

    fn put(&self, message: &Message<'_>, body: &[u8]) -> io::Result<Response> {
        let Some(path) = relative(message) else { return Ok(Response::new(Code::FORBIDDEN)) };
        let Some(folder) = path.parent() else {
            return Ok(Response::new(Code::METHOD_NOT_ALLOWED));
        };
        // Written aside and renamed: who reads meanwhile reads the one or the other.
        let number = self.parts.fetch_add(1, Ordering::Relaxed);
        let part = folder.join(format!(".ebbtide-{}-{number}.part", std::process::id()));
        let mut file =
            self.root.open_with(&part, OpenOptions::new().write(true).create_new(true))?;
        let replaced = file.write_all(body).and_then(|()| {
            let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            let before = self.existing(&path)?;
            if let Some(refused) = refused(message, before.as_ref()) {
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

    /// What is not there is deleted already (RFC 7252 section 5.8.4).
    fn delete(&self, message: &Message<'_>, _: &[u8]) -> io::Result<Response> {
        let Some(path) = relative(message) else { return Ok(Response::new(Code::FORBIDDEN)) };
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.existing(&path)?;
        if let Some(refused) = refused(message, before.as_ref()) {
            return Ok(Response::new(refused));
        }
        if before.is_some() {
            self.root.remove_file(&path)?;
        }
        Ok(Response::new(Code::DELETED))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        if path.as_os_str().is_empty() {
            self.root.dir_metadata()
        } else {
            self.root.metadata(path)
        }
    }

    fn existing(&self, path: &Path) -> io::Result<Option<Metadata>> {
        match self.metadata(path) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
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

    /// A folder as links (RFC 6690).
    fn list(&self, path: &Path) -> io::Result<Response> {
        let folder = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let mut entries = Vec::new();
        for entry in self.root.read_dir(folder)? {
            let entry = entry?;
            // What is not UTF-8 cannot be asked for.
            let Ok(name) = entry.file_name().into_string() else { continue };
            // Links are followed; those that lead nowhere or out of the folder are not listed.
            let place = folder.join(&name);
            let Ok(metadata) = self.root.metadata(&place) else { continue };
            if name.starts_with('.') {
                continue;
            }
            if entries.len() >= MAX_ENTRIES {
                let text = format!("the folder has more than {MAX_ENTRIES} entries");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
            }
            if metadata.is_dir() {
                entries.push(format!("<{}/>", reference(&path.join(&name))));
            } else if metadata.is_file() {
                let (reference, format) = (reference(&path.join(&name)), format_of(&place));
                entries.push(format!("<{reference}>;ct={};sz={}", format.0, metadata.len()));
            }
        }
        entries.sort_unstable();
        Ok(Response::content(entries.join(",")).format(ContentFormat::LINK_FORMAT))
    }
}

/// The place that a request names below the root. `None` if no file of ours can have that name.
fn relative(message: &Message<'_>) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    let mut segments = message.path().peekable();
    while let Some(segment) = segments.next() {
        let name = std::str::from_utf8(segment).ok()?;
        // A slash at the end of a folder's name is an empty segment.
        if name.is_empty() && segments.peek().is_none() {
            break;
        }
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0', ':']) {
            return None;
        }
        path.push(name);
    }
    Some(path)
}

/// Why a file must not be changed (RFC 7252 section 5.10.8), or is none.
fn refused(message: &Message<'_>, before: Option<&Metadata>) -> Option<Code> {
    if before.is_some_and(|before| !before.is_file()) {
        return Some(Code::METHOD_NOT_ALLOWED);
    }
    let mut wanted = options(message, OptionNumber::IF_MATCH).peekable();
    let current = before.map(etag);
    let any = |value: &[u8]| current.is_some_and(|etag| value.is_empty() || value == etag);
    let matches = wanted.peek().is_none() || wanted.any(any);
    let exists = message.option(OptionNumber::IF_NONE_MATCH).is_some() && before.is_some();
    (!matches || exists).then_some(Code::PRECONDITION_FAILED)
}

fn options<'m>(message: &Message<'m>, number: OptionNumber) -> impl Iterator<Item = &'m [u8]> {
    message.options().filter(move |opt| opt.number == number).map(|opt| opt.value)
}

fn etag(metadata: &Metadata) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    let time = (metadata.mtime(), metadata.mtime_nsec());
    (metadata.dev(), metadata.ino(), time, metadata.len()).hash(&mut hasher);
    hasher.finish().to_be_bytes()
}

/// Answers with the block that is asked for, the first if none is (RFC 7959 section 2.4).
fn one_block(
    message: &Message<'_>,
    response: Response,
    length: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Response> {
    let wanted = match message.option(OptionNumber::BLOCK2) {
        None => Block::new(0, false, Block::MAX_SZX),
        Some(opt) => Block::from_option(&opt),
    };
    let Ok(wanted) = wanted else { return Ok(Response::new(Code::BAD_REQUEST)) };
    let start = u64::from(wanted.num()) * wanted.size() as u64;
    if start >= length.max(1) {
        return Ok(Response::error(Code::BAD_REQUEST, "no such block"));
    }
    if length > (u64::from(Block::MAX_NUM) + 1) * wanted.size() as u64 {
        let text = format!("the file is longer than all blocks of {} bytes", wanted.size());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let mut block = [0; 1 << (4 + Block::MAX_SZX)];
    let room = &mut block[..wanted.size()];
    let mut filled = 0;
    while filled < room.len() {
        match read_at(&mut room[filled..], start + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    let mut response = response.payload(Bytes::copy_from_slice(&room[..filled]));
    let more = start + (filled as u64) < length;
    if more || wanted.num() > 0 {
        let option = Block::new(wanted.num(), more, wanted.szx()).map(Block::to_uint);
        let option = option.map_err(|_| io::ErrorKind::InvalidInput)?;
        response = response.option(OptionNumber::BLOCK2, encode_uint(option, &mut [0; 4]));
        if wanted.num() == 0 {
            let size = u32::try_from(length).unwrap_or(u32::MAX);
            response = response.option(OptionNumber::SIZE2, encode_uint(size, &mut [0; 4]));
        }
    }
    Ok(response)
}

/// The content format that a file's extension stands for; application/octet-stream for others.
fn format_of(path: &Path) -> ContentFormat {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let number = match extension.to_ascii_lowercase().as_str() {
        "txt" | "md" | "log" | "csv" | "toml" | "ini" | "conf" => 0,
        "gif" => 21,
        "jpg" | "jpeg" => 22,
        "png" => 23,
        "wlnk" => 40,
        "xml" => 41,
        "exi" => 47,
        "json" => 50,
        "cbor" => 60,
        "cwt" => 61,
        "senml" => 110,
        "sensml" => 111,
        "senmlc" => 112,
        "sensmlc" => 113,
        "css" => 20_000,
        "js" => 20_002,
        "svg" => 30_000,
        _ => 42,
    };
    ContentFormat(number)
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
