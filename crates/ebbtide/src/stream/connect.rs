//! Outgoing connections of a client.

use super::config::StreamConfig;
use super::counters::Tally;
use super::link::{Answerer, Link};
use super::socket::StreamSocket;
use super::task::Task;
use super::tls;
use super::wire::{Bytes, Wire};
#[cfg(feature = "ws")]
use super::ws;
use crate::error::{Cause, Error};
#[cfg(feature = "ws")]
use crate::message::Scheme;
use crate::message::Uri;
use crate::net::clock::Clock;
use crate::net::peer::PeerInfo;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Framing;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Connects to the host of a URI and starts the connection's task.
pub(crate) async fn connect(
    config: &StreamConfig,
    tally: &Arc<Tally>,
    uri: &Uri,
    remote: SocketAddr,
    answerer: Option<Answerer>,
) -> Result<Arc<Link>, Error> {
    let opened = open(config, tally, uri, remote, answerer);
    match tokio::time::timeout(config.handshake_timeout, opened).await {
        Ok(link) => link,
        Err(_) => {
            tally.handshake_failed();
            Err(Error::for_peer(remote, Cause::TimedOut))
        }
    }
}

async fn open(
    config: &StreamConfig,
    tally: &Arc<Tally>,
    uri: &Uri,
    remote: SocketAddr,
    answerer: Option<Answerer>,
) -> Result<Arc<Link>, Error> {
    let clock = answerer.as_ref().map_or_else(Clock::start, |answerer| answerer.clock);
    let began = clock.now();
    let failed = |source| Error::for_peer(remote, Cause::Network(Arc::new(source)));
    let connected = StreamSocket::connect(config.network.as_deref(), config.from, remote);
    let stream = connected.await.map_err(failed)?;
    stream.set_nodelay(config.nodelay).map_err(failed)?;
    let starting =
        ConnectionAttempt { config, tally, uri, remote, answerer, clock, began, info: None };
    if !uri.scheme().is_secure() {
        return starting.over(stream).await;
    }
    match tls::connect(&config.tls, uri.host(), stream).await {
        Ok(stream) if lacks_protocol(uri, tls::has_protocol(&stream)) => {
            tally.handshake_failed();
            let why = "it has not chosen the protocol coap (ALPN), which it must on this port (RFC 8323 section 8.2)";
            let source = io::Error::new(io::ErrorKind::InvalidData, why);
            Err(Error::for_peer(remote, Cause::Tls(Arc::new(source))))
        }
        Ok(stream) => {
            let info = tls::server(&config.tls, remote, &stream);
            ConnectionAttempt { info: Some(info), ..starting }.over(stream).await
        }
        Err(source) => {
            tally.handshake_failed();
            Err(Error::for_peer(remote, Cause::Tls(Arc::new(source))))
        }
    }
}

/// Whether a connection must not be used because the server has not chosen CoAP (RFC 8323 section 8.2): on the default
/// port of `coaps+tcp` it need not, and HTTP's upgrade names the protocol of a WebSocket.
fn lacks_protocol(uri: &Uri, has_protocol: bool) -> bool {
    !has_protocol && !uri.scheme().is_websocket() && uri.port() != uri.scheme().default_port()
}

#[cfg_attr(not(feature = "ws"), expect(dead_code, reason = "a WebSocket asks for the host"))]
struct ConnectionAttempt<'a> {
    config: &'a StreamConfig,
    tally: &'a Arc<Tally>,
    uri: &'a Uri,
    remote: SocketAddr,
    answerer: Option<Answerer>,
    clock: Clock,
    began: Instant,
    /// The server's certificate and identity over TLS.
    info: Option<PeerInfo>,
}

impl ConnectionAttempt<'_> {
    /// Runs over TCP or TLS, either directly or as a WebSocket.
    async fn over<T>(self, stream: T) -> Result<Arc<Link>, Error>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        #[cfg(feature = "ws")]
        if self.uri.scheme().is_websocket() {
            let max = self.config.connection.max_message_size;
            return match ws::connect(stream, &authority(self.uri), max).await {
                Ok(frames) => Ok(self.start(frames)),
                Err(source) => {
                    self.tally.handshake_failed();
                    Err(Error::for_peer(self.remote, Cause::Network(Arc::new(source))))
                }
            };
        }
        Ok(self.start(Bytes(stream)))
    }

    fn start<W: Wire>(self, wire: W) -> Arc<Link> {
        let framing: Framing = W::FRAMING;
        let mut connection = self.config.connection;
        let connecting = self.clock.now().saturating_since(self.began);
        let wait = self.config.csm_wait.max(connecting * 4);
        connection.csm_timeout = connection.csm_timeout.min(wait);
        let link = Link::new(self.remote, framing, connection, self.answerer, self.info);
        self.tally.established();
        tokio::spawn(Task::new(link.clone(), wire, self.tally.clone(), None));
        link
    }
}

/// Host and port in the form of HTTP's Host field.
#[cfg(feature = "ws")]
fn authority(uri: &Uri) -> String {
    let host =
        if uri.host().contains(':') { format!("[{}]", uri.host()) } else { uri.host().to_owned() };
    let default = if uri.scheme() == Scheme::CoapWs { 80 } else { 443 };
    if uri.port() == default { host } else { format!("{host}:{}", uri.port()) }
}
