//! The future of an exchange.

use super::rooms::Rooms;
use crate::error::{Cause, Error, OscoreFailure};
use crate::net::pending::Answer;
use crate::net::shared::Shared;
use crate::oscore::ResponseOpener;
use crate::stream::Link;
use ebbtide_core::cc::Sample;
use ebbtide_core::endpoint::{Endpoint, SendError};
use ebbtide_core::time::Instant;
use ebbtide_core::{ExchangeId, PeerId};
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

/// Where calls wait for their answers: the endpoint behind a socket, or a connection.
trait Exchanges: core::fmt::Debug + Send + Sync {
    /// The next answer to a call; `None` once the exchange is over and all answers were fetched.
    fn poll_answer(&self, index: u32, cx: &mut Context<'_>) -> Poll<Option<Answer>>;

    /// The exchange of a call, if it is open and by datagrams.
    fn exchange(&self, _index: u32) -> Option<ExchangeId> {
        None
    }

    /// Forgets a call that the application waits for no longer, and cancels what is still open of it.
    fn forget(&self, index: u32);
}

impl Exchanges for Shared {
    fn poll_answer(&self, index: u32, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        Self::poll_answer(self, index, cx)
    }

    fn exchange(&self, index: u32) -> Option<ExchangeId> {
        Self::exchange(self, index)
    }

    fn forget(&self, index: u32) {
        Self::forget(self, index);
    }
}

impl Exchanges for Link {
    fn poll_answer(&self, index: u32, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        Self::poll_answer(self, index, cx)
    }

    fn forget(&self, index: u32) {
        Self::forget(self, index);
    }
}

/// Where datagrams go.
#[derive(Copy, Clone, Debug)]
pub(super) struct Destination {
    /// The peer as the endpoint knows it.
    pub(super) peer: PeerId,
    /// Its address, for errors.
    pub(super) address: SocketAddr,
    /// The local address to send from, if that matters.
    pub(super) local: Option<IpAddr>,
}

/// An exchange under way. Dropping it cancels the exchange.
#[derive(Debug)]
pub(crate) struct Pending {
    exchanges: Arc<dyn Exchanges>,
    index: u32,
    peer: PeerId,
    /// Its address, for errors.
    remote: SocketAddr,
    /// Where others may wait for its end.
    rooms: Option<Arc<Rooms>>,
    /// Verifies the responses, if the request was protected.
    opener: Option<Box<ResponseOpener>>,
}

impl Pending {
    /// Starts an exchange by datagrams: `start` says what to send.
    pub(super) fn over_datagrams(
        shared: &Arc<Shared>,
        to: Destination,
        start: impl FnOnce(&mut Endpoint, Instant) -> Result<ExchangeId, SendError>,
    ) -> Result<Self, Error> {
        let Destination { peer, address: remote, local } = to;
        let index = shared.call(peer, local, start)?;
        Ok(Self { exchanges: shared.clone(), index, peer, remote, rooms: None, opener: None })
    }

    /// Starts an exchange over a connection: `start` gives the place of its call.
    pub(super) fn over_connection(
        link: &Arc<Link>,
        start: impl FnOnce(&Link) -> Result<u32, Error>,
    ) -> Result<Self, Error> {
        let index = start(link)?;
        let (peer, remote) = (PeerId::Connection(link.remote), link.remote);
        Ok(Self { exchanges: link.clone(), index, peer, remote, rooms: None, opener: None })
    }

    /// Notifies requests that wait in `rooms` when this exchange ends.
    pub(crate) fn in_rooms(mut self, rooms: Arc<Rooms>) -> Self {
        self.rooms = Some(rooms);
        self
    }

    /// Verifies the responses.
    pub(crate) fn opened_by(mut self, opener: ResponseOpener) -> Self {
        #[cfg(feature = "edhoc")]
        opener.sent();
        self.opener = Some(Box::new(opener));
        self
    }

    /// Verifies the responses, if the request was protected.
    pub(crate) fn opener(&self) -> Option<&ResponseOpener> {
        self.opener.as_deref()
    }

    /// The next answer; `None` once the exchange is over and all answers were fetched.
    pub(crate) async fn answer(&self) -> Option<Answer> {
        poll_fn(|cx| self.poll_answer(cx)).await
    }

    /// As [`Self::answer`], for waiting for several exchanges.
    pub(crate) fn poll_answer(&self, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        loop {
            let answer = match (&self.opener, self.exchanges.poll_answer(self.index, cx)) {
                (Some(opener), Poll::Ready(Some(answer))) => opened(opener, answer),
                (_, polled) => return polled,
            };
            if answer.is_some() {
                return Poll::Ready(answer);
            }
        }
    }

    /// Waits for the Reset that answers a ping, and returns its measurements if there are any.
    pub(crate) async fn reset(&self) -> Result<Option<Sample>, Error> {
        match self.answer().await {
            Some(Answer::Reset { sample }) => Ok(sample),
            Some(other) => Err(self.error(other)),
            None => Err(Cause::Closed.into()),
        }
    }

    pub(crate) fn error(&self, answer: Answer) -> Error {
        let cause = match answer {
            Answer::Reset { .. } => Cause::Reset,
            Answer::Failed(reason) => Cause::Failed(reason),
            Answer::Network(source) => Cause::Network(Arc::new(source)),
            #[cfg(feature = "dtls")]
            Answer::Gone => Cause::Gone,
            Answer::Oscore(reason) => Cause::Oscore(reason),
            Answer::Ended { reason, diagnostic } => Cause::Connection { reason, diagnostic },
            Answer::Response { .. } | Answer::More { .. } => {
                Cause::Protocol("it answered a ping with a response")
            }
        };
        Error::for_peer(self.remote, cause)
    }

    /// The exchange, if it is open and by datagrams.
    pub(crate) fn exchange(&self) -> Option<ExchangeId> {
        self.exchanges.exchange(self.index)
    }
}

/// An answer as it would have been without OSCORE. `None` stands for a notification that is not
/// authentic, or not a newer one, and is ignored, unless it is the first answer: the request is not
/// sent again then, and nothing else would ever come of it.
fn opened(opener: &ResponseOpener, answer: Answer) -> Option<Answer> {
    Some(match answer {
        Answer::Response { from, response } => match opener.open(&response) {
            Ok(response) => Answer::Response { from, response },
            Err(reason) => Answer::Oscore(reason),
        },
        Answer::More { from, response } => match opener.open(&response) {
            Ok(response) => Answer::More { from, response },
            Err(_) if opener.is_answered() => return None,
            Err(reason) => Answer::Oscore(reason),
        },
        Answer::Reset { sample: Some(sample) } if sample.transmissions > 1 => {
            Answer::Oscore(OscoreFailure::CopyRefused("a Reset".into()))
        }
        other => other,
    })
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.exchanges.forget(self.index);
        if let Some(rooms) = &self.rooms {
            rooms.left(self.peer);
        }
    }
}
