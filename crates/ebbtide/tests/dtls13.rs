//! `coaps` over DTLS 1.3, with certificates.

#![cfg(feature = "dtls13")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is how it fails")]

use ebbtide::dtls::{Certificates, Dtls13Config, DtlsBind, Failure};
use ebbtide::server::{Call, Router, get};
use ebbtide::stream::{Identity, TlsServer, Trust};
use ebbtide::{Client, Config, Error, Response, Server};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::net::SocketAddr;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn trust(authority: &Issuer) -> Trust {
    Trust::authorities(authority.pem().as_bytes()).unwrap()
}

fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

fn issue(authority: &Issuer, params: &CertificateParams) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
}

fn of_server(authority: &Issuer) -> Identity {
    issue(authority, &params(&["localhost", "127.0.0.1"]))
}

fn local() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A server of both versions.
fn serve(tls: &TlsServer) -> (Server, SocketAddr) {
    serve_with(tls, Dtls13Config::default())
}

fn serve_with(tls: &TlsServer, settings: impl Into<Option<Dtls13Config>>) -> (Server, SocketAddr) {
    let router = Router::new()
        .route("/long", get(|_: &Call<'_>| Response::content("x".repeat(3000))))
        .route(
            "/who",
            get(|call: &Call<'_>| {
                let identity = String::from_utf8_lossy(call.identity().unwrap_or(b"nobody"));
                Response::content(format!("{identity} {}", call.certificate().is_some()))
            }),
        );
    let bind = DtlsBind::with_certificates(local(), tls).unwrap();
    let none: [&str; 0] = [];
    let config = Config::new().bind_dtls(bind).dtls13(settings);
    let server = Server::with_config(router, config, none).unwrap();
    let address = server.dtls_addrs()[0];
    (server, address)
}

fn config(trust: &Trust, own: Option<&Identity>) -> Config {
    Config::new().certificates(Certificates::new(trust, own).unwrap())
}

/// A client of DTLS 1.3.
fn client(trust: &Trust, own: Option<&Identity>) -> Client {
    Client::with_config(config(trust, own).dtls13(Dtls13Config::default()))
}

async fn ask(client: &Client, at: SocketAddr) -> Result<String, Failure> {
    match client.get(format!("coaps://{at}/who")).await {
        Ok(response) => Ok(response.text().into_owned()),
        Err(Error::Dtls { reason, .. }) => Err(reason),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_client_and_a_server_speak_dtls_1_3() {
    let authority = authority("authority");
    let (server, at) = serve(&TlsServer::new(of_server(&authority)));
    let client = client(&trust(&authority), None);
    assert_eq!(ask(&client, at).await.unwrap(), "nobody false");
    let long = client.get(format!("coaps://{at}/long")).await.unwrap();
    assert_eq!(long.text(), "x".repeat(3000), "block by block over one session");
    let counters = server.dtls_counters()[0];
    assert_eq!((counters.hellos_verified, counters.established), (1, 1), "{counters:?}");
}
