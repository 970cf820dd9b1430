//! TLS with HTTP servers whose certificates the system's authorities have signed.

use crate::web_body::Broken;
use std::sync::{Arc, OnceLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The settings, which are made when the first server is asked.
#[derive(Debug, Default)]
pub(super) struct WebTls(OnceLock<Option<Arc<ClientConfig>>>);

impl WebTls {
    /// Secures a connection to a server of this name.
    pub(super) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Broken> {
        let settings = self.0.get_or_init(|| settings(system_roots())).clone();
        let settings = settings.ok_or(Broken("the system has no authorities for TLS"))?;
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| Broken("a certificate cannot have the host as its name"))?;
        let connected = TlsConnector::from(settings).connect(name, stream).await;
        connected.map_err(|_| Broken("the server has no certificate that is trusted"))
    }

    #[cfg(test)]
    pub(super) fn trusting(roots: RootCertStore) -> Self {
        Self(OnceLock::from(settings(roots)))
    }
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn settings(roots: RootCertStore) -> Option<Arc<ClientConfig>> {
    if roots.is_empty() {
        return None;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().ok()?;
    Some(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

    #[tokio::test]
    async fn a_server_is_trusted_by_its_authority_and_its_name() {
        let made = rcgen::generate_simple_self_signed(vec!["server.example".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.der().clone(), made.signing_key.serialize_der());
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let key = PrivatePkcs8KeyDer::from(key).into();
        let server = builder.with_single_cert(vec![certificate.clone()], key).unwrap();
        let (acceptor, listener) =
            (TlsAcceptor::from(Arc::new(server)), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = acceptor.accept(stream).await;
            }
        });
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let known = WebTls::trusting(roots);
        let connect = async |tls: &WebTls, host: &str| {
            tls.connect(host, TcpStream::connect(address).await.unwrap()).await.is_ok()
        };
        assert!(connect(&known, "server.example").await);
        assert!(!connect(&known, "other.example").await);
        assert!(!connect(&WebTls::trusting(RootCertStore::empty()), "server.example").await);
    }
}
