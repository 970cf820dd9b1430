//! Requests of CoAP clients for resources of HTTP servers (RFC 7252 section 10.1).

mod request;
mod response;
mod tls;

use crate::ask::Ask;
use crate::outcome::{self, ForwardOutcome};
use crate::shared::RequestProgress;
use crate::web_uri::WebScheme;
use bytes::Bytes;
use ebbtide::{Code, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tls::WebTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Connections to HTTP servers at the same time; further requests wait.
const MAX_CONNECTIONS: usize = 256;
/// The most bytes of the head of an answer.
const MAX_HEAD: usize = 16 << 10;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct WebClient {
    places: Semaphore,
    tls: WebTls,
    max_body: usize,
}

/// The reason why there is no answer of a server.
#[derive(Debug)]
pub(super) struct Broken(&'static str);

impl WebClient {
    /// Answers with bodies of at most `max_body` bytes.
    pub(crate) fn new(max_body: usize) -> Self {
        Self { places: Semaphore::new(MAX_CONNECTIONS), tls: WebTls::default(), max_body }
    }

    /// Asks the server at this address. Dropping the future closes the connection.
    pub(crate) async fn exchange(
        &self,
        ask: &Ask,
        scheme: WebScheme,
        address: SocketAddr,
        name: &str,
        progress: &RequestProgress,
    ) -> ForwardOutcome {
        let request = match request::of(ask, name) {
            Ok(request) => request,
            Err(refusal) => return ForwardOutcome::Refusal(refusal),
        };
        let Ok(_place) = self.places.acquire().await else {
            return ForwardOutcome::Refusal(outcome::unavailable(
                Duration::from_secs(1),
                "it ends",
            ));
        };
        progress.set_sent();
        let answered = async {
            let stream = TcpStream::connect(address).await;
            let stream = stream.map_err(|_| Broken("the server accepts no connection"))?;
            match scheme {
                WebScheme::Http => self.converse(stream, request).await,
                WebScheme::Https => {
                    let stream = self.tls.connect(&ask.target.host, stream).await?;
                    self.converse(stream, request).await
                }
            }
        };
        match answered.await {
            Ok((head, body)) => response::of(ask, &head, body),
            Err(Broken(why)) => {
                ForwardOutcome::Refusal(Response::error(Code::BAD_GATEWAY, why).max_age(1))
            }
        }
    }

    /// Sends one request over a connection, which then ends: the next one may come much later.
    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: hyper::Request<Full<Bytes>>,
    ) -> Result<(hyper::http::response::Parts, Bytes), Broken> {
        let broken = |_| Broken("the server does not speak HTTP");
        let mut http = http1::Builder::new();
        http.max_buf_size(MAX_HEAD);
        let (mut sender, connection) =
            http.handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let answered = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            let (head, body) = response.into_parts();
            Ok((head, self.read(body).await?))
        };
        let mut connection = std::pin::pin!(connection);
        let mut answered = std::pin::pin!(answered);
        tokio::select! {
            answered = &mut answered => return answered,
            // It may end with the last byte of the answer.
            _ = &mut connection => {}
        }
        answered.await
    }

    async fn read(&self, body: Incoming) -> Result<Bytes, Broken> {
        let whole = Limited::new(body, self.max_body).collect().await;
        match whole {
            Ok(whole) => Ok(whole.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(Broken("the answer is too long")),
            Err(_) => Err(Broken("the answer has no end")),
        }
    }
}
