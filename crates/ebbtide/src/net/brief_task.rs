//! A future that the task of a socket polls, and its waker.

use super::brief::{BriefTask, PlaceId};
use super::shared::Shared;
use super::socket_state::SocketState;
use ebbtide_core::time::Instant;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

/// Work whose polls are brief. The socket is not locked when it is called.
pub(crate) trait BriefWork: Send + 'static {
    /// Goes on with the work. Not called again after its end.
    fn poll(&mut self, socket: &Arc<Shared>, now: Instant, cx: &mut Context<'_>) -> Poll<()>;

    /// It has taken as long as it may without this call, which comes once, before a poll.
    fn on_late(&mut self, socket: &Arc<Shared>, now: Instant);
}

struct Task<W> {
    socket: Weak<Shared>,
    place: PlaceId,
    is_woken: AtomicBool,
    /// `None` after its end.
    work: Mutex<Option<W>>,
}

impl<W> core::fmt::Debug for Task<W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Task").field("place", &self.place).finish_non_exhaustive()
    }
}

impl<W> Task<W> {
    fn lock(&self) -> MutexGuard<'_, Option<W>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: BriefWork> BriefTask for Task<W> {
    fn poll(self: Arc<Self>, now: Instant) -> Option<PlaceId> {
        self.is_woken.store(false, Ordering::Release);
        let place = self.place;
        let mut work = self.lock();
        let Some(running) = &mut *work else { return Some(place) };
        let socket = &self.socket.upgrade()?;
        let waker = Waker::from(self.clone());
        let polled = running.poll(socket, now, &mut Context::from_waker(&waker));
        if polled.is_pending() {
            return None;
        }
        let ended = work.take();
        drop(work);
        drop(ended);
        Some(place)
    }

    fn on_late(&self, now: Instant) {
        if let (Some(work), Some(socket)) = (&mut *self.lock(), self.socket.upgrade()) {
            work.on_late(&socket, now);
        }
    }

    fn cancel(&self) {
        let ended = self.work.try_lock().ok().and_then(|mut work| work.take());
        drop(ended);
    }
}

impl<W: BriefWork> Wake for Task<W> {
    fn wake(self: Arc<Self>) {
        if self.is_woken.swap(true, Ordering::AcqRel) {
            return;
        }
        let Some(socket) = self.socket.upgrade() else { return };
        let driver = {
            let mut state = socket.lock();
            state.brief.push_woken(self);
            state.driver.take()
        };
        driver.into_iter().for_each(Waker::wake);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.clone().wake();
    }
}

impl Shared {
    /// Begins work that is late at this instant, and polls it. `prepare` creates it while the socket is locked.
    pub(crate) fn begin_brief<W: BriefWork>(
        self: &Arc<Self>,
        now: Instant,
        late: Instant,
        prepare: impl FnOnce(&mut SocketState) -> W,
    ) {
        let task = {
            let mut state = self.lock();
            let work = prepare(&mut state);
            let (socket, work) = (Arc::downgrade(self), Mutex::new(Some(work)));
            let is_woken = AtomicBool::new(false);
            state.brief.begin(late, |place| Arc::new(Task { socket, place, is_woken, work }))
        };
        if let Some(over) = task.poll(now) {
            self.lock().brief.end(over);
        }
    }
}
