//! Long bodies that are transferred block by block without being held (RFC 7959).

use super::Client;
use crate::error::{Cause, Error};
use crate::message::{Request, Response};
use crate::net::clock::distinct;
use bytes::{Bytes, BytesMut};
use ebbtide_core::wire::{Block, Code, OptionNumber};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, ReadBuf};

impl Client {
    /// Fetches a long body block by block; one block is in memory at a time.
    ///
    /// ```no_run
    /// # async fn example(mut file: impl std::io::Write) -> Result<(), Box<dyn std::error::Error>> {
    /// let client = ebbtide::Client::new();
    /// let request = ebbtide::Request::get("coap://192.0.2.7/firmware")?;
    /// let mut download = client.download(request).await?;
    /// while let Some(bytes) = download.chunk().await? {
    ///     file.write_all(&bytes)?;
    ///     println!("{} of {:?} bytes", download.offset(), download.size());
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// [`Request::timeout`] bounds each block.
    ///
    /// # Errors
    ///
    /// Like [`Self::get`], and [`ErrorKind::Status`](crate::ErrorKind::Status) if the response is an error.
    pub async fn download(&self, request: Request) -> Result<Download, Error> {
        self.download_from(request, 0).await
    }

    /// Resumes a download at the block that contains the byte `offset`, which may begin a few bytes
    /// earlier: see [`Download::offset`]. Compare [`Download::etag`] with that of the first part, since
    /// the resource may have changed.
    ///
    /// # Errors
    ///
    /// See [`Self::download`].
    pub async fn download_from(&self, request: Request, offset: u64) -> Result<Download, Error> {
        let szx =
            Block::szx_of(request.block_size.unwrap_or(self.inner.requests.config.block_size));
        let offset = offset - offset % (16 << szx);
        let mut download = Download {
            client: self.clone(),
            request,
            szx,
            offset,
            size: None,
            etag: None,
            first: None,
            ended: false,
        };
        download.first = Some(download.fetch().await?);
        Ok(download)
    }

    /// Sends a long body from a reader, such as a `tokio::fs::File`, block by block, and returns the
    /// response to the whole body. Two blocks are in memory at a time. `progress` receives the number
    /// of bytes that the server has. [`Request::timeout`] bounds each block.
    ///
    /// A server that requests all blocks again (4.08) cannot receive them; the 4.08 is returned.
    ///
    /// Not cancel safe: if the future is dropped, the position in `reader` is lost and the server
    /// discards the partial body.
    ///
    /// # Errors
    ///
    /// Like [`Self::get`], and [`ErrorKind::Read`](crate::ErrorKind::Read) if the reader fails.
    pub async fn send_from(
        &self,
        request: Request,
        reader: impl AsyncRead,
        mut progress: impl FnMut(u64),
    ) -> Result<Response, Error> {
        let mut reader = std::pin::pin!(reader);
        let mut szx =
            Block::szx_of(request.block_size.unwrap_or(self.inner.requests.config.block_size));
        // Distinguishes this body from others for the same resource (RFC 9175 section 3.3).
        let tag = distinct().to_be_bytes();
        let mut sent = 0;
        let mut waiting = BytesMut::new();
        loop {
            // A block states whether more blocks follow.
            let ended = fill(reader.as_mut(), &mut waiting, (16 << szx) + 1).await?;
            let more = !ended || waiting.len() > 16 << szx;
            let block = waiting.split_to(waiting.len().min(16 << szx)).freeze();
            let mut one = request.clone().payload(block.clone());
            if more || sent > 0 {
                let value = number(sent, szx, more)?.to_uint();
                one.options.push_uint(OptionNumber::BLOCK1, value);
                one.options.push(OptionNumber::REQUEST_TAG, &tag);
            }
            let response = self.request_block(&one).await?;
            let wanted = response.options().get(OptionNumber::BLOCK1);
            let wanted = wanted.and_then(|option| Block::from_option(&option).ok());
            let smaller = wanted.map(Block::szx).filter(|wanted| *wanted < szx);
            match (response.code(), smaller) {
                (Code::CONTINUE, _) if more => {
                    sent += block.len() as u64;
                    progress(sent);
                    szx = smaller.unwrap_or(szx);
                }
                // RFC 7959 section 2.9.3: the first block was too long and was not accepted.
                (Code::REQUEST_ENTITY_TOO_LARGE, Some(smaller)) if sent == 0 => {
                    let mut again = BytesMut::from(&block[..]);
                    again.unsplit(waiting);
                    (waiting, szx) = (again, smaller);
                }
                _ => {
                    if response.is_success() {
                        progress(sent + block.len() as u64);
                    }
                    return Ok(response);
                }
            }
        }
    }
}

/// Reads until `waiting` has `bytes`. Returns true at the reader's end.
async fn fill(
    mut reader: Pin<&mut impl AsyncRead>,
    waiting: &mut BytesMut,
    bytes: usize,
) -> Result<bool, Error> {
    let mut room = [0; 1 << 11];
    while waiting.len() < bytes {
        let mut read = ReadBuf::new(&mut room);
        let filled = poll_fn(|cx| reader.as_mut().poll_read(cx, &mut read)).await;
        filled.map_err(|source| Cause::Read(Arc::new(source)))?;
        if read.filled().is_empty() {
            return Ok(true);
        }
        waiting.extend_from_slice(read.filled());
    }
    Ok(false)
}

/// The block that begins at this byte.
fn number(offset: u64, szx: u8, more: bool) -> Result<Block, Error> {
    let limit = (Block::MAX_NUM as usize + 1) << (szx + 4);
    let block = u32::try_from(offset >> (szx + 4)).ok();
    let block = block.and_then(|number| Block::new(number, more, szx).ok());
    block.ok_or_else(|| Cause::TooLarge { limit }.into())
}

/// A body that is fetched block by block; see [`Client::download`].
#[derive(Debug)]
pub struct Download {
    client: Client,
    request: Request,
    szx: u8,
    /// The position of the chunk that [`Self::chunk`] returns next.
    offset: u64,
    size: Option<u64>,
    etag: Option<Bytes>,
    /// The block that came with the answer.
    first: Option<Bytes>,
    ended: bool,
}

impl Download {
    /// The next bytes; `None` at the end. It may be called again after an error, and tries the same block
    /// again. Dropping its future loses nothing.
    ///
    /// # Errors
    ///
    /// As [`Client::download`], and [`ErrorKind::Changed`](crate::ErrorKind::Changed) if the resource has changed
    /// meanwhile: the chunks so far belong to a body that cannot be completed.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let chunk = match self.first.take() {
            Some(first) => first,
            None if self.ended => return Ok(None),
            None => self.fetch().await?,
        };
        self.offset += chunk.len() as u64;
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }

    /// Where the next chunk begins in the body: so many bytes are there already.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The length of the whole body, if the server says it (Size2, RFC 7959 section 4).
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The name of this version of the resource, if it has one.
    #[must_use]
    pub fn etag(&self) -> Option<&[u8]> {
        self.etag.as_deref()
    }

    async fn fetch(&mut self) -> Result<Bytes, Error> {
        let mut request = self.request.clone();
        let wanted = number(self.offset, self.szx, false)?;
        request.options.push_uint(OptionNumber::BLOCK2, wanted.to_uint());
        if self.size.is_none() {
            // Asks how long it is (RFC 7959 section 4).
            request.options.push_uint(OptionNumber::SIZE2, 0);
        }
        let response = self.client.request_block(&request).await?.error_for_status()?;
        let remote = response.remote();
        let broken = |what| Error::for_peer(remote, Cause::Protocol(what));
        let block = response.options().get(OptionNumber::BLOCK2);
        let block = block.map(|option| Block::from_option(&option)).transpose();
        let block = block.map_err(|_| broken("its block option is not valid"))?;
        let etag = response.options().get(OptionNumber::ETAG);
        let etag = etag.map(|etag| Bytes::copy_from_slice(etag.value));
        if self.offset > 0 && self.etag.is_some() && self.etag != etag {
            return Err(Error::for_peer(remote, Cause::Changed));
        }
        match block {
            // The whole body in one message.
            None if self.offset == 0 => self.ended = true,
            None => return Err(broken("a block has no block option")),
            Some(block) if u64::from(block.offset()) != self.offset => {
                return Err(broken("it sent another block than the one asked for"));
            }
            Some(block) if block.more() && !block.is_full(response.body().len()) => {
                return Err(broken("a block does not have the length that it states"));
            }
            Some(block) => {
                (self.szx, self.ended) = (self.szx.min(block.szx()), !block.more());
            }
        }
        if self.ended {
            self.size = Some(self.offset + response.body().len() as u64);
        } else if self.size.is_none() {
            self.size = response.options().get_uint(OptionNumber::SIZE2).map(u64::from);
        }
        self.etag = etag;
        Ok(response.into_body())
    }
}
