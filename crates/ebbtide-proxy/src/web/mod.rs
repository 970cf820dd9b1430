//! Requests of CoAP clients for resources of HTTP servers (RFC 7252 section 10.1).

mod request;
mod response;
mod tls;

use crate::ask::Ask;
use crate::open::{Counted, FairPlaces};
use crate::outcome::{self, ForwardOutcome};
use crate::remainder::{HELD, MAX_BLOCK, Remainder};
use crate::shared::RequestProgress;
use crate::system;
use crate::web_body::{Beginning, Broken, WebBody};
use crate::web_uri::WebScheme;
use ebbtide::{Code, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use request::RequestBody;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tls::WebTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// Connections to HTTP servers at the same time. A client's address has at most as many as are free.
const MAX_CONNECTIONS: usize = 256;
/// The most bytes of the head of an answer.
const MAX_HEAD: usize = 16 << 10;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct WebClient {
    places: Arc<FairPlaces>,
    tls: WebTls,
    max_body: usize,
}

impl WebClient {
    /// Holds bodies of at most `max_body` bytes. Longer ones of answers to GET pass through.
    pub(crate) fn new(max_body: usize) -> Self {
        Self { places: FairPlaces::new(MAX_CONNECTIONS), tls: WebTls::default(), max_body }
    }

    /// Asks the server at this address. Dropping the future closes the connection.
    pub(crate) async fn exchange(
        &self,
        ask: &Ask,
        scheme: WebScheme,
        address: SocketAddr,
        name: &str,
        progress: &Arc<RequestProgress>,
    ) -> ForwardOutcome {
        let request = match request::of(ask, name, progress) {
            Ok(request) => request,
            Err(refusal) => return ForwardOutcome::Refusal(refusal),
        };
        let Some(place) = self.places.admit(ask.applicant.client) else {
            let why = "too many connections to HTTP servers are open";
            return ForwardOutcome::Refusal(outcome::unavailable(Duration::from_secs(1), why));
        };
        progress.set_sent(system::now());
        let answered = async {
            let stream = TcpStream::connect(address).await;
            let stream = stream.map_err(|_| Broken("the server accepts no connection"))?;
            match scheme {
                WebScheme::Http => converse(stream, request, place).await,
                WebScheme::Https => {
                    let stream = self.tls.connect(&ask.target.host, stream).await?;
                    converse(stream, request, place).await
                }
            }
        };
        let answered = async {
            let (head, mut body) = answered.await?;
            let passes = ask.code == Code::GET;
            let is_long = body.length().is_some_and(|length| length > self.max_body as u64);
            let most = match passes {
                // What is not held as a whole goes on with its first blocks.
                true if is_long => HELD.min(self.max_body).max(MAX_BLOCK),
                true => self.max_body.max(MAX_BLOCK),
                false => self.max_body,
            };
            match body.beginning(most).await? {
                Beginning::Whole(bytes) => Ok(response::of(ask, &head, bytes)),
                Beginning::GoesOn(_) if !passes => Err(Broken("the answer is too long")),
                Beginning::GoesOn(bytes) => Ok(match response::of(ask, &head, bytes) {
                    ForwardOutcome::Answer(answer) if answer.code() == Code::CONTENT => {
                        ForwardOutcome::Beginning(answer, Remainder::of_web(body))
                    }
                    other => other,
                }),
            }
        };
        match answered.await {
            Ok(outcome) => outcome,
            Err(Broken(why)) => {
                ForwardOutcome::Refusal(Response::error(Code::BAD_GATEWAY, why).max_age(1))
            }
        }
    }
}

/// Ends a connection unless its body goes on.
struct Connection(Option<AbortHandle>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.take().inspect(AbortHandle::abort);
    }
}

/// Sends one request over a connection, which then ends: the next one may come much later.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: hyper::Request<RequestBody>,
    place: Counted,
) -> Result<(hyper::http::response::Parts, WebBody), Broken> {
    let broken = |_| Broken("the server does not speak HTTP");
    let mut http = http1::Builder::new();
    http.max_buf_size(MAX_HEAD);
    let (mut sender, work) = http.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // How it ends is seen by what comes of the request.
    let work = tokio::spawn(async move { drop(work.await) });
    let mut connection = Connection(Some(work.abort_handle()));
    let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
    let connection = connection.0.take().unwrap_or_else(|| work.abort_handle());
    Ok((head, WebBody::new(body, connection, place)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{BodyForm, StoredUse};
    use crate::cell::Applicant;
    use crate::options::Forwarded;
    use crate::system;
    use crate::target::{Target, TargetScheme};
    use bytes::Bytes;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn one_client_leaves_as_many_connections_as_it_takes() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap();
        let deadline = system::now() + Duration::from_secs(60);
        let mut target = Target::parse(&format!("coap://{address}/")).unwrap();
        target.scheme = TargetScheme::Web(WebScheme::Http);
        let ask = |client: [u8; 4]| Ask {
            applicant: Applicant { client: client.into(), urgency: 3 },
            target: target.clone(),
            code: Code::GET,
            forwarded: Forwarded { options: ebbtide::Options::new(), hop_limit: 15 },
            payload: Bytes::new(),
            deadline,
            freshness: StoredUse::Stored,
            body: BodyForm::Held,
            arriving: None,
        };
        let (web, progress) = (WebClient::new(1000), RequestProgress::new(deadline));
        let (greedy, other) = (ask([192, 0, 2, 1]), ask([192, 0, 2, 2]));
        let exchange =
            |ask| web.exchange(ask, WebScheme::Http, address, "gateway", &progress).boxed();
        let mut under_way = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            let mut one = exchange(&greedy);
            match (&mut one).now_or_never() {
                None => under_way.push(one),
                Some(outcome) => assert_eq!(outcome.code(), Code::SERVICE_UNAVAILABLE),
            }
        }
        assert_eq!(under_way.len(), MAX_CONNECTIONS / 2);
        assert!(exchange(&other).now_or_never().is_none());
    }
}
