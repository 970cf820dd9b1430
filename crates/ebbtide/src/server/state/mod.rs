//! The state of a server that survives a restart: observers, sessions over DTLS, verified
//! addresses, and the position of message IDs.

mod journal;
mod saved;
mod stored_map;

pub(super) use saved::SavedState;
pub use stored_map::StoredMap;

use super::inner::Service;
use super::observe::Observed as _;
use crate::net::clock::unix_millis;
use crate::net::shared::Shared;
use crate::net::socket_state::SocketState;
use crate::state_store::StateStore;
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::MessageIdStart;
use ebbtide_core::session::server::SharedState;
use ebbtide_core::time::Instant;
use journal::{Entries, Journal};
use saved::SavedSessions;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often the state is checked for changes.
const EVERY: Duration = Duration::from_millis(100);
/// How long to wait after a state could not be stored.
const RETRY: Duration = Duration::from_secs(1);

impl Service {
    /// Stores the state of a server that receives nothing any more, and ends its sessions without a
    /// word. It takes until that is possible, and forever in a server without a state.
    pub(super) async fn store_last(&self) {
        self.inner.last_write.done().await;
    }
}

/// A state that was loaded and restored.
pub(super) struct RestoredState {
    start: MessageIdStart,
    /// The entries in the store.
    stored: Entries,
    sessions: SavedSessions,
}

/// Restores a state, before the sockets are driven.
pub(super) fn restore(
    service: &Service,
    sockets: &[Arc<Shared>],
    mut saved: SavedState,
) -> RestoredState {
    let stored = saved.entries_at_start();
    let (now, unix) = (service.clock().now(), unix_millis());
    service.session().tables().with(|tables| {
        for (ip, at) in &saved.verified {
            tables.restore_verified(now, *ip, Duration::from_millis(unix.saturating_sub(*at)));
        }
    });
    let mut lost = 0;
    saved.sessions.retain(|(socket, number), stored| {
        let is_restored = sockets.get(*socket as usize).is_some_and(|shared| {
            let mut state = shared.lock();
            state.dtls.as_mut().is_some_and(|sessions| sessions.restore(now, *number, stored))
        });
        lost += u32::from(!is_restored);
        is_restored
    });
    if lost > 0 {
        tracing::warn!(target: "ebbtide::state", lost, "stored DTLS sessions of peers that are not served any more");
    }
    for shared in sockets {
        if let Some(sessions) = &mut shared.lock().dtls {
            sessions.note_changes();
        }
    }
    let max = service.config().max_observers;
    for (socket, observer) in &saved.observers {
        let Some(shared) = sockets.get(*socket as usize) else { continue };
        if !is_stored(*socket, observer.remote, &saved.sessions) {
            continue;
        }
        let Some(subject) = service.subject_of(&observer.request) else {
            tracing::warn!(target: "ebbtide::state", peer = ?observer.remote, "what it observes is not there any more");
            continue;
        };
        subject.attach(shared);
        let name = subject.name();
        shared.change_observers(&mut |observers| observers.restore(now, observer, name, max));
    }
    let start = MessageIdStart { key: saved.key, restarts: saved.restarts };
    RestoredState { start, stored, sessions: saved.reserved_sessions() }
}

/// Whether a peer outlives the program.
fn is_stored(socket: u32, peer: PeerId, sessions: &SavedSessions) -> bool {
    match peer {
        PeerId::Address(_) => true,
        PeerId::Session(session) => sessions.contains_key(&(socket, session.number())),
        PeerId::Connection(_) => false,
    }
}

/// A number that differs after a change of observers, and the number of verified addresses.
type Version = (u64, usize);

/// Collects the state to store.
struct Collector {
    service: Service,
    sockets: Vec<Weak<Shared>>,
    start: MessageIdStart,
    sessions: SavedSessions,
    /// Whether sessions have changed since they were stored.
    is_changed: bool,
    before: Option<Version>,
}

impl Collector {
    /// The state, if it has changed or if it is asked for the last time.
    fn collect(&mut self, is_last: bool) -> Option<(Version, SavedState)> {
        let live: Vec<_> = self.sockets.iter().map(Weak::upgrade).collect();
        let (now, unix) = (self.service.clock().now(), unix_millis());
        let at = |at: Instant| unix.saturating_sub(now.saturating_since(at).as_millis() as u64);
        let verified: Vec<_> = self
            .service
            .session()
            .tables()
            .with(|tables| tables.verified().map(|(ip, since)| (ip, at(since))).collect());
        let mut version = (0, verified.len());
        for (number, shared) in (0..).zip(&live) {
            let Some(shared) = shared else { continue };
            let mut state = shared.lock();
            version.0 += state.observers.version();
            self.take_changed(number, &mut state);
        }
        if !is_last && !self.is_changed && self.before == Some(version) {
            return None;
        }
        let mut observers = Vec::new();
        for (number, shared) in (0..).zip(&live) {
            let Some(shared) = shared else { continue };
            let mut state = shared.lock();
            // An observer and its session are stored together.
            match is_last {
                true => self.take_all(number, &mut state),
                false => self.take_changed(number, &mut state),
            }
            let saved = state.observers.saved();
            let kept = saved.filter(|observer| is_stored(number, observer.remote, &self.sessions));
            observers.extend(kept.map(|observer| (number, observer)));
        }
        let MessageIdStart { key, restarts } = self.start;
        let sessions = core::mem::take(&mut self.sessions);
        Some((version, SavedState { key, restarts, verified, observers, sessions }))
    }

    fn take_changed(&mut self, socket: u32, state: &mut SocketState) {
        let Some(sessions) = &mut state.dtls else { return };
        for (number, stored) in sessions.take_changed() {
            let name = (socket, number);
            self.is_changed |= match stored {
                Some(stored) => {
                    self.sessions.insert(name, stored);
                    true
                }
                None => self.sessions.remove(&name).is_some(),
            };
        }
    }

    fn take_all(&mut self, socket: u32, state: &mut SocketState) {
        let Some(sessions) = &mut state.dtls else { return };
        self.sessions.retain(|(of, _), _| *of != socket);
        let all = sessions.take_all().into_iter();
        self.sessions.extend(all.map(|(number, stored)| ((socket, number), stored)));
    }
}

/// Stores changes until the last socket is closed.
pub(super) async fn store_changes(
    service: Service,
    sockets: Vec<Weak<Shared>>,
    store: Arc<dyn StateStore>,
    restored: RestoredState,
) {
    let RestoredState { start, stored, sessions } = restored;
    let mut journal = Some(Journal::new(store, &stored));
    drop(stored);
    let mut failures = 0u32;
    let inner = service.inner.clone();
    let last = &inner.last_write;
    let mut collector =
        Collector { service, sockets, start, sessions, is_changed: true, before: None };
    loop {
        let is_last = last.is_asked();
        let is_over = collector.sockets.iter().all(|shared| shared.strong_count() == 0);
        if is_over && !is_last {
            return;
        }
        let changed = collector.collect(is_last);
        // It is taken for a change alone.
        if let Some((version, saved)) = changed
            && let Some(mut writer) = journal.take()
        {
            let writing = tokio::task::spawn_blocking(move || {
                let written = writer.write(&saved.entries());
                (writer, written, saved.sessions)
            });
            // The thread has panicked, or the runtime ends.
            let Ok((writer, written, sessions)) = writing.await else { return };
            journal = Some(writer);
            collector.sessions = sessions;
            match written {
                Ok(()) => {
                    (collector.before, collector.is_changed) = (Some(version), false);
                    if failures > 0 {
                        tracing::warn!(target: "ebbtide::state", failures, "the state is stored again");
                    }
                    failures = 0;
                    if is_last {
                        last.finish();
                        return;
                    }
                }
                Err(error) => {
                    inner.state_errors.fetch_add(1, Ordering::Relaxed);
                    if failures.is_multiple_of(60) {
                        tracing::error!(target: "ebbtide::state", %error, "the state cannot be stored; it is tried again every second");
                    }
                    failures = failures.saturating_add(1);
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        let _ = tokio::time::timeout(EVERY, last.asked()).await;
    }
}
