//! Connections of HTTP clients: their number, their time and what they may send are bounded.

use super::request::{self, Form, Refused};
use super::response::{self, AnswerBody};
use super::upload::{self, RequestBody};
use super::{discovery, events};
use crate::gateway::{Gateway, GatewayAnswer};
use crate::open::FairPlaces;
use crate::system;
use crate::time_limit::TimerStart;
use ebbtide::stream::{TlsAcceptor, TlsError, TlsServer};
use ebbtide_core::sharing_prefix;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;

/// Connections at the same time. A client's address has at most as many as are free.
const MAX_CONNECTIONS: usize = 32_768;
/// The maximum length of a request's head, and the number of its fields.
const MAX_HEAD: usize = 16 << 10;
const MAX_FIELDS: usize = 64;
/// How long a head may take, from the end of the previous request on.
const HEAD_PATIENCE: Duration = Duration::from_secs(15);
/// How long a handshake of TLS may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(15);
/// How long a client may take to receive anything.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);

impl Gateway {
    /// Answers HTTP clients at this listener (RFC 8075), for as long as the future is polled. The
    /// target follows `/hc/`, as in `http://GATEWAY/hc/coap://192.0.2.7/temperature`.
    pub async fn serve_http(&self, listener: TcpListener) {
        let gateway = self.clone();
        serve(listener, Arc::new(Plain), move |from, request| {
            forward(gateway.clone(), from, request)
        })
        .await;
    }

    /// Answers HTTPS clients as [`Self::serve_http`] does. Clients that `tls` refuses are not served.
    ///
    /// # Errors
    ///
    /// Returns an error if the settings of `tls` are not usable.
    pub async fn serve_https(
        &self,
        listener: TcpListener,
        tls: &TlsServer,
    ) -> Result<(), TlsError> {
        let (gateway, acceptor) = (self.clone(), tls.acceptor_of(b"http/1.1")?);
        serve(listener, Arc::new(acceptor), move |from, request| {
            forward(gateway.clone(), from, request)
        })
        .await;
        Ok(())
    }
}

async fn forward(
    gateway: Gateway,
    from: SocketAddr,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    answer(&gateway, from, request).await
}

/// The handshake before the requests of a connection.
pub(crate) trait Accept: Send + Sync + 'static {
    fn accept(
        &self,
        stream: Impatient<TcpStream>,
        from: SocketAddr,
    ) -> impl Future<Output = io::Result<impl AsyncRead + AsyncWrite + Unpin + Send>> + Send;
}

/// No handshake.
pub(crate) struct Plain;

impl Accept for Plain {
    async fn accept(
        &self,
        stream: Impatient<TcpStream>,
        _: SocketAddr,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send> {
        Ok(stream)
    }
}

impl Accept for TlsAcceptor {
    async fn accept(
        &self,
        stream: Impatient<TcpStream>,
        from: SocketAddr,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send> {
        let accepted = self.accept(stream, sharing_prefix(from.ip()));
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        tokio::time::timeout(HANDSHAKE_PATIENCE, accepted).await.map_err(late)?
    }
}

/// Answers HTTP clients by `respond` until the future is dropped.
pub(crate) async fn serve<F>(
    listener: TcpListener,
    accept: Arc<impl Accept>,
    respond: impl Fn(SocketAddr, Request<Incoming>) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Response<AnswerBody>> + Send,
{
    let open = FairPlaces::new(MAX_CONNECTIONS);
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Most likely no descriptors are left; they become free again.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Some(counted) = open.admit(sharing_prefix(from.ip())) else { continue };
        let (accept, respond) = (accept.clone(), respond.clone());
        tokio::spawn(async move {
            let _counted = counted;
            // Answers are written whole, so nothing is gained by waiting for more.
            let _ = stream.set_nodelay(true);
            // Below TLS, which has room for some of what its client does not read.
            let stream = Impatient { stream, patience: None };
            let Ok(stream) = accept.accept(stream, from).await else { return };
            let service = service_fn(move |request| {
                let answered = respond(from, request);
                async { Ok::<_, Infallible>(answered.await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEAD_PATIENCE)
                .max_headers(MAX_FIELDS)
                .max_buf_size(MAX_HEAD);
            let io = TokioIo::new(stream);
            // A client that goes away, or breaks the protocol, gets no answer. Its request is then
            // no longer waited for.
            let _ = http.serve_connection(io, service).await;
        });
    }
}

/// Answers one request by forwarding it.
pub(crate) async fn answer(
    gateway: &Gateway,
    from: SocketAddr,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    match ask(gateway, from, request).await {
        Ok(answered) => answered,
        Err(refused) => response::of_refused(&refused),
    }
}

async fn ask(
    gateway: &Gateway,
    from: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Refused> {
    let client = from.ip();
    let forbidden = |why: &str| Refused { status: StatusCode::FORBIDDEN, why: why.to_owned() };
    if !gateway.inner.upstream.access.may_ask(client) {
        return Err(forbidden("this gateway does not serve your address"));
    }
    let (parts, body) = request.into_parts();
    let is_chunked = parts.headers.contains_key(header::TRANSFER_ENCODING);
    if is_of_another_site(&parts.headers) && parts.method != Method::GET {
        // A page of another site would act in the name of whoever looks at it.
        return Err(forbidden("requests of other sites' pages are not forwarded"));
    }
    if let Some(own) = discovery::of(gateway, &parts) {
        return Ok(own);
    }
    let body = upload::read(body, gateway, client).await?;
    let wanted = request::read(gateway, client, &parts, body.beginning())?;
    let target = wanted.ask.target.clone();
    let answered: GatewayAnswer = match (gateway.stored(&wanted.ask), wanted.form, body) {
        (_, Form::Events, _) => match gateway.follow(wanted.ask) {
            Ok(follower) => return Ok(events::of(follower)),
            Err(refusal) => refusal.into(),
        },
        (Some(stored), ..) => stored.into(),
        (None, Form::OnlyStored, _) => {
            let why = "no fresh answer is stored".to_owned();
            return Err(Refused { status: StatusCode::GATEWAY_TIMEOUT, why });
        }
        (None, _, RequestBody::Long(body)) => body.send(gateway, wanted.ask).await?.into(),
        (None, Form::Whole | Form::Head, RequestBody::Held(_)) => {
            gateway.answer(wanted.ask, TimerStart::AtOnce).await
        }
    };
    let mut answer = response::of(&gateway.inner.backends, &target, &answered.response);
    if let Some(rest) = answered.rest {
        *answer.body_mut() = response::going_on(answered.response.into_body(), rest);
    }
    if is_chunked {
        // Whoever forwards this connection may have seen another end of the body, if there was also a Content-Length
        // (RFC 9112 section 6.1): nothing more is taken from it.
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(via) = &gateway.inner.via {
        answer.headers_mut().insert(header::VIA, via.clone());
    }
    Ok(answer)
}

/// Whether a page of another site asks. Browsers name the site in one field or the other (Fetch, sections 3.2 and
/// Fetch Metadata 2.3); other clients in neither.
fn is_of_another_site(fields: &HeaderMap) -> bool {
    let site = fields.get(HeaderName::from_static("sec-fetch-site"));
    let (origin, host) = (fields.get(header::ORIGIN), fields.get(header::HOST));
    let origin = origin.map(|origin| origin.as_bytes());
    let authority = origin.map(|origin| match origin.iter().position(|byte| *byte == b'/') {
        Some(slash) => origin.get(slash + 2..).unwrap_or_default(),
        // "null" is the origin of a page that has none.
        None => origin,
    });
    site.is_some_and(|site| site == "cross-site")
        || authority.is_some() && authority != host.map(HeaderValue::as_bytes)
}

/// A stream whose peer must go on reading.
pub(crate) struct Impatient<S> {
    stream: S,
    /// Set while nothing can be written.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> Impatient<S> {
    fn check(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.patience = None;
            return written;
        }
        let until = || Box::pin(tokio::time::sleep_until(system::now() + WRITE_PATIENCE));
        let patience = self.patience.get_or_insert_with(until);
        ready!(patience.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.check(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
