//! GETs that OSCORE protects (RFC 8613).

use crate::arguments::Arguments;
use crate::driver::{Application, Next};
use crate::semihosting::report;
use core::net::SocketAddr;
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Endpoint, Received, Reliability};
use ebbtide_core::oscore::{
    Algorithm, MasterSecret, NotificationOrder, ParameterError, RequestNumber, SecurityContext,
    Volatile,
};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Message, Opt, OptionNumber};

/// `gets` Confirmable requests for `/time`, one after another.
#[derive(Debug)]
pub struct ProtectedGets {
    server: SocketAddr,
    /// A product keeps its numbers in flash: see [`SequenceStore`](ebbtide_core::oscore::SequenceStore).
    context: SecurityContext<Volatile>,
    left: u32,
    open: Option<(ExchangeId, RequestNumber)>,
    delivered: u32,
    failed: u32,
}

impl ProtectedGets {
    /// None has left yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the parameters of the context are wrong.
    pub fn new(server: SocketAddr, arguments: &Arguments) -> Result<Self, ParameterError> {
        let algorithm = Algorithm::AesCcm16_64_128;
        let secret =
            MasterSecret { secret: b"secret-of-device", salt: &[], id_context: None, algorithm };
        let context = SecurityContext::new(&secret, &[1], &[2], Volatile)?;
        let left = arguments.number("gets", 20);
        Ok(Self { server, context, left, open: None, delivered: 0, failed: 0 })
    }

    /// Reports how many were answered.
    pub fn report(&self) {
        report("delivered", self.delivered);
        report("failed", self.failed);
    }

    /// Whether a response is the server's, and what was asked for.
    fn is_content(&self, request: RequestNumber, message: &Message<'_>) -> bool {
        let mut plain = [0; 128];
        let value = message.option(OptionNumber::OSCORE).map(|option| option.value);
        let payload = message.payload();
        let Some(plain) = plain.get_mut(..payload.len()) else { return false };
        let mut order = NotificationOrder::default();
        let opened = self.context.open_response(request, &mut order, value, payload, plain);
        opened.is_ok_and(|opened| opened.code == Code::CONTENT && !opened.payload().is_empty())
    }

    fn start(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let options = [Opt { number: OptionNumber::URI_PATH, value: b"time" }];
        let plain = Content { code: Code::GET, options: &options, payload: &[] };
        let mut sealed = [0; 64];
        let Ok((outer, number)) = self.context.protect_request(&plain, &mut sealed) else {
            self.failed += 1;
            return;
        };
        let value = outer.value;
        let options = [Opt { number: OptionNumber::OSCORE, value: value.as_slice() }];
        let content = Content { code: outer.code, options: &options, payload: outer.payload };
        let to = self.server.into();
        match endpoint.request(now, to, &content, Reliability::Confirmable) {
            Ok(exchange) => self.open = Some((exchange, number)),
            Err(_) => self.failed += 1,
        }
    }
}

impl Application for ProtectedGets {
    fn received(&mut self, _: Instant, _: &mut Endpoint, received: Received<'_>) {
        match received {
            Received::Response { exchange, message, .. } => match self.open {
                Some((open, number)) if open == exchange => {
                    self.open = None;
                    match self.is_content(number, &message) {
                        true => self.delivered += 1,
                        false => self.failed += 1,
                    }
                }
                _ => {}
            },
            Received::Reset { exchange, .. } => self.failed(Instant::ZERO, exchange),
            _ => {}
        }
    }

    fn failed(&mut self, _: Instant, exchange: ExchangeId) {
        if self.open.is_some_and(|(open, _)| open == exchange) {
            self.open = None;
            self.failed += 1;
        }
    }

    fn poll(&mut self, now: Instant, endpoint: &mut Endpoint) -> Next {
        if self.open.is_none() {
            if self.left == 0 {
                return Next::Done;
            }
            self.left -= 1;
            self.start(now, endpoint);
        }
        Next::Wait(None)
    }
}
