//! Requests that can leave at once: many of them may be under way in one program, each in a small future.

use super::drive::{Drive, Polled};
use super::session::Session;
use super::{Client, addresses};
use crate::error::Error;
use crate::message::{Request, Response, Scheme};
use crate::net::trace;
use core::fmt;
use ebbtide_core::session::Arrival;
use ebbtide_core::time::Instant;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tracing::Span;

/// A request; see [`Client::direct`]. Nothing leaves before it is first polled, and dropping it cancels it.
#[must_use = "futures do nothing unless they are polled"]
pub struct DirectRequest {
    work: DirectWork,
    remote: SocketAddr,
    /// When it was first polled.
    began: Option<Instant>,
    span: Span,
}

enum DirectWork {
    /// Each step follows an answer, or the endpoint's last timeout.
    Exchanges(Box<Drive>),
    /// A step waits for an instant, or for room.
    Waits(Pin<Box<dyn Future<Output = Result<Response, Error>> + Send>>),
    Over,
}

impl fmt::Debug for DirectRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectRequest").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl Client {
    /// Like [`Self::request`], for a program that has thousands of requests under way, such as a proxy: the future is
    /// small, and needs neither a task nor a timer of its own. It is `None` for a request that needs what `request` can do
    /// besides: one over anything but UDP, to a name, to a group, with a time limit, protected by OSCORE, or with the
    /// blocks of RFC 9177. It is also `None` if the socket cannot be opened; `request` says why.
    ///
    /// Cancel safe: dropping the future cancels the request. It must be polled within a tokio runtime with IO and time
    /// enabled, and yields the errors of [`Self::get`].
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime, if it has to open the client's socket.
    pub fn direct(&self, request: &Request) -> Option<DirectRequest> {
        let requests = &self.inner.requests;
        let is_plain = request.uri.scheme() == Scheme::Coap && requests.config.oscore.is_none();
        if !is_plain || request.q_block || requests.limit(request).is_some() {
            return None;
        }
        let remote = addresses::literal(&request.uri).filter(|at| !at.ip().is_multicast())?;
        let session = Session::of_datagrams(&self.inner, remote).ok()?;
        let span = trace::request(request, remote);
        let work = DirectWork::Exchanges(Box::new(Drive::for_request(&session, request)));
        Some(DirectRequest { work, remote, began: None, span })
    }
}

impl Future for DirectRequest {
    type Output = Result<Response, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { work, remote, began, span } = &mut *self;
        let _entered = span.enter();
        if let DirectWork::Exchanges(drive) = work {
            let (remote, began) = (*remote, *began.get_or_insert_with(|| drive.clock_time()));
            let arrived = move |response: Response, drive: &Drive| {
                let round_trip = drive.now().saturating_since(began);
                response.with_arrival(Arrival { remote, round_trip })
            };
            match drive.poll(cx) {
                Polled::Pending => return Poll::Pending,
                Polled::Done(result) => {
                    let result = result.map(|response| arrived(response, drive));
                    *work = DirectWork::Over;
                    return Poll::Ready(result);
                }
                Polled::Waits => {}
            }
            if let DirectWork::Exchanges(mut drive) = core::mem::replace(work, DirectWork::Over) {
                *work = DirectWork::Waits(Box::pin(async move {
                    let response = drive.run().await?;
                    Ok(arrived(response, &drive))
                }));
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
    use crate::{ClientConfig, Code};
    use futures_util::FutureExt;
    use std::time::Duration;

    #[tokio::test]
    async fn it_is_answered_as_a_request_is_with_its_blocks() {
        let router = Router::new()
            .route("/long", get(|_: &Call<'_>| "x".repeat(5000)))
            .route("/store", put(|call: &Call<'_>| call.payload().len().to_string()));
        let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
        let at = server.local_addrs()[0];
        tokio::spawn(server.run());
        let client = Client::new();
        let request = Request::get(format!("coap://{at}/long")).unwrap();
        let long = client.direct(&request).unwrap().await.unwrap();
        assert_eq!((long.code(), long.body().len()), (Code::CONTENT, 5000));
        let put = Request::put(format!("coap://{at}/store")).unwrap().payload(vec![1; 3000]);
        let work: Vec<_> = (0..200).map(|_| client.direct(&put).unwrap()).collect();
        for answered in futures_util::future::join_all(work).await {
            assert_eq!(answered.unwrap().text(), "3000");
        }
    }

    #[tokio::test]
    async fn a_request_that_needs_more_is_none() {
        let client = Client::new();
        let to = |uri: &str| Request::get(uri).unwrap();
        for request in [
            to("coap://localhost/"),
            to("coap://224.0.1.187/"),
            to("coap://[fe80::1]/"),
            to("coap+tcp://127.0.0.1/"),
            to("coap://127.0.0.1/").timeout(Duration::from_secs(1)),
            to("coap://127.0.0.1/").non_confirmable(),
        ] {
            assert!(client.direct(&request).is_none(), "{request:?}");
        }
        let limited = ClientConfig::new().request_timeout(Duration::from_secs(1));
        assert!(Client::with_config(limited).direct(&to("coap://127.0.0.1/")).is_none());
    }

    #[tokio::test]
    async fn an_error_of_the_network_ends_it_and_dropping_it_cancels_it() {
        let client = Client::new();
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let request = Request::get(format!("coap://{closed}/")).unwrap();
        let failed = client.direct(&request).unwrap().await.unwrap_err();
        assert_eq!(failed.kind(), crate::ErrorKind::Network);
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let request = Request::get(format!("coap://{}/", silent.local_addr().unwrap())).unwrap();
        let mut waiting = client.direct(&request).unwrap();
        assert_eq!(waiting.began, None);
        assert!((&mut waiting).now_or_never().is_none());
        assert!(waiting.began.is_some(), "its first poll");
        assert_eq!(client.snapshot().open_exchanges(), 1);
        drop(waiting);
        assert_eq!(client.snapshot().open_exchanges(), 0);
    }

    #[tokio::test]
    async fn after_its_end_it_holds_nothing_and_is_pending() {
        let client = Client::new();
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let request = Request::get(format!("coap://{closed}/")).unwrap();
        let mut exchanges = client.direct(&request).unwrap();
        let error = (&mut exchanges).await.unwrap_err();
        let rest = Box::pin(core::future::ready(Err(error)));
        let waits = client.direct(&request).unwrap();
        let mut waits = DirectRequest { work: DirectWork::Waits(rest), ..waits };
        assert!((&mut waits).await.is_err());
        for mut ended in [exchanges, waits] {
            assert!(matches!(ended.work, DirectWork::Over));
            assert!((&mut ended).now_or_never().is_none());
        }
    }
}
