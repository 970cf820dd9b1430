//! Handshakes with raw public keys (RFC 7250) between two of our endpoints.

use crate::common::certificates::{Known, accept, certified, shows};
use crate::common::{Pair, client_config, credentials};
use ebbtide_core::time::Duration;
use ebbtide_dtls::{
    AlertDescription, CertificateCredentials, CertificateError, CertificateType,
    CertificateVerifier, CertifiedKey, CipherSuite, ClientCertificates, Config, Event, Failure,
    SigningKey, Verified,
};
use p256::SecretKey;
use p256::pkcs8::EncodePrivateKey;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const LONG: Duration = Duration::from_secs(200);
/// SubjectPublicKeyInfo of a key on P-256 before its point (RFC 5480 section 2.1.1).
const SPKI: [u8; 27] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
];

fn raw(seed: u8) -> Arc<CertifiedKey> {
    let secret = SecretKey::from_slice(&[seed; 32]).unwrap();
    let der = secret.to_pkcs8_der().unwrap();
    Arc::new(CertifiedKey::raw(SigningKey::from_der(der.as_bytes()).unwrap()))
}

/// Accepts raw keys of these seeds, and other forms if there are any before or after them.
struct Keys(&'static [u8], &'static [CertificateType]);

const RAW: &[CertificateType] = &[CertificateType::RawPublicKey];
const BOTH: &[CertificateType] = &[CertificateType::RawPublicKey, CertificateType::X509];

impl CertificateVerifier for Keys {
    fn verify(&self, chain: &[&[u8]], name: Option<&str>) -> Result<Verified, CertificateError> {
        Known.verify(chain, name)
    }

    fn types(&self) -> &[CertificateType] {
        self.1
    }

    fn verify_key(&self, key: &[u8], _: Option<&str>) -> Result<Verified, CertificateError> {
        let known = self.0.iter().find(|seed| raw(**seed).public_key() == key);
        let seed = known.ok_or(CertificateError::UnknownKey)?;
        Ok(Verified { public_key: key.to_vec(), identity: vec![*seed] })
    }
}

fn client(own: Option<Arc<CertifiedKey>>, servers: Keys) -> CertificateCredentials {
    CertificateCredentials { verifier: Arc::new(servers), ..shows(own) }
}

fn required(keys: Keys) -> ClientCertificates {
    ClientCertificates::Required(Arc::new(keys))
}

fn pair(own: &Arc<CertifiedKey>, clients: ClientCertificates) -> Pair {
    let mut pair = Pair::new(client_config(), Config::default());
    accept(&mut pair.server, own, clients);
    pair
}

fn reason(events: &[&Event]) -> Failure {
    let [Event::Ended { reason, established: false, .. }] = events else { panic!("{events:?}") };
    *reason
}

/// Whether a datagram of these has these bytes.
fn has(sent: &[(std::net::SocketAddr, Vec<u8>)], bytes: &[u8]) -> bool {
    sent.iter().any(|(_, datagram)| datagram.windows(bytes.len()).any(|part| part == bytes))
}

#[test]
fn both_sides_know_the_key_of_the_other_and_the_bytes_are_those_of_the_rfc() {
    for suite in CipherSuite::ECDHE_ECDSA {
        let config = Config { suites: vec![suite], ..client_config() };
        let mut pair = Pair::new(config, Config::default());
        accept(&mut pair.server, &raw(1), required(Keys(&[2], RAW)));
        let session = pair.connect(client(Some(raw(2)), Keys(&[1], RAW)));
        pair.run(LONG);
        assert_eq!(pair.at_client.established(), [(session, false)], "{:?}", pair.at_client);
        let [(at_server, false)] = pair.at_server.established()[..] else { panic!() };
        assert_eq!(pair.server.identity(at_server).as_deref(), Some(&[2][..]));
        assert_eq!(pair.server.certificate(at_server).as_deref(), Some(raw(2).public_key()));
        assert_eq!(pair.client.identity(session).as_deref(), Some(&[1][..]));
        // Sections 3 and 4: lists of the client, choices of the server, and the key alone.
        assert!(has(&pair.at_client.sent, &[0, 19, 0, 2, 1, 2, 0, 20, 0, 2, 1, 2]));
        assert!(has(&pair.at_server.sent, &[0, 19, 0, 1, 2, 0, 20, 0, 1, 2]));
        for sent in [&pair.at_client.sent, &pair.at_server.sent] {
            assert!(has(sent, &[&[0, 0, 91][..], &SPKI].concat()));
        }
        pair.send_from_client(session, b"ping");
        pair.run(LONG);
        assert_eq!(pair.at_server.data, [(at_server, b"ping".to_vec())]);
    }
}

#[test]
fn a_server_with_a_certificate_shows_its_key_alone_to_clients_that_prefer_it() {
    let mut pair = pair(&certified("server"), ClientCertificates::None);
    let raw_only = pair.connect(client(None, Keys(&[], RAW)));
    pair.run(LONG);
    let unknown = Failure::Certificate(CertificateError::UnknownKey);
    assert_eq!(reason(&pair.at_client.ended()), unknown);
    assert_eq!(
        reason(&pair.at_server.ended()),
        Failure::Refused(AlertDescription::CERTIFICATE_UNKNOWN)
    );
    assert!(has(&pair.at_server.sent, certified("server").public_key()), "{raw_only:?}");
    let with_chain = pair.connect(shows(None));
    pair.run(LONG);
    assert_eq!(pair.at_client.established(), [(with_chain, false)]);
}

#[test]
fn a_key_that_is_not_trusted_ends_the_handshake_with_the_reason_at_both_sides() {
    let unknown = Failure::Certificate(CertificateError::UnknownKey);
    let refused = Failure::Refused(AlertDescription::CERTIFICATE_UNKNOWN);
    let mut at_client = pair(&raw(9), ClientCertificates::None);
    at_client.connect(client(None, Keys(&[1], RAW)));
    at_client.run(LONG);
    assert_eq!(reason(&at_client.at_client.ended()), unknown);
    assert_eq!(reason(&at_client.at_server.ended()), refused);

    let mut at_server = pair(&raw(1), required(Keys(&[2], RAW)));
    at_server.connect(client(Some(raw(9)), Keys(&[1], RAW)));
    at_server.run(LONG);
    assert_eq!(reason(&at_server.at_server.ended()), unknown);
    assert_eq!(reason(&at_server.at_client.ended()), refused);
}

#[test]
fn a_form_that_the_other_does_not_accept_is_an_unsupported_certificate() {
    let unsupported = Failure::Certificate(CertificateError::UnsupportedType);
    let refused = Failure::Refused(AlertDescription::UNSUPPORTED_CERTIFICATE);
    // The client wants a certificate, and the server has none.
    let mut no_chain = pair(&raw(1), ClientCertificates::None);
    no_chain.connect(shows(None));
    no_chain.run(LONG);
    assert_eq!(no_chain.server.take_refused().unwrap().1, unsupported);
    assert_eq!(reason(&no_chain.at_client.ended()), refused);
    // The server requires a raw key, and the client has none, or a certificate.
    for own in [None, Some(certified("device"))] {
        let mut no_key = pair(&raw(1), required(Keys(&[2], RAW)));
        no_key.connect(client(own, Keys(&[1], RAW)));
        no_key.run(LONG);
        assert_eq!(no_key.server.take_refused().unwrap().1, unsupported);
        assert_eq!(reason(&no_key.at_client.ended()), refused);
        assert_eq!((no_key.server.sessions(), no_key.client.sessions()), (0, 0));
    }
}

#[test]
fn a_server_of_both_forms_knows_each_client_by_the_one_that_it_has() {
    let mut both = pair(&certified("server"), required(Keys(&[2], BOTH)));
    both.connect(client(Some(raw(2)), Keys(&[], &[CertificateType::X509])));
    both.run(LONG);
    both.connect(shows(Some(certified("device"))));
    both.run(LONG);
    let identities: Vec<_> = both
        .at_server
        .established()
        .iter()
        .map(|(session, _)| both.server.identity(*session).unwrap().to_vec())
        .collect();
    assert_eq!(identities, [vec![2], b"device".to_vec()]);
}

#[test]
fn a_client_without_a_key_is_served_where_none_is_required() {
    let optional = ClientCertificates::Optional(Arc::new(Keys(&[2], RAW)));
    let mut pair = pair(&raw(1), optional);
    pair.connect(client(None, Keys(&[1], RAW)));
    pair.run(LONG);
    let [(at_server, false)] = pair.at_server.established()[..] else { panic!() };
    assert_eq!(pair.server.identity(at_server).as_deref(), Some(&b""[..]));
    assert_eq!(pair.server.certificate(at_server), None);
}

#[test]
fn a_key_without_its_private_key_is_worth_nothing() {
    // The client shows another's key, which the network puts into its Certificate message.
    let mut of_client = pair(&raw(1), required(Keys(&[2], RAW)));
    of_client.connect(client(Some(raw(9)), Keys(&[1], RAW)));
    of_client.run_with(LONG, &mut shows_instead(&raw(9), &raw(2)));
    assert_eq!(reason(&of_client.at_server.ended()), Failure::WrongKey);
    // And so does the server.
    let mut of_server = pair(&raw(9), ClientCertificates::None);
    of_server.connect(client(None, Keys(&[1], RAW)));
    of_server.run_with(LONG, &mut shows_instead(&raw(9), &raw(1)));
    assert_eq!(reason(&of_server.at_client.ended()), Failure::WrongKey);
    assert_eq!(of_server.at_server.established(), []);
}

/// A network that puts another public key in the place of one.
fn shows_instead(
    own: &CertifiedKey,
    stolen: &CertifiedKey,
) -> impl FnMut(&[u8]) -> Vec<(Duration, Vec<u8>)> {
    let (own, stolen) = (own.public_key().to_vec(), stolen.public_key().to_vec());
    move |datagram| {
        let mut datagram = datagram.to_vec();
        let shown = datagram.windows(own.len()).position(|part| part == own);
        if let Some(at) = shown {
            datagram[at..at + own.len()].copy_from_slice(&stolen);
        }
        vec![(Duration::ZERO, datagram)]
    }
}

#[test]
fn a_session_survives_a_restart_of_the_server_as_long_as_its_key_is_trusted() {
    let mut before = pair(&raw(1), required(Keys(&[2], RAW)));
    let session = before.connect(client(Some(raw(2)), Keys(&[1], RAW)));
    before.run(LONG);
    let stored = before.server.take_all();
    let [(at_server, stored)] = &stored[..] else { panic!() };
    let endpoint = |clients| {
        let mut endpoint = crate::common::server(Config::default(), 3);
        accept(&mut endpoint, &raw(1), clients);
        endpoint
    };
    assert!(!endpoint(required(Keys(&[3], RAW))).restore(before.now, *at_server, stored));
    assert!(!endpoint(ClientCertificates::None).restore(before.now, *at_server, stored));
    before.server = endpoint(required(Keys(&[2, 3], RAW)));
    assert!(before.server.restore(before.now, *at_server, stored));
    assert_eq!(before.server.certificate_type(*at_server), Some(CertificateType::RawPublicKey));
    before.send_from_client(session, b"goes on");
    before.run(LONG);
    assert_eq!(before.at_server.data, [(*at_server, b"goes on".to_vec())]);
}

#[test]
fn a_session_of_a_key_that_was_removed_is_not_resumed() {
    let trusted = Arc::new(Removable(AtomicBool::new(false)));
    let mut pair = pair(&raw(1), ClientCertificates::Required(trusted.clone()));
    let first = pair.connect(client(Some(raw(2)), Keys(&[1], RAW)));
    pair.run(LONG);
    let saved = pair.client.saved_session(first);
    pair.client.close(pair.now, first);
    pair.run(LONG);
    trusted.0.store(true, Ordering::Relaxed);
    let again = client(Some(raw(2)), Keys(&[1], RAW));
    pair.connect(CertificateCredentials { saved, ..again });
    pair.run(LONG);
    let unknown = Failure::Certificate(CertificateError::UnknownKey);
    assert_eq!(reason(&pair.at_server.ended()[1..]), unknown);
}

/// The key of seed 2, until it is removed.
struct Removable(AtomicBool);

impl CertificateVerifier for Removable {
    fn verify(&self, chain: &[&[u8]], name: Option<&str>) -> Result<Verified, CertificateError> {
        Known.verify(chain, name)
    }

    fn types(&self) -> &[CertificateType] {
        RAW
    }

    fn verify_key(&self, key: &[u8], name: Option<&str>) -> Result<Verified, CertificateError> {
        let is_removed = self.0.load(Ordering::Relaxed);
        Keys(if is_removed { &[] } else { &[2] }, RAW).verify_key(key, name)
    }
}

#[test]
fn a_session_is_resumed_with_the_key_of_its_first_handshake() {
    let mut pair = pair(&raw(1), required(Keys(&[2], RAW)));
    let first = pair.connect(client(Some(raw(2)), Keys(&[1], RAW)));
    pair.run(LONG);
    let saved = pair.client.saved_session(first);
    pair.client.close(pair.now, first);
    pair.run(LONG);
    let again = client(Some(raw(2)), Keys(&[1], RAW));
    let second = pair.connect(CertificateCredentials { saved, ..again });
    pair.run(LONG);
    assert_eq!(pair.at_client.established(), [(first, false), (second, true)]);
    let [_, (at_server, true)] = pair.at_server.established()[..] else { panic!() };
    assert_eq!(pair.server.certificate(at_server).as_deref(), Some(raw(2).public_key()));
}

/// Answers of a server that was not asked, or that names what was not offered.
#[test]
fn a_choice_that_was_not_offered_is_illegal() {
    let forge = |from: &'static [u8], to: &'static [u8]| {
        move |datagram: &[u8]| {
            let mut datagram = datagram.to_vec();
            let places = 0..datagram.len().saturating_sub(from.len());
            if datagram[13..].first() == Some(&2)
                && let Some(at) = places.clone().find(|at| datagram[*at..].starts_with(from))
            {
                datagram[at..at + to.len()].copy_from_slice(to);
            }
            vec![(Duration::ZERO, datagram)]
        }
    };
    // An unknown type, X.509, the client's type unasked, and a list where a choice is due.
    for to in [&[0, 20, 0, 1, 9], &[0, 20, 0, 1, 0], &[0, 19, 0, 1, 2]] {
        let mut pair = pair(&raw(1), ClientCertificates::None);
        pair.connect(client(None, Keys(&[1], RAW)));
        pair.run_with(LONG, &mut forge(&[0, 20, 0, 1, 2], to));
        assert_eq!(reason(&pair.at_client.ended()), Failure::IllegalParameter, "{to:?}");
    }
    let mut with_key = Pair::new(client_config(), Config::default());
    let session = with_key.connect(credentials("device", b"secret"));
    with_key.run(LONG);
    assert_eq!(with_key.at_client.established(), [(session, false)]);
    assert!(!has(&with_key.at_client.sent, &[0, 19, 0]), "it is not offered with pre-shared keys");
}
