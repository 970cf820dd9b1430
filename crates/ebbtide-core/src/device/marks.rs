//! Marks: the transmission that an answer belongs to. See the module of this name of the endpoint of many peers.

use super::tables::FixedExchange;
use crate::cc::Marking;
use crate::exchange::token::ordinal_in;
use crate::wire::{Message, MessageId, Token};

/// Requests of which a second answer is recognized after the first has ended the exchange.
const REMEMBERED: usize = 8;

/// The first answers to requests that had been retransmitted. A new one takes the place of the oldest.
#[derive(Debug)]
pub(super) struct FirstAnswers {
    all: [Option<FirstAnswer>; REMEMBERED],
    next: usize,
}

/// Message ID and token name the request, without the address, which may be long. The place of its
/// peer may be another one's by the time that a late answer arrives.
#[derive(Copy, Clone, Debug)]
struct FirstAnswer {
    id: MessageId,
    token: Token,
    transmissions: u8,
    /// The transmission that it named.
    ordinal: u8,
}

impl FirstAnswers {
    pub(super) const NONE: Self = Self { all: [None; REMEMBERED], next: 0 };

    /// The answer to a retransmitted request with marks named this transmission.
    pub(super) fn remember(&mut self, exchange: &FixedExchange, ordinal: u8) {
        let &FixedExchange { id, token, transmissions, .. } = exchange;
        if let Some(place) = self.all.get_mut(self.next) {
            *place = Some(FirstAnswer { id, token, transmissions, ordinal });
        }
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// Whether an answer names another transmission than the first answer to the same request.
    pub(super) fn contradicts(&self, message: &Message<'_>) -> bool {
        let (id, Some(token)) = (message.message_id(), message.token()) else { return false };
        let mut all = self.all.iter().flatten().filter(|first| first.id == id);
        let ordinal_of =
            |it: &FirstAnswer| ordinal_in(token, it.token, Marking::Token, it.transmissions);
        all.any(|first| ordinal_of(first).is_some_and(|named| named != first.ordinal))
    }
}
