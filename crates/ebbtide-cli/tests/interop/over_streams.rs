//! RFC 8323 with other implementations: TCP, TLS and WebSockets, both ways.

use super::our_client::{Manners, ask_at};
use super::our_server::{DIGITS, Ours, digits, patient, serve};
use super::peers::{Peer, Running, answers_pings, free_address, output, present};
use super::private::write_private;
use ebbtide::stream::{Identity, Listen, Trust};
use ebbtide::{Client, Code, Scheme};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// An authority and a certificate of it for this machine, as files.
struct Certificates {
    dir: tempfile::TempDir,
}

impl Certificates {
    fn new() -> Self {
        use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Authority of a test");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "localhost");
        let certificate = params.signed_by(&key, &authority).unwrap();
        let dir = tempfile::tempdir().unwrap();
        for (name, pem) in [
            ("ca.pem", authority.pem()),
            ("cert.pem", certificate.pem()),
            ("key.pem", key.serialize_pem()),
        ] {
            write_private(&dir.path().join(name), &pem);
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn identity(&self) -> Identity {
        Identity::from_pem(&self.read("cert.pem"), &self.read("key.pem")).unwrap()
    }

    fn client(&self) -> Client {
        let config = patient().trust(Trust::authorities(&self.read("ca.pem")).unwrap());
        Client::with_config(config)
    }
}

/// Our server over every transport.
fn serve_all(certificates: &Certificates) -> Ours {
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let mut ours = serve("127.0.0.1");
    let identity = certificates.identity();
    for listen in [Listen::Tcp(any), Listen::Tls(any, identity.into()), Listen::Ws(any)] {
        ours.server = ours.server.listen(listen).unwrap();
    }
    ours
}

fn base(ours: &Ours, wanted: Scheme) -> String {
    let listeners = ours.server.listeners();
    let (_, address) = listeners.iter().find(|(scheme, _)| *scheme == wanted).unwrap();
    format!("{wanted}://{address}")
}

#[tokio::test]
async fn aiocoap_gets_everything_from_our_server_over_tcp_and_websockets() {
    let Some(peer) = Peer::find("aiocoap") else { return };
    let ours = serve_all(&Certificates::new());
    for (scheme, transport) in [(Scheme::CoapTcp, "tcpclient"), (Scheme::CoapWs, "ws")] {
        let choice = format!("AIOCOAP_CLIENT_TRANSPORT={transport}");
        let base = base(&ours, scheme);
        let said = output("env", &[&choice, peer.program(), "client", &base, "all"]).await;
        let text = String::from_utf8_lossy(&said.stdout);
        let errors = String::from_utf8_lossy(&said.stderr);
        assert!(text.contains("all answered"), "{scheme}: {text}\n{errors}");
        ours.unobserved().await;
    }
}

#[tokio::test]
async fn our_client_gets_everything_from_aiocoap_over_tcp_and_websockets() {
    let Some(peer) = Peer::find("aiocoap") else { return };
    // Its WebSockets are 3000 ports further on.
    let mut address = free_address("127.0.0.1");
    while address.port() > 60_000 {
        address = free_address("127.0.0.1");
    }
    let port = address.port().to_string();
    let choice = "AIOCOAP_SERVER_TRANSPORT=tcpserver:ws";
    let arguments = [choice, peer.program(), "server", &port, "127.0.0.1"];
    let (_server, _) = Running::ready("env", &arguments);
    let manners = Manners { too_large: None, bad_option: Code::CONTENT, ..Manners::default() };
    let client = Client::new();
    ask_at(&client, &format!("coap+tcp://{address}"), &manners).await;
    address.set_port(address.port() + 3000);
    ask_at(&client, &format!("coap+ws://{address}"), &manners).await;
}

const CLIENT: &str = "coap-client-openssl";
const SERVER: &str = "coap-server-openssl";

fn found() -> bool {
    let mut command = Command::new(CLIENT);
    let run = command.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status();
    present("libcoap", run.is_ok())
}

#[tokio::test]
async fn libcoap_gets_everything_from_our_server_over_tcp_and_tls() {
    if !found() {
        return;
    }
    let certificates = Certificates::new();
    let ours = serve_all(&certificates);
    let authority = certificates.path("ca.pem");
    for scheme in [Scheme::CoapTcp, Scheme::CoapsTcp] {
        let base = base(&ours, scheme);
        let ask = async |args: &[&str], path: &str| {
            let uri = format!("{base}{path}");
            let trust = ["-B", "20", "-R", &authority];
            let output = output(CLIENT, &[&trust[..], args, &[&uri]].concat()).await;
            let said = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&said).trim().to_owned()
        };
        assert_eq!(ask(&[], "/test").await, DIGITS, "{scheme}");
        for method in ["put", "post"] {
            assert_eq!(ask(&["-m", method, "-e", "hi"], "/echo").await, "hi", "{scheme}");
        }
        assert_eq!(ask(&[], "/separate").await, "that took a while", "{scheme}");
        assert_eq!(ask(&[], "/missing").await, "4.04", "{scheme}");
        let got = ask(&[], "/large").await;
        assert!(got.as_bytes() == digits(1 << 20), "{scheme}: {} bytes", got.len());
        let observed = ask(&["-w", "-s", "2"], "/time").await;
        assert!(observed.lines().count() >= 3, "{scheme}: three states at least: {observed}");
        ours.unobserved().await;
    }
    assert_eq!(ours.server.snapshot().connections.malformed, 0);
}

#[tokio::test]
async fn our_client_gets_everything_from_libcoap_over_tcp_and_tls() {
    if !found() {
        return;
    }
    let certificates = Certificates::new();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| certificates.path(name));
    let client = certificates.client();
    // Its TLS is one port further on.
    let mut address = free_address("127.0.0.1");
    let port = address.port().to_string();
    let arguments = ["-A", "127.0.0.1", "-p", &port, "-d", "10", "-c", &cert, "-j", &key, "-n"];
    let _server = Running::silent(SERVER, &arguments);
    for scheme in [Scheme::CoapTcp, Scheme::CoapsTcp] {
        let base = format!("{scheme}://{address}");
        answers_pings(&client, &base).await;
        assert!(client.get(base.as_str()).await.unwrap().text().contains("libcoap"), "{scheme}");
        let large = format!("{base}/large");
        let body = digits(1 << 20);
        let put = client.put(large.as_str(), body.clone()).await.unwrap();
        assert_eq!(put.code(), Code::CREATED, "{scheme}: {}", put.text());
        assert!(client.get(large.as_str()).await.unwrap().body() == &body, "{scheme}");
        assert_eq!(client.delete(large.as_str()).await.unwrap().code(), Code::DELETED, "{scheme}");
        assert_eq!(client.get(format!("{base}/async?1")).await.unwrap().text(), "done");
        let mut time = client.observe(format!("{base}/time")).await.unwrap();
        for _ in 0..3 {
            assert!(time.next().await.unwrap().unwrap().is_success(), "{scheme}");
        }
        drop(time);
        address.set_port(address.port() + 1);
    }
}
