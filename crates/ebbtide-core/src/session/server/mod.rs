//! The server: the path from a request to its answer, whatever the transport.
//!
//! # Contract
//!
//! A request passes these stages in this order. Each is a type that only the stage before it
//! creates, so none can be skipped or passed twice:
//!
//! ```text
//! Received -> (rate) Admitted -> (address) Verified -> (permission) Permitted -> (blocks) Assembled
//!   -> the application -> Handled -> (amplification) Answered -> (blocks, observe) Finished -> sent
//! ```
//!
//! * A [`RequestSlot`] holds a request and returns a [`Received`]. Later stages borrow the slot.
//! * [`Server::receive`] takes a [`Received`] to [`Verified`].
//! * The application looks at the request, of whose body perhaps only the first block is present,
//!   and refuses it with [`Verified::refuse`] or permits it with [`Verified::permit`]. Nothing has
//!   been stored before.
//! * [`Server::assemble`] returns an [`Assembled`] request once its body is complete.
//! * The application answers it at once ([`Assembled::handled`]), or keeps a [`PendingRequest`] and
//!   answers later. Both return a [`Handled`].
//! * [`Server::complete`] turns it into the answers to send; each [`Finished`] is sent by
//!   [`FinishedRef::send`](super::FinishedRef::send).
//! * At any stage the server may have the answer itself: [`Next::Send`]. A stored answer is
//!   [`Finished`] and passes no stage again.
//! * [`Server::poll_timeout`] returns when [`Server::handle_timeout`] has something to send.
//!
//! A handler never runs twice for one request: neither for a copy of it, nor because its answer has
//! to wait until the address has echoed a challenge.

mod assemble;
mod complete;
mod limits;
mod q_block;
mod receive;
mod stages;
mod withheld;

pub use complete::Observe;
pub use limits::{Refusals, ServerLoad, SessionConfig};
pub use stages::{
    Assembled, BodyBlock, Handled, Next, Outgoing, PendingRequest, Permitted, Received,
    RequestSlot, Verified,
};

use super::address_validation::AddressValidation;
use super::blocks::BlockTransfers;
use super::finished::Finished;
use super::message::{BlockSizes, Response};
use super::observers::Due;
use super::q_block::QBlockTransfers;
use super::rate_limiter::RateLimiter;
use super::requester::Requester;
use crate::exchange::amplification::allowance;
use crate::exchange::echo::Name;
use crate::peer::Source;
use crate::time::{Duration, Instant};
use crate::wire::OptionNumber;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::net::IpAddr;
use rand_core::Rng;
use withheld::Withheld;

/// Shared ownership of the state of a server's sockets. A stage accesses it only when it needs it,
/// so a driver with several threads locks it as rarely as possible.
pub trait SharedState<T> {
    /// Calls `change` with the shared state. `change` must not call `with` again: an implementation
    /// for `RefCell` panics then, and one with a mutex may deadlock.
    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R;
}

impl<T> SharedState<T> for RefCell<T> {
    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.borrow_mut())
    }
}

/// The state that all sockets and connections of a server share.
pub struct ServerState {
    validation: AddressValidation,
    limiter: Option<RateLimiter>,
    blocks: BlockTransfers,
    q_blocks: QBlockTransfers,
    withheld: Withheld,
    rng: Box<dyn Rng + Send>,
}

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerState")
            .field("validation", &self.validation)
            .field("limiter", &self.limiter)
            .finish_non_exhaustive()
    }
}

impl ServerState {
    /// The verified addresses with the instants of verification, for storage.
    pub fn verified(&self) -> impl Iterator<Item = (IpAddr, Instant)> {
        self.validation.saved()
    }

    /// Restores an address that was verified before a restart, this long ago.
    pub fn restore_verified(&mut self, now: Instant, from: IpAddr, ago: Duration) {
        self.validation.restore(now, from, ago);
    }

    /// Creates an empty state. `rng` supplies the key of the challenges, so it must be
    /// unpredictable on the open Internet.
    #[must_use]
    pub fn new(config: &SessionConfig, mut rng: Box<dyn Rng + Send>) -> Self {
        let validation = AddressValidation::new(
            config.verify,
            config.max_addresses,
            config.exchange_lifetime,
            &mut *rng,
        );
        Self {
            validation,
            limiter: config.max_rate.map(|rate| RateLimiter::new(rate, config.max_addresses)),
            blocks: BlockTransfers::new(config.max_block_bytes, config.exchange_lifetime),
            q_blocks: QBlockTransfers::new(config.max_block_bytes, config.q_block),
            withheld: Withheld::new(config.max_withheld, config.exchange_lifetime),
            rng,
        }
    }
}

/// The server's side of the session. See the [module](self) for how it is driven.
#[derive(Debug)]
pub struct Server<S> {
    config: SessionConfig,
    tables: S,
}

impl<S: SharedState<ServerState>> Server<S> {
    /// The state that its requests share.
    pub const fn tables(&self) -> &S {
        &self.tables
    }

    /// Creates a server over a state that was created with the same configuration.
    #[must_use]
    pub const fn new(config: SessionConfig, tables: S) -> Self {
        Self { config, tables }
    }

    /// Its configuration.
    #[must_use]
    pub const fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// The sizes of bodies and blocks that fit into a datagram.
    #[must_use]
    pub fn datagram_sizes(&self) -> BlockSizes {
        BlockSizes::of_datagrams(self.config.block_size)
    }

    /// Whether the requester's address is verified, or need not be.
    pub fn trusts(&self, now: Instant, requester: &Requester) -> bool {
        let from = requester.peer().source();
        !requester.forgeable || self.tables.with(|tables| tables.validation.trusts(now, from))
    }

    /// Whether the request itself has proved that its sender receives at its address and port, or need not. A stranger
    /// who forges a verified address cannot send such a request.
    #[must_use]
    pub const fn is_proved(&self, requester: &Requester) -> bool {
        !requester.may_be_forged()
    }

    /// Whether the address of a sender of datagrams is verified, or need not be.
    pub fn trusts_source(&self, now: Instant, from: Source) -> bool {
        self.tables.with(|tables| tables.validation.trusts(now, from))
    }

    /// How often a notification of `length` bytes may be transmitted to an observer that has
    /// acknowledged none.
    pub fn notification_allowance(&self, due: &Due, length: usize) -> u8 {
        match self.may_be_forged(due) {
            true => allowance(due.request.len(), due.sent, length).max(1),
            false => u8::MAX,
        }
    }

    /// Whether the registration of an observer may be a forgery.
    fn may_be_forged(&self, due: &Due) -> bool {
        due.unverified && self.config.verify.concerns(due.remote.source())
    }

    /// Fits a notification to the transport and the observer. If it is long, returns its first
    /// block (RFC 7959 section 2.6) and stores the body for requests of the others. If it is longer
    /// than an observer may receive that has not proved its address, returns a challenge, which is an error and
    /// so ends the observation. So does a representation in another format, which is answered 4.06.
    pub fn size_notification(
        &self,
        now: Instant,
        due: &Due,
        request: &crate::wire::Message<'_>,
        mut response: Response,
        sizes: BlockSizes,
    ) -> Response {
        if !due.keeps_format(&response) {
            response = Response::new(crate::wire::Code::NOT_ACCEPTABLE);
        }
        // The block size of the registration holds for all notifications.
        let sizes = sizes.beside(&due.token);
        let facts = super::requester::RequestOptions::read(request, sizes);
        if complete::block_of(&response, &facts).is_some() {
            let key = super::key::transfer_key(due.remote, request);
            response = complete::in_blocks(self, now, key, &facts, response);
        }
        if self.may_be_forged(due) {
            let content = response.with_content(None, |content| content.encoded_len());
            let length =
                crate::wire::HEADER_LEN + due.token.encoded_len() + complete::OBSERVE + content;
            if allowance(due.request.len(), due.sent, length) == 0 {
                return self.tables.with(|tables| tables.validation.challenge(now, due.remote));
            }
        }
        response
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.tables.with(|tables| tables.q_blocks.poll_timeout())
    }

    /// Handles the timers of bodies in RFC 9177's blocks, which leave in sets: returns blocks to
    /// send and requests for missing blocks.
    pub fn handle_timeout(&self, now: Instant) -> Vec<Finished> {
        let mut out = Vec::new();
        self.tables.with(|tables| tables.q_blocks.handle_timeout(now, &mut out));
        out
    }

    /// Returns the load of the session at `now`.
    pub fn load(&self, now: Instant) -> ServerLoad {
        self.tables.with(|tables| {
            let (bytes, uploads, downloads) = tables.blocks.held(now);
            let quick = tables.q_blocks.bodies.held(now);
            ServerLoad {
                block_bytes: bytes + quick.0,
                uploads: uploads + quick.1,
                downloads: downloads + quick.2,
                withheld: tables.withheld.len(now),
                verified: tables.validation.verified(now),
            }
        })
    }

    /// Returns the counters of the session itself; all others are zero.
    pub fn refusals(&self) -> Refusals {
        self.tables.with(|tables| Refusals {
            challenged: tables.validation.challenged(),
            too_many_requests: tables.limiter.as_ref().map_or(0, RateLimiter::refused),
            uploads_evicted: tables.blocks.evicted() + tables.q_blocks.bodies.evicted,
            ..Refusals::default()
        })
    }

    /// A challenge for a requester that has not proved its address, as an answer.
    fn challenged(&self, now: Instant, requester: Requester) -> Finished {
        self.challenge_to(now, requester, None)
    }

    /// A challenge for a request that must not be processed twice.
    fn challenge_to(&self, now: Instant, requester: Requester, request: Option<Name>) -> Finished {
        let from = requester.peer();
        let challenge =
            self.tables.with(|tables| tables.validation.challenge_to(now, from, request));
        Finished::response(requester, challenge)
    }

    /// A stored answer, or a challenge if the answer is longer than a request that is not proved may
    /// yield. The answer stays stored.
    fn stored(&self, now: Instant, requester: Requester, mut response: Response) -> Finished {
        let length = complete::length(&requester, &response);
        match complete::allowance(&requester, length, 1) {
            0 => self.challenged(now, requester),
            allowance => {
                self.carry_value(now, &requester, &mut response);
                Finished::response(Requester { allowance, ..requester }, response)
            }
        }
    }

    /// Gives a client that has echoed a value the next one, so that it is not challenged again. Not in a
    /// separate response, since some clients put the value into the empty acknowledgement.
    fn carry_value(&self, now: Instant, requester: &Requester, response: &mut Response) {
        if requester.proved
            && requester.forgeable
            && requester.takes_value()
            && response.is_success()
        {
            let from = requester.peer();
            let value = self.tables.with(|tables| tables.validation.next_value(now, from));
            response.options.remove(OptionNumber::ECHO);
            response.options.push(OptionNumber::ECHO, value.as_slice());
        }
    }
}
