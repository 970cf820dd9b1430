//! Observers that outlive their program: their stored form, and how they are restored.

use super::{Observers, Registration, Subject};
use crate::time::Instant;
use crate::wire::Token;
use alloc::sync::Arc;
use core::net::{IpAddr, SocketAddr};

/// By how much the sequence numbers of notifications go on after a restart: more notifications than one
/// observer may have been sent since it was stored. RFC 7641 section 3.4 takes what is ahead by less than
/// 2^23 for newer.
const AHEAD: u32 = 1 << 16;

/// The part of an observer that has to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedObserver {
    /// The observer's address.
    pub remote: SocketAddr,
    /// The token of its notifications.
    pub token: Token,
    /// From which of our addresses they leave, if that matters.
    pub local: Option<IpAddr>,
    /// The sequence number of the last one.
    pub sequence: u32,
    /// Whether it has acknowledged one.
    pub proven: bool,
    /// Whether its address may be forged.
    pub unverified: bool,
    /// Bytes of the response to its request, with the headers of UDP and IP.
    pub sent: u16,
    /// Its request.
    pub request: Arc<[u8]>,
}

impl Observers {
    /// A number that differs once something has changed that is to be stored.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All of them, to be stored.
    pub fn saved(&self) -> impl Iterator<Item = SavedObserver> {
        self.places.iter().map(|observer| SavedObserver {
            remote: observer.remote,
            token: observer.token,
            local: self.locals.get(observer.local),
            sequence: observer.sequence,
            proven: observer.proven,
            unverified: observer.unverified,
            sent: observer.sent,
            request: observer.request.clone(),
        })
    }

    /// An observer is there again after a restart, and due: what it observes may have changed meanwhile. It
    /// is left out if there are `max` already.
    pub fn restore(&mut self, now: Instant, saved: &SavedObserver, subject: Subject, max: usize) {
        let new = Registration {
            remote: saved.remote,
            token: saved.token,
            local: saved.local,
            unverified: saved.unverified,
            subject,
            request: &saved.request,
            sent: saved.sent.into(),
        };
        if self.register(now, &new, max).is_none() {
            return;
        }
        if let Some(index) = self.find(saved.remote, saved.token)
            && let Some(observer) = self.places.at_mut(index)
        {
            observer.sequence = saved.sequence.wrapping_add(AHEAD) & 0xff_ffff;
            observer.proven = saved.proven;
        }
        self.changed_for(saved.remote, saved.token);
    }
}
