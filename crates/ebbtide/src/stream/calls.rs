//! The application's calls over one connection.

use crate::message::Options;
use crate::net::pending::{Answer, Call};
use crate::oscore::ClientContext;
use bytes::Bytes;
use ebbtide_core::stream::RequestId;
use ebbtide_core::wire::{Code, Content, OptionNumber};
use std::task::Waker;

/// The state of a call, which outlives its request until the application has fetched its answers.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    pub(crate) call: Call,
    pub(crate) request: Option<RequestId>,
    /// For an observation: the message that ends it, except for the value of Observe.
    pub(crate) observation: Option<ObservedCall>,
    /// Whether the call waits for a Pong.
    pinging: bool,
}

/// The request that registered an observation, as it was before it was protected.
#[derive(Debug)]
pub(crate) struct ObservedCall {
    pub(crate) code: Code,
    pub(crate) options: Options,
    pub(crate) payload: Bytes,
    /// Protects it.
    pub(crate) context: Option<ClientContext>,
}

impl ObservedCall {
    /// Calls `send` with the request that ends the observation.
    pub(super) fn end<E>(
        mut self,
        send: impl FnOnce(&Content<'_>) -> Result<(), E>,
    ) -> Result<(), NotEnded> {
        self.options.set_uint(OptionNumber::OBSERVE, 1);
        let (code, payload) = (self.code, &self.payload);
        self.options.with_slice(None, |options| {
            let content = Content { code, options, payload };
            match &self.context {
                None => send(&content).map_err(|_| NotEnded),
                Some(context) => match context.seal(&content, None, send) {
                    Ok((Ok(()), _)) => Ok(()),
                    _ => Err(NotEnded),
                },
            }
        })
    }
}

/// The message that ends an observation could not be sent.
pub(super) struct NotEnded;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Calls {
    places: Vec<Option<CallState>>,
    free: Vec<u32>,
    /// The call of each request, by the request's index.
    by_request: Vec<Option<u32>>,
}

impl Calls {
    /// Adds a call that waits for a response or, without a request, for a Pong.
    pub(crate) fn add(
        &mut self,
        request: Option<RequestId>,
        observation: Option<ObservedCall>,
    ) -> u32 {
        let pinging = request.is_none();
        let place = Some(CallState { call: Call::default(), request, observation, pinging });
        let index = match self.free.pop() {
            Some(index) => {
                if let Some(free) = self.places.get_mut(index as usize) {
                    *free = place;
                }
                index
            }
            None => {
                self.places.push(place);
                // The number is bounded by the requests of a connection and the applications'
                // futures.
                (self.places.len() - 1) as u32
            }
        };
        if let Some(request) = request {
            if request.index() >= self.by_request.len() {
                self.by_request.resize(request.index() + 1, None);
            }
            if let Some(entry) = self.by_request.get_mut(request.index()) {
                *entry = Some(index);
            }
        }
        index
    }

    pub(crate) fn get(&mut self, index: u32) -> Option<&mut CallState> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<CallState> {
        let place = self.places.get_mut(index as usize)?.take()?;
        self.free.push(index);
        if let Some(request) = place.request {
            self.unlink(request);
        }
        Some(place)
    }

    fn unlink(&mut self, request: RequestId) -> Option<u32> {
        self.by_request.get_mut(request.index())?.take()
    }

    /// Adds an answer after which more may follow.
    pub(crate) fn more(&mut self, request: RequestId, answer: Answer) -> Option<Waker> {
        let index = (*self.by_request.get(request.index())?)?;
        self.get(index)?.call.push(answer)
    }

    /// Adds the last answer; the request has ended.
    pub(crate) fn end(&mut self, request: RequestId, answer: Answer) -> Option<Waker> {
        let index = self.unlink(request)?;
        let place = self.get(index)?;
        place.request = None;
        place.call.push(answer)
    }

    /// Answers every call that waits for a Pong.
    pub(crate) fn end_pings(&mut self, answer: impl Fn() -> Answer) -> Vec<Waker> {
        let waiting = self.places.iter_mut().flatten().filter(|place| place.pinging);
        waiting
            .filter_map(|place| {
                place.pinging = false;
                place.call.push(answer())
            })
            .collect()
    }
}

impl CallState {
    /// Whether more answers may follow.
    pub(crate) fn is_open(&self) -> bool {
        self.request.is_some() || self.pinging
    }
}
