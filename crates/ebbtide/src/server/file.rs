//! Bodies that a handler serves block by block, such as files: nothing is held (RFC 7959 section 2.4).

use super::call::Call;
use super::into_response::HandlerError;
use crate::message::Response;
use bytes::Bytes;
use ebbtide_core::wire::{Block, Code, OptionNumber};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// The handler that [`file()`] makes.
pub type FileHandler = Box<dyn Fn(Call<'static>) -> Answering + Send + Sync>;

type Answering = Pin<Box<dyn Future<Output = Result<Response, HandlerError>> + Send>>;

/// A handler that serves a file: each request reads the block that it asks for, on a thread that may
/// block. The ETag is made of the file's length and the time of its last change, so that a client notices if
/// the file is replaced while it fetches it.
///
/// ```
/// use ebbtide::server::{Router, file, get};
///
/// let router: Router = Router::new().route("/firmware", get(file("/srv/firmware.bin")));
/// ```
pub fn file(path: impl Into<PathBuf>) -> FileHandler {
    let path: Arc<PathBuf> = Arc::new(path.into());
    Box::new(move |call| {
        let path = path.clone();
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || read(&call, &path));
            match read.await.map_err(io::Error::other)? {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Err(HandlerError::code(Code::NOT_FOUND))
                }
                read => Ok(read?),
            }
        })
    })
}

fn read(call: &Call<'_>, path: &PathBuf) -> io::Result<Response> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let changed = metadata.modified()?.duration_since(std::time::UNIX_EPOCH);
    let changed = changed.map_err(io::Error::other)?.as_nanos() as u64;
    let etag = (changed ^ metadata.len().rotate_left(48)).to_be_bytes();
    one_block(call, Response::new(Code::CONTENT).etag(&etag), metadata.len(), |room, offset| {
        file.seek(SeekFrom::Start(offset))?;
        let mut filled = 0;
        while let Some(rest) = room.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read(rest)? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    })
}

/// The block that a request asks for, the first if it asks for none, of a body of `length` bytes.
/// `read_at` fills its buffer with what is at this offset, as far as there is something, and says how many
/// bytes that was.
///
/// # Errors
///
/// If the body is longer than all blocks together, or `read_at` fails.
pub fn one_block(
    call: &Call<'_>,
    response: Response,
    length: u64,
    read_at: impl FnOnce(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<Response> {
    let wanted = match call.message().option(OptionNumber::BLOCK2) {
        None => Block::new(0, false, Block::MAX_SZX),
        Some(option) => Block::from_option(&option),
    };
    let Ok(wanted) = wanted else {
        return Ok(Response::error(Code::BAD_REQUEST, "the block option is not valid"));
    };
    let offset = u64::from(wanted.num()) * wanted.size() as u64;
    if offset >= length.max(1) {
        return Ok(Response::error(Code::BAD_REQUEST, "no such block"));
    }
    if length > (u64::from(Block::MAX_NUM) + 1) * wanted.size() as u64 {
        let text = format!("it is longer than all blocks of {} bytes", wanted.size());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let mut room = [0; 1 << (4 + Block::MAX_SZX)];
    let room = room.get_mut(..wanted.size()).unwrap_or_default();
    let filled = read_at(room, offset)?;
    let block = room.get(..filled).unwrap_or_default();
    let mut response = response.payload(Bytes::copy_from_slice(block));
    let more = offset + (filled as u64) < length;
    if more || wanted.num() > 0 {
        let option = Block::new(wanted.num(), more, wanted.szx());
        let option = option.map_err(|_| io::ErrorKind::InvalidInput)?;
        response.options.push_uint(OptionNumber::BLOCK2, option.to_uint());
    }
    // RFC 7959 section 4: the client asks, or begins.
    if more && wanted.num() == 0 || call.message().option(OptionNumber::SIZE2).is_some() {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        response.options.set_uint(OptionNumber::SIZE2, length);
    }
    Ok(response)
}
