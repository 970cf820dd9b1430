//! `coaps` with certificates of one authority on both sides: libcoap over OpenSSL and over GnuTLS, and the
//! adapters of Californium (Scandium) and go-coap (pion), both ways.

use super::our_server::DIGITS;
use super::peers::{EBBTIDE, LOSING, Peer, Running, free_address, output, present};
use super::private::write_private;
use super::relay::relay;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIBRARIES: [&str; 2] = ["openssl", "gnutls"];
const PEERS: [&str; 2] = ["californium", "go-coap"];

/// A folder with the certificate of an authority, those that it issued to us and to the peer, and one of
/// another authority.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (authority, names) in
            [("authority", &["ebbtide", "peer"][..]), ("others", &["stranger"])]
        {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, authority);
            let issuer =
                CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
            folder.write(&format!("{authority}.pem"), &issuer.pem());
            for name in names {
                let names =
                    vec![(*name).to_owned(), "localhost".to_owned(), "127.0.0.1".to_owned()];
                let mut params = CertificateParams::new(names).unwrap();
                params.distinguished_name.push(DnType::CommonName, *name);
                let key = KeyPair::generate().unwrap();
                let certificate = params.signed_by(&key, &issuer).unwrap().pem();
                folder.write(&format!("{name}.key"), &key.serialize_pem());
                folder.write(&format!("{name}.pem"), &(key.serialize_pem() + &certificate));
            }
        }
        folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write_private(&self.0.path().join(name), text);
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// The options of `ebbtide`.
    pub(crate) fn ours(&self, name: &str) -> Vec<String> {
        [
            "--cert",
            &format!("{name}.pem"),
            "--key",
            &format!("{name}.key"),
            "--cafile",
            "authority.pem",
        ]
        .map(|text| if text.starts_with('-') { text.to_owned() } else { self.path(text) })
        .to_vec()
    }

    /// The options of libcoap's programs.
    fn theirs(&self, name: &str) -> Vec<String> {
        ["-c", &format!("{name}.pem"), "-j", &format!("{name}.key"), "-C", "authority.pem"]
            .map(|text| if text.starts_with('-') { text.to_owned() } else { self.path(text) })
            .to_vec()
    }
}

fn found(program: &str) -> bool {
    let mut command = Command::new(program);
    let run = command.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status();
    present("libcoap", run.is_ok())
}

/// `ebbtide serve`, which requires certificates.
fn our_server(folder: &Folder) -> (Running, SocketAddr) {
    let address = free_address("127.0.0.1");
    let mut command = Command::new(EBBTIDE);
    command.args(["serve", "--bind", &format!("coaps://{address}")]).args(folder.ours("ebbtide"));
    let (running, first) = Running::started(command);
    assert_eq!(first, format!("serving at coaps://{address}"));
    (running, address)
}

/// What libcoap's client says to a request.
async fn ask(library: &str, args: &[String], server: SocketAddr, path: &str) -> String {
    let uri = format!("coaps://{server}{path}");
    let mut all: Vec<&str> = args.iter().map(String::as_str).collect();
    all.push(&uri);
    let output = output(format!("coap-client-{library}"), &all).await;
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned()
}

fn waiting(seconds: &str, args: Vec<String>) -> Vec<String> {
    [vec!["-B".to_owned(), seconds.to_owned()], args].concat()
}

#[tokio::test]
async fn libcoaps_clients_get_answers_from_us_with_a_certificate_of_the_authority_only() {
    let folder = Folder::new();
    for library in LIBRARIES {
        if !found(&format!("coap-client-{library}")) {
            continue;
        }
        let (_running, at) = our_server(&folder);
        let right = waiting("20", folder.theirs("peer"));
        assert_eq!(ask(library, &right, at, "/test").await, DIGITS, "{library}");
        assert!(ask(library, &right, at, "/large").await.len() > 1024, "{library}");
        let wrong = waiting("5", folder.theirs("stranger"));
        assert!(!ask(library, &wrong, at, "/test").await.contains(DIGITS), "{library}");
        let losing = relay(at, LOSING, 4).await;
        let patient = waiting("60", folder.theirs("peer"));
        assert_eq!(ask(library, &patient, losing, "/test").await, DIGITS, "{library}, with losses");
    }
}

/// Starts libcoap's server; the address is that of its DTLS port, which is the next one.
fn its_server(library: &str, folder: &Folder) -> (Running, SocketAddr) {
    let free = |address: SocketAddr| std::net::UdpSocket::bind(address).is_ok();
    let next = |at: SocketAddr| SocketAddr::new(at.ip(), at.port().saturating_add(1));
    let plain = std::iter::repeat_with(|| free_address("127.0.0.1"));
    let plain = plain.take(100).find(|address| free(next(*address))).unwrap();
    let port = plain.port().to_string();
    let certificates = folder.theirs("peer");
    let mut args = vec!["-A", "127.0.0.1", "-p", &port];
    args.extend(certificates.iter().map(String::as_str));
    (Running::silent(&format!("coap-server-{library}"), &args), next(plain))
}

/// The arguments of a GET as `name`.
async fn get(folder: &Folder, name: &str, uri: &str) -> Result<String, String> {
    let certificates = folder.ours(name);
    let mut args = vec!["get", "-B", "40"];
    args.extend(certificates.iter().map(String::as_str));
    args.push(uri);
    let output = output(EBBTIDE, &args).await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[tokio::test]
async fn we_get_answers_from_libcoaps_servers_and_are_told_what_is_wrong() {
    let folder = Folder::new();
    for library in LIBRARIES {
        if !found(&format!("coap-server-{library}")) {
            continue;
        }
        let (_running, at) = its_server(library, &folder);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let uri = format!("coaps://{at}/time");
        assert!(get(&folder, "ebbtide", &uri).await.unwrap().contains(':'), "{library}");
        // The server refuses our certificate.
        let error = get(&folder, "stranger", &uri).await.unwrap_err();
        assert!(error.contains("refused"), "{library}: {error}");
        // We refuse its certificate.
        let others = folder.path("others.pem");
        let distrust = output(EBBTIDE, &["get", "-B", "20", "--cafile", &others, &uri]).await;
        let error = String::from_utf8_lossy(&distrust.stderr).into_owned();
        assert!(error.contains("unknown authority"), "{library}: {error}");
        let losing = relay(at, LOSING, 4).await;
        let got = get(&folder, "ebbtide", &format!("coaps://{losing}/time")).await;
        assert!(got.unwrap().contains(':'), "{library}, with losses");
    }
}

/// An adapter of a peer, with the certificates of a folder.
fn adapter(peer: &Peer, folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(peer.program());
    command.args(args).env("INTEROP_CERTIFICATES", folder).env("INTEROP_CID", "0");
    command
}

#[tokio::test]
async fn californiums_and_go_coaps_clients_get_answers_from_us() {
    let folder = Folder::new();
    for peer in PEERS {
        let Some(found) = Peer::find(peer) else { continue };
        let (_running, at) = our_server(&folder);
        let at = relay(at, LOSING, 4).await;
        let mut command = adapter(&found, folder.0.path(), &["ask", &format!("coaps://{at}")]);
        let asked = move || {
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            writeln!(child.stdin.take().unwrap(), "GET /test wait=40").unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let lines: Vec<String> = lines.map_while(Result::ok).collect();
            let _ = child.kill();
            let _ = child.wait();
            lines
        };
        let lines = tokio::task::spawn_blocking(asked).await.unwrap();
        let expected: String = DIGITS.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(lines.iter().any(|line| line.ends_with(&expected)), "{peer}: {lines:?}");
    }
}

#[tokio::test]
async fn we_get_answers_from_californiums_and_go_coaps_servers() {
    let folder = Folder::new();
    for peer in PEERS {
        let Some(found) = Peer::find(peer) else { continue };
        let at = free_address("127.0.0.1");
        let port = at.port().to_string();
        let args = ["matrix-server", &port, "127.0.0.1", "coaps"];
        let (_running, _) = Running::started(adapter(&found, folder.0.path(), &args));
        let at = relay(at, LOSING, 4).await;
        let got = get(&folder, "ebbtide", &format!("coaps://{at}/test")).await;
        assert_eq!(got.unwrap().trim_end(), DIGITS, "{peer}");
        let error = get(&folder, "stranger", &format!("coaps://{at}/test")).await.unwrap_err();
        assert!(error.contains("refused"), "{peer}: {error}");
    }
}
