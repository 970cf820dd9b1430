//! Requests that can leave at once: many of them may be under way in one program, each in a small future.

use super::drive::{Drive, Polled, SentRequest};
use super::session::Session;
use super::{Client, RequestParts};
use crate::error::Error;
use crate::message::Response;
use crate::net::pending::Answer;
use crate::net::trace;
use core::fmt;
use ebbtide_core::session::client::RequestTag;
use ebbtide_core::wire::{Code, Content, OptionNumber};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tracing::Span;

/// A request; see [`Client::direct`]. Nothing leaves before it is first polled, and dropping it cancels it.
#[must_use = "futures do nothing unless they are polled"]
pub struct DirectRequest {
    work: DirectWork,
    span: Span,
}

enum DirectWork {
    /// Nothing has left.
    New(Session, RequestParts),
    /// Its only message has left.
    Sent(SentRequest),
    /// Each step follows an answer, or the endpoint's last timeout.
    Exchanges(Box<Drive>),
    /// A step waits for an instant, or for room.
    Waits(Pin<Box<dyn Future<Output = Result<Response, Error>> + Send>>),
    Over,
}

impl fmt::Debug for DirectRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectRequest").finish_non_exhaustive()
    }
}

impl Client {
    /// Like [`Self::request`], for a program that has thousands of requests under way, such as a
    /// proxy: a Confirmable request over UDP to an address, given by its options. The future is
    /// small, and needs neither a task nor a timer of its own. It is `None` for what `request` can
    /// do besides: if the address is that of a group, and of a client with a time limit for
    /// requests, or with OSCORE. It is also `None` if the socket cannot be opened; `request` says
    /// why. The response does not state its origin and duration ([`Response::remote`],
    /// [`Response::round_trip`]).
    ///
    /// Cancel safe: dropping the future cancels the request. It must be polled within a tokio runtime with IO and time
    /// enabled, and yields the errors of [`Self::get`].
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime, if it has to open the client's socket.
    pub fn direct(&self, remote: SocketAddr, mut parts: RequestParts) -> Option<DirectRequest> {
        let config = &self.inner.requests.config;
        let is_plain = config.oscore.is_none() && config.request_timeout.is_none();
        if !is_plain || remote.ip().is_multicast() {
            return None;
        }
        if !parts.code.has_payload() {
            // RFC 7252 section 5.5: a sender does not include one that the method does not have.
            parts.payload.clear();
        }
        let session = Session::of_datagrams(&self.inner, remote).ok()?;
        let span = trace::parts(&parts, remote);
        Some(DirectRequest { work: DirectWork::New(session, parts), span })
    }
}

impl DirectWork {
    /// Sends the request, in one message if it fits.
    fn start(session: Session, mut parts: RequestParts) -> Self {
        let mut settings = session.default_settings(&parts);
        let is_one = parts.payload.len() <= settings.sizes.whole && parts.block_size.is_none();
        let under_way = session.begin(&parts, &mut settings);
        session.echo(&mut parts);
        if is_one && settings.request_tag != RequestTag::Always && !session.is_crowded() {
            let sent = parts.options.with_slice(None, |options| {
                let content = Content { code: parts.code, options, payload: &parts.payload };
                session.start_message(&content)
            });
            if let Ok(pending) = sent {
                return Self::Sent(SentRequest { session, parts, pending, under_way });
            }
            // Whoever drives it finds the reason again.
        }
        Self::Exchanges(Box::new(Drive::for_parts(session, parts, settings, under_way)))
    }
}

/// Whether a response is all that comes of a request that has left in one message.
fn is_all(response: &Response) -> bool {
    let continues =
        |number| matches!(number, OptionNumber::BLOCK1 | OptionNumber::BLOCK2 | OptionNumber::ECHO);
    response.code() != Code::CONTINUE && !response.options().iter().any(|opt| continues(opt.number))
}

impl Future for DirectRequest {
    type Output = Result<Response, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { work, span } = &mut *self;
        let _entered = span.enter();
        if matches!(work, DirectWork::New(..))
            && let DirectWork::New(session, parts) = core::mem::replace(work, DirectWork::Over)
        {
            *work = DirectWork::start(session, parts);
        }
        if let DirectWork::Sent(sent) = work {
            match sent.pending.poll_answer(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Answer::Response { response, .. })) if is_all(&response) => {
                    *work = DirectWork::Over;
                    return Poll::Ready(Ok(response));
                }
                Poll::Ready(answer) => {
                    if let DirectWork::Sent(sent) = core::mem::replace(work, DirectWork::Over) {
                        *work = DirectWork::Exchanges(Box::new(Drive::for_rest(sent, answer)));
                    }
                }
            }
        }
        if let DirectWork::Exchanges(drive) = work {
            match drive.poll(cx) {
                Polled::Pending => return Poll::Pending,
                Polled::Done(result) => {
                    *work = DirectWork::Over;
                    return Poll::Ready(result);
                }
                Polled::Waits => {}
            }
            if let DirectWork::Exchanges(mut drive) = core::mem::replace(work, DirectWork::Over) {
                *work = DirectWork::Waits(Box::pin(async move { drive.run().await }));
            }
        }
        // It is pending if it is polled after its end.
        let DirectWork::Waits(rest) = work else { return Poll::Pending };
        let polled = rest.as_mut().poll(cx);
        if polled.is_ready() {
            *work = DirectWork::Over;
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Call, Router, Server, get, put};
    use crate::{ClientConfig, Request};
    use futures_util::FutureExt;
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::Duration;

    /// The request of these parts to this address, or `None`.
    fn to(
        client: &Client,
        at: SocketAddr,
        request: Result<Request, crate::UriError>,
    ) -> Option<DirectRequest> {
        client.direct(at, request.unwrap().parts())
    }

    /// A socket that answers nothing; once it is dropped, no program has its port.
    fn silent() -> UdpSocket {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
    }

    #[tokio::test]
    async fn it_is_answered_as_a_request_is_with_its_blocks() {
        let router = Router::new()
            .route("/long", get(|_: &Call<'_>| "x".repeat(5000)))
            .route("/store", put(|call: &Call<'_>| call.payload().len().to_string()));
        let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
        let at = server.local_addrs()[0];
        tokio::spawn(server.run());
        let client = Client::new();
        let long = to(&client, at, Request::get(format!("coap://{at}/long"))).unwrap();
        let long = long.await.unwrap();
        assert_eq!((long.code(), long.body().len()), (Code::CONTENT, 5000));
        for length in [3, 3000] {
            let put = Request::put(format!("coap://{at}/store")).unwrap().payload(vec![1; length]);
            let work: Vec<_> =
                (0..200).map(|_| to(&client, at, Ok(put.clone())).unwrap()).collect();
            for answered in futures_util::future::join_all(work).await {
                assert_eq!(answered.unwrap().text(), length.to_string());
            }
        }
    }

    #[tokio::test]
    async fn a_request_that_needs_more_is_none() {
        let at = silent().local_addr().unwrap();
        let request = || Request::get(format!("coap://{at}/"));
        let group = SocketAddr::from(([224, 0, 1, 187], 5683));
        assert!(to(&Client::new(), group, request()).is_none());
        let limited = ClientConfig::new().request_timeout(Duration::from_secs(1));
        assert!(to(&Client::with_config(limited), at, request()).is_none());
    }

    #[tokio::test]
    async fn an_error_of_the_network_ends_it_and_dropping_it_cancels_it() {
        let client = Client::new();
        let closed = silent().local_addr().unwrap();
        let request = || Request::get(format!("coap://{closed}/"));
        let failed = to(&client, closed, request()).unwrap().await.unwrap_err();
        assert_eq!(failed.kind(), crate::ErrorKind::Network);
        let silent = silent();
        let mut waiting = to(&client, silent.local_addr().unwrap(), request()).unwrap();
        assert_eq!(client.snapshot().open_exchanges(), 0, "before its first poll");
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(client.snapshot().open_exchanges(), 1);
        drop(waiting);
        assert_eq!(client.snapshot().open_exchanges(), 0);
    }

    #[tokio::test]
    async fn after_its_end_it_holds_nothing_and_is_pending() {
        let client = Client::new();
        let closed = silent().local_addr().unwrap();
        let direct = || to(&client, closed, Request::get(format!("coap://{closed}/"))).unwrap();
        let mut exchanges = direct();
        let error = (&mut exchanges).await.unwrap_err();
        let rest = Box::pin(core::future::ready(Err(error)));
        let mut waits = DirectRequest { work: DirectWork::Waits(rest), ..direct() };
        assert!((&mut waits).await.is_err());
        for mut ended in [exchanges, waits] {
            assert!(matches!(ended.work, DirectWork::Over));
            assert!((&mut ended).now_or_never().is_none());
        }
    }
}
