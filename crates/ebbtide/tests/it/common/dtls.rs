//! Certificates, and servers and clients of `coaps` that use them.

use super::errors::source;
use ebbtide::dtls::{Certificates, Failure};
use ebbtide::server::{Call, Router, get};
use ebbtide::stream::{Identity, Trust};
use ebbtide::{Client, ClientConfig, Response, Server, ServerConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::net::SocketAddr;

pub(crate) type Issuer = CertifiedIssuer<'static, KeyPair>;

/// An authority with this key.
pub(crate) fn authority_with(name: &str, key: KeyPair) -> Issuer {
    CertifiedIssuer::self_signed(issuing(name), key).unwrap()
}

pub(crate) fn issuing(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

pub(crate) fn trust(authority: &Issuer) -> Trust {
    Trust::authorities(authority.pem().as_bytes()).unwrap()
}

pub(crate) fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

pub(crate) fn issue(authority: &Issuer, params: &CertificateParams) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
}

/// A certificate of a server of this machine.
pub(crate) fn of_server(authority: &Issuer) -> Identity {
    issue(authority, &params(&["localhost", "127.0.0.1"]))
}

pub(crate) fn local() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A server that tells its clients who they are, and the address of its only DTLS socket.
pub(crate) fn serve_under(config: ServerConfig) -> (Server, SocketAddr) {
    let router = Router::new()
        .route("/long", get(|_: &Call<'_>| Response::content("x".repeat(3000))))
        .route(
            "/who",
            get(|call: &Call<'_>| {
                let identity = String::from_utf8_lossy(call.identity().unwrap_or(b"nobody"));
                Response::content(format!("{identity} {}", call.certificate().is_some()))
            }),
        );
    let none: [&str; 0] = [];
    let server = Server::with_config(router, config, none).unwrap();
    let address = server.dtls_addrs()[0];
    (server, address)
}

/// A client's configuration.
pub(crate) fn config(trust: &Trust, own: Option<&Identity>) -> ClientConfig {
    ClientConfig::new().certificates(Certificates::new(trust, own).unwrap())
}

/// Who the server takes the client for.
pub(crate) async fn ask(client: &Client, at: SocketAddr) -> Result<String, Failure> {
    match client.get(format!("coaps://{at}/who")).await {
        Ok(response) => Ok(response.text().into_owned()),
        Err(error) => match source(&error) {
            Some(reason) if error.remote() == Some(at) => Err(reason),
            _ => panic!("{error}"),
        },
    }
}
