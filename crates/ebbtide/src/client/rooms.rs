//! Where requests wait for room at an endpoint that has enough messages for a peer.

use ebbtide_core::PeerId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long the first request in the line waits for an exchange to end before it looks for room
/// anyway: congestion control may have let messages leave.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    rooms: Mutex<BTreeMap<PeerId, Arc<Room>>>,
    /// How many there are: mostly none, which costs no lock.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Room {
    /// One looks for room, the others wait behind it in the order in which they came.
    turn: tokio::sync::Mutex<()>,
    left: Notify,
    visitors: AtomicUsize,
}

/// A request that waits for room. The last one that leaves removes the room of its peer.
struct WaitingRequest<'r> {
    rooms: &'r Rooms,
    peer: PeerId,
    room: Arc<Room>,
}

impl Rooms {
    /// Whether others wait for room to send to this peer: they go first.
    pub(crate) fn has(&self, peer: PeerId) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.lock().contains_key(&peer)
    }

    /// An exchange with this peer has ended.
    pub(crate) fn left(&self, peer: PeerId) {
        if self.count.load(Ordering::Acquire) > 0
            && let Some(room) = self.lock().get(&peer)
        {
            room.left.notify_one();
        }
    }

    /// Waits until `enter` finds room, which it says by something other than `None`. Dropping the future
    /// gives the place in the line to the next one.
    pub(crate) async fn wait<R>(&self, peer: PeerId, mut enter: impl FnMut() -> Option<R>) -> R {
        let visit = self.visit(peer);
        let room = &visit.room;
        let _turn = room.turn.lock().await;
        loop {
            let left = room.left.notified();
            if let Some(entered) = enter() {
                return entered;
            }
            // What ended since the look above has left its notice.
            let _ = tokio::time::timeout(LOOK_AGAIN, left).await;
        }
    }

    fn visit(&self, peer: PeerId) -> WaitingRequest<'_> {
        let mut rooms = self.lock();
        let room = rooms.entry(peer).or_default().clone();
        // Counted under the lock of the map.
        room.visitors.fetch_add(1, Ordering::Relaxed);
        self.count.store(rooms.len(), Ordering::Release);
        WaitingRequest { rooms: self, peer, room }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<PeerId, Arc<Room>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        let mut rooms = self.rooms.lock();
        if self.room.visitors.fetch_sub(1, Ordering::Relaxed) == 1 {
            rooms.remove(&self.peer);
        }
        self.rooms.count.store(rooms.len(), Ordering::Release);
    }
}
