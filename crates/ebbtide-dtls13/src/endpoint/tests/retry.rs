//! Which first ClientHellos get a HelloRetryRequest, and which second ones are accepted.

use super::*;
use ebbtide_dtls::CipherSuite;

const SUPPORTED_GROUPS: u16 = 10;
const COOKIE: u16 = 44;
const KEY_SHARE: u16 = 51;

type Extensions = Vec<(u16, Vec<u8>)>;

fn be(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// The same ClientHello, in one record, with another cookie of DTLS 1.2 and other suites before its own and extensions.
fn changed(
    hello: &[u8],
    cookie: &[u8],
    suites: &[u8],
    change: impl FnOnce(&mut Extensions),
) -> Vec<u8> {
    // Record, message, version, random number; the session ID is empty.
    let at_cookie = 13 + 12 + 2 + 32 + 1;
    let at_suites = at_cookie + 1 + usize::from(hello[at_cookie]);
    let own_suites = &hello[at_suites + 2..at_suites + 2 + be(hello, at_suites)];
    let compressions = at_suites + 2 + own_suites.len();
    let list = compressions + 1 + usize::from(hello[compressions]);
    let (mut at, mut extensions) = (list + 2, Extensions::new());
    while at < hello.len() {
        let end = at + 4 + be(hello, at + 2);
        extensions.push((be(hello, at) as u16, hello[at + 4..end].to_vec()));
        at = end;
    }
    change(&mut extensions);
    let length = |bytes: &[u8]| (bytes.len() as u16).to_be_bytes();
    let extensions: Vec<u8> = extensions
        .iter()
        .flat_map(|(kind, bytes)| [&kind.to_be_bytes(), &length(bytes), &bytes[..]].concat())
        .collect();
    let suites = [suites, own_suites].concat();
    let mut body = [&hello[25..at_cookie], &[cookie.len() as u8], cookie].concat();
    body.extend([&length(&suites), &suites[..], &hello[compressions..list]].concat());
    body.extend([&length(&extensions), &extensions[..]].concat());
    crate::hello::record(&body)
}

fn without(hello: &[u8], gone: u16) -> Vec<u8> {
    changed(hello, &[], &[], |extensions| extensions.retain(|(kind, _)| *kind != gone))
}

fn first_hello(now: Instant) -> Vec<u8> {
    let mut client = client();
    connect(&mut client, now);
    outputs(&mut client).datagrams.remove(0)
}

/// The answers to a hello, and whether it is left to DTLS 1.2.
fn answers(server: &mut Dtls13Endpoint, now: Instant, hello: &[u8]) -> (usize, bool) {
    let taken = arrive(server, now, address(1), hello);
    assert_eq!(server.has_declined(), !taken);
    (outputs(server).datagrams.len(), !taken)
}

#[test]
fn a_client_without_a_group_of_ours_is_left_to_dtls_1_2() {
    let (mut server, now) = (server(16), Instant::ZERO);
    let first = first_hello(now);
    let groups = |groups: &'static [u8]| {
        let shareless = without(&first, KEY_SHARE);
        changed(&shareless, &[], &[], |extensions| {
            let of_groups = extensions.iter_mut().find(|(kind, _)| *kind == SUPPORTED_GROUPS);
            of_groups.unwrap().1 = groups.to_vec();
        })
    };
    assert_eq!(answers(&mut server, now, &first), (1, false));
    assert_eq!(answers(&mut server, now, &without(&first, KEY_SHARE)), (1, false));
    assert_eq!(answers(&mut server, now, &groups(&[0, 2, 0, 0x17])), (1, false));
    assert_eq!(answers(&mut server, now, &groups(&[0, 2, 0x11, 0xec])), (0, true));
    let neither = without(&without(&first, KEY_SHARE), SUPPORTED_GROUPS);
    assert_eq!(answers(&mut server, now, &neither), (0, true));
}

#[test]
fn a_client_with_a_key_suite_and_no_key_share_is_left_to_dtls_1_2_if_that_serves_the_suite() {
    const SUITES: [u8; 2] = CipherSuite::PskAes128Ccm8.number().to_be_bytes();
    let now = Instant::ZERO;
    let first = first_hello(now);
    let with_share = changed(&first, &[], &SUITES, |_| ());
    let mut server = server(16);
    assert_eq!(answers(&mut server, now, &without(&with_share, KEY_SHARE)), (1, false));
    server.leave_keys(vec![CipherSuite::PskAes128Ccm8.number()]);
    assert_eq!(answers(&mut server, now, &with_share), (1, false));
    assert_eq!(answers(&mut server, now, &without(&first, KEY_SHARE)), (1, false));
    let shareless = without(&with_share, KEY_SHARE);
    assert_eq!(answers(&mut server, now, &shareless), (0, true));
    // It returns with the cookie of DTLS 1.2.
    let again = changed(&shareless, &[9; 16], &[], |_| ());
    assert_eq!(answers(&mut server, now, &again), (0, true));
}

#[test]
fn the_answer_to_the_shortest_hello_is_at_most_one_and_a_half_times_as_long() {
    let (mut server, now) = (server(16), Instant::ZERO);
    let shortest = changed(&first_hello(now), &[], &[], |extensions| {
        extensions.retain(|(kind, _)| matches!(*kind, 43 | SUPPORTED_GROUPS));
        extensions.iter_mut().for_each(|(kind, bytes)| {
            if *kind == SUPPORTED_GROUPS {
                *bytes = vec![0, 2, 0, 0x17];
            }
        });
    });
    arrive(&mut server, now, address(1), &shortest);
    let answer = outputs(&mut server).datagrams.remove(0);
    assert!(2 * answer.len() <= 3 * shortest.len(), "{} for {}", answer.len(), shortest.len());
}

/// A first ClientHello with these key shares, and the second one with another one and the cookie that the server gives.
fn hellos_with_shares(
    server: &mut Dtls13Endpoint,
    from: SocketAddr,
    now: Instant,
    shares: &[u8],
) -> [Vec<u8>; 2] {
    let with_share = first_hello(now);
    let first = changed(&with_share, &[], &[], |extensions| {
        let share = extensions.iter_mut().find(|(kind, _)| *kind == KEY_SHARE);
        share.unwrap().1 = shares.to_vec();
    });
    arrive(server, now, from, &first);
    let retry = outputs(server).datagrams.remove(0);
    let extension = [0, 44, 0, 34];
    let at = 4 + retry.windows(4).position(|bytes| bytes == extension).unwrap();
    let cookie = retry[at..at + 34].to_vec();
    let second = changed(&with_share, &[], &[], |extensions| extensions.push((COOKIE, cookie)));
    [first, second]
}

/// The first one has a share of a group that we do not know.
pub(super) fn hellos_with_another_share(
    server: &mut Dtls13Endpoint,
    from: SocketAddr,
    now: Instant,
) -> [Vec<u8>; 2] {
    hellos_with_shares(server, from, now, &[0, 5, 0x11, 0xec, 0, 1, 9])
}

/// The same ClientHello with its first two extensions in the other order.
fn reordered(hello: &[u8]) -> Vec<u8> {
    changed(hello, &[], &[], |extensions| extensions.swap(0, 1))
}

fn reordering_hellos(server: &mut Dtls13Endpoint, from: SocketAddr, now: Instant) -> [Vec<u8>; 2] {
    let [first, second] = hellos(server, from, now);
    [first, reordered(&second)]
}

/// Whether the server answers this hello by a ServerHello.
fn is_accepted(server: &mut Dtls13Endpoint, now: Instant, from: SocketAddr, hello: &[u8]) -> bool {
    let before = server.counters().signatures;
    arrive(server, now, from, hello);
    let is_server_hello = |datagram: &Vec<u8>| datagram[0] == 22 && datagram[13] == 2;
    let answered = outputs(server).datagrams.iter().any(is_server_hello);
    answered && server.counters().signatures == before + 1
}

/// Makes the first and the second ClientHello of a client for whom the first one has to be kept.
type MakeHellos = fn(&mut Dtls13Endpoint, SocketAddr, Instant) -> [Vec<u8>; 2];
/// With the number of such hellos that are kept.
const CLIENTS: [(MakeHellos, u16); 2] = [(hellos_with_another_share, 64), (reordering_hellos, 32)];

#[test]
fn a_second_hello_that_differs_is_accepted_while_the_first_one_is_kept() {
    let now = Instant::ZERO;
    for (make, places) in CLIENTS {
        for others in [0, places - 1, places] {
            let (mut server, from) = (server(16), address(1));
            let [first, second] = make(&mut server, from, now);
            for host in 0..others {
                arrive(&mut server, now, other_address(host as u8), &first);
            }
            outputs(&mut server);
            let mut damaged = second.clone();
            damaged[13 + 12 + 2] ^= 1;
            assert!(!is_accepted(&mut server, now, from, &damaged));
            let accepted = is_accepted(&mut server, now, from, &second);
            assert_eq!(accepted, others < places, "{others} others");
        }
    }
}

#[test]
fn a_client_that_leaves_the_group_to_the_server_needs_no_place() {
    let (mut server, from, now) = (server(16), address(1), Instant::ZERO);
    let [first, second] = hellos_with_shares(&mut server, from, now, &[0, 0]);
    let [other, _] = hellos_with_another_share(&mut server, address(2), now);
    for host in 0..200 {
        arrive(&mut server, now, other_address(host), &first);
        arrive(&mut server, now, other_address(host), &other);
    }
    outputs(&mut server);
    assert!(is_accepted(&mut server, now, from, &second));
}

#[test]
fn one_host_does_not_displace_the_kept_hellos_of_others() {
    let now = Instant::ZERO;
    for (make, _) in CLIENTS {
        let (mut server, from) = (server(16), other_address(1));
        let [first, second] = make(&mut server, from, now);
        for port in 1..1000 {
            arrive(&mut server, now, address(port), &first);
        }
        outputs(&mut server);
        assert!(is_accepted(&mut server, now, from, &second));
    }
}

#[test]
fn a_forged_hello_does_not_displace_the_kept_one_of_the_same_address() {
    let now = Instant::ZERO;
    for (make, _) in CLIENTS {
        let (mut server, from) = (server(16), address(1));
        let [mut forged, second] = make(&mut server, from, now);
        forged[13 + 12 + 2] ^= 1;
        for _ in 0..1000 {
            arrive(&mut server, now, from, &forged);
        }
        outputs(&mut server);
        assert!(is_accepted(&mut server, now, from, &second));
    }
}

#[test]
fn hellos_with_the_cookie_of_dtls_1_2_take_no_places() {
    let now = Instant::ZERO;
    for (make, places) in CLIENTS {
        let (mut server, from) = (server(16), address(1));
        let [first, second] = make(&mut server, from, now);
        let of_1_2 = changed(&first, &[9; 16], &[], |_| ());
        for host in 0..2 * places {
            assert!(!arrive(&mut server, now, other_address(host as u8), &of_1_2));
        }
        assert!(is_accepted(&mut server, now, from, &second));
    }
}
