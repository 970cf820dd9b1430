//! Timers of bodies in Non-confirmable blocks (RFC 9177): they send the next set of blocks, or
//! request the missing ones.

use super::carrier::Carrier;
use super::inner::{Inner, Service};
use ebbtide_core::session::server::Outgoing;
use ebbtide_core::time::Instant;
use std::sync::{Arc, PoisonError, Weak};

impl Service {
    /// Starts the task that handles the timers of all bodies, unless it runs. It ends when none is
    /// left.
    pub(super) fn pace(&self) {
        let Some(due) = self.session().poll_timeout() else { return };
        let mut looks = self.inner.pace.lock().unwrap_or_else(PoisonError::into_inner);
        match *looks {
            Some(looks) if looks <= due => return,
            Some(_) => self.inner.earlier.notify_one(),
            None => {
                tokio::spawn(pace(Arc::downgrade(&self.inner), due));
            }
        }
        *looks = Some(due);
    }

    /// Handles the timers that are due, and returns the next instant.
    fn proceed(&self) -> Option<Instant> {
        let due = self.session().handle_timeout(self.clock().now());
        let next = {
            let mut looks = self.inner.pace.lock().unwrap_or_else(PoisonError::into_inner);
            *looks = self.session().poll_timeout();
            *looks
        };
        for finished in due {
            // Each block leaves by the socket at which its request arrived, if that still exists.
            let number = finished.requester().transport;
            let socket = {
                let sockets = self.inner.sockets.lock().unwrap_or_else(PoisonError::into_inner);
                sockets.get(&number).and_then(Weak::upgrade)
            };
            if let Some(shared) = socket {
                let outgoing = Outgoing::One(finished);
                Carrier::with(&*shared, |state, now| self.send_all(&shared, state, now, &outgoing));
            }
        }
        next
    }
}

/// Handles the timers until none is due. The weak reference does not keep the server alive.
async fn pace(inner: Weak<Inner>, mut due: Instant) {
    loop {
        let Some((clock, earlier)) = inner
            .upgrade()
            .map(|inner| (Service { inner: inner.clone() }.clock(), inner.earlier.clone()))
        else {
            return;
        };
        let _ = tokio::time::timeout_at(clock.to_tokio(due), earlier.notified()).await;
        let Some(inner) = inner.upgrade() else { return };
        match (Service { inner }).proceed() {
            Some(next) => due = next,
            None => return,
        }
    }
}
