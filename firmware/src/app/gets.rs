//! The message layer alone: GETs, one after another.

use crate::arguments::Arguments;
use crate::driver::{Application, Next};
use crate::semihosting::report;
use core::net::SocketAddr;
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Endpoint, Received, Reliability};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};

/// `gets` Confirmable requests for `/time`.
#[derive(Debug)]
pub struct Gets {
    server: SocketAddr,
    left: u32,
    open: Option<ExchangeId>,
    delivered: u32,
    failed: u32,
}

impl Gets {
    /// None has left yet.
    #[must_use]
    pub fn new(server: SocketAddr, arguments: &Arguments) -> Self {
        let left = arguments.number("gets", 20);
        Self { server, left, open: None, delivered: 0, failed: 0 }
    }

    /// Reports how many were answered.
    pub fn report(&self) {
        report("delivered", self.delivered);
        report("failed", self.failed);
    }
}

impl Application for Gets {
    fn received(&mut self, _: Instant, _: &mut Endpoint, received: Received<'_>) {
        match received {
            Received::Response { exchange, message, .. } if self.open == Some(exchange) => {
                self.open = None;
                match message.code() {
                    Code::CONTENT => self.delivered += 1,
                    _ => self.failed += 1,
                }
            }
            Received::Reset { exchange, .. } => self.failed(Instant::ZERO, exchange),
            _ => {}
        }
    }

    fn failed(&mut self, _: Instant, exchange: ExchangeId) {
        if self.open == Some(exchange) {
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
            let options = [Opt { number: OptionNumber::URI_PATH, value: b"time" }];
            let content = Content { code: Code::GET, options: &options, payload: &[] };
            let started =
                endpoint.request(now, self.server.into(), &content, Reliability::Confirmable);
            self.failed += u32::from(started.is_err());
            self.open = started.ok();
        }
        Next::Wait(None)
    }
}
