//! TLS of a server: the certificate that it shows, and those that it asks clients for.

use super::socket::StreamSocket;
use super::tls::{ALPN, Identity, TlsError, Trust, info_of, provider};
use crate::net::clock::Clock;
use crate::net::handshake_gate::HandshakeGate;
use crate::net::peer::PeerInfo;
use core::fmt;
use ebbtide_core::turns::TurnLimits;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::{
    Acceptor as HelloReader, ClientHello, ResolvesServerCert, WebPkiClientVerifier,
};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// As those of DTLS (`ebbtide_dtls::Limits`).
const HANDSHAKES: TurnLimits =
    TurnLimits { per_second: 64, at_once: 128, waiting: 1024, sources: 16_384 };

/// How a server speaks TLS. All clones are the same: a certificate that is replaced in one of them is
/// replaced everywhere.
///
/// ```no_run
/// use ebbtide::stream::{Identity, TlsServer, Trust};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let read = || Identity::from_pem(&std::fs::read("chain.pem")?, &std::fs::read("key.pem")?)
///     .map_err(std::io::Error::other);
/// let authorities = Trust::authorities(&std::fs::read("devices.pem")?)?;
/// let tls = TlsServer::new(read()?).require_client_certificates(&authorities)?;
/// // Later, when the files have changed:
/// tls.set_identity(&read()?)?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct TlsServer {
    shown: Arc<CurrentCertificate>,
    pub(super) clients: Arc<RwLock<Clients>>,
}

/// The clients that are asked for a certificate.
#[derive(Clone, Debug)]
pub(super) enum Clients {
    None,
    Optional(Arc<RootCertStore>),
    Required(Arc<RootCertStore>),
}

impl Clients {
    /// The authorities.
    pub(super) fn roots(&self) -> Option<&Arc<RootCertStore>> {
        match self {
            Self::None => None,
            Self::Optional(roots) | Self::Required(roots) => Some(roots),
        }
    }
}

/// The certificate that is shown. A connection shows the one that there is when it begins.
struct CurrentCertificate(
    RwLock<Option<Arc<CertifiedKey>>>,
    #[cfg(feature = "dtls-cert")] ForDtls,
    #[cfg(feature = "dtls13")] ForDtls13,
);

/// The certificate for DTLS, if DTLS can show it.
#[cfg(feature = "dtls-cert")]
type ForDtls = RwLock<Option<Arc<ebbtide_dtls::CertifiedKey>>>;

#[cfg(feature = "dtls13")]
type ForDtls13 = RwLock<Option<ebbtide_dtls13::Certificate>>;

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is nobody's business.
        f.write_str("Shown(..)")
    }
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = match self.clients() {
            Clients::None => "not asked",
            Clients::Optional(_) => "asked",
            Clients::Required(_) => "required",
        };
        f.debug_struct("TlsServer").field("client_certificates", &clients).finish_non_exhaustive()
    }
}

impl From<Identity> for TlsServer {
    fn from(identity: Identity) -> Self {
        Self::new(identity)
    }
}

impl TlsServer {
    /// A server with this certificate that asks its clients for none.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        // It was accepted when it was read.
        let shown = CurrentCertificate(
            RwLock::new(identity.certified().ok()),
            #[cfg(feature = "dtls-cert")]
            RwLock::new(identity.for_dtls().ok()),
            #[cfg(feature = "dtls13")]
            RwLock::new(identity.for_dtls13()),
        );
        Self { shown: Arc::new(shown), clients: Arc::new(RwLock::new(Clients::None)) }
    }

    /// The clients that are asked for a certificate now.
    pub(super) fn clients(&self) -> Clients {
        self.clients.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the certificate can also be shown over DTLS, which needs a key on the curve P-256.
    #[cfg(feature = "dtls-cert")]
    #[must_use]
    pub fn is_for_dtls(&self) -> bool {
        self.shown_over_dtls().is_some()
    }

    /// The certificate that is shown over DTLS.
    #[cfg(feature = "dtls-cert")]
    pub(super) fn shown_over_dtls(&self) -> Option<Arc<ebbtide_dtls::CertifiedKey>> {
        self.shown.1.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The certificate for DTLS 1.3.
    #[cfg(feature = "dtls13")]
    pub(super) fn shown_over_dtls13(&self) -> Option<ebbtide_dtls13::Certificate> {
        self.shown.2.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks clients for a certificate of one of these authorities, and refuses those without one. The
    /// first DNS name in it is their [identity](crate::server::Call::identity).
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such authority: [`Trust::dangerously_anyone`] names none.
    pub fn require_client_certificates(mut self, authorities: &Trust) -> Result<Self, TlsError> {
        self.clients = Arc::new(RwLock::new(Clients::Required(some_roots(authorities)?)));
        Ok(self)
    }

    /// Asks clients for a certificate of one of these authorities, and serves those without one as well:
    /// they have no identity.
    ///
    /// # Errors
    ///
    /// As [`Self::require_client_certificates`].
    pub fn request_client_certificates(mut self, authorities: &Trust) -> Result<Self, TlsError> {
        self.clients = Arc::new(RwLock::new(Clients::Optional(some_roots(authorities)?)));
        Ok(self)
    }

    /// Accepts clients with a certificate of these authorities from now on, instead of those
    /// before: over TLS and DTLS, when a session begins; over TLS also when one is resumed. A
    /// server that asks for no certificates goes on asking for none. Returns whether they are
    /// others than before.
    ///
    /// # Errors
    ///
    /// As [`Self::require_client_certificates`]. The authorities before then stay.
    pub fn set_client_authorities(&self, authorities: &Trust) -> Result<bool, TlsError> {
        let new = some_roots(authorities)?;
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *clients {
            Clients::Optional(roots) | Clients::Required(roots) if roots.roots != new.roots => {
                *roots = new;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Shows another certificate from now on, to connections that begin later.
    ///
    /// # Errors
    ///
    /// Returns an error if the certificate is not usable. The one before then stays.
    pub fn set_identity(&self, identity: &Identity) -> Result<(), TlsError> {
        let certified = identity.certified()?;
        *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = Some(certified);
        #[cfg(feature = "dtls-cert")]
        if let Ok(certified) = identity.for_dtls() {
            *self.shown.1.write().unwrap_or_else(PoisonError::into_inner) = Some(certified);
        }
        #[cfg(feature = "dtls13")]
        {
            // Without one that DTLS 1.3 can show, clients get DTLS 1.2.
            let own = identity.for_dtls13();
            *self.shown.2.write().unwrap_or_else(PoisonError::into_inner) = own;
        }
        Ok(())
    }

    /// An acceptor of connections for another protocol than CoAP, with its name in ALPN (RFC 7301), such as
    /// `http/1.1`. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if the settings are not usable.
    pub fn acceptor_of(&self, protocol: &'static [u8]) -> Result<TlsAcceptor, TlsError> {
        Ok(TlsAcceptor(self.accepting(Clock::start(), protocol)?))
    }

    pub(super) fn acceptor(&self, clock: Clock) -> Result<Acceptor, TlsError> {
        self.accepting(clock, ALPN)
    }

    fn accepting(&self, clock: Clock, protocol: &'static [u8]) -> Result<Acceptor, TlsError> {
        let clients = self.clients();
        let config = self.settings(&clients, protocol)?;
        let current = RwLock::new((clients, config));
        Ok(Acceptor {
            tls: self.clone(),
            protocol,
            current,
            gate: HandshakeGate::new(clock, HANDSHAKES),
        })
    }

    fn settings(
        &self,
        clients: &Clients,
        protocol: &'static [u8],
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Rejected)?;
        let verifier = |roots: &Arc<RootCertStore>| {
            WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
        };
        let built = match clients {
            Clients::None => None,
            Clients::Optional(roots) => Some(verifier(roots).allow_unauthenticated().build()),
            Clients::Required(roots) => Some(verifier(roots).build()),
        };
        let builder = match built.transpose() {
            Ok(None) => builder.with_no_client_auth(),
            Ok(Some(verifier)) => builder.with_client_cert_verifier(verifier),
            Err(_) => return Err(TlsError::NoCertificate),
        };
        let mut config = builder.with_cert_resolver(self.shown.clone());
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(Arc::new(config))
    }
}

fn some_roots(authorities: &Trust) -> Result<Arc<RootCertStore>, TlsError> {
    let roots = authorities.roots()?;
    if roots.is_empty() { Err(TlsError::NoCertificate) } else { Ok(Arc::new(roots)) }
}

/// Accepts TLS over connections.
pub(super) struct Acceptor {
    tls: TlsServer,
    protocol: &'static [u8],
    /// The settings for these clients. With other authorities there are others, which know no session to resume.
    current: RwLock<(Clients, Arc<ServerConfig>)>,
    gate: Arc<HandshakeGate>,
}

impl Acceptor {
    /// The settings for the present authorities of clients.
    fn settings(&self) -> io::Result<Arc<ServerConfig>> {
        let clients = self.tls.clients();
        let is_same = |before: &Clients| match (before.roots(), clients.roots()) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if is_same(&current.0) {
            return Ok(current.1.clone());
        }
        drop(current);
        let settings = self.tls.settings(&clients, self.protocol).map_err(io::Error::other)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = (clients, settings.clone());
        Ok(settings)
    }

    /// Whether a handshake from this address may begin.
    pub(super) fn has_room(&self, from: IpAddr) -> bool {
        self.gate.has_room(from)
    }

    pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        from: IpAddr,
    ) -> io::Result<TlsStream<S>> {
        let hello = LazyConfigAcceptor::new(HelloReader::default(), stream).await?;
        let Some(turn) = self.gate.turn(from).await else {
            return Err(io::Error::other("its address has its share of handshakes"));
        };
        // The first step answers the hello, which is the expensive part.
        let mut handshake = std::pin::pin!(hello.into_stream(self.settings()?));
        let first = poll_fn(|cx| Poll::Ready(handshake.as_mut().poll(cx))).await;
        drop(turn);
        match first {
            Poll::Ready(done) => done,
            Poll::Pending => handshake.await,
        }
    }
}

/// Accepts TLS connections for another protocol than CoAP. The addresses of clients have equal shares of the
/// handshakes.
pub struct TlsAcceptor(Acceptor);

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TlsAcceptor").field(&self.0.tls).finish()
    }
}

impl TlsAcceptor {
    /// Performs the handshake with a client at this address. Dropping the future closes the connection; it has no
    /// time limit of its own.
    ///
    /// # Errors
    ///
    /// Returns an error if the handshake fails, or if too many handshakes of this address wait.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin + Send>(
        &self,
        stream: S,
        from: IpAddr,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<S>> {
        if !self.0.has_room(from) {
            return Err(io::Error::other("its address has its share of handshakes"));
        }
        self.0.accept(stream, from).await
    }
}

/// The client at this address, with the certificate that it has shown and the name in it.
pub(super) fn peer(address: SocketAddr, stream: &TlsStream<StreamSocket>) -> PeerInfo {
    info_of(address, stream.get_ref().1.peer_certificates())
}
