//! What is due for bodies without anything arriving: the next set, a request for what is missing.

use super::store::Saying;
use crate::net::clock::Clock;
use crate::server::respond::respond;
use crate::server::service::{Inner, Service};
use ebbtide_core::time::Instant;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

impl Service {
    /// Sees to it that what is due is done: by one task for all bodies, which ends when nothing is.
    pub(super) fn pace(&self) {
        let mut quick = self.quick();
        let Some(due) = quick.due() else { return };
        match quick.looks {
            Some(looks) if looks <= due => {}
            Some(_) => self.inner.earlier.notify_one(),
            None => {
                let alive = Arc::downgrade(&self.inner);
                let earlier = self.inner.earlier.clone();
                tokio::spawn(pace(alive, self.clock(), earlier, due));
            }
        }
        quick.looks = Some(quick.looks.map_or(due, |looks| looks.min(due)));
    }

    /// Does what is due; when there is more to do.
    fn proceed(&self) -> Option<Instant> {
        let mut saying = Saying::new();
        let next = {
            let mut quick = self.quick();
            let next = quick.proceed(self.clock().now(), &mut saying);
            quick.looks = next;
            next
        };
        say(saying);
        next
    }
}

/// Keeps no server alive that nobody else does.
async fn pace(inner: Weak<Inner>, clock: Clock, earlier: Arc<Notify>, mut due: Instant) {
    loop {
        let _ = tokio::time::timeout_at(clock.to_tokio(due), earlier.notified()).await;
        let Some(inner) = inner.upgrade() else { return };
        match (Service { inner }).proceed() {
            Some(next) => due = next,
            None => return,
        }
    }
}

/// Sends responses, each by the socket that its request came by, if that is still there.
pub(super) fn say(saying: Saying) {
    for (peer, response) in saying {
        if let Some(shared) = peer.shared.upgrade() {
            shared.with(|state, now| respond(state, now, &peer.asked, &response));
        }
    }
}
