//! The stored form of observers, from which they are restored after a restart.

use super::{InFlightNotification, Observers, Registration, Subject};
use crate::peer::PeerId;
use crate::peer_token::PeerToken;
use crate::shared::Shared;
use crate::time::Instant;
use core::net::IpAddr;

/// The step of sequence numbers at a restart. It exceeds the number of notifications that one
/// observer may have received since it was stored. RFC 7641 section 3.4 takes a number that is
/// ahead by less than 2^23 for newer, which 127 restarts do not exceed, and after 128 s any number. Systemd, for
/// example, starts a service at most 64 times in 128 s by default.
const AHEAD: u32 = 1 << 16;

/// Sequence numbers are stored in multiples of this, so that a notification alone changes nothing
/// that is stored. A restart moves on by twice as many.
const STEP: u32 = AHEAD / 2;

/// Whether the number to store changes with this one.
pub(super) const fn is_to_be_stored(sequence: u32) -> bool {
    sequence.is_multiple_of(STEP)
}

/// The stored part of an observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedObserver {
    /// The observer: an address or a session.
    pub remote: PeerId,
    /// The token of its notifications.
    pub token: PeerToken,
    /// The local address from which they leave, if that matters.
    pub local: Option<IpAddr>,
    /// About the sequence number of the last notification: rounded down, so that it changes rarely.
    pub sequence: u32,
    /// Whether it has acknowledged a notification.
    pub proven: bool,
    /// Whether its address may be forged.
    pub unverified: bool,
    /// The length of the response to its request in bytes, with UDP and IP headers.
    pub sent: u16,
    /// Its request.
    pub request: Shared<[u8]>,
}

impl SavedObserver {
    /// Moves the sequence number past all those that the program before may have used. Store the result before
    /// you restore the observer: a program that ends before it stores anything else would otherwise be
    /// followed by one that uses the same numbers again, which observers take for old ones.
    pub fn advance(&mut self) {
        self.sequence = self.sequence.wrapping_add(AHEAD) & 0xff_ffff;
    }
}

impl Observers {
    /// A number that differs after each change of the state to be stored.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All observers in their stored form, except those over connections, which do not outlive the
    /// server, and those whose addresses may be forged while they have not acknowledged a
    /// notification: each start would send another one.
    pub fn saved(&self) -> impl Iterator<Item = SavedObserver> {
        self.places.iter().filter_map(|observer| {
            if matches!(observer.remote, PeerId::Connection(_)) {
                return None;
            }
            let is_under_way = observer.under_way != InFlightNotification::Nothing;
            if observer.unverified && !observer.proven && is_under_way {
                return None;
            }
            Some(SavedObserver {
                remote: observer.remote,
                token: observer.token.clone(),
                local: self.locals.get(observer.local),
                sequence: observer.sequence - observer.sequence % STEP,
                proven: observer.proven,
                unverified: observer.unverified,
                sent: observer.sent,
                request: observer.request.clone(),
            })
        })
    }

    /// Restores an observer that was [advanced](SavedObserver::advance). It is due, since the resource may
    /// have changed meanwhile. It is left out if there are `max` already.
    pub fn restore(&mut self, now: Instant, saved: &SavedObserver, subject: Subject, max: usize) {
        let new = Registration {
            remote: saved.remote,
            token: saved.token.clone(),
            local: saved.local,
            unverified: saved.unverified,
            subject,
            request: &saved.request,
            sent: saved.sent.into(),
            // It is not stored: the server may have another version after its restart.
            format: None,
        };
        if self.register(now, &new, max).is_none() {
            return;
        }
        if let Some(index) = self.find(new.remote, &saved.token)
            && let Some(observer) = self.places.at_mut(index)
        {
            observer.sequence = saved.sequence;
            observer.proven |= saved.proven;
        }
        self.changed_for(new.remote, &saved.token);
    }
}
