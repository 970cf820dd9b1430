//! Bodies that a handler serves block by block, such as files, without holding them (RFC 7959
//! section 2.4).

use super::call::Call;
use super::into_response::HandlerError;
use crate::message::Response;
use bytes::Bytes;
use ebbtide_core::PeerToken;
use ebbtide_core::session::BlockSizes;
use ebbtide_core::wire::{Block, Code, OptionNumber};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// The handler that [`file()`] returns.
pub type FileHandler = Box<dyn Fn(Call<'static>) -> Answering + Send + Sync>;

type Answering = Pin<Box<dyn Future<Output = Result<Response, HandlerError>> + Send>>;

/// A handler that serves a file. Each request reads only the block that it asks for, on a thread
/// that may block. The ETag is derived from the file's length and modification time, so a client
/// notices if the file is replaced during a download. A missing file is answered 4.04.
///
/// Its requests need a tokio runtime, as all asynchronous handlers do.
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

/// The requested block of a body of `length` bytes; the first one if the request names none.
/// `read_at` fills its buffer from an offset of the body and returns the number of bytes, which is
/// smaller at the end.
///
/// # Errors
///
/// Returns an error if the body is longer than all blocks together, or if `read_at` fails.
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
    // An extended token takes room from the block (RFC 8974).
    let token = PeerToken::new(call.message().token_bytes());
    let most = BlockSizes::of_datagrams(1 << (4 + Block::MAX_SZX)).beside(&token).szx;
    let wanted = wanted.and_then(|block| match block.szx().saturating_sub(most) {
        0 => Ok(block),
        // At most 20 bits and 6 more.
        halvings => Block::new(block.num() << halvings, false, most),
    });
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
        response.options_mut().push_uint(OptionNumber::BLOCK2, option.to_uint());
    }
    // RFC 7959 section 4: the client asks, or begins.
    if more && wanted.num() == 0 || call.message().option(OptionNumber::SIZE2).is_some() {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        response.options_mut().set_uint(OptionNumber::SIZE2, length);
    }
    Ok(response)
}
