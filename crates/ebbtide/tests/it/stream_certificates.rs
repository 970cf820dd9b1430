//! Certificates of clients, and a server's certificate that is replaced while it serves.

use crate::common::dtls::{authority_with, issue, of_server, params};
use crate::common::eventually::eventually;
use crate::common::stream::{Certificates, base};
use ebbtide::server::{Call, Router, Server, get};
use ebbtide::stream::{Identity, Listen, TlsServer, Trust};
use ebbtide::{Client, ClientConfig, Code, Scheme, ServerConfig};
use rcgen::{KeyPair, date_time_ymd};
use std::net::SocketAddr;

/// Who the server takes the client for.
async fn whoami(call: Call<'static>) -> Option<String> {
    assert_eq!(call.identity().is_some(), call.certificate().is_some());
    Some(String::from_utf8_lossy(call.identity()?).into_owned())
}

fn serve(tls: TlsServer) -> Server {
    let none: [SocketAddr; 0] = [];
    let router = Router::new().route("/whoami", get(whoami));
    let server = Server::with_config(router, ServerConfig::new(), none).unwrap();
    server.listen(Listen::Tls(([127, 0, 0, 1], 0).into(), tls)).unwrap()
}

fn trust(certificates: &Certificates) -> Trust {
    Trust::authorities(certificates.authority.as_bytes()).unwrap()
}

fn client(trusted: &Certificates, identity: Option<Identity>) -> Client {
    let config = ClientConfig::new().trust(trust(trusted)).identity(identity);
    Client::with_config(config)
}

#[tokio::test]
async fn a_handler_sees_the_name_in_the_client_s_certificate() {
    let (servers, devices) = (Certificates::new(), Certificates::new());
    let tls = TlsServer::new(servers.identity());
    let server = serve(tls.require_client_certificates(&trust(&devices)).unwrap());
    let uri = format!("{}/whoami", base(&server, Scheme::CoapsTcp));

    let device = client(&servers, Some(devices.identity()));
    assert_eq!(device.get(&*uri).await.unwrap().text(), "localhost");
    // The reason is the server's alert (RFC 8446 section 6.2).
    for (stranger, alert) in
        [(None, "CertificateRequired"), (Some(servers.identity()), "DecryptError")]
    {
        let error = client(&servers, stranger).get(&*uri).await.unwrap_err().to_string();
        assert!(error.contains(alert), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_only_asks_for_certificates_serves_those_without_one() {
    let (servers, devices) = (Certificates::new(), Certificates::new());
    let tls = TlsServer::new(servers.identity());
    let server = serve(tls.request_client_certificates(&trust(&devices)).unwrap());
    let uri = format!("{}/whoami", base(&server, Scheme::CoapsTcp));

    let anonymous = client(&servers, None).get(&*uri).await.unwrap();
    assert_eq!(anonymous.code(), Code::NOT_FOUND);
    let device = client(&servers, Some(devices.identity()));
    assert_eq!(device.get(&*uri).await.unwrap().text(), "localhost");
}

#[tokio::test]
async fn a_certificate_is_replaced_while_connections_are_open() {
    let (before, after) = (Certificates::new(), Certificates::new());
    let tls = TlsServer::new(before.identity());
    let server = serve(tls.clone());
    let uri = format!("{}/whoami", base(&server, Scheme::CoapsTcp));

    let old = client(&before, None);
    assert!(old.get(&*uri).await.is_ok());
    let new = client(&after, None);
    assert!(new.get(&*uri).await.unwrap_err().is_connect());
    tls.set_identity(&after.identity()).unwrap();
    assert!(new.get(&*uri).await.is_ok());
    // Its connection goes on; one that it opens now is not trusted any more.
    assert!(old.get(&*uri).await.is_ok());
    assert!(client(&before, None).get(&*uri).await.unwrap_err().is_connect());
}

#[tokio::test]
async fn a_certificate_that_has_expired_or_is_not_valid_yet_is_refused_at_both_ends() {
    let authority = authority_with("ours", KeyPair::generate().unwrap());
    let ours = crate::common::dtls::trust(&authority);
    for (year, reason) in [(2000, "expired"), (3000, "not valid yet")] {
        let mut dated = params(&["localhost"]);
        (dated.not_before, dated.not_after) =
            (date_time_ymd(year, 1, 1), date_time_ymd(year + 1, 1, 1));
        let dated = issue(&authority, &dated);
        let server = serve(TlsServer::new(dated.clone()));
        let client = Client::with_config(ClientConfig::new().trust(ours.clone()));
        let uri = format!("{}/whoami", base(&server, Scheme::CoapsTcp));
        let error = client.get(&*uri).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        let tls = TlsServer::new(of_server(&authority));
        let server = serve(tls.require_client_certificates(&ours).unwrap());
        let config = ClientConfig::new().trust(ours.clone()).identity(Some(dated));
        let uri = format!("{}/whoami", base(&server, Scheme::CoapsTcp));
        let error = Client::with_config(config).get(&*uri).await.unwrap_err().to_string();
        assert!(error.contains("CertificateExpired"), "{error}");
    }
}

#[tokio::test]
async fn peers_that_are_not_to_be_served_any_more_lose_their_connections() {
    let (servers, devices) = (Certificates::new(), Certificates::new());
    let tls = TlsServer::new(servers.identity());
    let server = serve(tls.request_client_certificates(&trust(&devices)).unwrap());
    let (uri, handle) = (format!("{}/whoami", base(&server, Scheme::CoapsTcp)), server.handle());
    let (device, anonymous) = (client(&servers, Some(devices.identity())), client(&servers, None));
    let ask_both = async || {
        assert_eq!(device.get(&*uri).await.unwrap().text(), "localhost");
        assert_eq!(anonymous.get(&*uri).await.unwrap().code(), Code::NOT_FOUND);
    };
    ask_both().await;
    handle.end_sessions(|peer| peer.certificate.is_none());
    eventually(|| server.snapshot().connections.released == 1).await;
    // The device needs a new one, which is the verifier's decision.
    ask_both().await;
    assert_eq!(server.snapshot().connections.connections, 3);
}
