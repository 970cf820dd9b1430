//! All bodies under way in Non-confirmable blocks, with bounded memory, and when each is due.

use super::download::{self, Download};
use super::part::Wish;
use super::upload::{self, State, Upload};
use crate::message::Response;
use crate::net::shared::Shared;
use crate::server::block::{Key, MAX_TRANSFERS};
use crate::server::respond::Asked;
use crate::server::transfers::Transfers;
use bytes::Bytes;
use ebbtide_core::quick::QuickParameters;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Block, Code};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

/// Who is answered, and by which socket.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) shared: Weak<Shared>,
    pub(super) asked: Asked,
}

impl Peer {
    pub(super) fn new(shared: &Arc<Shared>, asked: Asked) -> Self {
        Self { shared: Arc::downgrade(shared), asked }
    }
}

/// What there is to say, and to whom.
pub(super) type Saying = Vec<(Peer, Response)>;

/// What a block has led to.
pub(super) enum Taken {
    /// Nothing more, but for what there is to say.
    Kept,
    /// The body is whole: let the handler answer.
    Whole(Bytes),
    /// It was answered before.
    Known(Response),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Up,
    Down,
}

/// A body, and when something is due for it.
#[derive(Debug)]
struct Timed<T> {
    key: Key,
    due: Option<Instant>,
    body: T,
}

/// Bodies under way.
#[derive(Debug)]
pub(crate) struct Store {
    uploads: Transfers<Key, Timed<Upload>>,
    downloads: Transfers<Key, Timed<Download>>,
    /// When something is due for which.
    due: BTreeSet<(Instant, Way, Key)>,
    bytes: usize,
    max_bytes: usize,
    params: QuickParameters,
    /// When the task that does what is due looks again, if it runs.
    pub(super) looks: Option<Instant>,
    /// Uploads that were given up for want of room.
    pub(crate) evicted: u64,
}

impl Store {
    pub(crate) fn new(max_bytes: usize, params: QuickParameters) -> Self {
        Self {
            uploads: Transfers::new(),
            downloads: Transfers::new(),
            due: BTreeSet::new(),
            bytes: 0,
            max_bytes,
            params,
            looks: None,
            evicted: 0,
        }
    }

    /// Bytes of bodies, uploads, and downloads that are kept.
    pub(crate) fn held(&mut self, now: Instant) -> (usize, usize, usize) {
        self.expire(now);
        (self.bytes, self.uploads.len(), self.downloads.len())
    }

    /// Takes a block of a request's body.
    pub(super) fn take(
        &mut self,
        now: Instant,
        (key, peer): (Key, Peer),
        (block, size): (Block, usize),
        payload: &[u8],
        saying: &mut Saying,
    ) -> Taken {
        self.expire(now);
        if self.uploads.get(&key).is_some_and(|upload| !upload.body.fits(block, size)) {
            // Another body under a tag that was used before.
            self.drop_upload(&key);
        }
        if self.uploads.get(&key).is_none() {
            let upload = Upload::begin(now, (block, size), peer.clone(), self.params);
            if self.uploads.len() >= MAX_TRANSFERS {
                self.evict_upload(now);
            }
            self.make_room(now, upload.held());
            self.bytes += upload.held();
            self.uploads.insert(now, key, Timed { key, due: None, body: upload });
        }
        self.make_room(now, payload.len() + upload::ENTRY);
        // It may have been the only one to make room.
        let Some(Timed { body: upload, .. }) = self.uploads.get_mut(&key) else {
            saying.push((peer, Response::new(Code::SERVICE_UNAVAILABLE).max_age(10)));
            return Taken::Kept;
        };
        if let State::Done(response) = &upload.state {
            return Taken::Known(response.clone());
        }
        upload.peer = peer;
        let held = upload.take(now, block, payload);
        self.bytes += held;
        if held > 0 {
            self.uploads.advance(now, key);
        }
        self.proceed_upload(now, key, saying).map_or(Taken::Kept, Taken::Whole)
    }

    /// The handler has answered an upload.
    pub(super) fn answered(&mut self, key: &Key, response: Response) {
        if let Some(upload) = self.uploads.get_mut(key) {
            upload.body.state = State::Done(response);
        }
    }

    /// A client wants blocks of a body: false if it is not here.
    pub(super) fn wish(
        &mut self,
        now: Instant,
        (key, peer): (Key, Peer),
        wish: &Wish,
        saying: &mut Saying,
    ) -> bool {
        self.expire(now);
        let download = self.downloads.get_mut(&key).map(|download| &mut download.body);
        let Some(download) = download.filter(|download| download.szx() == wish.szx) else {
            return false;
        };
        download.on_wish(&wish.blocks, peer);
        self.downloads.advance(now, key);
        self.proceed_download(now, key, saying);
        true
    }

    /// Keeps a body, and begins to send it.
    pub(super) fn give(&mut self, now: Instant, key: Key, download: Download, saying: &mut Saying) {
        self.drop_download(&key);
        if self.downloads.len() >= MAX_TRANSFERS {
            let oldest = self.downloads.pop_oldest(now, Duration::ZERO);
            self.dropped_download(oldest);
        }
        self.make_room(now, download.held());
        self.bytes += download.held();
        self.downloads.insert(now, key, Timed { key, due: None, body: download });
        self.proceed_download(now, key, saying);
    }

    /// When something is due next.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.first().map(|(at, ..)| *at)
    }

    /// Does all that is due; when to do so again, if at all.
    pub(super) fn proceed(&mut self, now: Instant, saying: &mut Saying) -> Option<Instant> {
        while let Some(&(at, way, key)) = self.due.first() {
            if at > now {
                return Some(at);
            }
            self.due.pop_first();
            match way {
                // It becomes whole by a block, never by time.
                Way::Up => drop(self.proceed_upload(now, key, saying)),
                Way::Down => self.proceed_download(now, key, saying),
            }
        }
        None
    }

    fn proceed_upload(&mut self, now: Instant, key: Key, saying: &mut Saying) -> Option<Bytes> {
        let upload = self.uploads.get_mut(&key)?;
        loop {
            match upload.body.proceed(now) {
                upload::Step::Say(response) => saying.push((upload.body.peer.clone(), response)),
                upload::Step::Whole(body, freed) => {
                    self.bytes -= freed;
                    upload.wait(&mut self.due, Way::Up, None);
                    return Some(body);
                }
                upload::Step::Wait(at) => {
                    upload.wait(&mut self.due, Way::Up, at);
                    return None;
                }
                upload::Step::Drop => {
                    self.drop_upload(&key);
                    return None;
                }
            }
        }
    }

    fn proceed_download(&mut self, now: Instant, key: Key, saying: &mut Saying) {
        let Some(download) = self.downloads.get_mut(&key) else { return };
        loop {
            match download.body.proceed(now) {
                download::Step::Say(said) => saying.push(*said),
                download::Step::Wait(at) => {
                    download.wait(&mut self.due, Way::Down, at);
                    return;
                }
            }
        }
    }

    /// Gives up what has not advanced for longest until so many bytes find room: downloads first,
    /// since the handler can be asked again.
    fn make_room(&mut self, now: Instant, bytes: usize) {
        while self.bytes + bytes > self.max_bytes {
            if self.downloads.len() > 0 {
                let oldest = self.downloads.pop_oldest(now, Duration::ZERO);
                self.dropped_download(oldest);
            } else if self.uploads.len() > 0 {
                self.evict_upload(now);
            } else {
                return;
            }
        }
    }

    fn evict_upload(&mut self, now: Instant) {
        let oldest = self.uploads.pop_oldest(now, Duration::ZERO);
        self.evicted += 1;
        self.dropped_upload(oldest);
    }

    /// NON_PARTIAL_TIMEOUT (RFC 9177 sections 4.3 and 7.2).
    fn expire(&mut self, now: Instant) {
        let lifetime = self.params.non_partial_timeout();
        while let Some(upload) = self.uploads.pop_oldest(now, lifetime) {
            self.dropped_upload(Some(upload));
        }
        while let Some(download) = self.downloads.pop_oldest(now, lifetime) {
            self.dropped_download(Some(download));
        }
    }

    fn drop_upload(&mut self, key: &Key) {
        let upload = self.uploads.remove(key);
        self.dropped_upload(upload);
    }

    fn drop_download(&mut self, key: &Key) {
        let download = self.downloads.remove(key);
        self.dropped_download(download);
    }

    fn dropped_upload(&mut self, upload: Option<Timed<Upload>>) {
        let Some(mut upload) = upload else { return };
        upload.wait(&mut self.due, Way::Up, None);
        self.bytes -= upload.body.held();
    }

    fn dropped_download(&mut self, download: Option<Timed<Download>>) {
        let Some(mut download) = download else { return };
        download.wait(&mut self.due, Way::Down, None);
        self.bytes -= download.body.held();
    }
}

impl<T> Timed<T> {
    /// Something is due at another time, or nothing.
    fn wait(&mut self, due: &mut BTreeSet<(Instant, Way, Key)>, way: Way, at: Option<Instant>) {
        if let Some(old) = core::mem::replace(&mut self.due, at) {
            due.remove(&(old, way, self.key));
        }
        due.extend(at.map(|at| (at, way, self.key)));
    }
}
