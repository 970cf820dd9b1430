//! A server over every transport, and certificates for it.

use bytes::Bytes;
use ebbtide::server::{Call, Router, Subject, get, post};
use ebbtide::stream::{Identity, Listen, Trust};
use ebbtide::{Client, ClientConfig, Code, Response, Scheme, Server, ServerConfig};
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const LARGE: usize = 300_000;

pub(crate) fn large() -> Bytes {
    (0..LARGE).map(|n| b'0' + (n % 10) as u8).collect()
}

/// An authority, and a certificate of it for 127.0.0.1 and localhost.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Authority of a test");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        Self { authority: authority.pem(), chain: certificate.pem(), key: key.serialize_pem() }
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::from_pem(self.chain.as_bytes(), self.key.as_bytes()).unwrap()
    }

    /// A client that trusts this authority.
    pub(crate) fn client(&self) -> Client {
        let config =
            ClientConfig::new().trust(Trust::authorities(self.authority.as_bytes()).unwrap());
        Client::with_config(config)
    }
}

pub(crate) fn router(time: &Subject) -> Router {
    let echo = |call: &Call<'_>| {
        Response::new(Code::CHANGED).payload(Bytes::copy_from_slice(call.payload()))
    };
    Router::new()
        .route("/test", get(|_: &Call<'_>| Response::content("hello")))
        .route("/large", get(|_: &Call<'_>| Response::content(large())))
        .route("/echo", post(echo).put(echo))
        .route(
            "/slow",
            get(|| async {
                // Longer than `ServerConfig::acknowledge_after`.
                tokio::time::sleep(Duration::from_millis(200)).await;
                Response::content("slow")
            }),
        )
        .route("/time", get(|_: &Call<'_>| Response::content("now")).observable(time))
}

/// A server at a port of the system's choice for each of the schemes.
pub(crate) fn serve(config: ServerConfig, identity: &Identity) -> (Server, Subject) {
    let time = Subject::new();
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let server = Server::with_config(router(&time), config, [any]).unwrap();
    let server = server.listen(Listen::Tcp(any)).unwrap();
    let server = server.listen(Listen::Tls(any, identity.clone().into())).unwrap();
    let server = server.listen(Listen::Ws(any)).unwrap();
    let server = server.listen(Listen::Wss(any, identity.clone().into())).unwrap();
    (server, time)
}

/// A server for TCP alone.
pub(crate) fn serve_tcp(config: ServerConfig) -> (Server, SocketAddr) {
    serve_tcp_with(router(&Subject::new()), config)
}

pub(crate) fn serve_tcp_with(router: Router, config: ServerConfig) -> (Server, SocketAddr) {
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let none: [SocketAddr; 0] = [];
    let server = Server::with_config(router, config, none).unwrap();
    let server = server.listen(Listen::Tcp(any)).unwrap();
    let address = server.listeners()[0].1;
    (server, address)
}

/// `coap+tcp://127.0.0.1:PORT` and the like.
pub(crate) fn base(server: &Server, wanted: Scheme) -> String {
    if wanted == Scheme::Coap {
        return format!("coap://{}", server.local_addrs()[0]);
    }
    let listeners = server.listeners();
    let (_, address) = listeners.iter().find(|(scheme, _)| *scheme == wanted).unwrap();
    format!("{wanted}://{address}")
}
