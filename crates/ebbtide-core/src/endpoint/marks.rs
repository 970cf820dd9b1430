//! Marks: the transmission of a request that an answer belongs to, and the peers that can be trusted to
//! name it.
//!
//! Many servers answer a duplicate with the response that they stored for the first copy that
//! arrived, and that has the first copy's mark. From such a server an answer that names an earlier
//! transmission than the last may belong to any later one. The time since the named transmission
//! would then include a timeout, and one such measurement makes the timeouts that follow it as
//! long.

use super::Endpoint;
use super::peers::OptionSupport;
use crate::cc::Marking;
use crate::exchange::mark::COUNT_PROBE;
use crate::exchange::table::Exchange;
use crate::exchange::token::ordinal_in;
use crate::peer::PeerId;
use crate::wire::{Message, MessageId, Token};
use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// Requests of which a second answer is recognized after the first has ended the exchange. The answers
/// to the copies of a request follow each other within a round trip.
const REMEMBERED: usize = 8;

/// The first answers to requests that had been retransmitted, oldest first; `None` until there is one.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "an endpoint that never has one keeps a pointer")]
pub(super) struct FirstAnswers(Option<Box<VecDeque<FirstAnswer>>>);

#[derive(Debug)]
struct FirstAnswer {
    remote: PeerId,
    id: MessageId,
    token: Token,
    marking: Marking,
    transmissions: u8,
    /// The transmission that it named.
    ordinal: u8,
}

impl FirstAnswers {
    fn remember(&mut self, exchange: &Exchange, ordinal: u8) {
        let &Exchange { remote, id, token, marking, transmissions, .. } = exchange;
        let all = self.0.get_or_insert_default();
        if all.len() == REMEMBERED {
            all.pop_front();
        }
        all.push_back(FirstAnswer { remote, id, token, marking, transmissions, ordinal });
    }
}

impl Endpoint {
    /// The ordinal in a token, if the token belongs to the exchange.
    #[inline]
    pub(super) fn match_token(&self, index: u32, token: Token) -> Option<u8> {
        let exchange = self.table.get(index);
        ordinal_in(token, exchange.token, exchange.marking, exchange.transmissions)
    }

    /// The ordinal in the option Rexmit-Cnt of a response. Returns an error if that copy was never
    /// sent.
    pub(super) fn counted(&mut self, index: u32, message: &Message<'_>) -> Result<Option<u8>, ()> {
        let option = message.option(self.config.rexmit_count_option);
        let exchange = self.table.get(index);
        let marks = &mut self.peers.get_mut(exchange.peer).marks;
        let Some(value) = option.and_then(|option| option.as_uint()) else {
            if marks.option == OptionSupport::Confirmed {
                // An original without the option is answered without it.
                return Ok(Some(0));
            }
            marks.option = OptionSupport::Absent;
            return Ok(None);
        };
        // The original carried 255; once support was known it carried nothing, which means 0.
        let ordinal = match u8::try_from(value) {
            Ok(COUNT_PROBE) if exchange.probed => 0,
            Ok(0) if !exchange.probed => 0,
            Ok(ordinal @ 1..) if ordinal < exchange.transmissions => ordinal,
            _ => return Err(()),
        };
        if marks.option == OptionSupport::Absent && !exchange.probed {
            // No transmission of this exchange carried the option.
            return Err(());
        }
        marks.option = OptionSupport::Confirmed;
        Ok(Some(ordinal))
    }

    /// Returns the ordinal of a mark if the answer certainly belongs to the transmission that it
    /// names: that is the last one, or the peer is known to answer each copy with its own mark.
    pub(super) fn believe(&mut self, index: u32, ordinal: u8) -> Option<u8> {
        let exchange = self.table.get(index);
        let last = exchange.transmissions.saturating_sub(1);
        let faithful = self.peers.get(exchange.peer).marks.faithful;
        if last > 0 && !faithful {
            self.first_answers.remember(exchange, ordinal);
        }
        (faithful || ordinal == last).then_some(ordinal)
    }

    /// Compares an answer to a request that has ended with the first answer to it. If they name
    /// different transmissions, the peer answers each copy with its own mark.
    pub(super) fn compare_marks(&mut self, from: PeerId, message: &Message<'_>) {
        let id = message.message_id();
        let mut all = self.first_answers.0.iter().flat_map(|all| all.iter());
        let Some(first) = all.find(|first| first.id == id && first.remote == from) else { return };
        let token = message
            .token()
            .and_then(|token| ordinal_in(token, first.token, first.marking, first.transmissions));
        let named = match (first.marking, token) {
            (Marking::None, _) | (_, None) => None,
            (Marking::Token | Marking::CopyToken, named) => named,
            // An answer without the option may be that of a server that does not know it.
            (Marking::Option, Some(_)) => {
                let option = message.option(self.config.rexmit_count_option);
                let count = option.and_then(|option| u8::try_from(option.as_uint()?).ok());
                let count = count.map(|count| if count == COUNT_PROBE { 0 } else { count });
                count.filter(|&count| count < first.transmissions)
            }
        };
        if named.is_some_and(|named| named != first.ordinal)
            && let Some(peer) = self.peers.find(self.config.scope.key(from))
        {
            self.peers.get_mut(peer).marks.faithful = true;
        }
    }
}
