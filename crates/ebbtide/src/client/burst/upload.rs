//! A long body in blocks, several of them in flight (RFC 7959 section 2.5).

use super::IN_FLIGHT;
use crate::client::Client;
use crate::client::drive::Drive;
use crate::client::session::Session;
use crate::error::Error;
use crate::message::{Request, Response};
use ebbtide_core::session::client::{Transfer, UploadProgress};
use std::ops::Range;

/// A long body on its way to a resource; see [`Client::upload`].
///
/// The blocks are those of RFC 7959, which any server puts together. The first one leaves alone: its
/// answer says which size the server wants, and, from a server of ours, that it takes blocks in any order
/// (it echoes a [`BurstMark`](crate::BurstMark)). Then several are in flight, and the last one leaves when
/// all others are acknowledged, since the server acts on it.
///
/// Other servers get the blocks after one that was late or lost once more, and fewer at a time. One that
/// answers 4.08 (Request Entity Incomplete) even then gets all of them again, one at a time; a PUT whose
/// last block had to be repeated is done again, up to three times in all, since some take the copy for a
/// body of its own.
pub struct Upload {
    session: Session,
    request: Request,
    in_flight: u8,
    progress: UploadProgress,
    tell: Option<Box<dyn FnMut(usize) + Send>>,
}

impl core::fmt::Debug for Upload {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Upload")
            .field("remote", &self.session.address)
            .field("bytes", &self.request.payload.len())
            .field("acknowledged", &self.acknowledged())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// An upload of the payload of `request`, a PUT, POST or the like, with several blocks in flight.
    /// [`Request::timeout`] says how long blocks are tried again that the network does not deliver;
    /// without it as long as the server was heard within MAX_TRANSMIT_WAIT (RFC 7252 section 4.8.2).
    ///
    /// # Errors
    ///
    /// If the URI does not resolve, or no connection can be made.
    pub async fn upload(&self, request: Request) -> Result<Upload, Error> {
        let session = self.session(&request.uri).await?;
        let mut upload = Upload {
            progress: Drive::for_request(&session, &request).transfer.progress(),
            session,
            request,
            in_flight: IN_FLIGHT,
            tell: None,
        };
        upload.progress = upload.transfer().progress();
        Ok(upload)
    }
}

impl Upload {
    /// How many blocks may be under way, from the first unacknowledged one on: 1 to 255, default 64.
    #[must_use]
    pub fn in_flight(mut self, blocks: u8) -> Self {
        self.in_flight = blocks.max(1);
        self
    }

    /// Has `progress` told how many bytes are acknowledged, whenever that changes.
    #[must_use]
    pub fn on_progress(mut self, progress: impl FnMut(usize) + Send + 'static) -> Self {
        self.tell = Some(Box::new(progress));
        self
    }

    /// Bytes that the server has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.progress.acknowledged()
    }

    /// Which bytes of the body it has not, in their order.
    #[must_use]
    pub fn unacknowledged(&self) -> Vec<Range<usize>> {
        self.progress.unacknowledged()
    }

    /// Whether the server takes blocks only one after the other.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.progress.is_in_order()
    }

    /// Whether the last block had to be repeated, to a server that may have taken its copy for a body of
    /// its own (`studies/peers.md`): then what it holds is worth a look.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.progress.is_doubtful()
    }

    /// How many blocks were sent once more, with a message of their own, because the server may have got
    /// them, or others before them, out of order.
    #[must_use]
    pub fn resent(&self) -> usize {
        self.progress.resent()
    }

    fn transfer(&self) -> Transfer {
        let parts = self.request.parts();
        let mut settings = self.session.settings(&self.request, &parts);
        settings.in_flight = self.in_flight;
        Transfer::new(parts, settings)
    }

    /// Sends the body; the answer is that to the last block, or the error response that ended it.
    /// Dropping the future, or an error, stops the upload; [`Self::unacknowledged`] says what is
    /// missing then.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn run(&mut self) -> Result<Response, Error> {
        let transfer = self.transfer();
        let mut drive = Drive::new(self.session.clone(), self.request.reliability, transfer);
        let (progress, tell) = (&mut self.progress, &mut self.tell);
        drive
            .run_with_progress(|transfer| {
                let before = progress.acknowledged();
                *progress = transfer.progress();
                let acknowledged = progress.acknowledged();
                if let Some(tell) = tell.as_mut().filter(|_| acknowledged != before) {
                    tell(acknowledged);
                }
            })
            .await
    }
}
