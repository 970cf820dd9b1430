//! Marks: the transmission that an answer belongs to. See the module of this name of the endpoint of many peers.

use super::endpoint::DeviceEndpoint;
use crate::cc::{Answered, CongestionControl, Marking, Sample};
use crate::exchange::token::ordinal_in;
use crate::time::Micros;
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
}

impl<A: Copy + Eq, C: CongestionControl + Clone> DeviceEndpoint<'_, A, C> {
    /// The ordinal in a token, if the token belongs to the exchange.
    pub(super) fn match_token(&self, index: usize, token: Token) -> Option<u8> {
        let exchange = self.memory.exchanges.get(index)?;
        ordinal_in(token, exchange.token, exchange.marking, exchange.transmissions)
    }

    /// What an answer with this ordinal in its mark measures. The ordinal counts if the answer certainly belongs to the
    /// transmission that it names: that is the last one, or the peer is known to answer each copy with its own mark.
    pub(super) fn sample(&mut self, index: usize, ordinal: Option<u8>) -> Sample {
        let now = self.now;
        let Some((exchange, peer)) = self.memory.both(index) else {
            return Sample::new(Micros::ZERO, Micros::ZERO, 1);
        };
        let last = exchange.transmissions.saturating_sub(1);
        let ordinal = ordinal.filter(|_| exchange.marking != Marking::None);
        if let Some(ordinal) = ordinal.filter(|_| last > 0 && !peer.faithful) {
            let answers = &mut self.first_answers;
            let &mut super::tables::Exchange { peer, id, token, marking, transmissions, .. } =
                exchange;
            if let Some(place) = answers.all.get_mut(answers.next % REMEMBERED) {
                *place = Some(FirstAnswer { peer, id, token, marking, transmissions, ordinal });
            }
            answers.next = (answers.next + 1) % REMEMBERED;
        }
        let since_first = now.micros_since(exchange.first);
        let answered = ordinal.filter(|ordinal| peer.faithful || *ordinal == last);
        let answered = answered.and_then(|ordinal| {
            let sent = exchange.sent.get(usize::from(ordinal))?;
            Some(Answered { ordinal, since: since_first.saturating_sub(*sent) })
        });
        Sample::new(since_first, now.micros_since(exchange.last), exchange.transmissions)
            .with_answered(answered)
    }

    /// Compares an answer to a request that has ended with the first answer to it. If they name
    /// different transmissions, the peer answers each copy with its own mark.
    pub(super) fn compare_marks(&mut self, from: A, message: &Message<'_>) {
        let Some(index) = self.memory.find_peer(from) else { return };
        let first = self
            .first_answers
            .all
            .iter()
            .flatten()
            .find(|first| usize::from(first.peer) == index && first.id == message.message_id());
        let Some(first) = first else { return };
        let named = ordinal_in(message.token(), first.token, first.marking, first.transmissions);
        if named.is_some_and(|named| named != first.ordinal)
            && let Some(Some(peer)) = self.memory.peers.get_mut(index)
        {
            peer.faithful = true;
        }
    }
}
