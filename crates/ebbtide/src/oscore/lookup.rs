//! Whether requests under new keys (RFC 8613 appendix B.2) name their ID Context, which is longer
//! than all that OSCORE adds otherwise. Most servers find their context by the client's ID;
//! libcoap's (4.3.4) does not.

use ebbtide_core::wire::{Content, OptionNumber};
use std::sync::atomic::{AtomicU8, Ordering};

/// How the server finds the context of a request, as far as that is known.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum ServerLookup {
    /// It has not answered yet.
    Unanswered,
    /// It has found the context by the ID Context.
    Untried,
    /// By the client's ID.
    ById,
    /// By the ID Context only.
    ByIdContext,
}

impl ServerLookup {
    const ALL: [Self; 4] = [Self::Unanswered, Self::Untried, Self::ById, Self::ByIdContext];
}

/// Whether a request names its ID Context.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum IdContext {
    Named,
    LeftOut,
}

/// A [`ServerLookup`] of a byte. If two answers change it at once, either of them may.
#[derive(Debug, Default)]
pub(super) struct AtomicServerLookup(AtomicU8);

impl AtomicServerLookup {
    fn get(&self) -> ServerLookup {
        let index = usize::from(self.0.load(Ordering::Relaxed));
        ServerLookup::ALL.get(index).copied().unwrap_or(ServerLookup::Unanswered)
    }

    fn set(&self, lookup: ServerLookup) {
        self.0.store(lookup as u8, Ordering::Relaxed);
    }

    /// Whether this request names it. Only one that can be made anew tries without: an idempotent one
    /// that does not begin or end an observation.
    pub(super) fn wanted(&self, request: &Content<'_>) -> IdContext {
        let is_plain =
            |number: OptionNumber| number != OptionNumber::OBSERVE && !number.is_q_block();
        let can_try =
            request.is_idempotent() && request.options.iter().all(|option| is_plain(option.number));
        match self.get() {
            ServerLookup::ById => IdContext::LeftOut,
            ServerLookup::Untried if can_try => IdContext::LeftOut,
            _ => IdContext::Named,
        }
    }

    /// A response to a request was verified.
    pub(super) fn found(&self, by: IdContext) {
        match (by, self.get()) {
            (IdContext::LeftOut, _) => self.set(ServerLookup::ById),
            (IdContext::Named, ServerLookup::Unanswered) => self.set(ServerLookup::Untried),
            (IdContext::Named, _) => {}
        }
    }

    /// A request was refused without protection. Returns true if that may be because it did not name the ID Context.
    pub(super) fn refused(&self, by: IdContext) -> bool {
        let may_be = by == IdContext::LeftOut && self.get() != ServerLookup::ById;
        if may_be {
            self.set(ServerLookup::ByIdContext);
        }
        may_be
    }
}
