//! `coaps` with Mbed TLS, both ways: pre-shared keys, certificates, and connection IDs where the library
//! has RFC 9146.

use super::dtls_certificates::Folder;
use super::our_server::DIGITS;
use super::peers::{EBBTIDE, LOSING, Peer, Running, free_address, output};
use super::relay::relay;

/// The exit code with which the program says that its library does not have RFC 9146.
const NO_CONNECTION_IDS: i32 = 127;

/// What the program is told, and what `ebbtide` is, for each kind of credentials: as the client and as the
/// server.
struct Credentials {
    their_client: Vec<String>,
    our_server: Vec<String>,
    their_server: Vec<String>,
    our_client: Vec<String>,
}

fn texts<T: AsRef<str>>(texts: &[T]) -> Vec<String> {
    texts.iter().map(|text| text.as_ref().to_owned()).collect()
}

fn credentials(folder: &Folder) -> [Credentials; 2] {
    folder.write("keys", "device:secret\n");
    let [authority, pem, key] = ["authority.pem", "peer.pem", "peer.key"].map(|n| folder.path(n));
    let key_of_device = texts(&["psk", "device", "secret"]);
    [
        Credentials {
            their_client: key_of_device.clone(),
            our_server: vec!["--psk-file".to_owned(), folder.path("keys")],
            their_server: key_of_device,
            our_client: texts(&["-u", "device", "-k", "secret"]),
        },
        Credentials {
            their_client: texts(&["cert", &authority, &pem, &key]),
            our_server: folder.ours("ebbtide"),
            their_server: texts(&["cert", &pem, &key, &authority]),
            our_client: folder.ours("ebbtide"),
        },
    ]
}

fn run<'a>(arguments: &'a [String], cid: Option<&'a str>) -> Vec<&'a str> {
    arguments.iter().map(String::as_str).chain(cid).collect()
}

/// With connection IDs, if the library has them, and without.
async fn connection_ids(peer: &Peer) -> Vec<Option<&'static str>> {
    let has = output(peer.program(), &["has-cid"]).await.status.code();
    if has == Some(NO_CONNECTION_IDS) { vec![None] } else { vec![None, Some("cid")] }
}

#[tokio::test]
async fn their_client_gets_a_resource_from_us() {
    let Some(peer) = Peer::find("mbedtls") else { return };
    let folder = Folder::new();
    for credentials in credentials(&folder) {
        let at = free_address("127.0.0.1");
        let mut arguments = texts(&["serve", "--bind", &format!("coaps://{at}")]);
        arguments.extend(credentials.our_server);
        let (_server, _) = Running::ready(EBBTIDE, &run(&arguments, None));
        for cid in connection_ids(&peer).await {
            let mut arguments = texts(&["ask", "localhost", &at.port().to_string()]);
            arguments.extend(credentials.their_client.clone());
            let asked = output(peer.program(), &run(&arguments, cid)).await;
            let said = String::from_utf8_lossy(&asked.stderr);
            assert_eq!(String::from_utf8_lossy(&asked.stdout).trim(), DIGITS, "{said}");
            assert!(said.contains("AES-128-CCM-8"), "the suite that we prefer: {said}");
            // Servers issue connection IDs of six bytes.
            assert_eq!(said.contains("cid of the peer: 6 bytes"), cid.is_some(), "{said}");
        }
    }
}

#[tokio::test]
async fn our_client_gets_a_resource_from_them() {
    let Some(peer) = Peer::find("mbedtls") else { return };
    let folder = Folder::new();
    for credentials in credentials(&folder) {
        for cid in connection_ids(&peer).await {
            let at = free_address("127.0.0.1");
            let mut arguments = texts(&["serve", &at.port().to_string()]);
            arguments.extend(credentials.their_server.clone());
            let (_server, _) = Running::ready(peer.program(), &run(&arguments, cid));
            let lossy = relay(at, LOSING, 4).await;
            let mut arguments = texts(&["get", "-B", "60"]);
            arguments.extend(credentials.our_client.clone());
            arguments.push(format!("coaps://{lossy}/test"));
            let got = output(EBBTIDE, &run(&arguments, None)).await;
            let said = String::from_utf8_lossy(&got.stderr);
            assert_eq!(String::from_utf8_lossy(&got.stdout).trim(), DIGITS, "{said}");
        }
    }
}
