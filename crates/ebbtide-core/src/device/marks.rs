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

#[derive(Copy, Clone, Debug)]
struct FirstAnswer {
    peer: u8,
    id: MessageId,
    token: Token,
    marking: Marking,
    transmissions: u8,
    /// The transmission that it named.
    ordinal: u8,
}

impl FirstAnswers {
    pub(super) const NONE: Self = Self { all: [None; REMEMBERED], next: 0 };

    /// The answer to a retransmitted request named this transmission.
    pub(super) fn remember(&mut self, exchange: &FixedExchange, ordinal: u8) {
        let &FixedExchange { peer, id, token, marking, transmissions, .. } = exchange;
        if let Some(place) = self.all.get_mut(self.next) {
            *place = Some(FirstAnswer { peer, id, token, marking, transmissions, ordinal });
        }
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// Whether an answer names another transmission than the first answer to the same request.
    pub(super) fn contradicts(&self, peer: usize, message: &Message<'_>) -> bool {
        let mut all = self.all.iter().flatten();
        let id = message.message_id();
        let first = all.find(|first| usize::from(first.peer) == peer && first.id == id);
        let Some(first) = first else { return false };
        let named = message
            .token()
            .and_then(|token| ordinal_in(token, first.token, first.marking, first.transmissions));
        named.is_some_and(|named| named != first.ordinal)
    }
}
