//! One request and its response in Non-confirmable blocks: what is sent when, what answers mean.

use super::super::Client;
use super::super::transfer::{ECHOES, RESTARTS, base_options, request_tag};
use super::asked::Asked;
use super::body::{Download, Unfit};
use crate::error::Error;
use crate::message::{Options, Request, Response};
use crate::net::clock::{Clock, seeded};
use crate::net::pending::Answer;
use ebbtide_core::endpoint::{Failure, SendError};
use ebbtide_core::q_block::{Due, QBlockParameters, Receiving, Retry, Sender, Sending};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Block, Code, MissingBlocks, Opt, OptionNumber};
use std::net::SocketAddr;

/// A request that is under way.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    client: &'a Client,
    remote: SocketAddr,
    request: &'a Request,
    clock: Clock,
    params: QBlockParameters,
    /// What every message of it has.
    options: Options,
    szx: u8,
    asked: Asked,
    part: Part,
    echoes: usize,
    restarts: usize,
}

/// How far it is.
#[derive(Debug)]
enum Part {
    /// The request's body goes out.
    Upload(Sender),
    /// The request is out, in one message.
    Asked(Retry),
    /// The response's body comes in.
    Download(Box<Download>),
}

/// What is to be done.
enum Next {
    Wait(Option<Instant>),
    Done(Response),
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        client: &'a Client,
        remote: SocketAddr,
        request: &'a Request,
    ) -> Result<Self, Error> {
        let (clock, params) = (client.shared(remote)?.clock, client.inner.config.quick);
        let exchange = Self {
            client,
            remote,
            request,
            clock,
            params,
            options: base_options(request),
            szx: request.block_szx.unwrap_or(client.inner.config.block_szx).min(Block::MAX_SZX),
            asked: Asked::default(),
            part: Part::Asked(Retry::new(clock.now(), &params)),
            echoes: 0,
            restarts: 0,
        };
        Ok(exchange)
    }

    pub(super) async fn run(mut self) -> Result<Response, Error> {
        let silent = self.client.shared(self.remote)?;
        let until = silent.lock().endpoint.silent_until(self.remote, &self.params);
        if let Some(until) = until {
            // What went before was not answered.
            tokio::time::sleep_until(self.clock.to_tokio(until)).await;
        }
        self.begin()?;
        loop {
            let wake = match self.proceed(self.clock.now())? {
                Next::Done(response) => return Ok(response),
                Next::Wait(wake) => wake.unwrap_or(Instant::MAX),
            };
            let wake = self.clock.to_tokio(wake);
            let answered = tokio::time::timeout_at(wake, self.asked.next()).await;
            if let Ok((block, answer)) = answered
                && let Some(response) = self.on_answer(block, answer)?
            {
                return Ok(response);
            }
        }
    }

    /// From the start.
    fn begin(&mut self) -> Result<(), Error> {
        self.asked.clear();
        let body = self.request.payload.len();
        if self.is_short() {
            self.part = Part::Asked(Retry::new(self.clock.now(), &self.params));
            return self.ask();
        }
        let blocks = u32::try_from(body.div_ceil(16 << self.szx)).unwrap_or(u32::MAX);
        // Numbers start at 0, so that there is one block more than the highest of them.
        const MOST: u32 = Block::MAX_NUM + 1;
        if blocks > MOST {
            return Err(Error::TooLarge { limit: (MOST as usize) << (self.szx + 4) });
        }
        self.options.remove(OptionNumber::REQUEST_TAG);
        self.options.push(OptionNumber::REQUEST_TAG, &request_tag());
        let mut rng = seeded().map_err(|source| Error::Network { remote: self.remote, source })?;
        let idempotent = self.request.code.is_idempotent();
        self.part = Part::Upload(Sender::upload(blocks, idempotent, self.params, &mut *rng));
        Ok(())
    }

    /// Does what is due.
    fn proceed(&mut self, now: Instant) -> Result<Next, Error> {
        loop {
            match &mut self.part {
                Part::Upload(sender) => match sender.poll(now) {
                    Sending::Block(num) => self.send_block(num)?,
                    Sending::Wait(at) => return Ok(Next::Wait(at)),
                    Sending::GiveUp => return Err(self.gave_up()),
                },
                Part::Asked(retry) => match retry.poll(now, &self.params) {
                    Due::Wait(at) => return Ok(Next::Wait(Some(at))),
                    Due::Ask if self.request.code.is_idempotent() => self.ask()?,
                    Due::Ask => {}
                    Due::GiveUp => return Err(self.gave_up()),
                },
                Part::Download(download) => match download.receiver.poll(now) {
                    Receiving::Complete => return Ok(self.finish()),
                    Receiving::Continue(from) => {
                        let block = download.block(from, true);
                        self.send(from, &[block], &[])?;
                    }
                    Receiving::Missing => {
                        let missing = download.receiver.missing();
                        let blocks: Vec<u32> =
                            missing.map(|num| download.block(num, false)).collect();
                        let bytes = self.send(0, &blocks, &[])?;
                        if let Part::Download(download) = &mut self.part {
                            download.receiver.sent(now, bytes);
                        }
                    }
                    Receiving::Wait(at) => return Ok(Next::Wait(Some(at))),
                    Receiving::GiveUp => return Err(self.gave_up()),
                },
            }
        }
    }

    fn finish(&mut self) -> Next {
        let part = Part::Asked(Retry::new(self.clock.now(), &self.params));
        match std::mem::replace(&mut self.part, part) {
            Part::Download(download) => Next::Done(download.finish()),
            part => {
                self.part = part;
                Next::Wait(None)
            }
        }
    }

    /// Asks for the whole response, in blocks if it is long (RFC 9177 section 4.4).
    fn ask(&mut self) -> Result<(), Error> {
        let body = self.request.payload.clone();
        let whole = Block::new(0, true, self.szx).map_or(0, Block::to_uint);
        self.send(0, &[whole], &body)?;
        Ok(())
    }

    /// One block of the request's body (RFC 9177 section 4.3): the options are the same in each.
    fn send_block(&mut self, num: u32) -> Result<(), Error> {
        let body = self.request.payload.clone();
        let start = (num as usize) << (self.szx + 4);
        let end = (start + (16 << self.szx)).min(body.len());
        let block = Block::new(num, end < body.len(), self.szx).map_or(0, Block::to_uint);
        let size = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let mut options = self.options.clone();
        options.push_uint(OptionNumber::Q_BLOCK1, block);
        options.push_uint(OptionNumber::SIZE1, size);
        self.emit(num, &options, body.get(start..end).unwrap_or_default())
    }

    /// A request with these values of Q-Block2; the bytes of its options, about.
    fn send(&mut self, block: u32, wanted: &[u32], payload: &[u8]) -> Result<usize, Error> {
        let mut options = self.options.clone();
        for value in wanted {
            options.push_uint(OptionNumber::Q_BLOCK2, *value);
        }
        let bytes = options.iter().map(|opt| opt.value.len() + 1).sum::<usize>() + HEADER;
        self.emit(block, &options, payload)?;
        Ok(bytes)
    }

    fn emit(&mut self, block: u32, options: &Options, payload: &[u8]) -> Result<(), Error> {
        match self.client.start_block(self.remote, self.request.code, options, payload) {
            Ok(pending) => self.asked.push(block, pending),
            // As if the network had lost it: it is asked for again. Unless nothing has left: a POST
            // in one message is not sent again, and would wait for an answer to nothing.
            Err(Error::Send(SendError::QueueFull | SendError::OutboxFull))
                if self.asked.has_begun() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Something answers the request that carried this block; the response, if that is all of it.
    fn on_answer(&mut self, block: u32, answer: Answer) -> Result<Option<Response>, Error> {
        let remote = self.remote;
        match answer {
            Answer::Response { response, .. } | Answer::More { response, .. } => {
                self.on_response(block, response)
            }
            // A token that nobody answers any more; others may be answered.
            Answer::Failed(Failure::NoResponse) => Ok(None),
            Answer::Failed(reason) => Err(Error::Failed { remote, reason }),
            Answer::Network(source) => Err(Error::Network { remote, source }),
            Answer::Reset { .. } | Answer::Ended { .. } => Err(Error::Reset { remote }),
        }
    }

    fn on_response(&mut self, block: u32, response: Response) -> Result<Option<Response>, Error> {
        match (response.code, &mut self.part) {
            (Code::UNAUTHORIZED, _) if self.echoes < ECHOES => {
                let Some(echo) = response.options.get(OptionNumber::ECHO) else {
                    return Ok(Some(response));
                };
                // RFC 9175 section 2.3.
                self.echoes += 1;
                self.options.remove(OptionNumber::ECHO);
                self.options.push(OptionNumber::ECHO, echo.value);
                self.begin()?;
                Ok(None)
            }
            (Code::CONTINUE, Part::Upload(sender)) => {
                // It is said of whole sets only (RFC 9177 section 4.3).
                let told = block_of(&response, OptionNumber::Q_BLOCK1).map(Block::num);
                sender.on_continue(self.params.end_of_set(told.unwrap_or(block)));
                Ok(None)
            }
            (Code::REQUEST_ENTITY_INCOMPLETE, part) if names_missing(&response) => {
                if let (Part::Upload(sender), Ok(missing)) =
                    (part, MissingBlocks::parse(&response.payload))
                {
                    sender.on_missing(missing.iter());
                }
                Ok(None)
            }
            // Late ones.
            (Code::CONTINUE, _) => Ok(None),
            _ => self.on_content(response),
        }
    }

    /// A response to the whole request: all of it, or a block.
    fn on_content(&mut self, mut response: Response) -> Result<Option<Response>, Error> {
        let Some(block) = block_of(&response, OptionNumber::Q_BLOCK2) else {
            return Ok(Some(response));
        };
        if !response.is_success() || block.num() == 0 && !block.more() {
            response.options.remove(OptionNumber::Q_BLOCK2);
            response.options.remove(OptionNumber::SIZE2);
            return Ok(Some(response));
        }
        let is_sized = response.options.get(OptionNumber::SIZE2).is_some();
        if !is_sized && self.is_short() && matches!(self.part, Part::Download(_)) {
            // libcoap's server answers who misses block 0 with nothing but that block, and without
            // saying of which version it is. So all of it is asked for again.
            self.restart()?;
            self.begin()?;
            return Ok(None);
        }
        let now = self.clock.now();
        let other = match &self.part {
            Part::Download(download) if !download.is_other(&response) => false,
            Part::Download(_) => {
                self.restart()?;
                true
            }
            _ => true,
        };
        if other {
            let limit = self.client.inner.config.max_body;
            let begun = Download::begin(now, &response, block, limit, self.params);
            self.part = Part::Download(Box::new(begun.map_err(|unfit| self.broken(unfit))?));
        }
        if let Part::Download(download) = &mut self.part {
            download.take(now, &response, block).map_err(|unfit| self.broken(unfit))?;
        }
        Ok(None)
    }

    /// Another version of the body begins.
    fn restart(&mut self) -> Result<(), Error> {
        self.restarts += 1;
        if self.restarts > RESTARTS {
            let what = "the resource changes faster than it can be transferred";
            return Err(self.broken(Unfit::Broken(what)));
        }
        Ok(())
    }

    /// Whether the request's body is one message.
    fn is_short(&self) -> bool {
        self.request.payload.len() <= 16 << self.szx
    }

    fn broken(&self, unfit: Unfit) -> Error {
        match unfit {
            Unfit::TooLarge => Error::TooLarge { limit: self.client.inner.config.max_body },
            Unfit::Broken(what) => Error::Protocol { remote: self.remote, what },
        }
    }

    fn gave_up(&self) -> Error {
        Error::Failed { remote: self.remote, reason: Failure::NoResponse }
    }
}

/// Bytes of header and token, and of the numbers of long options.
const HEADER: usize = 16;

fn names_missing(response: &Response) -> bool {
    let format = response.content_format();
    format.is_some_and(|format| format.0 == MissingBlocks::CONTENT_FORMAT)
}

fn block_of(response: &Response, number: OptionNumber) -> Option<Block> {
    Block::from_option(&response.options.get(number)? as &Opt<'_>).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use std::time::Duration;

    #[tokio::test]
    async fn a_request_of_which_nothing_can_leave_fails_at_once() {
        let mut config = Config::default();
        config.endpoint.limits.queue_per_peer = 0;
        let client = Client::with_config(config);
        for length in [1, 5000] {
            let request = Request::post("coap://127.0.0.1/").unwrap().payload(vec![7; length]);
            let exchange = Exchange::new(&client, ([127, 0, 0, 1], 9).into(), &request).unwrap();
            let ended = tokio::time::timeout(Duration::from_secs(30), exchange.run()).await;
            assert!(
                matches!(ended, Ok(Err(Error::Send(SendError::QueueFull)))),
                "{length} bytes: {ended:?}"
            );
        }
    }
}
