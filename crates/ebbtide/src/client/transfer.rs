//! One request and its response, whatever number of exchanges that takes: blocks in both
//! directions (RFC 7959), a challenge in between (RFC 9175).

use super::{Client, Route, quick};
use crate::error::Error;
use crate::message::{Options, Request, Response, Sizes};
use crate::net::clock;
use bytes::BytesMut;
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::wire::{Block, Code, OptionNumber};
use std::net::SocketAddr;

/// How often a body is asked for anew because it changed on the way.
pub(super) const RESTARTS: usize = 3;
/// How often a server may ask to echo within one request.
pub(super) const ECHOES: usize = 2;

/// A Request-Tag: tells concurrent uploads to one resource apart (RFC 9175 section 3.3), and those of
/// this program from those of one that had its address before.
pub(super) fn request_tag() -> [u8; 4] {
    clock::distinct().to_be_bytes()
}

/// The options that a request has in each of its exchanges.
pub(crate) fn base_options(request: &Request) -> Options {
    let mut options = Options::new();
    request.uri.to_options(&mut options);
    for opt in request.options.iter() {
        options.push(opt.number, opt.value);
    }
    options
}

/// Early negotiation: which size of blocks is wanted in return, if the caller said so (RFC 7959 sections
/// 2.4 and 3.3).
pub(super) fn wanted_in_return(request: &Request) -> Option<(OptionNumber, u32)> {
    let block = Block::new(0, false, request.block_szx?).ok()?;
    Some((OptionNumber::BLOCK2, block.to_uint()))
}

/// Sends a request and puts its response together.
pub(crate) async fn run(
    client: &Client,
    route: &Route,
    request: &Request,
) -> Result<Response, Error> {
    if request.quick
        && route.link.is_none()
        && !route.remote.ip().is_multicast()
        && let Some(response) = quick::run(client, route, request).await?
    {
        // A server may choose the usual blocks for its response.
        return complete(client, route, request, response).await;
    }
    let mut transfer = Transfer::new(client, route, request);
    let first = transfer.send_body().await?;
    transfer.fetch_rest(first).await
}

/// Asks for the rest of a body of which a notification brought the first block (RFC 7959 section
/// 2.6).
pub(crate) async fn complete(
    client: &Client,
    route: &Route,
    request: &Request,
    first: Response,
) -> Result<Response, Error> {
    Transfer::new(client, route, request).fetch_rest(first).await
}

/// The same for the answer to a body that was sent with these options, its Request-Tag included.
pub(crate) async fn complete_upload(
    client: &Client,
    route: &Route,
    (request, options): (&Request, Options),
    first: Response,
) -> Result<Response, Error> {
    let transfer = Transfer::new(client, route, request);
    Transfer { options, ..transfer }.fetch_rest(first).await
}

/// Asks with one more option, in one exchange but for an Echo.
pub(super) async fn ask_with(
    client: &Client,
    route: &Route,
    request: &Request,
    extra: (OptionNumber, u32),
) -> Result<Response, Error> {
    Transfer::new(client, route, request).ask(&[extra], &[]).await
}

/// The whole answer of a group's member, whose first message is `first`.
pub(crate) async fn complete_member(
    client: &Client,
    remote: SocketAddr,
    request: &Request,
    first: Response,
) -> Result<Response, Error> {
    // Only the group has to be asked Non-confirmable (RFC 7252 section 8.1).
    let request = Request { reliability: Reliability::Confirmable, ..request.clone() };
    let route = Route { remote, link: None };
    let challenged = first.code == Code::UNAUTHORIZED;
    if challenged && first.options.get(OptionNumber::ECHO).is_some() {
        run(client, &route, &request).await
    } else {
        complete(client, &route, &request, first).await
    }
}

struct Transfer<'a> {
    client: &'a Client,
    route: &'a Route,
    request: &'a Request,
    options: Options,
    sizes: Sizes,
    echoes: usize,
}

impl<'a> Transfer<'a> {
    fn new(client: &'a Client, route: &'a Route, request: &'a Request) -> Self {
        let options = base_options(request);
        let sizes = match &route.link {
            Some(link) => link.sizes(&options),
            None => Sizes::of_datagrams(client.inner.config.block_szx),
        };
        // RFC 8323 section 6: BERT, too, unless the caller wants smaller blocks.
        let sizes = request.block_szx.map_or(sizes, |szx| match route.link {
            None => Sizes::of_datagrams(szx),
            Some(_) => sizes.at_most(szx),
        });
        Self { client, route, request, options, sizes, echoes: 0 }
    }

    /// One exchange, and another one if the server wants an Echo (RFC 9175 section 2.3).
    async fn ask(
        &mut self,
        extra: &[(OptionNumber, u32)],
        payload: &[u8],
    ) -> Result<Response, Error> {
        loop {
            let mut options = self.options.clone();
            for (number, value) in extra {
                options.push_uint(*number, *value);
            }
            let pending = self.client.start(self.route, self.request, &options, payload)?;
            let response = pending.response().await?;
            match response.options.get(OptionNumber::ECHO) {
                Some(echo) if response.code == Code::UNAUTHORIZED && self.echoes < ECHOES => {
                    self.echoes += 1;
                    self.options.remove(OptionNumber::ECHO);
                    self.options.push(OptionNumber::ECHO, echo.value);
                }
                _ => return Ok(response),
            }
        }
    }

    /// Sends the request with its whole body (RFC 7959 section 2.5).
    async fn send_body(&mut self) -> Result<Response, Error> {
        let body = self.request.payload.clone();
        if body.len() <= self.sizes.whole {
            return self.ask(wanted_in_return(self.request).as_slice(), &body).await;
        }
        self.options.push(OptionNumber::REQUEST_TAG, &request_tag());
        let size = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut at = 0;
        loop {
            let end = (at + self.sizes.block).min(body.len());
            let more = end < body.len();
            let block = self.block(at, more)?;
            let mut extra = vec![(OptionNumber::BLOCK1, block.to_uint())];
            if at == 0 {
                extra.push((OptionNumber::SIZE1, size));
            }
            if !more {
                extra.extend(wanted_in_return(self.request));
            }
            let response = self.ask(&extra, body.get(at..end).unwrap_or_default()).await?;
            let echoed = self.block_of(&response, OptionNumber::BLOCK1);
            let smaller = echoed.filter(|echoed| echoed.szx() < self.sizes.szx);
            if response.code == Code::REQUEST_ENTITY_TOO_LARGE && at == 0 {
                // A hint to begin again with smaller blocks (section 2.9.3).
                let Some(smaller) = smaller else { return Ok(response) };
                self.sizes = self.sizes.at_most(smaller.szx());
                continue;
            }
            if response.code != Code::CONTINUE || !more {
                return Ok(response);
            }
            if let Some(smaller) = smaller {
                // Section 2.5: the rest in blocks of the size that the server prefers. Of this
                // block it has taken what it says: a block of its size, if it is the first.
                at += if at == 0 { smaller.size().min(end) } else { end - at };
                self.sizes = self.sizes.at_most(smaller.szx());
            } else {
                at = end;
            }
        }
    }

    /// Asks for the blocks that follow the first one (RFC 7959 section 2.4).
    async fn fetch_rest(&mut self, first: Response) -> Result<Response, Error> {
        let mut response = first;
        for _ in 0..RESTARTS {
            let Some(block) = self.block_of(&response, OptionNumber::BLOCK2) else {
                return Ok(response);
            };
            if !block.more() {
                return Ok(response);
            }
            if block.num() != 0 || !block.is_full(response.payload.len()) {
                return Err(self.broken("its first block is not the first, or not whole"));
            }
            match self.blocks_after(&response, block).await? {
                Ok(body) => {
                    response.payload = body.freeze();
                    response.options.remove(OptionNumber::BLOCK2);
                    return Ok(response);
                }
                // Another version of the resource: from the start.
                Err(changed) => response = changed,
            }
        }
        Err(self.broken("the resource changes faster than it can be transferred"))
    }

    /// The body, or the first block of another version of it.
    async fn blocks_after(
        &mut self,
        first: &Response,
        block: Block,
    ) -> Result<Result<BytesMut, Response>, Error> {
        let limit = self.client.inner.config.max_body;
        let mut body = BytesMut::from(first.payload.as_ref());
        let etag = first.options.get(OptionNumber::ETAG).map(|opt| opt.value.to_vec());
        // A body that was sent in blocks is not sent again (section 3.3); a short one is part of
        // what is asked for (RFC 8132 section 2.1).
        let payload = self.request.payload.clone();
        let payload = if payload.len() <= self.sizes.whole { payload } else { bytes::Bytes::new() };
        let mut szx = block.szx();
        loop {
            let wanted = self.sizes.at(body.len(), false, szx).map_err(|_| self.too_large())?;
            let response = self.ask(&[(OptionNumber::BLOCK2, wanted.to_uint())], &payload).await?;
            let Some(got) = self.block_of(&response, OptionNumber::BLOCK2) else {
                return if response.is_success() {
                    Err(self.broken("a block has no block option"))
                } else {
                    Ok(Err(response))
                };
            };
            let same =
                response.options.get(OptionNumber::ETAG).map(|opt| opt.value.to_vec()) == etag;
            if !same {
                // What changes things is done once, and a body that went in blocks is not here.
                let whole = payload.len() == self.request.payload.len();
                if !whole || !self.request.code.is_idempotent() {
                    return Err(self.broken("it was replaced by another while it came"));
                }
                return Ok(Err(self.ask(&[], &payload).await?));
            }
            if got.offset() as usize != body.len() {
                return Err(self.broken("it sent another block than the one asked for"));
            }
            if got.more() && !got.is_full(response.payload.len()) {
                return Err(self.broken("a block is shorter than it says"));
            }
            if body.len() + response.payload.len() > limit {
                return Err(Error::TooLarge { limit });
            }
            body.extend_from_slice(&response.payload);
            szx = got.szx().min(szx);
            if !got.more() {
                return Ok(Ok(body));
            }
        }
    }

    /// The block of our size that begins at this byte.
    fn block(&self, offset: usize, more: bool) -> Result<Block, Error> {
        self.sizes.at(offset, more, self.sizes.szx).map_err(|_| self.too_large())
    }

    /// 2^20 blocks: a gigabyte in blocks of 1024 bytes, 16 MiB in blocks of 16.
    fn too_large(&self) -> Error {
        Error::TooLarge { limit: (Block::MAX_NUM as usize + 1) << (self.sizes.szx.min(6) + 4) }
    }

    fn block_of(&self, response: &Response, number: OptionNumber) -> Option<Block> {
        self.sizes.read(&response.options.get(number)?).ok()
    }

    fn broken(&self, what: &'static str) -> Error {
        Error::Protocol { remote: self.route.remote, what }
    }
}

/// Whether a response is the first of several blocks. The bit is where it is for any size.
pub(crate) fn has_more(response: &Response) -> bool {
    response.options.get_uint(OptionNumber::BLOCK2).is_some_and(|value| value & 0b1000 != 0)
}
