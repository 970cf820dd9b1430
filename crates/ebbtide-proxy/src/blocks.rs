//! Long bodies of responses that pass through block by block (RFC 7959), as fast as their client receives them.
//!
//! Equal requests share the beginning, which is not cached. Each client then fetches what follows by itself, and each
//! block is an exchange that waits for its turn, so a client that receives slowly occupies neither a device nor its
//! cell.

use crate::ask::Ask;
use crate::open::OpenRequest;
use crate::options;
use crate::outcome::ForwardOutcome;
use crate::remainder::{ClaimedRest, HELD, Remainder};
use crate::shared::RequestProgress;
use crate::system;
use crate::upstream::{RoundTrip, SharedUpstream, Upstream};
use bytes::{Bytes, BytesMut};
use ebbtide::client::Download;
use ebbtide::{Request, Response};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The part of a body that one client still receives, until it is dropped.
#[derive(Debug)]
pub(crate) struct BodyRest {
    pub(crate) upstream: SharedUpstream,
    pub(crate) ask: Ask,
    pub(crate) rest: ClaimedRest,
    /// How long each block may take.
    pub(crate) patience: Duration,
    /// Its place among the open requests.
    pub(crate) _counted: OpenRequest,
}

/// The meaning of the time of one block's exchange.
pub(crate) fn round_trip(is_repeated: bool) -> RoundTrip {
    if is_repeated { RoundTrip::Repeated } else { RoundTrip::OfPath }
}

impl Upstream {
    /// Asks for a body, and fetches the beginning of a long one.
    ///
    /// # Errors
    ///
    /// The answer, if it fails.
    pub(crate) async fn begin(
        &self,
        ask: &Ask,
        request: Request,
        address: SocketAddr,
        progress: &RequestProgress,
    ) -> Result<ForwardOutcome, Response> {
        let begun = self.client.begin_download(request);
        let begun = self.turn(ask, address, progress, begun, |(response, _)| {
            round_trip(response.is_repeated())
        });
        let (response, rest) = begun.await?;
        let answer = options::of_response(response, &self.name);
        let Some(mut download) = rest else { return Ok(ForwardOutcome::Answer(answer)) };
        let mut beginning = BytesMut::from(answer.body().as_ref());
        while beginning.len() < HELD {
            match self.next_block(ask, &mut download, address, progress).await? {
                Some(block) => beginning.extend_from_slice(&block),
                None => return Ok(ForwardOutcome::Answer(answer.payload(beginning.freeze()))),
            }
        }
        let answer = answer.payload(beginning.freeze());
        let rest = Remainder::Device { download: Box::new(download), address };
        Ok(ForwardOutcome::Beginning(answer, rest))
    }

    async fn next_block(
        &self,
        ask: &Ask,
        download: &mut Download,
        address: SocketAddr,
        progress: &RequestProgress,
    ) -> Result<Option<Bytes>, Response> {
        let exchange = async {
            let block = download.chunk().await?;
            Ok((block, download.is_repeated()))
        };
        let turn =
            self.turn(ask, address, progress, exchange, |(_, repeated)| round_trip(*repeated));
        turn.await.map(|(block, _)| block)
    }
}

impl BodyRest {
    /// The next block; `None` at the end. Cancel safe.
    ///
    /// # Errors
    ///
    /// Returns an error if the body cannot be completed.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let Self { upstream, ask, rest, patience, .. } = self;
        let deadline = system::now() + *patience;
        let progress = RequestProgress::new(deadline);
        match rest {
            ClaimedRest::Device { download, address } => {
                let next = upstream.next_block(ask, download, *address, &progress);
                let next = tokio::time::timeout_at(deadline, next).await;
                next.unwrap_or_else(|_| Err(progress.too_late()))
                    .map_err(|refusal| io::Error::other(refusal.text().into_owned()))
            }
            ClaimedRest::Web(body) => match tokio::time::timeout_at(deadline, body.next()).await {
                Ok(next) => next.map_err(|broken| io::Error::other(broken.0)),
                Err(_) => Err(io::Error::other("the server sends no more")),
            },
        }
    }
}
