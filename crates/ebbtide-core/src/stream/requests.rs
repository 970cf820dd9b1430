//! Requests of ours that wait for their responses.

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
    /// A place that no other open request of this connection has, from 0 on: for tables of the
    /// caller's.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Its token: the place, and how often it was used before, so that a late response does not
    /// find another request. A guessed token is no danger here: who could use it is the peer. Of a
    /// shorter one ([`Config::token_length`](super::Config::token_length)) the last bytes are missing.
    #[must_use]
    pub fn token(self) -> Token {
        let [a, b] = self.index.to_le_bytes();
        let [c, d] = self.generation.to_le_bytes();
        let bytes = [a, b, c, d];
        Token::new(bytes.get(..usize::from(self.token_length)).unwrap_or(&bytes))
            .unwrap_or_default()
    }
}

/// How far a request is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// Waits for its response, at most until `deadline`.
    Open {
        observe: bool,
        deadline: Instant,
    },
    /// Registered as an observer: notifications may come for as long as they will.
    Observing,
    /// Cancelled, but the peer does not know or has not confirmed it.
    Cancelled {
        deadline: Instant,
    },
}

#[derive(Copy, Clone, Debug)]
struct Slot {
    generation: u16,
    state: State,
}

/// Slots that are found by their number, which is part of the token.
#[derive(Debug)]
pub(super) struct Requests {
    slots: Vec<Slot>,
    free: Vec<u16>,
    max: u16,
    token_length: u8,
    open: usize,
    /// No deadline is earlier; there may be none at it. Requests are given equal spans, so that
    /// only looking at all of them, when it has come, moves it.
    earliest: Option<Instant>,
}

impl Requests {
    /// At most `max` at once, and no more than tokens of `token_length` bytes tell apart.
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

    /// Requests that are not over, cancelled ones included.
    pub(super) const fn open(&self) -> usize {
        self.open
    }

    /// Opens a request; `None` if there are as many as may be.
    pub(super) fn open_one(&mut self, observe: bool, deadline: Instant) -> Option<RequestId> {
        let state = State::Open { observe, deadline };
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index =
                    u16::try_from(self.slots.len()).ok().filter(|&index| index < self.max)?;
                self.slots.push(Slot { generation: 0, state: State::Free });
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

    pub(super) fn find(&self, token: Token) -> Option<(RequestId, State)> {
        let index = match *token.as_slice() {
            [] => 0,
            [a] => u16::from(a),
            [a, b, ..] => u16::from_le_bytes([a, b]),
        };
        let request = self.id(index, self.slots.get(usize::from(index))?.generation);
        Some((request, self.state(request).filter(|_| request.token() == token)?))
    }

    /// How far a request is, unless it is over.
    pub(super) fn state(&self, request: RequestId) -> Option<State> {
        let slot = self.slots.get(request.index())?;
        let current = slot.generation == request.generation && slot.state != State::Free;
        current.then_some(slot.state)
    }

    /// Changes the state of a request that is not over.
    pub(super) fn set(&mut self, request: RequestId, state: State) {
        if let Some(slot) = self.slots.get_mut(request.index()) {
            slot.state = state;
        }
        if let State::Cancelled { deadline } = state {
            self.earliest.get_or_insert(deadline);
        }
    }

    /// Ends a request that is not over.
    pub(super) fn end(&mut self, request: RequestId) {
        if let Some(slot) = self.slots.get_mut(request.index()) {
            slot.state = State::Free;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(request.index);
            self.open -= 1;
        }
    }

    /// Not later than the first deadline.
    pub(super) const fn earliest(&self) -> Option<Instant> {
        self.earliest
    }

    /// Ends the requests whose deadline has come and says which of them were not cancelled.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<RequestId> {
        self.earliest = None;
        let mut late = Vec::new();
        let mut earliest: Option<Instant> = None;
        for index in 0..self.slots.len() {
            let Some(slot) = self.slots.get(index) else { break };
            let (State::Open { deadline, .. } | State::Cancelled { deadline }) = slot.state else {
                continue;
            };
            if deadline > now {
                earliest = Some(earliest.map_or(deadline, |first| first.min(deadline)));
                continue;
            }
            let request = self.id(index as u16, slot.generation);
            if matches!(slot.state, State::Open { .. }) {
                late.push(request);
            }
            self.end(request);
        }
        self.earliest = earliest;
        late
    }

    /// Ends all and says which were not cancelled.
    pub(super) fn end_all(&mut self) -> Vec<RequestId> {
        let all = self.slots.iter().enumerate();
        let all: Vec<_> = all
            .filter(|(_, slot)| slot.state != State::Free)
            .map(|(index, slot)| (self.id(index as u16, slot.generation), slot.state))
            .collect();
        let mut ended = Vec::new();
        for (request, state) in all {
            if !matches!(state, State::Cancelled { .. }) {
                ended.push(request);
            }
            self.end(request);
        }
        self.earliest = None;
        ended
    }
}
