//! Many messages for one resource, several of them in flight.

mod upload;

pub use upload::Upload;

use super::Client;
use super::drive::Drive;
use super::session::{Session, is_no_room};
use crate::error::{Cause, Error};
use crate::message::{BurstMark, Request, Response, Uri, UriError};
use crate::net::clock;
use bytes::Bytes;
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::session::client::{RequestParts, Transfer, TransferSettings};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::collections::VecDeque;

/// How many messages of a burst are under way if nothing else is said: as many as an endpoint queues
/// for a peer (`Limits::queue_per_peer`).
const IN_FLIGHT: u8 = 64;

/// The outcome of one message of a burst.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report<'r> {
    /// Which message, from 0; reports come in this order.
    pub sequence: u32,
    /// The server's answer, which may be an error's, or why there is none.
    pub outcome: Result<&'r Response, &'r Error>,
}

/// A message that was not taken by the server, handed back.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unacknowledged {
    /// Which message.
    pub sequence: u32,
    /// The payload of the message.
    pub payload: Bytes,
    /// Why.
    pub reason: Reason,
}

/// Why a message is handed back.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// There was no answer.
    Failed(Error),
    /// The answer was an error.
    Refused(Response),
    /// The burst ended before there was an answer; the server may have taken it.
    Stopped,
}

/// How a burst ended.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// How many messages the server took.
    pub acknowledged: u64,
    /// The others that were accepted by [`Burst::send`], in their order.
    pub unacknowledged: Vec<Unacknowledged>,
}

/// A message that was not accepted, with the payload that it was to carry.
#[derive(Debug)]
#[non_exhaustive]
pub struct NotAccepted {
    /// The payload.
    pub payload: Bytes,
    /// Why; `None` if the burst has stopped because of messages that failed before.
    pub error: Option<Error>,
}

impl core::fmt::Display for NotAccepted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.error {
            Some(error) => error.fmt(f),
            None => f.write_str("the burst has stopped because a message failed"),
        }
    }
}

impl core::error::Error for NotAccepted {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.error.as_ref().map(|error| error as _)
    }
}

/// A sink for many messages to one resource; see [`Client::burst`].
///
/// Congestion control says when each leaves: under `rcoap` they are paced, and as many are in flight as
/// the path holds; under others at most NSTART are. [`send`](Self::send) waits while too many are under
/// way, so that a sender is as fast as its path. Each message carries a [`BurstMark`], which tells a
/// server that knows it ([`in_order`](crate::server::in_order)) its place and which others ignore.
pub struct Burst {
    session: Session,
    /// The parts of the request that all messages share.
    request: RequestParts,
    reliability: Reliability,
    settings: TransferSettings,
    number: u32,
    in_flight: u8,
    stop_after: usize,
    running: FuturesUnordered<BoxFuture<'static, (u32, MessageOutcome)>>,
    /// The messages from `base` on that were accepted.
    messages: VecDeque<BurstMessage>,
    base: u32,
    summary: Summary,
    report: Option<Reporter>,
}

type MessageOutcome = Result<Response, Error>;
type Reporter = Box<dyn FnMut(Report<'_>) + Send>;

#[derive(Debug)]
struct BurstMessage {
    payload: Bytes,
    outcome: Option<MessageOutcome>,
}

impl core::fmt::Debug for Burst {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Burst")
            .field("remote", &self.session.address)
            .field("next", &self.next())
            .field("under_way", &self.messages.len())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A burst of messages, POSTs, to one resource.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use ebbtide::congestion::ControlConfig;
    /// let client = ebbtide::Client::with_config(ebbtide::ClientConfig::new().control(ControlConfig::parse("rcoap")?));
    /// let mut burst = client.burst("coap://192.0.2.7/log").await?;
    /// for reading in 0..10_000 {
    ///     burst.send(format!("{reading}")).await?;
    /// }
    /// let summary = burst.finish().await;
    /// println!("{} taken, {} not", summary.acknowledged, summary.unacknowledged.len());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If the URI is not valid or does not resolve, or no connection can be made.
    pub async fn burst(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Burst, Error> {
        self.burst_with(Request::post(uri)?).await
    }

    /// A burst of messages with the method, the URI and the options of `request`; its payload does not
    /// matter.
    ///
    /// # Errors
    ///
    /// As [`Self::burst`].
    pub async fn burst_with(&self, request: Request) -> Result<Burst, Error> {
        let session = self.session(&request.uri).await?;
        let parts = request.parts();
        let settings = TransferSettings {
            patience: Default::default(),
            ..session.settings(&request, &RequestParts { block_size: None, ..parts.clone() })
        };
        Ok(Burst {
            session,
            request: parts,
            reliability: request.reliability,
            settings,
            number: clock::distinct(),
            in_flight: IN_FLIGHT,
            stop_after: 1,
            running: FuturesUnordered::new(),
            messages: VecDeque::new(),
            base: 0,
            summary: Summary::default(),
            report: None,
        })
    }
}

impl Burst {
    /// How many messages may be under way, from the first unacknowledged one on: 1 to 255, default 64.
    /// It is also what a receiver has to put in order at most.
    #[must_use]
    pub fn in_flight(mut self, messages: u8) -> Self {
        self.in_flight = messages.max(1);
        self
    }

    /// Sets the number of messages that may fail, or be answered with an error, before the burst stops
    /// accepting messages. Default 1. As many are kept to be returned, in addition to those in flight.
    #[must_use]
    pub fn stop_after(mut self, failures: usize) -> Self {
        self.stop_after = failures.max(1);
        self
    }

    /// Calls `report` with the outcome of each message, in the order in which they were sent.
    #[must_use]
    pub fn on_report(mut self, report: impl FnMut(Report<'_>) + Send + 'static) -> Self {
        self.report = Some(Box::new(report));
        self
    }

    /// The number of the next message.
    fn next(&self) -> u32 {
        // `messages` is bounded by a byte.
        self.base.wrapping_add(self.messages.len() as u32)
    }

    /// Sends a message and returns its sequence number, after waiting while too many are in flight.
    ///
    /// Cancel safe: if the future is dropped, the message has not been sent, but its payload is lost.
    /// Dropping the burst cancels the messages in flight.
    ///
    /// # Errors
    ///
    /// Returns an error with the payload if the burst has stopped, or if the message cannot be sent.
    pub async fn send(&mut self, payload: impl Into<Bytes>) -> Result<u32, NotAccepted> {
        let payload = payload.into();
        let limit = self.settings.sizes.whole;
        if payload.len() > limit {
            let error = Some(Error::from(Cause::TooLarge { limit }));
            return Err(NotAccepted { payload, error });
        }
        while self.messages.len() >= usize::from(self.in_flight) {
            self.progress().await;
        }
        loop {
            if self.summary.unacknowledged.len() >= self.stop_after {
                return Err(NotAccepted { payload, error: None });
            }
            let sequence = self.next();
            match self.start(sequence, &payload) {
                Ok(exchange) => {
                    self.running.push(exchange);
                    self.messages.push_back(BurstMessage { payload, outcome: None });
                    return Ok(sequence);
                }
                // The queue for this peer is full: one of its messages has to end first.
                Err(error) if is_no_room(&error) && !self.running.is_empty() => {
                    self.progress().await;
                }
                Err(error) => return Err(NotAccepted { payload, error: Some(error) }),
            }
        }
    }

    /// Waits until a message in flight has ended.
    async fn progress(&mut self) {
        let Some((sequence, outcome)) = self.running.next().await else { return };
        let place = sequence.wrapping_sub(self.base) as usize;
        if let Some(message) = self.messages.get_mut(place) {
            message.outcome = Some(outcome);
        }
        while let Some(BurstMessage { outcome: Some(_), .. }) = self.messages.front() {
            self.settle();
        }
    }

    /// Removes the first message and records its outcome.
    fn settle(&mut self) {
        let Some(message) = self.messages.pop_front() else { return };
        let sequence = self.base;
        self.base = self.base.wrapping_add(1);
        if let (Some(report), Some(outcome)) = (&mut self.report, &message.outcome) {
            report(Report { sequence, outcome: outcome.as_ref() });
        }
        let reason = match message.outcome {
            Some(Ok(response)) if response.is_success() => {
                self.summary.acknowledged += 1;
                return;
            }
            Some(Ok(response)) => Reason::Refused(response),
            Some(Err(error)) => Reason::Failed(error),
            None => Reason::Stopped,
        };
        let payload = message.payload;
        self.summary.unacknowledged.push(Unacknowledged { sequence, payload, reason });
    }

    /// Waits for all messages in flight and returns the outcome of the burst. Dropping the future
    /// cancels them.
    pub async fn finish(mut self) -> Summary {
        while !self.running.is_empty() {
            self.progress().await;
        }
        self.stop()
    }

    /// Ends the burst at once. Messages without an answer are returned, although the server may have
    /// accepted them.
    #[must_use]
    pub fn stop(mut self) -> Summary {
        self.running.clear();
        while !self.messages.is_empty() {
            self.settle();
        }
        self.summary
    }

    /// Starts the exchange of one message.
    fn start(
        &self,
        sequence: u32,
        payload: &Bytes,
    ) -> Result<BoxFuture<'static, (u32, MessageOutcome)>, Error> {
        let behind = u8::try_from(self.messages.len()).unwrap_or(u8::MAX);
        let mut request = RequestParts { payload: payload.clone(), ..self.request.clone() };
        BurstMark { burst: self.number, behind, sequence }.push(&mut request.options);
        let transfer = Transfer::new(request, self.settings.clone());
        let mut message = Drive::new(self.session.clone(), self.reliability, transfer);
        message.start_now()?;
        Ok(Box::pin(async move { (sequence, message.run().await) }))
    }
}
