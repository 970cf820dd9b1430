//! Packets that are lost on purpose: these and no others.

use ebbtide_core::time::Instant;

/// Which packets of a link are lost, after the queue as all losses.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Aim {
    /// How many in a row.
    pub count: u32,
    /// Only packets of this client; `None` means all clients.
    pub client: Option<u32>,
    /// Those that leave the queue from this instant on.
    pub after: Instant,
    /// But for so many that come first.
    pub skip: u32,
}

/// An [`Aim`] at work.
#[derive(Copy, Clone, Debug)]
pub(super) struct Aimed {
    aim: Aim,
    /// Packets so far that it would have been true of.
    seen: u32,
}

impl Aimed {
    pub(super) const fn new(aim: Aim) -> Self {
        Self { aim, seen: 0 }
    }

    /// Whether a packet of `client` that leaves the queue at `now` is lost. Calls are in the order
    /// of time.
    pub(super) fn loses(&mut self, now: Instant, client: Option<u32>) -> bool {
        let Aim { count, client: whose, after, skip } = self.aim;
        if now < after || (whose.is_some() && whose != client) {
            return false;
        }
        let place = self.seen;
        self.seen = self.seen.saturating_add(1);
        skip <= place && place - skip < count
    }
}
