//! Requests of ours that wait for responses.

use crate::time::Instant;
use crate::wire::Token;
use alloc::vec::Vec;

/// A request of ours on one connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    index: u16,
    generation: u16,
    token_length: u8,
}

impl RequestId {
    /// A slot that no other open request of this connection has, counted from 0, which callers may
    /// use as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// The request's token: the slot, and how often it was used before, so that a late response
    /// does not match another request. Tokens need not be hard to guess, since only the peer could
    /// use a guessed one. A shorter token ([`Config::token_length`](super::Config::token_length))
    /// lacks the last bytes.
    #[must_use]
    pub fn token(self) -> Token {
        let [a, b] = self.index.to_le_bytes();
        let [c, d] = self.generation.to_le_bytes();
        let bytes = [a, b, c, d];
        Token::new(bytes.get(..usize::from(self.token_length)).unwrap_or(&bytes))
            .unwrap_or_default()
    }
}

/// The state of a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestState {
    Free,
    /// Waits for its response until `deadline`.
    Open {
        observe: bool,
        deadline: Instant,
    },
    /// Registered as an observer; notifications may arrive without a time limit.
    Observing,
    /// Cancelled, but the peer has not been informed or has not confirmed it.
    Cancelled {
        deadline: Instant,
    },
}

#[derive(Copy, Clone, Debug)]
struct StreamRequestSlot {
    generation: u16,
    state: RequestState,
}

/// Slots found by their number, which is part of the token.
#[derive(Debug)]
pub(super) struct Requests {
    slots: Vec<StreamRequestSlot>,
    free: Vec<u16>,
    max: u16,
    token_length: u8,
    open: usize,
    /// No deadline is earlier than this instant, and possibly none is equal to it. Requests have
    /// equal time limits, so the instant moves only when it has come and all requests are
    /// examined.
    earliest: Option<Instant>,
}

impl Requests {
    /// Allows at most `max` open requests, and no more than tokens of `token_length` bytes can
    /// distinguish.
    pub(super) const fn new(max: u16, token_length: u8) -> Self {
        let max = match token_length {
            0 if max > 1 => 1,
            1 if max > 256 => 256,
            _ => max,
        };
        let token_length = if token_length > 4 { 4 } else { token_length };
        Self { slots: Vec::new(), free: Vec::new(), max, token_length, open: 0, earliest: None }
    }

    const fn id(&self, index: u16, generation: u16) -> RequestId {
        RequestId { index, generation, token_length: self.token_length }
    }

    /// The number of requests that have not ended, including cancelled ones.
    pub(super) const fn open(&self) -> usize {
        self.open
    }

    /// Opens a request; `None` if the maximum is reached.
    pub(super) fn open_one(&mut self, observe: bool, deadline: Instant) -> Option<RequestId> {
        let state = RequestState::Open { observe, deadline };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index =
                    u16::try_from(self.slots.len()).ok().filter(|&index| index < self.max)?;
                self.slots.push(StreamRequestSlot { generation: 0, state: RequestState::Free });
                index
            }
        };
        let slot = self.slots.get_mut(usize::from(index))?;
        slot.state = state;
        self.open += 1;
        self.earliest.get_or_insert(deadline);
        let generation = slot.generation;
        Some(self.id(index, generation))
    }

    pub(super) fn find(&self, token: Token) -> Option<(RequestId, RequestState)> {
        let index = match *token.as_slice() {
            [] => 0,
            [a] => u16::from(a),
            [a, b, ..] => u16::from_le_bytes([a, b]),
        };
        let request = self.id(index, self.slots.get(usize::from(index))?.generation);
        Some((request, self.state(request).filter(|_| request.token() == token)?))
    }

    /// The state of a request that has not ended.
    pub(super) fn state(&self, request: RequestId) -> Option<RequestState> {
        let slot = self.slots.get(request.index())?;
        let current = slot.generation == request.generation && slot.state != RequestState::Free;
        current.then_some(slot.state)
    }

    /// Changes the state of a request that has not ended.
    pub(super) fn set(&mut self, request: RequestId, state: RequestState) {
        if let Some(slot) = self.slots.get_mut(request.index()) {
            slot.state = state;
        }
        if let RequestState::Cancelled { deadline } = state {
            self.earliest.get_or_insert(deadline);
        }
    }

    /// Ends a request that has not ended yet.
    pub(super) fn end(&mut self, request: RequestId) {
        if let Some(slot) = self.slots.get_mut(request.index()) {
            slot.state = RequestState::Free;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(request.index);
            self.open -= 1;
        }
    }

    /// Not later than the first deadline.
    pub(super) const fn earliest(&self) -> Option<Instant> {
        self.earliest
    }

    /// Ends the requests whose deadline has passed, and returns those that were not cancelled.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<RequestId> {
        self.earliest = None;
        let mut late = Vec::new();
        let mut earliest: Option<Instant> = None;
        for index in 0..self.slots.len() {
            let Some(slot) = self.slots.get(index) else { break };
            let (RequestState::Open { deadline, .. } | RequestState::Cancelled { deadline }) =
                slot.state
            else {
                continue;
            };
            if deadline > now {
                earliest = Some(earliest.map_or(deadline, |first| first.min(deadline)));
                continue;
            }
            let request = self.id(index as u16, slot.generation);
            if matches!(slot.state, RequestState::Open { .. }) {
                late.push(request);
            }
            self.end(request);
        }
        self.earliest = earliest;
        late
    }

    /// Ends all requests, and returns those that were not cancelled.
    pub(super) fn end_all(&mut self) -> Vec<RequestId> {
        let ended = self.end_where(|state| state != RequestState::Free);
        self.earliest = None;
        ended
    }

    /// Ends all observations, and returns them.
    pub(super) fn end_observations(&mut self) -> Vec<RequestId> {
        self.end_where(|state| state == RequestState::Observing)
    }

    fn end_where(&mut self, is: impl Fn(RequestState) -> bool) -> Vec<RequestId> {
        let all = self.slots.iter().enumerate();
        let all: Vec<_> = all
            .filter(|(_, slot)| is(slot.state))
            .map(|(index, slot)| (self.id(index as u16, slot.generation), slot.state))
            .collect();
        let mut ended = Vec::new();
        for (request, state) in all {
            if !matches!(state, RequestState::Cancelled { .. }) {
                ended.push(request);
            }
            self.end(request);
        }
        ended
    }
}
