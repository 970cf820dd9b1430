//! All bodies under way in Non-confirmable blocks, with bounded memory, and when each is due.

use super::download::{self, Download};
use super::part::Wish;
use super::upload::{self, State, Upload};
use crate::message::Response;
use crate::net::shared::Shared;
use crate::server::block::Key;
use crate::server::bounded::Bounded;
use crate::server::respond::Asked;
use bytes::Bytes;
use ebbtide_core::q_block::QBlockParameters;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Block;
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

/// Bodies under way.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) bodies: Bounded<Upload, Download>,
    params: QBlockParameters,
    /// When the task that does what is due looks again, if it runs.
    pub(super) looks: Option<Instant>,
}

impl Store {
    pub(crate) fn new(max_bytes: usize, params: QBlockParameters) -> Self {
        // RFC 9177 sections 4.3 and 7.2.
        let lifetime = params.non_partial_timeout();
        Self { bodies: Bounded::new(max_bytes, lifetime), params, looks: None }
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
        self.bodies.expire(now);
        let uploads = &mut self.bodies.uploads;
        if uploads.get(&key).is_none_or(|upload| !upload.fits(block, size)) {
            // Another body may be there, under a tag that was used before.
            let upload = Upload::begin(now, (block, size), peer.clone(), self.params);
            let held = upload.held();
            self.bodies.begin_upload(now, key, upload, held);
        }
        let Some(upload) = self.bodies.uploads.get_mut(&key) else { return Taken::Kept };
        if let State::Done(response) = &upload.state {
            return Taken::Known(response.clone());
        }
        upload.peer = peer;
        let held = upload.take(now, block, payload);
        if held > 0 {
            self.bodies.grow_upload(now, key, held);
        }
        self.proceed_upload(now, key, saying).map_or(Taken::Kept, Taken::Whole)
    }

    /// The handler has answered an upload.
    pub(super) fn answered(&mut self, key: &Key, response: Response) {
        if let Some(upload) = self.bodies.uploads.get_mut(key) {
            upload.state = State::Done(response);
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
        self.bodies.expire(now);
        let download = self.bodies.downloads.get_mut(&key);
        let Some(download) = download.filter(|download| download.szx() == wish.szx) else {
            return false;
        };
        download.on_wish(&wish.blocks, peer);
        self.bodies.downloads.advance(now, key);
        self.proceed_download(now, key, saying);
        true
    }

    /// Keeps a body, and begins to send it, unless it is longer than there is room.
    pub(super) fn give(&mut self, now: Instant, key: Key, download: Download, saying: &mut Saying) {
        let held = download.held();
        self.bodies.keep_download(now, key, download, held);
        self.proceed_download(now, key, saying);
    }

    /// When something is due next.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.bodies.uploads.due(), self.bodies.downloads.due()].into_iter().flatten().min()
    }

    /// Does all that is due; when to do so again, if at all.
    pub(super) fn proceed(&mut self, now: Instant, saying: &mut Saying) -> Option<Instant> {
        while let Some(key) = self.bodies.uploads.pop_due(now) {
            // It becomes whole by a block, never by time.
            drop(self.proceed_upload(now, key, saying));
        }
        while let Some(key) = self.bodies.downloads.pop_due(now) {
            self.proceed_download(now, key, saying);
        }
        self.due()
    }

    fn proceed_upload(&mut self, now: Instant, key: Key, saying: &mut Saying) -> Option<Bytes> {
        let uploads = &mut self.bodies.uploads;
        let upload = uploads.get_mut(&key)?;
        loop {
            match upload.proceed(now) {
                upload::Step::Say(response) => saying.push((upload.peer.clone(), response)),
                upload::Step::Whole(body) => {
                    let held = upload.held();
                    uploads.shrink(&key, held);
                    uploads.wait(&key, None);
                    return Some(body);
                }
                upload::Step::Wait(at) => {
                    uploads.wait(&key, at);
                    return None;
                }
                upload::Step::Drop => {
                    uploads.remove(&key);
                    return None;
                }
            }
        }
    }

    fn proceed_download(&mut self, now: Instant, key: Key, saying: &mut Saying) {
        let downloads = &mut self.bodies.downloads;
        let Some(download) = downloads.get_mut(&key) else { return };
        loop {
            match download.proceed(now) {
                download::Step::Say(said) => saying.push(*said),
                download::Step::Wait(at) => {
                    downloads.wait(&key, at);
                    return;
                }
            }
        }
    }
}
