//! A body in blocks (RFC 7959): PUT, and the response to it.

use crate::arguments::Arguments;
use crate::driver::{Application, Next};
use crate::rng::SplitMix;
use crate::semihosting::report;
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::SocketAddr;
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Endpoint, Received, Reliability};
use ebbtide_core::session::client::{
    Loss, Outgoing, RequestParts, Step, Transfer, TransferError, TransferSettings,
};
use ebbtide_core::session::{BlockSizes, Options, Response};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, OptionNumber};

/// The size of blocks in bytes.
const BLOCK: usize = 256;
/// The longest body of a response.
const MAX_BODY: usize = 4096;
/// The body that is put.
static BODY: [u8; 3000] = [b'e'; 3000];

/// The exchanges of a transfer, by its own numbers.
#[derive(Debug, Default)]
pub struct Exchanges(Vec<(u32, ExchangeId)>);

impl Exchanges {
    /// Starts a message of a transfer. `again` is the exchange whose token it has.
    ///
    /// # Errors
    ///
    /// Returns an error if the endpoint has no room.
    pub fn start(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        server: SocketAddr,
        outgoing: &Outgoing,
        again: Option<u32>,
    ) -> Result<(), Loss> {
        let older = again.and_then(|id| self.0.iter().find(|(known, _)| *known == id));
        let older = older.map(|(_, exchange)| *exchange);
        let started = outgoing.options.with_slice(None, |options| {
            let content = Content { code: outgoing.code, options, payload: &outgoing.payload };
            match older {
                Some(older) => {
                    endpoint.request_again(now, older, &content, Reliability::Confirmable)
                }
                None => endpoint.request(now, server.into(), &content, Reliability::Confirmable),
            }
        });
        let exchange = started.map_err(|_| Loss::NoRoom)?;
        self.0.push((outgoing.id, exchange));
        Ok(())
    }

    /// The transfer's number of an exchange.
    #[must_use]
    pub fn id(&self, exchange: ExchangeId) -> Option<u32> {
        Some(self.0.iter().find(|(_, known)| *known == exchange)?.0)
    }

    /// An exchange has ended. Returns the transfer's number.
    pub fn end(&mut self, exchange: ExchangeId) -> Option<u32> {
        let at = self.0.iter().position(|(_, known)| *known == exchange)?;
        Some(self.0.swap_remove(at).0)
    }

    /// Cancels an exchange of the transfer.
    pub fn cancel(&mut self, now: Instant, endpoint: &mut Endpoint, id: u32) {
        if let Some(at) = self.0.iter().position(|(known, _)| *known == id) {
            endpoint.cancel(now, self.0.swap_remove(at).1);
        }
    }
}

/// A request. It asks for blocks that fit into the driver's buffer.
#[must_use]
pub fn request(code: Code, payload: Bytes, path: &[u8]) -> RequestParts {
    let mut options = Options::new();
    options.push(OptionNumber::URI_PATH, path);
    RequestParts { code, options, payload, block_size: Some(BLOCK) }
}

/// Settings of a transfer for a device.
#[must_use]
pub fn settings() -> TransferSettings {
    TransferSettings::new(BlockSizes::of_datagrams(BLOCK), MAX_BODY)
}

/// One PUT, to the path in the argument `put`.
#[derive(Debug)]
pub struct Put {
    server: SocketAddr,
    transfer: Transfer,
    exchanges: Exchanges,
    rng: SplitMix,
    result: Option<Result<Response, TransferError>>,
}

impl Put {
    /// Nothing has left yet.
    #[must_use]
    pub fn new(server: SocketAddr, arguments: &Arguments) -> Self {
        let path = arguments.get("put").unwrap_or(b"echo");
        let request = request(Code::PUT, Bytes::from_static(&BODY), path);
        Self {
            server,
            transfer: Transfer::new(request, settings()),
            exchanges: Exchanges::default(),
            rng: SplitMix(99),
            result: None,
        }
    }

    /// Reports the response.
    pub fn report(&self) {
        let response = self.result.as_ref().and_then(|result| result.as_ref().ok());
        report("put_code", response.map_or(0, |response| response.code().0.into()));
        report("put_echoed", response.map_or(0, |response| response.body().len() as u32));
    }
}

impl Application for Put {
    fn received(&mut self, now: Instant, _: &mut Endpoint, received: Received<'_>) {
        match received {
            Received::Response { exchange, message, .. } => {
                if let Some(id) = self.exchanges.end(exchange) {
                    self.transfer.handle_response(now, id, Response::from_message(&message));
                }
            }
            Received::Reset { exchange, .. } => {
                if let Some(id) = self.exchanges.end(exchange) {
                    self.transfer.handle_loss(now, id, Loss::Final);
                }
            }
            _ => {}
        }
    }

    fn failed(&mut self, now: Instant, exchange: ExchangeId) {
        if let Some(id) = self.exchanges.end(exchange) {
            self.transfer.handle_loss(now, id, Loss::Unanswered);
        }
    }

    fn poll(&mut self, now: Instant, endpoint: &mut Endpoint) -> Next {
        loop {
            match self.transfer.poll(now, &mut self.rng) {
                Step::Send(outgoing) => {
                    let started = self.exchanges.start(now, endpoint, self.server, &outgoing, None);
                    if let Err(loss) = started {
                        self.transfer.handle_loss(now, outgoing.id, loss);
                    }
                }
                Step::Cancel(id) => self.exchanges.cancel(now, endpoint, id),
                Step::Wait(until) => return Next::Wait(until),
                Step::Done(result) => {
                    self.result = Some(result);
                    return Next::Done;
                }
            }
        }
    }
}
