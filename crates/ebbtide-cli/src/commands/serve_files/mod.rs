//! `serve --dir PATH`: the files of a folder as resources.
//!
//! All access goes through a handle on the folder (`cap-std`): no segment of a path and no symbolic
//! link leads out of it, whatever becomes of the tree meanwhile. A file is read a block at a time,
//! so that memory does not grow with it; its ETag comes from its place, time and size, so that a
//! client does not mix two versions (RFC 7959 section 2.4). Names that begin with a dot are neither
//! served nor listed.

mod disk;
mod listing;
mod write;

use cap_std::fs::{Dir, FileExt, Metadata, MetadataExt};
use disk::Disk;
use ebbtide::server::{Call, Router, get, one_block};
use ebbtide::{Code, ContentFormat, Response};
use ebbtide_core::wire::{Message, OptionNumber};
use listing::Listings;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Files and folders that are read at once, each on a thread of its own; the others wait.
const READERS: usize = 16;
/// Requests a second of addresses that may be forged for which a thread looks at files; the others
/// show first that they are there.
const UNVERIFIED: u32 = 64;
/// The number of PUT and DELETE requests that are executed at once; a body may be as long as the
/// endpoint accepts. Further requests are answered 5.03 with a Max-Age of one second.
const WRITERS: usize = 4;

/// How the files of a folder are served.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Access {
    /// Clients may replace and delete files.
    pub(crate) writable: bool,
    /// A change is answered when it is on the disk, not only in the system's cache.
    pub(crate) durable: bool,
    /// Bytes that the folder's files may occupy.
    pub(crate) max_disk: Option<u64>,
}

/// The folder that is served.
#[derive(Clone)]
pub(crate) struct Folder {
    path: PathBuf,
    access: Access,
    files: Arc<RwLock<Arc<Files>>>,
}

impl Folder {
    /// Opens the folder with this path.
    pub(crate) fn open(path: &Path, access: Access) -> io::Result<Self> {
        let root = open(path)?;
        let files = Arc::new(RwLock::new(Arc::new(Files::new(root, access))));
        Ok(Self { path: path.to_owned(), access, files })
    }

    /// Serves the folder that the path leads to now, if it is another one: the path may be a link that an update has
    /// replaced.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let root = open(&self.path)?;
        let (before, now) = (self.files().root.dir_metadata()?, root.dir_metadata()?);
        if (before.dev(), before.ino()) != (now.dev(), now.ino()) {
            let files = Arc::new(Files::new(root, self.access));
            *self.files.write().unwrap_or_else(PoisonError::into_inner) = files;
        }
        Ok(())
    }

    fn files(&self) -> Arc<Files> {
        self.files.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its files as resources.
    pub(crate) fn router(&self) -> Router {
        let readers = Arc::new(Semaphore::new(READERS));
        let reading = || {
            let (folder, readers) = (self.clone(), readers.clone());
            get(move |call: Call<'static>| -> Answering {
                let (files, readers) = (folder.files(), readers.clone());
                Box::pin(async move {
                    let place = readers.acquire_owned().await.ok();
                    work(files, place, call, Files::get).await
                })
            })
        };
        let mut resource = reading();
        if self.access.writable {
            let writers = Arc::new(Semaphore::new(WRITERS));
            let changing = |answer: AnswerFn| {
                let (folder, writers) = (self.clone(), writers.clone());
                move |call: Call<'static>| -> Answering {
                    let place = writers.clone().try_acquire_owned().ok();
                    let files = folder.files();
                    Box::pin(async move {
                        if place.is_none() {
                            return Response::new(Code::SERVICE_UNAVAILABLE).max_age(1);
                        }
                        work(files, place, call, answer).await
                    })
                }
            };
            resource = resource.put(changing(Files::put)).delete(changing(Files::delete));
        }
        Router::new()
            .route("/{*path}", resource.conditional().max_unverified(UNVERIFIED))
            .route("/.well-known/core", reading().hidden().max_unverified(UNVERIFIED))
    }
}

fn open(path: &Path) -> io::Result<Dir> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    Dir::open_ambient_dir(path, cap_std::ambient_authority()).map_err(named)
}

type AnswerFn = fn(&Files, &Call<'_>) -> io::Result<Response>;
type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Answers on a thread that may block; the place is free again afterwards.
async fn work(
    files: Arc<Files>,
    place: Option<OwnedSemaphorePermit>,
    call: Call<'static>,
    answer: AnswerFn,
) -> Response {
    let work = tokio::task::spawn_blocking(move || {
        let _place = place;
        answer(&files, &call)
    });
    match work.await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => refusal(&error),
        Err(_) => Response::new(Code::INTERNAL_SERVER_ERROR),
    }
}

/// The response to an error. It reveals no more than the client asked for.
fn refusal(error: &io::Error) -> Response {
    use io::ErrorKind::{
        FileTooLarge, InvalidFilename, NotADirectory, NotFound, PermissionDenied, QuotaExceeded,
        ReadOnlyFilesystem, StorageFull,
    };
    if is_loop(error) {
        return Response::new(Code::NOT_FOUND);
    }
    match error.kind() {
        NotFound | NotADirectory | InvalidFilename => Response::new(Code::NOT_FOUND),
        // Also what leads out of the folder.
        PermissionDenied | ReadOnlyFilesystem => Response::new(Code::FORBIDDEN),
        StorageFull | QuotaExceeded => {
            tracing::error!(target: "ebbtide::files", %error, "a file cannot be stored");
            Response::error(Code::SERVICE_UNAVAILABLE, "no room is left").max_age(disk::MAX_AGE)
        }
        FileTooLarge => Response::new(Code::REQUEST_ENTITY_TOO_LARGE),
        _ => {
            tracing::error!(target: "ebbtide::files", %error, "a file cannot be read or stored");
            Response::new(Code::INTERNAL_SERVER_ERROR)
        }
    }
}

/// Whether symbolic links lead in a circle. `std` has no stable name for that error yet.
fn is_loop(error: &io::Error) -> bool {
    const ELOOP: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };
    error.raw_os_error() == Some(ELOOP)
}

#[derive(Debug)]
struct Files {
    root: Dir,
    /// Of a writable folder.
    disk: Option<Disk>,
    /// See [`Access::durable`].
    durable: bool,
    listings: Listings,
    /// Held while a file is replaced or deleted, so that its preconditions still hold then.
    changes: Mutex<()>,
}

impl Files {
    fn new(root: Dir, access: Access) -> Self {
        Self {
            disk: access.writable.then(|| Disk::open(&root, access.max_disk)),
            root,
            durable: access.durable,
            listings: Listings::default(),
            changes: Mutex::new(()),
        }
    }

    fn get(&self, call: &Call<'_>) -> io::Result<Response> {
        let message = &call.message();
        if message.path().eq([b".well-known".as_slice(), b"core"]) {
            return self.list(call, Path::new(""), &self.root.dir_metadata()?);
        }
        let Some(path) = relative(message) else { return Ok(Response::new(Code::NOT_FOUND)) };
        let metadata = self.metadata(&path)?;
        if metadata.is_dir() {
            return self.list(call, &path, &metadata);
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
        one_block(call, response, metadata.len(), |room, offset| {
            let mut filled = 0;
            while filled < room.len() {
                match file.read_at(&mut room[filled..], offset + filled as u64)? {
                    0 => break,
                    read => filled += read,
                }
            }
            Ok(filled)
        })
    }

    fn list(&self, call: &Call<'_>, path: &Path, folder: &Metadata) -> io::Result<Response> {
        let message = &call.message();
        let listing = self.listings.get(&self.root, path, folder, now())?;
        if options(message, OptionNumber::ETAG).any(|known| known == listing.etag) {
            return Ok(Response::new(Code::VALID).etag(&listing.etag));
        }
        let response =
            Response::new(Code::CONTENT).format(ContentFormat::LINK_FORMAT).etag(&listing.etag);
        let length = listing.body.len() as u64;
        one_block(call, response, length, |buffer, offset| {
            let rest = usize::try_from(offset).ok().and_then(|offset| listing.body.get(offset..));
            let rest = rest.unwrap_or_default();
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        })
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

fn options<'m>(message: &Message<'m>, number: OptionNumber) -> impl Iterator<Item = &'m [u8]> {
    message.options().filter(move |opt| opt.number == number).map(|opt| opt.value)
}

fn etag(metadata: &Metadata) -> [u8; 8] {
    let time = (metadata.mtime(), metadata.mtime_nsec());
    hash(&(metadata.dev(), metadata.ino(), time, metadata.len()))
}

#[expect(clippy::disallowed_methods, reason = "compared with the times of files, which are real")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn hash(what: &impl Hash) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish().to_be_bytes()
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
