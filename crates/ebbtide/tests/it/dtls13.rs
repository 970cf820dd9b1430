//! `coaps` over DTLS 1.3, with certificates.

#![cfg(feature = "dtls13")]

use crate::common::errors::source;
use ebbtide::dtls::{CertificateError, Dtls13Config, DtlsBind, Failure};
use ebbtide::server::Router;
use ebbtide::stream::{Identity, TlsServer, Trust};
use ebbtide::{Client, Server, ServerConfig};
use rcgen::{KeyPair, date_time_ymd};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::UdpSocket;

use crate::common::dtls::{
    Issuer, ask, authority_with, config, issue, local, of_server, params, serve_under, trust,
};

fn authority(name: &str) -> Issuer {
    authority_with(name, KeyPair::generate().unwrap())
}

/// A server of both versions.
fn serve(tls: &TlsServer) -> (Server, SocketAddr) {
    serve_with(tls, Dtls13Config::default())
}

fn serve_with(tls: &TlsServer, settings: impl Into<Option<Dtls13Config>>) -> (Server, SocketAddr) {
    let bind = DtlsBind::with_certificates(local(), tls).unwrap();
    serve_under(ServerConfig::new().bind_dtls(bind).dtls13(settings))
}

/// A client of DTLS 1.3.
fn client(trust: &Trust, own: Option<&Identity>) -> Client {
    Client::with_config(config(trust, own).dtls13(Dtls13Config::default()))
}

#[tokio::test]
async fn a_client_and_a_server_speak_dtls_1_3() {
    let authority = authority("authority");
    let (server, at) = serve(&TlsServer::new(of_server(&authority)));
    let client = client(&trust(&authority), None);
    assert_eq!(ask(&client, at).await.unwrap(), "nobody false");
    let long = client.get(format!("coaps://{at}/long")).await.unwrap();
    assert_eq!(long.text(), "x".repeat(3000), "block by block over one session");
    let counters = server.snapshot().dtls;
    assert_eq!((counters.hellos_challenged, counters.established()), (1, 1), "{counters:?}");
}

#[tokio::test]
async fn the_hello_decides_which_version_serves() {
    let authority = authority("authority");
    let (server, at) = serve(&TlsServer::new(of_server(&authority)));
    let older = Client::with_config(config(&trust(&authority), None));
    let newer = client(&trust(&authority), None);
    for client in [&older, &newer, &older] {
        assert_eq!(ask(client, at).await.unwrap(), "nobody false");
    }
    assert!(older.dtls_session(at).is_some(), "DTLS 1.2 can be resumed");
    assert!(newer.dtls_session(at).is_none(), "DTLS 1.3 cannot be resumed here");
    assert_eq!(server.snapshot().dtls.established(), 2);
}

#[tokio::test]
async fn a_server_of_dtls_1_2_alone_is_reported_as_such() {
    let authority = authority("authority");
    let (_server, at) = serve_with(&TlsServer::new(of_server(&authority)), None);
    let refused = ask(&client(&trust(&authority), None), at).await;
    assert_eq!(refused, Err(Failure::NoCommonVersion));
}

#[tokio::test]
async fn a_session_with_a_peer_that_is_not_to_be_served_any_more_ends() {
    let authority = authority("authority");
    let tls = TlsServer::new(of_server(&authority));
    let (server, at) = serve(&tls.require_client_certificates(&trust(&authority)).unwrap());
    let devices = ["a.example", "b.example"]
        .map(|name| client(&trust(&authority), Some(&issue(&authority, &params(&[name])))));
    for device in &devices {
        assert!(ask(device, at).await.is_ok());
    }
    server.handle().end_sessions(|peer| peer.identity != b"a.example");
    assert_eq!(server.snapshot().dtls.sessions, 1);
    // Nothing else has changed, so it may begin another one.
    assert_eq!(ask(&devices[0], at).await.unwrap(), "a.example true");
    assert_eq!(server.snapshot().dtls.established(), 3);
}

#[tokio::test]
async fn both_sides_show_certificates_and_the_handler_knows_the_client() {
    let authority = authority("authority");
    let tls = TlsServer::new(of_server(&authority));
    let (_server, at) = serve(&tls.require_client_certificates(&trust(&authority)).unwrap());
    let device = issue(&authority, &params(&["device-7.example"]));
    let client = client(&trust(&authority), Some(&device));
    assert_eq!(ask(&client, at).await.unwrap(), "device-7.example true");
}

#[tokio::test]
async fn a_server_whose_certificate_is_not_accepted_is_refused_with_the_reason() {
    let (ours, others) = (authority("ours"), authority("others"));
    let mut expired = params(&["127.0.0.1"]);
    (expired.not_before, expired.not_after) =
        (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1));
    for (identity, error) in [
        (of_server(&others), CertificateError::UnknownAuthority),
        (issue(&ours, &params(&["elsewhere.example"])), CertificateError::WrongName),
        (issue(&ours, &expired), CertificateError::Expired),
    ] {
        let (server, at) = serve(&TlsServer::new(identity));
        let refused = ask(&client(&trust(&ours), None), at).await;
        assert_eq!(refused, Err(Failure::Certificate(error)));
        assert_eq!(
            ask(&client(&Trust::dangerously_anyone(), None), at).await.unwrap(),
            "nobody false"
        );
        assert_eq!(server.snapshot().dtls.established(), 1);
    }
}

#[tokio::test]
async fn a_client_whose_certificate_is_not_accepted_or_missing_is_refused() {
    let (ours, others) = (authority("ours"), authority("others"));
    let tls = TlsServer::new(of_server(&ours));
    let (server, at) = serve(&tls.require_client_certificates(&trust(&ours)).unwrap());
    // dimpl sends no alert to a client without a certificate, which learns of it by silence.
    let config = config(&trust(&ours), None).dtls13(Dtls13Config::default());
    let config = config.ack_timeout(Duration::from_millis(200)).max_retransmit(0);
    assert!(Client::with_config(config).get(format!("coaps://{at}/who")).await.is_err());
    assert_eq!(server.snapshot().dtls.certificates_refused, 1);
    let stranger = issue(&others, &params(&["device"]));
    let refused = client(&trust(&ours), Some(&stranger)).get(format!("coaps://{at}/who")).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("close_notify"), "{refused}");
    let counters = server.snapshot().dtls;
    assert_eq!((counters.certificates_refused, counters.established()), (2, 0), "{counters:?}");
}

#[tokio::test]
async fn a_certificate_that_is_replaced_is_shown_from_then_on() {
    let (ours, later) = (authority("ours"), authority("later"));
    let tls = TlsServer::new(of_server(&ours));
    let (_server, at) = serve(&tls);
    assert!(ask(&client(&trust(&ours), None), at).await.is_ok());
    tls.set_identity(&of_server(&later)).unwrap();
    let refused = ask(&client(&trust(&ours), None), at).await;
    assert_eq!(refused, Err(Failure::Certificate(CertificateError::UnknownAuthority)));
    assert!(ask(&client(&trust(&later), None), at).await.is_ok());
}

#[tokio::test]
async fn what_dtls_1_3_cannot_do_is_refused_when_a_server_begins() {
    let authority = authority("authority");
    let own = of_server(&authority);
    let key = KeyPair::generate().unwrap();
    let leaf = params(&["127.0.0.1"]).signed_by(&key, &authority).unwrap();
    let chain = format!("{}{}", leaf.pem(), authority.pem());
    let chain = Identity::from_pem(chain.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let asks = TlsServer::new(own).request_client_certificates(&trust(&authority)).unwrap();
    for (tls, reason) in [
        (TlsServer::new(chain), "without certificates between them"),
        (asks, "use require_client_certificates"),
    ] {
        let bind = DtlsBind::with_certificates(local(), &tls).unwrap();
        let config = ServerConfig::new().bind_dtls(bind).dtls13(Dtls13Config::default());
        let none: [&str; 0] = [];
        let refused = Server::with_config(Router::new(), config, none).unwrap_err();
        let text = format!("{refused} {:?}", std::error::Error::source(&refused));
        assert!(text.contains(reason), "{text}");
    }
}

#[tokio::test]
async fn each_name_of_a_server_is_verified_and_all_are_served_at_once() {
    let authority = authority("authority");
    let (server, at) = serve(&TlsServer::new(of_server(&authority)));
    let client = client(&trust(&authority), None);
    let other = format!("coaps://localhost:{}/who", at.port());
    let (by_address, by_name) = tokio::join!(ask(&client, at), client.get(&*other));
    assert_eq!(by_address.unwrap(), "nobody false");
    assert_eq!(by_name.unwrap().text(), "nobody false");
    let counters = server.snapshot().dtls;
    assert_eq!((counters.handshakes_failed(), counters.evicted), (0, 0), "{counters:?}");

    // A certificate for one of the names does not count for the other, with a session or without.
    let (_server, at) = serve(&TlsServer::new(issue(&authority, &params(&["127.0.0.1"]))));
    let other = format!("coaps://localhost:{}/who", at.port());
    for _ in 0..2 {
        let (by_address, by_name) = tokio::join!(ask(&client, at), client.get(&*other));
        assert_eq!(by_address.unwrap(), "nobody false");
        let reason = Failure::Certificate(CertificateError::WrongName);
        assert_eq!(source(&by_name.unwrap_err()), Some(reason));
    }
}

#[tokio::test]
async fn a_handshake_for_another_name_of_a_server_waits_for_the_first_one() {
    let authority = authority("authority");
    let silent = UdpSocket::bind(local()).await.unwrap();
    let at = silent.local_addr().unwrap();
    let newer = client(&trust(&authority), None);
    let older = Client::with_config(config(&trust(&authority), None));
    for client in [newer, older] {
        let ask = async |name: &str| {
            let asked = client.get(format!("coaps://{name}:{}/who", at.port()));
            tokio::time::timeout(Duration::from_millis(300), asked).await
        };
        let (by_address, by_name) = tokio::join!(ask("127.0.0.1"), ask("localhost"));
        assert!(by_address.is_err() && by_name.is_err(), "{by_address:?} {by_name:?}");
    }
}

#[tokio::test]
async fn a_client_of_dtls_1_2_learns_that_the_server_serves_1_3() {
    let authority = authority("authority");
    for settings in [None, Some(Dtls13Config::default())] {
        let (_server, at) = serve_with(&TlsServer::new(of_server(&authority)), settings.clone());
        let (front, back) =
            (UdpSocket::bind(local()).await.unwrap(), UdpSocket::bind(local()).await.unwrap());
        let seen_from = front.local_addr().unwrap();
        let older = Client::with_config(config(&trust(&authority), None));
        let (mut marked, mut asker) = (false, None);
        let relay = async {
            let (mut there, mut here) = ([0; 2048], [0; 2048]);
            loop {
                tokio::select! {
                    came = front.recv_from(&mut there) => {
                        let (length, from) = came.unwrap();
                        asker = Some(from);
                        back.send_to(&there[..length], at).await.unwrap();
                    }
                    came = back.recv(&mut here) => {
                        let answer = &here[..came.unwrap()];
                        // RFC 8446 section 4.1.3.
                        marked |= answer.windows(8).any(|bytes| bytes == b"DOWNGRD\x01");
                        front.send_to(answer, asker.unwrap()).await.unwrap();
                    }
                }
            }
        };
        tokio::select! {
            () = relay => {}
            answered = ask(&older, seen_from) => assert_eq!(answered.unwrap(), "nobody false"),
        }
        assert_eq!(marked, settings.is_some());
    }
}

/// A ClientHello for DTLS 1.3 and 1.2, as the second one if it has a cookie of DTLS 1.2.
fn hello_of_both(cookie: &[u8], has_key_share: bool, version: u8) -> Vec<u8> {
    let mut extensions = vec![0, 43, 0, 5, 4, 0xfe, 0xfc, 0xfe, 0xfd, 0, 10, 0, 4, 0, 2, 0, 23];
    extensions.extend([0, 11, 0, 2, 1, 0, 0, 13, 0, 4, 0, 2, 4, 3]);
    if has_key_share {
        extensions.extend([0, 51, 0, 71, 0, 69, 0, 23, 0, 65]);
        extensions.extend([4; 65]);
    }
    let mut body = vec![0xfe, version];
    body.extend([7; 32]);
    body.extend([0, cookie.len() as u8]);
    body.extend(cookie);
    body.extend([0, 4, 0x13, 0x01, 0xc0, 0xae, 1, 0, 0, extensions.len() as u8]);
    body.extend(extensions);
    let (length, number) = (body.len() as u8, u8::from(!cookie.is_empty()));
    let mut hello = vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, number, 0, 12 + length];
    hello.extend([1, 0, 0, length, 0, number, 0, 0, 0, 0, 0, length]);
    hello.extend(body);
    hello
}

/// The fragments of a hello and the datagrams around it are not part of what a handshake authenticates, so an attacker
/// may change them.
#[tokio::test]
async fn a_server_hello_of_dtls_1_2_is_marked_unless_the_client_could_not_have_1_3() {
    let authority = authority("authority");
    let (_server, at) = serve(&TlsServer::new(of_server(&authority)));
    // An alert that means nothing, before the hello.
    let alert = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 1, 90].to_vec();
    for (version, first, second, marked) in [
        // Its legacy_version is not that of DTLS 1.2 (RFC 9147 section 5.3), so DTLS 1.3 declines it.
        (0xfc, vec![], vec![], false),
        (0xfd, alert.clone(), alert.clone(), true),
        (0xfd, alert, vec![], true),
    ] {
        let socket = UdpSocket::bind(local()).await.unwrap();
        let mut answer = [0; 2048];
        let hello = [first, hello_of_both(b"", true, version)].concat();
        socket.send_to(&hello, at).await.unwrap();
        let length = socket.recv(&mut answer).await.unwrap();
        assert_eq!(answer[13], 3, "a HelloVerifyRequest");
        let cookie = answer[28..length].to_vec();
        let hello = [second, hello_of_both(&cookie, true, version)].concat();
        socket.send_to(&hello, at).await.unwrap();
        let length = socket.recv(&mut answer).await.unwrap();
        assert_eq!(answer[13], 2, "a ServerHello");
        let found = answer[..length].windows(8).any(|bytes| bytes == b"DOWNGRD\x01");
        assert_eq!(found, marked, "version {version:#x}");
    }
    // A hello in fragments gets no ServerHello at all: putting it together would need state for an address that is not
    // verified.
    let socket = UdpSocket::bind(local()).await.unwrap();
    let mut fragment = hello_of_both(b"", true, 0xfd);
    fragment.truncate(100);
    let (high, low) = (0, 100 - 13);
    fragment[11..13].copy_from_slice(&[high, low]);
    fragment[24] = 100 - 25;
    socket.send_to(&fragment, at).await.unwrap();
    let silent = tokio::time::timeout(Duration::from_millis(200), socket.recv(&mut [0; 64])).await;
    assert!(silent.is_err(), "{silent:?}");
}

#[tokio::test]
async fn a_hello_without_a_key_share_is_asked_for_one() {
    let (_server, at) = serve(&TlsServer::new(of_server(&authority("authority"))));
    let socket = UdpSocket::bind(local()).await.unwrap();
    socket.send_to(&hello_of_both(b"", false, 0xfd), at).await.unwrap();
    let mut answer = [0; 2048];
    let length = socket.recv(&mut answer).await.unwrap();
    // The random number of a HelloRetryRequest (RFC 8446 section 4.1.3).
    let retry = [0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11];
    assert!(answer[..length].windows(8).any(|bytes| bytes == retry));
    // Its key share names P-256, the only group of the hello (section 4.2.8).
    assert!(answer[..length].windows(6).any(|bytes| bytes == [0, 51, 0, 2, 0, 23]));
}

/// The first datagram of a client.
async fn first_hello(client: &Client) -> Vec<u8> {
    let socket = UdpSocket::bind(local()).await.unwrap();
    let uri = format!("coaps://{}/who", socket.local_addr().unwrap());
    let mut hello = vec![0; 2048];
    let heard = tokio::select! {
        length = socket.recv(&mut hello) => length.unwrap(),
        _ = client.get(uri) => panic!("nobody answers"),
    };
    hello.truncate(heard);
    hello
}

#[tokio::test]
async fn clients_of_both_versions_go_on_while_hellos_are_forged() {
    let authority = authority("authority");
    let (server, at) = serve(&TlsServer::new(of_server(&authority)));
    let trust = trust(&authority);
    let (older, newer) = (Client::with_config(config(&trust, None)), client(&trust, None));
    let hello = first_hello(&client(&trust, None)).await;
    for client in [&older, &newer] {
        ask(client, at).await.unwrap();
    }
    let mut sockets = Vec::new();
    for _ in 0..50 {
        sockets.push(UdpSocket::bind(local()).await.unwrap());
    }
    let (mut before, mut forged, mut answer) = (0, 0, [0; 2048]);
    for round in 0..60 {
        for (number, socket) in sockets.iter().enumerate() {
            for _ in 0..4 {
                let mut hello = hello.clone();
                // The random number, and now and then any other byte.
                let place = [30, 30, 30, (round * 50 + number) % hello.len()][number % 4];
                hello[place] ^= round as u8 + 1;
                socket.send_to(&hello, at).await.unwrap();
                forged += 1;
            }
            while socket.try_recv(&mut answer).is_ok() {}
        }
        for client in [&older, &newer] {
            assert_eq!(ask(client, at).await.unwrap(), "nobody false");
        }
        if round == 9 {
            // New clients are served as well.
            ask(&Client::with_config(config(&trust, None)), at).await.unwrap();
            ask(&client(&trust, None), at).await.unwrap();
            before = crate::common::counting::bytes_in_use();
        }
    }
    let grown = crate::common::counting::bytes_in_use() - before;
    assert!(grown < 100_000, "{grown} bytes after {forged} hellos");
    let counters = server.snapshot().dtls;
    assert_eq!(counters.established(), 4, "nobody had to begin again: {counters:?}");
    assert!(counters.hellos_challenged > forged / 2, "{counters:?}");
}
