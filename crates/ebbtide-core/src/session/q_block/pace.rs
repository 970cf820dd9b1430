//! The common pace of all bodies towards one client that is silent.

use crate::peer::PeerId;
use crate::q_block::QBlockParameters;
use crate::session::recency::RecencyMap;
use crate::time::{Duration, Instant};

/// Sets of blocks that leave for a client from which nothing has come since. One may be lost with the request for the
/// next one.
const SETS: u32 = 2;

/// Clients whose blocks are counted.
const MAX_CLIENTS: usize = 4096;

/// RFC 9177 section 7.2 paces the blocks of one body. A client that asks for very many bodies and then is silent gets
/// no more of all of them than of one: [`SETS`] in a NON_TIMEOUT. A request for further blocks, of whichever body,
/// shows that blocks arrive.
#[derive(Debug)]
pub(super) struct Pace {
    params: QBlockParameters,
    clients: RecencyMap<PeerId, Silence>,
}

/// The blocks that have left since a client was last heard, or since the last pause.
#[derive(Debug)]
struct Silence {
    blocks: u32,
    resume: Instant,
}

impl Pace {
    pub(super) fn new(params: QBlockParameters) -> Self {
        Self { params, clients: RecencyMap::new() }
    }

    fn most(&self) -> u32 {
        self.params.set() * SETS
    }

    /// Until when nothing more may leave for this client.
    pub(super) fn waits(&self, now: Instant, client: PeerId) -> Option<Instant> {
        let silence = self.clients.get(&client)?;
        (silence.blocks >= self.most() && now < silence.resume).then_some(silence.resume)
    }

    /// A block leaves for this client.
    pub(super) fn sent(&mut self, now: Instant, client: PeerId) {
        while self.clients.pop_oldest(now, self.params.non_partial_timeout()).is_some() {}
        let resume = now + self.params.non_timeout;
        if let Some(silence) = self.clients.get_mut(&client) {
            let blocks = if now < silence.resume { silence.blocks } else { 0 };
            *silence = Silence { blocks: blocks + 1, resume };
            self.clients.advance(now, client);
            return;
        }
        if self.clients.len() >= MAX_CLIENTS {
            self.clients.pop_oldest(now, Duration::ZERO);
        }
        self.clients.insert(now, client, Silence { blocks: 1, resume }, 0);
    }

    /// A client asks for further blocks. Returns whether some of its bodies may have waited.
    pub(super) fn heard(&mut self, client: PeerId) -> bool {
        let silence = self.clients.remove(&client);
        silence.is_some_and(|silence| silence.blocks >= self.most())
    }
}
