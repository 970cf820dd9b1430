//! The handshake of RFC 9529 chapter 3 (method 3, cipher suite 2), and messages that were changed.

use super::credentials::{CredentialError, EdhocCredentials};
use super::crypto::Cryptography;
use super::handshake::{HandshakeFault, Initiator, Responder};
use crate::oscore::MadeContext;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

const CRED_I: &str = "a2027734322d35302d33312d46462d45462d33372d33322d333908a101a5010202412b2001215820
    ac75e9ece3e50bfc8ed60399889522405c47bf16df96660a41298cb4307f7eb62258206e5de611388a4b8a8211334ac7d37ecb52a387d257e6db3c2a93df21ff3affc8";
const CRED_R: &str = "a2026b6578616d706c652e65647508a101a501020241322001215820
    bbc34960526ea4d32e940cad2a234148ddc21791a12afbcbac93622046dd44f02258204519e257236b2a0ce2023f0931f1f386ca7afda64fcde0108c224c51eabf6072";
const I: &str = "fb13adeb6518cee5f88417660841142e830a81fe334380a953406a1305e8706b";
const R: &str = "72cc4761dbd4c78f758931aa589d348d1ef874a7e303ede2f140dcf3e6aa4aac";
const X: &str = "368ec1f69aeb659ba37d5a8d45b21bdc0299dceaa8ef235f3ca42ce3530f9525";
const Y: &str = "e2f4126777205e853b437d6eaca1e1f753cdcc3e2c69fa884b0a1a640977e418";

pub(crate) fn client() -> EdhocCredentials {
    EdhocCredentials::new(&hex(I), &hex(CRED_I)).unwrap().peer(&hex(CRED_R), "server").unwrap()
}

pub(crate) fn server() -> EdhocCredentials {
    EdhocCredentials::new(&hex(R), &hex(CRED_R)).unwrap().peer(&hex(CRED_I), "client").unwrap()
}

fn ephemeral(key: &str) -> Cryptography {
    Cryptography::new(hex(key).try_into().unwrap()).unwrap()
}

/// The cryptography of a client.
pub(super) fn crypto() -> Cryptography {
    ephemeral(X)
}

/// A handshake whose messages `change` may change, given their number.
fn handshake(
    mut change: impl FnMut(u8, &mut Vec<u8>),
) -> Result<(MadeContext, MadeContext), HandshakeFault> {
    let (client, server) = (client(), server());
    let (initiator, mut message_1) = Initiator::begin(crypto(), &client, &[0x37])?;
    change(1, &mut message_1);
    let responder = Responder::begin(ephemeral(Y), &server, &message_1)?;
    let (answered, mut message_2) = responder.answer(&server, &[0x27])?;
    change(2, &mut message_2);
    let (finishing, mut message_3) = initiator.finish(&client, &message_2)?;
    assert_eq!(finishing.server_id(), [0x27]);
    change(3, &mut message_3);
    let (of_server, mut message_4) = answered.finish(&server, &message_3)?;
    change(4, &mut message_4);
    Ok((finishing.finish(&message_4)?, of_server))
}

#[test]
fn a_server_sends_the_bytes_of_rfc_9529_and_has_its_secret() {
    // The client prefers suite 6 and selects suite 2.
    let message_1 =
        "0382060258208af6f430ebe18d34184017a9a11bf511c8dff8f834730b96c1b7c8dbca2fc3b637";
    let responder = Responder::begin(ephemeral(Y), &server(), &hex(message_1)).unwrap();
    assert_eq!(responder.client_id(), [0x37]);
    let (answered, message_2) = responder.answer(&server(), &[0x27]).unwrap();
    let expected = "582b419701d7f00a26c2dc587a36dd752549f33763c893422c8ea0f955a13a4ff5d59862a1eef9e0e7e1886fcd";
    assert_eq!(message_2, hex(expected));
    let message_3 = hex("52e562097bc417dd5919485ac7891ffd90a9fc");
    let (secret, message_4) = answered.finish(&server(), &message_3).unwrap();
    assert_eq!(message_4, hex("4828c966b7ca304f83"));
    assert_eq!(*secret.secret, *hex("f9868f6a3aca78a05d1485b35030b162"));
    assert_eq!(secret.salt, *hex("ada24c7dbfc85eeb"));
}

#[test]
fn both_sides_have_the_same_secret_and_each_others_name() {
    let (client, server) = handshake(|_, _| {}).unwrap();
    assert_eq!((*client.secret, client.salt), (*server.secret, server.salt));
    assert_eq!((&*client.sender_id, &*client.recipient_id), (&[0x27][..], &[0x37][..]));
    assert_eq!((&*server.sender_id, &*server.recipient_id), (&[0x37][..], &[0x27][..]));
    assert_eq!((&*client.identity, &*server.identity), (&b"server"[..], &b"client"[..]));
}

#[test]
fn a_message_with_any_change_ends_the_handshake_and_nothing_panics() {
    let mut messages = Vec::new();
    handshake(|_, message| messages.push(message.clone())).unwrap();
    for (number, message) in (1..).zip(&messages) {
        for at in 0..message.len() {
            let changed = handshake(|changes, message| {
                if changes == number {
                    message[at] ^= 1 << (at % 8);
                }
            });
            assert!(changed.is_err(), "byte {at} of message {number}");
        }
        for len in (0..message.len()).step_by(3) {
            let cut = handshake(|at, message| {
                if at == number {
                    message.truncate(len)
                }
            });
            // Message 4 may be left out.
            assert_eq!(cut.is_err(), (number, len) != (4, 0), "message {number} with {len} bytes");
        }
    }
}

#[test]
fn arbitrary_bytes_are_refused() {
    let (server, mut seed) = (server(), 9528_u64);
    for len in (0..400).step_by(5) {
        let random: Vec<u8> = (0..len)
            .map(|_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 56) as u8
            })
            .collect();
        for prefix in [&[][..], &[3, 2], &[3, 2, 0x58, 0x20], &[3, 0x82]] {
            let message = [prefix, &random].concat();
            let _ = Responder::begin(ephemeral(Y), &server, &message)
                .and_then(|begun| begun.answer(&server, &[1]));
            let (initiator, _) = Initiator::begin(crypto(), &client(), &[0x37]).unwrap();
            assert!(initiator.finish(&client(), &message).is_err());
        }
    }
}

#[test]
fn credentials_that_do_not_fit_are_refused() {
    let error = |key: &str, credential: &str| {
        EdhocCredentials::new(&hex(key), &hex(credential)).unwrap_err()
    };
    assert_eq!(error("00", CRED_I), CredentialError::PrivateKey);
    assert_eq!(error(&"00".repeat(32), CRED_I), CredentialError::PrivateKey);
    assert_eq!(error(R, CRED_I), CredentialError::OtherKey);
    assert_eq!(error(I, "a0"), CredentialError::Credential);
    let stranger = server();
    let nobody = EdhocCredentials::new(&hex(I), &hex(CRED_I)).unwrap();
    let (_, message_1) = Initiator::begin(crypto(), &nobody, &[0]).unwrap();
    let (_, message_2) = Responder::begin(ephemeral(Y), &stranger, &message_1)
        .unwrap()
        .answer(&stranger, &[1])
        .unwrap();
    let (initiator, _) = Initiator::begin(crypto(), &nobody, &[0]).unwrap();
    assert_eq!(initiator.finish(&nobody, &message_2).err(), Some(HandshakeFault::NotAuthentic));
}
