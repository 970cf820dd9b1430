//! Raw public keys (RFC 7250) over DTLS: with each other, and with libcoap's programs over GnuTLS.

use crate::common::child_process::ChildProcess;
use ebbtide::dtls::{
    Certificates, DtlsBind, Fingerprint, RawKey, RawKeyServer, TrustedKeys, trusted_keys,
};
use ebbtide::server::{Call, Router, get};
use ebbtide::{Client, ClientConfig, Error, Server, ServerConfig};
use rcgen::KeyPair;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A key pair, and its private and public half as PEM.
fn key() -> (RawKey, String, String) {
    let pair = KeyPair::generate().unwrap();
    let (own, public) = (pair.serialize_pem(), pair.public_key_pem());
    (RawKey::from_pem(own.as_bytes()).unwrap(), own, public)
}

fn trusted(key: &RawKey, identity: &str) -> TrustedKeys {
    TrustedKeys::new().and(key.fingerprint(), identity)
}

/// A server that says whom it takes the client for, and its URI.
fn serve(own: &RawKey, clients: impl Into<Option<TrustedKeys>>) -> (Server, String) {
    let who = async |call: Call<'static>| {
        String::from_utf8_lossy(call.identity().unwrap_or(b"nobody")).into_owned()
    };
    let bind = DtlsBind::with_raw_key(([127, 0, 0, 1], 0), own, clients);
    let config = ServerConfig::new().bind_dtls(bind);
    let server =
        Server::without_plain_sockets(Router::new().route("/who", get(who)), config).unwrap();
    let uri = format!("coaps://{}/who", server.dtls_addrs()[0]);
    (server, uri)
}

async fn ask(uri: &str, servers: TrustedKeys, own: Option<&RawKey>) -> Result<String, Error> {
    let config = ClientConfig::new().certificates(Certificates::raw_keys(servers, own));
    Ok(Client::with_config(config).get(uri).await?.text().into_owned())
}

#[tokio::test]
async fn each_side_knows_the_other_by_its_key_and_refuses_others() {
    let ((server, ..), (device, ..), (stranger, ..)) = (key(), key(), key());
    let (_serving, uri) = serve(&server, trusted(&device, "lamp 7"));
    let known = || trusted(&server, "");
    assert_eq!(ask(&uri, known(), Some(&device)).await.unwrap(), "lamp 7");
    for (servers, own, why) in [
        (trusted(&stranger, ""), Some(&device), "raw public key is not trusted"),
        (known(), Some(&stranger), "certificate_unknown"),
        (known(), None, "unsupported_certificate"),
    ] {
        let error = ask(&uri, servers, own).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let (_open, uri) = serve(&server, None);
    for own in [None, Some(&device)] {
        assert_eq!(ask(&uri, known(), own).await.unwrap(), "nobody");
    }
}

#[tokio::test]
async fn a_key_that_is_removed_ends_its_sessions_and_is_refused_from_then_on() {
    let ((server, ..), (removed, ..), (kept, ..)) = (key(), key(), key());
    let both = trusted(&removed, "removed").and(kept.fingerprint(), "kept");
    let keys = RawKeyServer::new(&server, both);
    let shown = async |call: Call<'static>| {
        assert_eq!(call.certificate(), None);
        Fingerprint::of(call.raw_public_key().unwrap()).to_string()
    };
    let bind = DtlsBind::with_raw_keys(([127, 0, 0, 1], 0), &keys);
    let config = ServerConfig::new().bind_dtls(bind);
    let router = Router::new().route("/shown", get(shown));
    let serving = Server::without_plain_sockets(router, config).unwrap();
    let uri = format!("coaps://{}/shown", serving.dtls_addrs()[0]);
    let client = |own| {
        let certificates = Certificates::raw_keys(trusted(&server, ""), Some(own));
        Client::with_config(ClientConfig::new().certificates(certificates))
    };
    let clients = [client(&removed), client(&kept)];
    for (client, own) in clients.iter().zip([&removed, &kept]) {
        assert_eq!(client.get(&uri).await.unwrap().text(), own.fingerprint().to_string());
    }
    keys.set_clients(trusted(&kept, "kept"));
    serving.handle().end_sessions(|peer| keys.serves(peer));
    assert_eq!(serving.snapshot().dtls.sessions, 1);
    assert!(clients[1].get(&uri).await.is_ok());
    // The alert forbids the client to resume the session.
    let mut waits = 0;
    while clients[0].dtls_session(serving.dtls_addrs()[0]).is_some() {
        waits += 1;
        assert!(waits < 6_000, "for a minute");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for refused in [&clients[0], &client(&removed)] {
        let error = refused.get(&uri).await.unwrap_err().to_string();
        assert!(error.contains("certificate_unknown"), "{error}");
    }
    // Its own key is replaced as well.
    keys.set_key(&removed);
    let error = client(&kept).get(&uri).await.unwrap_err().to_string();
    assert!(error.contains("not trusted"), "{error}");
}

#[tokio::test]
async fn libcoap_s_client_and_server_know_our_key_and_we_theirs() {
    let mut program = Command::new("coap-client-gnutls");
    if program.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        println!("skipped: no coap-client-gnutls");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ((server, ..), (device, private, public)) = (key(), key());
    let file = folder.path().join("device.pem");
    std::fs::write(&file, format!("{private}{public}")).unwrap();

    let text = format!("lamp {}", device.fingerprint());
    let (_serving, uri) = serve(&server, trusted_keys(&text).unwrap());
    let mut asked = Command::new("coap-client-gnutls");
    asked.args(["-B", "20", "-M"]).arg(&file).arg(&uri);
    let said = tokio::task::spawn_blocking(move || asked.output()).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), "lamp", "{said:?}");

    // The port of a socket that is closed again, and the one above it, which libcoap takes for coaps.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut program = Command::new("coap-server-gnutls");
    program.args(["-A", "127.0.0.1", "-p", &(port - 1).to_string(), "-n", "-M"]).arg(&file);
    let program = program.stdout(Stdio::null()).stderr(Stdio::null());
    let _serving = ChildProcess(program.spawn().unwrap());
    let uri = format!("coaps://127.0.0.1:{port}/");
    let servers = TrustedKeys::new().and(Fingerprint::of(device.public_key()), "libcoap");
    let mut answer = Err("it has not been asked".to_owned());
    for _ in 0..100 {
        let asked = ask(&uri, servers.clone(), Some(&server)).await;
        answer = asked.map_err(|error| error.to_string());
        if answer.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(answer.is_ok_and(|text| text.contains("libcoap")));
    let other = ask(&uri, trusted(&server, ""), Some(&server)).await.unwrap_err().to_string();
    assert!(other.contains("is not trusted"), "{other}");
}
