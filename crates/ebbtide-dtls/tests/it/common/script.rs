//! A script of bytes that says what happens to a client and a server: what fuzzing runs.

use crate::common::{CLIENT, Pair, SERVER, address, client_config, credentials};
use ebbtide_core::time::Duration;
use ebbtide_dtls::Config;

/// What is sent as data; anything else that arrives was forged.
const DATA: &[u8] = b"the only data";

/// Plays a script. Each step begins with a byte:
///
/// * 0: time passes, and the next byte says how many datagrams get a fate of two bytes each: one for what
///   happens (0 nothing, 1 lost, 2 twice, 3 cut, others changed), one for where;
/// * 1, 2: the next byte says how many bytes that follow go to the server, to the client;
/// * 3: the client connects; 4: it sends data; 5: it closes.
///
/// The first byte chooses the connection IDs.
pub(crate) fn play(script: &[u8]) {
    let mut bytes = script.iter().copied();
    let kind = bytes.next().unwrap_or(0);
    let theirs = (kind & 1 != 0).then_some(kind >> 4 & 7);
    let ours = if kind & 2 != 0 { Some(2) } else { Some(0) };
    let server = Config { cid_length: theirs, ..Config::default() };
    let mut pair = Pair::new(Config { cid_length: ours, ..client_config() }, server);
    let mut session = pair.connect(credentials("device", b"secret"));
    for _ in 0..64 {
        let Some(step) = bytes.next() else { break };
        match step % 6 {
            0 => {
                let mut faults = bytes.next().unwrap_or(0);
                pair.run_with(Duration::from_secs(20), &mut |datagram| {
                    if faults == 0 {
                        return vec![(Duration::ZERO, datagram.to_vec())];
                    }
                    faults -= 1;
                    let (what, place) = (bytes.next().unwrap_or(0), bytes.next().unwrap_or(0));
                    let mut copy = datagram.to_vec();
                    let at = usize::from(place) % copy.len();
                    match what {
                        0 => {}
                        1 => return Vec::new(),
                        2 => return vec![(Duration::ZERO, copy.clone()), (Duration::ZERO, copy)],
                        3 => copy.truncate(at),
                        what => copy[at] ^= what,
                    }
                    vec![(Duration::ZERO, copy)]
                });
            }
            side @ (1 | 2) => {
                let length = usize::from(bytes.next().unwrap_or(0));
                let datagram: Vec<u8> = bytes.by_ref().take(length).collect();
                let from = if side == 1 { CLIENT } else { SERVER };
                pair.inject(side == 1, address(from), datagram);
            }
            3 => session = pair.connect(credentials("device", b"secret")),
            4 if pair.client.is_established(session) => pair.send_from_client(session, DATA),
            5 => pair.client.close(pair.now, session),
            _ => {}
        }
    }
    pair.run(Duration::from_secs(1000));
    assert!(pair.at_client.data.is_empty(), "the server sent nothing");
    assert!(pair.at_server.data.iter().all(|(_, data)| data == DATA), "forged data");
    assert!(pair.client.sessions() <= 64 && pair.server.sessions() <= 64, "more than were begun");
}
