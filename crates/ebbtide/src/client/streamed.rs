//! Long bodies that are transferred block by block without being held (RFC 7959).

use super::Client;
use crate::error::{Cause, Error};
use crate::message::{Request, Response, Scheme, Sizes};
use crate::net::clock::distinct;
use bytes::{Buf, Bytes, BytesMut};
use ebbtide_core::session::client::{BlockAnswer, SentPiece, check_block};
use ebbtide_core::wire::{Block, OptionNumber};
use std::future::poll_fn;
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
        let mut download = Download::new(self, request, offset);
        download.first = Some(download.fetch().await?);
        Ok(download)
    }

    /// Sends a request as it is and returns the response with the first block of its body. If the body has more
    /// blocks, they are the [`Download`]. An error response is returned like any other.
    ///
    /// # Errors
    ///
    /// Like [`Self::get`].
    pub async fn begin_download(
        &self,
        request: Request,
    ) -> Result<(Response, Option<Download>), Error> {
        let mut download = Download::new(self, request, 0);
        let response = self.request_block(&download.request).await?;
        if !response.is_success() {
            return Ok((response, None));
        }
        download.accept(&response)?;
        download.offset = response.body().len() as u64;
        let rest = Some(download).filter(|download| !download.ended);
        Ok((response, rest))
    }

    /// Begins to send a long body that comes piece by piece. Nothing is sent before [`StreamedUpload::send`].
    #[must_use]
    pub fn begin_upload(&self, request: Request) -> StreamedUpload {
        StreamedUpload {
            szx: self.szx_of(&request),
            client: self.clone(),
            request,
            // Distinguishes this body from others for the same resource (RFC 9175 section 3.3).
            tag: distinct().to_be_bytes(),
            sent: 0,
            waiting: BytesMut::new(),
            ended: false,
            repeated: false,
        }
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
        let mut upload = self.begin_upload(request);
        loop {
            while upload.wants() > 0 {
                let mut room = [0; 1 << 11];
                let mut read = ReadBuf::new(&mut room);
                let filled = poll_fn(|cx| reader.as_mut().poll_read(cx, &mut read)).await;
                filled.map_err(|source| Cause::Read(Arc::new(source)))?;
                match read.filled() {
                    [] => upload.end(),
                    bytes => upload.push(bytes),
                }
            }
            let answered = upload.send().await?;
            if answered.as_ref().is_none_or(Response::is_success) {
                progress(upload.sent());
            }
            if let Some(response) = answered {
                return Ok(response);
            }
        }
    }

    /// The length of the blocks of a request's body over UDP and DTLS in bytes, unless the request
    /// has another. A longer body has several.
    #[must_use]
    pub fn block_size(&self) -> usize {
        16 << Block::szx_of(self.inner.requests.config.block_size)
    }

    fn szx_of(&self, request: &Request) -> u8 {
        Block::szx_of(request.block_size.unwrap_or(self.inner.requests.config.block_size))
    }
}

/// A body that is sent block by block, as its bytes come; see [`Client::begin_upload`].
#[derive(Debug)]
pub struct StreamedUpload {
    client: Client,
    request: Request,
    szx: u8,
    tag: [u8; 4],
    sent: u64,
    /// Bytes that the server does not have yet.
    waiting: BytesMut,
    /// Whether nothing follows these bytes.
    ended: bool,
    repeated: bool,
}

impl StreamedUpload {
    /// How many more bytes are needed before the next block can be sent; 0 if [`Self::send`] can send it. This is one
    /// byte more than the block, since a block says whether others follow.
    #[must_use]
    pub fn wants(&self) -> usize {
        if self.ended { 0 } else { (self.block() + 1).saturating_sub(self.waiting.len()) }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Says that no more bytes come.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The number of bytes that the server has.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether the message of the last block was retransmitted.
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.repeated
    }

    fn block(&self) -> usize {
        16 << self.szx
    }

    fn sizes(&self) -> Sizes {
        let sizes = Sizes::of_datagrams(self.block());
        match self.request.uri.scheme() {
            Scheme::Coap | Scheme::Coaps => sizes,
            _ => sizes.on_connection(),
        }
    }

    /// Sends the next block, if its bytes are there. Returns the response to the whole body, or the one by which the
    /// server ends the transfer; `None` if the server waits for the next block.
    ///
    /// If the future is dropped, the server may have the block. The next call sends it again, which the server may
    /// refuse.
    ///
    /// # Errors
    ///
    /// Like [`Client::get`], and [`ErrorKind::Protocol`](crate::ErrorKind::Protocol) if the server acknowledges another
    /// block than the one that was sent, or requests more after the last one.
    pub async fn send(&mut self) -> Result<Option<Response>, Error> {
        while self.wants() == 0 {
            let length = self.waiting.len().min(self.block());
            let more = !self.ended || self.waiting.len() > length;
            let block = Bytes::copy_from_slice(self.waiting.get(..length).unwrap_or_default());
            let mut one = self.request.clone().payload(block);
            if more || self.sent > 0 {
                let value = number(self.sent, self.szx, more)?.to_uint();
                one.options.push_uint(OptionNumber::BLOCK1, value);
                one.options.push(OptionNumber::REQUEST_TAG, &self.tag);
            }
            let response = self.client.request_block(&one).await?;
            self.repeated = response.is_repeated();
            let piece = match (more, self.sent) {
                (false, 0) => SentPiece::Whole,
                (true, sent) => SentPiece::Block(sent as usize),
                (false, sent) => SentPiece::Last(sent as usize),
            };
            let meaning = piece
                .evaluate(&self.sizes(), &response)
                .map_err(|what| Error::for_peer(response.remote(), Cause::Protocol(what)))?;
            match meaning {
                BlockAnswer::Taken { smaller } => {
                    self.waiting.advance(length);
                    self.sent += length as u64;
                    self.szx = smaller.unwrap_or(self.szx);
                    return Ok(None);
                }
                BlockAnswer::Smaller { szx } => self.szx = szx,
                BlockAnswer::Ended => {
                    if response.is_success() {
                        self.sent += length as u64;
                    }
                    return Ok(Some(response));
                }
            }
        }
        Ok(None)
    }
}

/// The block that begins at this byte.
fn number(offset: u64, szx: u8, more: bool) -> Result<Block, Error> {
    let limit = (Block::MAX_NUM as usize + 1) << (szx + 4);
    let block = u32::try_from(offset >> (szx + 4)).ok();
    let block = block.and_then(|number| Block::new(number, more, szx).ok());
    block.ok_or_else(|| Cause::TooLarge { limit }.into())
}

/// A body that is fetched block by block; see [`Client::download`]. A clone goes on by itself from the same position.
#[derive(Clone, Debug)]
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
    repeated: bool,
}

impl Download {
    fn new(client: &Client, request: Request, offset: u64) -> Self {
        let szx = client.szx_of(&request);
        Self {
            client: client.clone(),
            request,
            szx,
            offset: offset - offset % (16 << szx),
            size: None,
            etag: None,
            first: None,
            ended: false,
            repeated: false,
        }
    }

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

    /// Whether the request for the last block was retransmitted.
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.repeated
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
        self.accept(&response)?;
        Ok(response.into_body())
    }

    /// Checks that a response has the block at the present position.
    fn accept(&mut self, response: &Response) -> Result<(), Error> {
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
            Some(block) => {
                let length = response.body().len();
                check_block(block, self.offset as usize, length).map_err(broken)?;
                (self.szx, self.ended) = (self.szx.min(block.szx()), !block.more());
            }
        }
        if self.ended {
            self.size = Some(self.offset + response.body().len() as u64);
        } else if self.size.is_none() {
            self.size = response.options().get_uint(OptionNumber::SIZE2).map(u64::from);
        }
        (self.etag, self.repeated) = (etag, response.is_repeated());
        Ok(())
    }
}
