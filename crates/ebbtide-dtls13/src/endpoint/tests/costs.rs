//! The most that a datagram of each kind may cost a server before its sender has shown that it receives at its address. A kind that
//! gets dearer than its line fails; a new kind needs a line. Those of DTLS 1.2 are in the tests of `ebbtide-dtls`.

use super::counting::{allocations, bytes_in_use};
use super::*;

/// IPv4 and UDP.
const HEADERS: usize = 28;
const ROUNDS: u32 = 1000;

/// The most that a hundred datagrams of a kind may cost.
struct Line<'l> {
    name: &'static str,
    datagram: &'l [u8],
    allocations: usize,
    /// Bytes that leave, for each hundred that came.
    sent: usize,
}

#[test]
fn no_datagram_of_dtls_1_3_costs_more_than_its_line_says() {
    let (mut server, now) = (server(16), Instant::ZERO + Duration::from_secs(1000));
    let [first, second] = hellos(&mut server, other_address(1), now);
    let [of_other_group, _] = retry::hellos_with_another_share(&mut server, other_address(2), now);
    let mut refused = first.clone();
    // The version before the random value.
    refused[13 + 12] = 0;
    let line = |name, datagram, [allocations, sent]: [usize; 2]| Line {
        name,
        datagram,
        allocations,
        sent,
    };
    let lines = [
        line("a hello without a cookie", &first[..], [110, 30]),
        line("a hello without a share of our groups", &of_other_group, [110, 30]),
        line("a hello with the cookie of another address", &second, [250, 0]),
        line("a hello that is not answered", &refused, [0, 0]),
        line("a part of a hello", &first[..100], [0, 0]),
        line("a record that is no one's", &[0x2e, 0, 0, 0, 20, 1, 2, 3], [0, 0]),
    ];
    let mut dearer = Vec::new();
    for Line { name, datagram, allocations: most, sent } in lines {
        let (mut made, mut held, mut left) = (0, 0, 0);
        for round in 0..2 * ROUNDS {
            let from = SocketAddr::from(((0x0a00_0000 + round).to_be_bytes(), 40_000));
            let before = (allocations(), bytes_in_use());
            arrive(&mut server, now, from, datagram);
            let mut answered = 0;
            while let Some(output) = server.poll_output() {
                let Output::Transmit { datagram, .. } = output else { continue };
                answered += datagram.len() + HEADERS;
            }
            // What buffers have to grow, they have in the first half.
            if round >= ROUNDS {
                made += allocations() - before.0;
                held += bytes_in_use() - before.1;
                left += answered;
            }
        }
        let hundreds = ROUNDS as usize / 100;
        let cost = (made / hundreds, 100 * left / (ROUNDS as usize * (datagram.len() + HEADERS)));
        println!(
            "{name}: {} allocations and {} % sent for a hundred, {held} bytes held",
            cost.0, cost.1
        );
        // One answer may be longer than the one before.
        if cost.0 > most || cost.1 > sent || held > 1000 {
            dearer.push(format!("{name}: {cost:?}, {held} bytes held"));
        }
    }
    assert_eq!((server.sessions(), server.counters().signatures), (0, 0));
    assert!(dearer.is_empty(), "dearer than its line: {dearer:#?}");
}
