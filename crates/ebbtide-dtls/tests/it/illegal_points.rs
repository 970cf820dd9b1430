//! Public values in a ClientKeyExchange that are no uncompressed point of the curve (RFC 8422
//! section 5.11): each gets its alert, and none a session.

use crate::common::certificates::{accept, certified, shows};
use crate::common::{Pair, client_config};
use ebbtide_core::time::Duration;
use ebbtide_dtls::{AlertDescription, ClientCertificates, Config, Event, Failure};

/// What becomes of a point.
type Forge<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// Headers of a record and of a handshake message (RFC 6347 sections 4.1 and 4.2.2).
const RECORD: usize = 13;
const MESSAGE: usize = 12;
const HANDSHAKE: u8 = 22;
const PROTECTED: u8 = 25;
const CLIENT_KEY_EXCHANGE: u8 = 16;

/// A datagram with another point in its ClientKeyExchange, if it has one.
fn with_point(datagram: &[u8], forge: Forge<'_>) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), datagram);
    // A protected record, which has a connection ID in its header, is the last.
    while rest.len() > RECORD && rest[0] != PROTECTED {
        let length = usize::from(u16::from_be_bytes([rest[11], rest[12]]));
        let (record, after) = rest.split_at(RECORD + length);
        rest = after;
        let body = &record[RECORD..];
        if record[0] != HANDSHAKE || record[3..5] != [0, 0] || body[0] != CLIENT_KEY_EXCHANGE {
            out.extend_from_slice(record);
            continue;
        }
        // One message, whole: its length, then the point's.
        assert_eq!(body.len(), MESSAGE + 1 + usize::from(body[MESSAGE]));
        let point = forge(&body[MESSAGE + 1..]);
        let [_, high, low] = [0, 0, point.len() as u8 + 1];
        out.extend_from_slice(&record[..11]);
        out.extend_from_slice(&((MESSAGE + 1 + point.len()) as u16).to_be_bytes());
        out.extend_from_slice(&body[..1]);
        out.extend_from_slice(&[0, high, low]);
        out.extend_from_slice(&body[4..9]);
        out.extend_from_slice(&[0, high, low, point.len() as u8]);
        out.extend_from_slice(&point);
    }
    [&out, rest].concat()
}

/// How a handshake ends whose point is replaced: what the server says, and what the client is told.
fn ends(forge: Forge<'_>) -> (Vec<Failure>, Vec<Failure>, usize) {
    let mut pair = Pair::new(client_config(), Config::default());
    accept(&mut pair.server, &certified("server"), ClientCertificates::None);
    pair.connect(shows(None));
    pair.run_with(Duration::from_secs(5), &mut |datagram| {
        vec![(Duration::ZERO, with_point(datagram, forge))]
    });
    let reasons = |events: Vec<&Event>| {
        let reason = |event: &Event| match event {
            Event::Ended { reason, .. } => Some(*reason),
            _ => None,
        };
        events.into_iter().filter_map(reason).collect()
    };
    (reasons(pair.at_server.ended()), reasons(pair.at_client.ended()), pair.server.sessions())
}

#[test]
fn the_point_that_a_client_sends_itself_makes_a_session() {
    assert_eq!(ends(&|point| point.to_vec()), (vec![], vec![], 1));
}

#[test]
fn a_compressed_or_illegal_point_gets_its_alert_and_no_session() {
    let coordinates = |first: u8, point: &[u8]| [&[first], &point[1..]].concat();
    let forgeries: [(&str, Forge<'_>); 8] = [
        ("compressed", &|point| [&[2 | point[64] & 1], &point[1..33]].concat()),
        ("hybrid", &|point| coordinates(6 | point[64] & 1, point)),
        ("infinity", &|_| vec![0]),
        ("off the curve", &|point| {
            let mut point = point.to_vec();
            point[64] ^= 1;
            point
        }),
        ("zero", &|_| [&[4][..], &[0; 64]].concat()),
        ("beyond the field", &|point| [&[4][..], &[0xff; 32], &point[33..]].concat()),
        ("short", &|point| point[..64].to_vec()),
        ("long", &|point| [point, &[0]].concat()),
    ];
    let illegal = vec![Failure::IllegalParameter];
    let told = vec![Failure::Refused(AlertDescription::ILLEGAL_PARAMETER)];
    for (name, forge) in forgeries {
        assert_eq!(ends(forge), (illegal.clone(), told.clone(), 0), "{name}");
    }
}
