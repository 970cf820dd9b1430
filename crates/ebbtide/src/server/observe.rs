//! Observers (RFC 7641): who is told what when something changes.

use crate::message::Response;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::Token;
use hashbrown::HashTable;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Events that wait for one observer; beyond that the oldest is dropped, and counted.
const MAX_EVENTS: usize = 16;
/// Confirmable notifications under way from one socket: a change that very many observe must neither
/// take all exchanges nor overflow the queues on the way.
const MAX_UNDER_WAY: usize = 4096;
/// Of these, those to observers that have never acknowledged one: who registers the addresses of
/// others cannot hold up those that are there.
const MAX_UNPROVEN: usize = 1024;
/// A Confirmable notification is due at least this often (RFC 7641 section 4.5).
const CONFIRM_EVERY: Duration = Duration::from_secs(24 * 3600);

/// What clients observe: a resource's state, or events that it has.
///
/// Cloning it is cheap, and all clones are the same subject.
///
/// ```
/// use ebbtide::{Response, server::{Call, Router, Subject, get}};
///
/// let temperature = Subject::new();
/// let router = Router::new().route(
///     "/temperature",
///     get(|_: &Call<'_>| Response::content("22.3 C")).observable(&temperature),
/// );
/// // Whenever it has changed; the handler of GET says what it is now.
/// temperature.changed();
/// ```
#[derive(Clone, Debug)]
pub struct Subject {
    inner: Arc<SubjectInner>,
}

#[derive(Debug)]
struct SubjectInner {
    id: u32,
    confirmable: bool,
    /// How often observers have been told something.
    changes: AtomicU64,
    sockets: Mutex<Vec<Weak<dyn Observed>>>,
}

/// What has observers: a socket, or a connection.
pub(crate) trait Observed: core::fmt::Debug + Send + Sync {
    /// Changes who observes.
    fn observers(&self, change: &mut dyn FnMut(&mut Observers));

    /// Changes what they are to be told, and sees to it that they are.
    fn tell(&self, change: &mut dyn FnMut(&mut Observers));
}

static NEXT_SUBJECT: AtomicU32 = AtomicU32::new(1);

impl Default for Subject {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject {
    /// A subject whose notifications are Confirmable: they arrive, or the observer is removed.
    #[must_use]
    pub fn new() -> Self {
        Self::with(true)
    }

    /// A subject whose notifications are Non-confirmable, but for those that congestion control
    /// makes Confirmable to measure the path, one a day, and the first to an observer whose address
    /// may be forged (RFC 7641 sections 4.5 and 7).
    #[must_use]
    pub fn non_confirmable() -> Self {
        Self::with(false)
    }

    fn with(confirmable: bool) -> Self {
        let id = NEXT_SUBJECT.fetch_add(1, Ordering::Relaxed);
        let (changes, sockets) = (AtomicU64::new(0), Mutex::default());
        Self { inner: Arc::new(SubjectInner { id, confirmable, changes, sockets }) }
    }

    /// The state changed: every observer is sent what the GET handler then says. Who has not
    /// acknowledged the last notification gets one for all changes since, when it has: the latest
    /// state counts (RFC 7641 section 1.3).
    pub fn changed(&self) {
        self.inner.changes.fetch_add(1, Ordering::SeqCst);
        self.each(|observers| observers.changed(self.inner.id));
    }

    /// Something happened: every observer is sent `notification`, one after the other; at most
    /// sixteen wait for one observer.
    pub fn event(&self, notification: &Response) {
        self.inner.changes.fetch_add(1, Ordering::SeqCst);
        self.each(|observers| observers.event(self.inner.id, notification));
    }

    /// How many observers there are, at all sockets.
    #[must_use]
    pub fn observers(&self) -> usize {
        let mut count = 0;
        self.each(|observers| count += observers.of(self.inner.id));
        count
    }

    fn each(&self, mut tell: impl FnMut(&mut Observers)) {
        let mut sockets = self.inner.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.retain(|socket| socket.strong_count() > 0);
        let live: Vec<_> = sockets.iter().filter_map(Weak::upgrade).collect();
        drop(sockets);
        for shared in live {
            shared.tell(&mut tell);
        }
    }

    pub(crate) fn attach<O: Observed + 'static>(&self, shared: &Arc<O>) {
        let mut sockets = self.inner.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let address = Arc::as_ptr(shared).cast::<()>();
        // Connections come and go.
        sockets.retain(|known| known.strong_count() > 0);
        if !sockets.iter().any(|known| known.as_ptr().cast::<()>() == address) {
            let shared: Arc<dyn Observed> = shared.clone();
            sockets.push(Arc::downgrade(&shared));
        }
    }

    /// How often observers have been told something: two that are the same, and nothing was between.
    pub(crate) fn changes(&self) -> u64 {
        self.inner.changes.load(Ordering::SeqCst)
    }

    pub(crate) fn id(&self) -> u32 {
        self.inner.id
    }

    pub(crate) fn is_confirmable(&self) -> bool {
        self.inner.confirmable
    }
}

#[expect(clippy::struct_excessive_bools, reason = "independent facts of one observer, a byte each")]
/// One observer: an endpoint and a token (RFC 7641 section 4.1).
#[derive(Debug)]
struct Observer {
    remote: SocketAddr,
    token: Token,
    local: Option<IpAddr>,
    subject: u32,
    /// The request that registered it: it is answered anew with each notification.
    request: Arc<[u8]>,
    /// Of the last notification; 24 bits count.
    sequence: u32,
    confirmable: bool,
    /// Whether its address may be forged.
    suspect: bool,
    /// Whether it has acknowledged a notification: then it is there, and wants them.
    proven: bool,
    /// Whether a notification is under way, and whether that is a Confirmable one.
    busy: bool,
    busy_confirmable: bool,
    /// Whether the state has changed since the last notification.
    dirty: bool,
    /// Whether it is in the queue of those that are to be told.
    queued: bool,
    confirmed: Instant,
    #[expect(clippy::box_collection, reason = "most observers have none: 8 bytes instead of 32")]
    events: Option<Box<VecDeque<Response>>>,
}

/// A notification to be made.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) observer: u32,
    pub(crate) remote: SocketAddr,
    pub(crate) token: Token,
    pub(crate) local: Option<IpAddr>,
    pub(crate) request: Arc<[u8]>,
    pub(crate) confirmable: bool,
    /// Whether the observer has acknowledged a notification before.
    pub(crate) proven: bool,
    pub(crate) sequence: u32,
    /// What to say; the handler's answer if nothing.
    pub(crate) event: Option<Response>,
}

/// The observers of one socket.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    places: Vec<Option<Observer>>,
    free: Vec<u32>,
    by_key: HashTable<u32>,
    hasher: RandomState,
    /// Those that are to be told: proven ones first.
    due: VecDeque<u32>,
    due_unproven: VecDeque<u32>,
    /// Confirmable notifications under way, and those to observers that are not proven.
    under_way: usize,
    unproven_under_way: usize,
    /// Events that an observer was too slow for.
    pub(crate) dropped_events: u64,
    refused: u64,
    vanished: u64,
}

impl Observers {
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Registrations refused, and observers that did not acknowledge a notification.
    pub(crate) fn refusals(&self) -> (u64, u64) {
        (self.refused, self.vanished)
    }

    /// Whether there is somebody to be told who may be told now.
    pub(crate) fn any_due(&self) -> bool {
        self.under_way < MAX_UNDER_WAY
            && (!self.due.is_empty()
                || (self.unproven_under_way < MAX_UNPROVEN && !self.due_unproven.is_empty()))
    }

    fn hash(&self, remote: SocketAddr, token: Token) -> u64 {
        self.hasher.hash_one((remote, token))
    }

    fn find(&self, remote: SocketAddr, token: Token) -> Option<u32> {
        let is = |index: &u32| {
            let place = self.places.get(*index as usize);
            place.and_then(Option::as_ref).is_some_and(|o| o.remote == remote && o.token == token)
        };
        self.by_key.find(self.hash(remote, token), is).copied()
    }

    /// Registers an observer, or registers it anew, and says its sequence number. `None` if there
    /// is no room: it is answered as if it had not asked.
    pub(crate) fn register(
        &mut self,
        now: Instant,
        (remote, token, local, suspect): (SocketAddr, Token, Option<IpAddr>, bool),
        subject: &Subject,
        request: &[u8],
        max: usize,
    ) -> Option<u32> {
        if let Some(index) = self.find(remote, token) {
            let observer = self.places.get_mut(index as usize)?.as_mut()?;
            observer.subject = subject.id();
            observer.request = request.into();
            observer.sequence = observer.sequence.wrapping_add(1);
            return Some(observer.sequence);
        }
        if self.len() >= max {
            self.refused += 1;
            return None;
        }
        let sequence = 2;
        let observer = Observer {
            remote,
            token,
            local,
            subject: subject.id(),
            request: request.into(),
            sequence,
            confirmable: subject.is_confirmable(),
            suspect,
            proven: false,
            busy: false,
            busy_confirmable: false,
            dirty: false,
            queued: false,
            confirmed: now,
            events: None,
        };
        let index = match self.free.pop() {
            Some(index) => {
                *self.places.get_mut(index as usize)? = Some(observer);
                index
            }
            None => {
                let len = self.places.len();
                if len == self.places.capacity() {
                    // By an eighth: doubling would leave up to half of so much memory unused.
                    self.places.reserve_exact(len / 8 + 16);
                }
                self.places.push(Some(observer));
                len as u32
            }
        };
        let (places, hasher) = (&self.places, &self.hasher);
        self.by_key.insert_unique(self.hash(remote, token), index, |&other| {
            let other = places.get(other as usize).and_then(Option::as_ref);
            other.map_or(0, |other| hasher.hash_one((other.remote, other.token)))
        });
        Some(sequence)
    }

    pub(crate) fn deregister(&mut self, remote: SocketAddr, token: Token) {
        if let Some(index) = self.find(remote, token) {
            self.remove(index, remote);
        }
    }

    fn changed(&mut self, subject: u32) {
        for (index, place) in self.places.iter_mut().enumerate() {
            if let Some(observer) = place.as_mut().filter(|observer| observer.subject == subject) {
                observer.dirty = true;
                let due = if observer.proven { &mut self.due } else { &mut self.due_unproven };
                enqueue(due, observer, index as u32);
            }
        }
    }

    fn event(&mut self, subject: u32, notification: &Response) {
        for (index, place) in self.places.iter_mut().enumerate() {
            if let Some(observer) = place.as_mut().filter(|observer| observer.subject == subject) {
                let events = observer.events.get_or_insert_default();
                if events.len() >= MAX_EVENTS {
                    events.pop_front();
                    self.dropped_events += 1;
                }
                events.push_back(notification.clone());
                let due = if observer.proven { &mut self.due } else { &mut self.due_unproven };
                enqueue(due, observer, index as u32);
            }
        }
    }

    fn of(&self, subject: u32) -> usize {
        self.places.iter().flatten().filter(|observer| observer.subject == subject).count()
    }

    /// The next notification to be made; the observer is busy from now on.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        while self.any_due() {
            let index = self.due.pop_front().or_else(|| self.due_unproven.pop_front())?;
            let Some(Some(observer)) = self.places.get_mut(index as usize) else { continue };
            observer.queued = false;
            let event = observer.events.as_mut().and_then(|events| events.pop_front());
            if observer.busy || (event.is_none() && !observer.dirty) {
                continue;
            }
            if event.is_none() {
                observer.dirty = false;
            }
            observer.busy = true;
            observer.sequence = observer.sequence.wrapping_add(1) & 0xff_ffff;
            // RFC 7641 section 7: without a sign of interest there are no further notifications.
            let confirmable = observer.confirmable
                || (observer.suspect && !observer.proven)
                || now.saturating_since(observer.confirmed) >= CONFIRM_EVERY - SLACK;
            if confirmable {
                observer.confirmed = now;
                self.under_way += 1;
                self.unproven_under_way += usize::from(!observer.proven);
            }
            observer.busy_confirmable = confirmable;
            return Some(Due {
                observer: index,
                remote: observer.remote,
                token: observer.token,
                local: observer.local,
                request: observer.request.clone(),
                confirmable,
                proven: observer.proven,
                sequence: observer.sequence,
                event,
            });
        }
        None
    }

    /// A Confirmable notification was acknowledged: the next one may follow.
    pub(crate) fn acknowledged(&mut self, index: u32) {
        self.released(index);
        if let Some(Some(observer)) = self.places.get_mut(index as usize) {
            observer.proven = true;
        }
        self.arrived(index);
    }

    /// As far as one can know the notification has arrived: the next one may follow.
    pub(crate) fn arrived(&mut self, index: u32) {
        self.released(index);
        let Some(Some(observer)) = self.places.get_mut(index as usize) else { return };
        let events = observer.events.as_ref().is_some_and(|events| !events.is_empty());
        if observer.dirty || events {
            let due = if observer.proven { &mut self.due } else { &mut self.due_unproven };
            enqueue(due, observer, index);
        }
    }

    /// The notification found no room: it is made again later.
    pub(crate) fn postponed(&mut self, index: u32, event: Option<Response>) {
        if let Some(Some(observer)) = self.places.get_mut(index as usize) {
            match event {
                None => observer.dirty = true,
                Some(event) => observer.events.get_or_insert_default().push_front(event),
            }
        }
        self.arrived(index);
    }

    /// The observer at `remote` did not acknowledge a notification: it is gone (RFC 7641 section
    /// 4.5).
    pub(crate) fn lost(&mut self, index: u32, remote: SocketAddr) {
        self.vanished += 1;
        self.remove(index, remote);
    }

    /// The observer's notification is no longer under way.
    fn released(&mut self, index: u32) {
        let Some(Some(observer)) = self.places.get_mut(index as usize) else { return };
        if std::mem::take(&mut observer.busy) && std::mem::take(&mut observer.busy_confirmable) {
            self.under_way -= 1;
            self.unproven_under_way -= usize::from(!observer.proven);
        }
    }

    /// Forgets the observer at `remote`; its place may be another one's by now.
    pub(crate) fn remove(&mut self, index: u32, remote: SocketAddr) {
        let Some(Some(observer)) = self.places.get(index as usize) else { return };
        if observer.remote != remote {
            return;
        }
        self.released(index);
        let Some(observer) = self.places.get_mut(index as usize).and_then(Option::take) else {
            return;
        };
        let hash = self.hash(observer.remote, observer.token);
        if let Ok(entry) = self.by_key.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
        self.free.push(index);
    }
}

/// So that a Confirmable notification is not a day and a moment after the last.
const SLACK: Duration = Duration::from_secs(3600);

fn enqueue(due: &mut VecDeque<u32>, observer: &mut Observer, index: u32) {
    if !observer.queued && !observer.busy {
        observer.queued = true;
        due.push_back(index);
    }
}
