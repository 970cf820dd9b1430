//! What a server keeps for each of very many peers that observe it.

use crate::common::many_clients::{GET, ManyClients, Outgoing};
use ebbtide::server::{Call, Router, Server, Subject, get};
use ebbtide::{Code, Response};
use ebbtide_core::wire::OptionNumber;
use std::time::Duration;

/// Clients that register at once, few enough for the sockets' buffers.
const BATCH: u32 = 500;

/// Lets `count` clients observe a resource and acknowledge a notification, which tells congestion
/// control a round trip to each. Bytes that the server keeps for one.
async fn bytes_per_peer(count: u32) -> isize {
    let subject = Subject::new();
    let resource = get(|_: &Call<'_>| Response::content("22.3 C")).observable(&subject);
    let router = Router::new().route("/sensors/temperature", resource);
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let mut many = ManyClients::new(server.local_addrs()[0]);
    let before = crate::common::counting::bytes_in_use();
    let options = [(6, &[][..]), (11, b"sensors"), (11, b"temperature")];
    for first in (0..count).step_by(BATCH as usize) {
        let batch = BATCH.min(count - first);
        for n in first..first + batch {
            let token = n.to_be_bytes();
            many.say(n, &Outgoing { token: &token, options: &options, ..GET });
        }
        many.flush();
        let mut answered = 0;
        while answered < batch {
            many.hear(
                |_| true,
                |_, message| {
                    assert!(message.option(OptionNumber::OBSERVE).is_some());
                    answered += 1;
                },
            );
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(subject.observers(), count as usize);
    subject.changed();
    let mut told = vec![false; count as usize];
    let mut left = count;
    while left > 0 {
        let heard = many.hear(
            |_| true,
            |n, message| {
                // A probe, to a peer whose acknowledgement was not read soon.
                if message.code() == Code::EMPTY {
                    return;
                }
                assert_eq!(message.payload(), b"22.3 C");
                left -= u32::from(!std::mem::replace(&mut told[n as usize], true));
            },
        );
        if heard == 0 {
            tokio::time::sleep(Duration::from_micros(50)).await;
        }
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(told);
    assert_eq!(subject.observers(), count as usize);
    (crate::common::counting::bytes_in_use() - before) / count as isize
}

// With fewer peers the tables of what is under way, which do not grow with them, show.
#[tokio::test]
async fn a_peer_with_congestion_state_and_an_observation_takes_at_most_400_bytes() {
    let work = tokio::time::timeout(Duration::from_secs(60), bytes_per_peer(40_000));
    let bytes = work.await.expect("it is stuck");
    println!("{bytes} bytes a peer");
    assert!(bytes <= 400, "{bytes}");
}

#[tokio::test]
#[ignore = "a minute: ./ci.sh statistics"]
async fn of_a_hundred_thousand_peers_each_takes_at_most_400_bytes_as_well() {
    let work = tokio::time::timeout(Duration::from_secs(300), bytes_per_peer(100_000));
    let bytes = work.await.expect("it is stuck");
    println!("{bytes} bytes a peer");
    assert!(bytes <= 400, "{bytes}");
}
