//! All bodies in transfer in Non-confirmable blocks, with bounded memory, and their timers.

use super::download::{DownloadStep, QBlockDownload};
use super::pace::Pace;
use super::part::{BlockRequest, BodyBlock};
use super::upload::{QBlockUpload, UploadStep};
use crate::q_block::QBlockParameters;
use crate::session::finished::Finished;
use crate::session::key::TransferKey;
use crate::session::message::Response;
use crate::session::requester::Requester;
use crate::session::transfer_cache::TransferCache;
use crate::time::Instant;
use crate::wire::Block;
use alloc::vec::Vec;
use bytes::Bytes;

/// The outcome of a block.
pub(in crate::session) enum BlockOutcome {
    /// Nothing beyond the messages to send.
    Kept,
    /// The body is complete and can be handled.
    Whole(Bytes),
    /// The body was answered before.
    Known(Response),
}

/// The answer to an upload, and the body to which it belongs, since a tag may be used again.
#[derive(Debug)]
pub(in crate::session) struct Answer {
    szx: u8,
    size: usize,
    response: Response,
}

/// Bodies in transfer.
#[derive(Debug)]
pub(in crate::session) struct QBlockTransfers {
    pub(in crate::session) bodies: TransferCache<QBlockUpload, QBlockDownload, Answer>,
    params: QBlockParameters,
    max_bytes: usize,
    pace: Pace,
}

impl QBlockTransfers {
    pub(in crate::session) fn new(max_bytes: usize, params: QBlockParameters) -> Self {
        // RFC 9177 sections 4.3 and 7.2.
        let lifetime = params.non_partial_timeout();
        let bodies = TransferCache::new(max_bytes, lifetime, |_| true);
        Self { bodies, params, max_bytes, pace: Pace::new(params) }
    }

    /// The maximum length of a body in blocks of this size.
    pub(in crate::session) fn longest(&self, block: Block, max_body: usize) -> usize {
        QBlockUpload::longest(block.size(), max_body, self.max_bytes)
    }

    /// Whether the body of this key is one for which a block has proved the client's address.
    pub(in crate::session) fn is_proved(&self, key: &TransferKey) -> bool {
        self.bodies.uploads.get(key).is_some_and(|upload| upload.requester().proved)
            || self.bodies.answers.get(key).is_some()
    }

    /// Accepts a block of a request's body.
    pub(in crate::session) fn take(
        &mut self,
        now: Instant,
        key: TransferKey,
        requester: Requester,
        BodyBlock { block, size }: BodyBlock,
        payload: &[u8],
        out: &mut Vec<Finished>,
    ) -> BlockOutcome {
        self.bodies.expire(now);
        if let Some(answer) = self.bodies.answers.get(&key) {
            if (answer.szx, answer.size) == (block.szx(), size) {
                return BlockOutcome::Known(answer.response.clone());
            }
            self.bodies.answers.remove(&key);
        }
        let uploads = &mut self.bodies.uploads;
        if uploads.get(&key).is_none_or(|upload| !upload.fits(block, size)) {
            // Another body may exist under a tag that is used again.
            let upload = QBlockUpload::begin(now, block, size, requester.clone(), self.params);
            let held = upload.held();
            self.bodies.begin_upload(now, key, upload, held);
        }
        let Some(upload) = self.bodies.uploads.get_mut(&key) else { return BlockOutcome::Kept };
        upload.from(requester);
        let held = upload.take(now, block, payload);
        if held > 0 {
            self.bodies.grow_upload(now, key, held);
        }
        self.poll_upload(now, key, out).map_or(BlockOutcome::Kept, BlockOutcome::Whole)
    }

    /// Records the answer to an upload, as it is sent.
    pub(in crate::session) fn finish(
        &mut self,
        now: Instant,
        key: TransferKey,
        response: Response,
    ) {
        if let Some(upload) = self.bodies.uploads.get(&key) {
            let (szx, size) = upload.announced();
            self.bodies.finish(now, key, Answer { szx, size, response });
        }
    }

    /// The body that a request of this key refers to: a request without the body of the first one
    /// refers to the latest.
    pub(in crate::session) fn latest(&self, key: TransferKey) -> TransferKey {
        let downloads = &self.bodies.downloads;
        if !key.has_no_body() || downloads.get(&key).is_some() {
            return key;
        }
        downloads.newest(key.with_later_bodies()).unwrap_or(key)
    }

    /// Whether a body is stored in blocks of this size.
    pub(in crate::session) fn has(&mut self, now: Instant, key: &TransferKey, szx: u8) -> bool {
        self.bodies.expire(now);
        self.bodies.downloads.get(key).is_some_and(|download| download.szx() == szx)
    }

    /// Whether these blocks of a stored body may leave in answer to this request.
    pub(in crate::session) fn may_ask(
        &mut self,
        key: &TransferKey,
        requester: &Requester,
        request: &BlockRequest,
    ) -> bool {
        let download = self.bodies.downloads.get_mut(key);
        download.is_none_or(|download| download.may_ask(&request.blocks, requester))
    }

    /// A client requests blocks of a stored body.
    pub(in crate::session) fn request(
        &mut self,
        now: Instant,
        key: TransferKey,
        requester: Requester,
        request: &BlockRequest,
        out: &mut Vec<Finished>,
    ) {
        let Some(download) = self.bodies.downloads.get_mut(&key) else { return };
        download.on_request(&request.blocks, requester);
        self.bodies.downloads.advance(now, key);
        let others_wait = self.pace.heard(key.remote);
        self.poll_download(now, key, out);
        if others_wait {
            let others = self.bodies.downloads.entries().map(|(key, _)| *key);
            let others: Vec<_> = others.filter(|other| other.remote == key.remote).collect();
            for other in others {
                self.poll_download(now, other, out);
            }
        }
    }

    /// Stores a body and begins to send it, unless it is longer than the limit.
    pub(in crate::session) fn begin(
        &mut self,
        now: Instant,
        key: TransferKey,
        download: QBlockDownload,
        out: &mut Vec<Finished>,
    ) {
        let held = download.held();
        self.bodies.keep_download(now, key, download, held);
        self.poll_download(now, key, out);
    }

    /// The earliest timer.
    pub(in crate::session) fn poll_timeout(&self) -> Option<Instant> {
        [self.bodies.uploads.due(), self.bodies.downloads.due()].into_iter().flatten().min()
    }

    /// Handles all timers that are due.
    pub(in crate::session) fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Finished>) {
        while let Some(key) = self.bodies.uploads.pop_due(now) {
            // A body is completed by a block, never by a timer.
            drop(self.poll_upload(now, key, out));
        }
        while let Some(key) = self.bodies.downloads.pop_due(now) {
            self.poll_download(now, key, out);
        }
    }

    fn poll_upload(
        &mut self,
        now: Instant,
        key: TransferKey,
        out: &mut Vec<Finished>,
    ) -> Option<Bytes> {
        let uploads = &mut self.bodies.uploads;
        let upload = uploads.get_mut(&key)?;
        loop {
            match upload.poll(now) {
                UploadStep::Send(response) => {
                    out.push(Finished::response(upload.requester().clone(), response));
                }
                UploadStep::Whole(body) => {
                    let held = upload.held();
                    uploads.shrink(&key, held);
                    uploads.wait(&key, None);
                    return Some(body);
                }
                UploadStep::Wait(at) => {
                    uploads.wait(&key, at);
                    return None;
                }
                UploadStep::Drop => {
                    uploads.remove(&key);
                    return None;
                }
            }
        }
    }

    fn poll_download(&mut self, now: Instant, key: TransferKey, out: &mut Vec<Finished>) {
        let downloads = &mut self.bodies.downloads;
        loop {
            if let Some(at) = self.pace.waits(now, key.remote) {
                downloads.wait(&key, Some(at));
                return;
            }
            let Some(download) = downloads.get_mut(&key) else { return };
            match download.poll(now) {
                DownloadStep::Send(block) => {
                    self.pace.sent(now, key.remote);
                    let (requester, response) = *block;
                    out.push(Finished::response(requester, response));
                }
                DownloadStep::Wait(at) => {
                    downloads.wait(&key, at);
                    return;
                }
            }
        }
    }
}
