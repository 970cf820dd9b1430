//! `coaps` with certificates: client and server over DTLS.

use ebbtide::dtls::{
    CertificateError, Certificates, Credentials, DtlsBind, Failure, Psk, SavedSession,
};
use ebbtide::stream::{Identity, TlsError, TlsServer, Trust};
use ebbtide::{Client, ClientConfig, Server, ServerConfig};
use rcgen::{CertifiedIssuer, KeyPair, date_time_ymd};
use std::net::SocketAddr;

use crate::common::dtls::{
    Issuer, ask, authority_with, config, issue, issuing, local, of_server, params, serve_under,
    trust,
};

fn authority(name: &str) -> Issuer {
    authority_with(name, KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap())
}

fn serve(bind: DtlsBind) -> (Server, SocketAddr) {
    serve_under(ServerConfig::new().bind_dtls(bind))
}

fn serve_as(tls: &TlsServer) -> (Server, SocketAddr) {
    serve(DtlsBind::with_certificates(local(), tls).unwrap())
}

fn client(trust: &Trust, own: Option<&Identity>) -> Client {
    Client::with_config(config(trust, own))
}

#[tokio::test]
async fn both_sides_show_certificates_and_the_handler_knows_the_client() {
    let authority = authority("ours");
    let tls = TlsServer::new(of_server(&authority));
    let tls = tls.require_client_certificates(&trust(&authority)).unwrap();
    let (server, at) = serve_as(&tls);
    let device = issue(&authority, &params(&["device-7.example"]));
    let client = client(&trust(&authority), Some(&device));
    assert_eq!(ask(&client, at).await.unwrap(), "device-7.example true");
    let long = client.get(format!("coaps://{at}/long")).await.unwrap();
    assert_eq!(long.body().len(), 3000);
    // By the other name of the same server there is another session.
    let uri = format!("coaps://localhost:{}/who", at.port());
    assert!(client.get(uri).await.unwrap().is_success());
    let counters = server.snapshot().dtls;
    assert_eq!((counters.established(), counters.resumed, counters.handshakes_failed()), (2, 0, 0));
    // A client that was restarted resumes the session, and is known without showing its certificate.
    let bytes = client.dtls_session(at).unwrap().to_bytes();
    drop(client);
    let certificates = Certificates::new(&trust(&authority), None).unwrap();
    let saved = SavedSession::from_bytes(&bytes).unwrap();
    let restarted =
        Client::with_config(ClientConfig::new().certificates(certificates.resuming(saved)));
    assert_eq!(ask(&restarted, at).await.unwrap(), "device-7.example true");
    assert_eq!(server.snapshot().dtls.resumed, 1);
}

#[tokio::test]
async fn a_server_whose_certificate_is_not_accepted_is_refused_with_the_reason() {
    let (ours, others) = (authority("ours"), authority("others"));
    let mut expired = params(&["127.0.0.1"]);
    (expired.not_before, expired.not_after) =
        (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1));
    let mut early = params(&["127.0.0.1"]);
    (early.not_before, early.not_after) = (date_time_ymd(3000, 1, 1), date_time_ymd(3001, 1, 1));
    for (identity, error) in [
        (of_server(&others), CertificateError::UnknownAuthority),
        (issue(&ours, &params(&["elsewhere.example"])), CertificateError::WrongName),
        (issue(&ours, &expired), CertificateError::Expired),
        (issue(&ours, &early), CertificateError::NotValidYet),
    ] {
        let (server, at) = serve_as(&TlsServer::new(identity));
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
    let (server, at) = serve_as(&tls.clone().require_client_certificates(&trust(&ours)).unwrap());
    let stranger = issue(&others, &params(&["device"]));
    let [expired, early] = [2000, 3000].map(|year| {
        let mut dated = params(&["device"]);
        dated.not_before = date_time_ymd(year, 1, 1);
        dated.not_after = date_time_ymd(year + 1, 1, 1);
        issue(&ours, &dated)
    });
    for own in [None, Some(&stranger), Some(&expired), Some(&early)] {
        let refused = ask(&client(&trust(&ours), own), at).await;
        assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
    }
    assert_eq!(server.snapshot().dtls.certificates_refused, 4);
    let (_server, at) = serve_as(&tls.request_client_certificates(&trust(&ours)).unwrap());
    assert_eq!(ask(&client(&trust(&ours), None), at).await.unwrap(), "nobody false");
}

#[tokio::test]
async fn a_chain_leads_to_the_authority() {
    let root = authority("root");
    let key = KeyPair::generate().unwrap();
    let middle = CertifiedIssuer::signed_by(issuing("middle"), key, &*root).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = params(&["127.0.0.1"]).signed_by(&key, &middle).unwrap();
    let chain = format!("{}{}", leaf.pem(), middle.pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let (_server, at) = serve_as(&TlsServer::new(identity));
    assert!(ask(&client(&trust(&root), None), at).await.is_ok());
}

#[tokio::test]
async fn a_server_has_keys_and_a_certificate_at_one_socket_and_replaces_the_certificate() {
    let ours = authority("ours");
    let tls = TlsServer::new(of_server(&ours));
    let keys =
        |identity: &[u8]| (identity == b"device").then(|| Psk::new(b"secret").ok()).flatten();
    let bind = DtlsBind::new(local(), keys).and_certificates(&tls).unwrap();
    let (_server, at) = serve(bind);
    let credentials = Psk::new(b"secret").ok().map(|psk| Credentials::new("device", psk));
    let config = ClientConfig::new().credentials(credentials);
    assert_eq!(ask(&Client::with_config(config), at).await.unwrap(), "device false");
    assert_eq!(ask(&client(&trust(&ours), None), at).await.unwrap(), "nobody false");
    let later = authority("later");
    tls.set_identity(&of_server(&later)).unwrap();
    let refused = ask(&client(&trust(&ours), None), at).await;
    assert_eq!(refused, Err(Failure::Certificate(CertificateError::UnknownAuthority)));
    assert!(ask(&client(&trust(&later), None), at).await.is_ok());
}

#[tokio::test]
async fn a_server_without_the_credentials_of_a_client_refuses_it() {
    let ours = authority("ours");
    let (_server, at) = serve(DtlsBind::new(local(), |_: &[u8]| None));
    let refused = ask(&client(&trust(&ours), None), at).await.unwrap_err();
    assert!(refused.to_string().contains("handshake_failure"), "{refused}");
}

#[test]
fn a_key_on_another_curve_is_refused_before_anything_is_sent() {
    let ours = authority("ours");
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let certificate = params(&["device"]).signed_by(&key, &ours).unwrap();
    let identity =
        Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let refused = Certificates::new(&trust(&ours), Some(&identity));
    assert_eq!(refused.map(drop), Err(TlsError::NotForDtls));
    let refused = DtlsBind::with_certificates(local(), &TlsServer::new(identity));
    assert_eq!(refused.map(drop), Err(TlsError::NotForDtls));
}
