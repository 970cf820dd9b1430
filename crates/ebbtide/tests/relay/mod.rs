//! A relay between a client and a server that loses, repeats, reorders and corrupts datagrams.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

use ebbtide::core::wire::Message;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;

/// Starts a relay to `server` and says where it listens. Of a hundred datagrams in each direction,
/// `percent` are lost, as many repeated, delayed and damaged in one bit of the payload's end.
pub(crate) async fn relay(server: SocketAddr, percent: u32, seed: u64) -> SocketAddr {
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = front.local_addr().unwrap();
    tokio::spawn(async move {
        let mut backs: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
        let mut buf = [0; 2048];
        let mut luck = ChaCha8Rng::seed_from_u64(seed);
        loop {
            let Ok((len, from)) = front.recv_from(&mut buf).await else { continue };
            let back = match backs.get(&from) {
                Some(back) => back.clone(),
                None => {
                    let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
                    back.connect(server).await.unwrap();
                    tokio::spawn(backwards(back.clone(), front.clone(), (from, percent, seed)));
                    backs.insert(from, back.clone());
                    back
                }
            };
            for (late, datagram) in fate(&mut luck, percent, &buf[..len]) {
                let back = back.clone();
                later(late, async move {
                    let _ = back.send(&datagram).await;
                });
            }
        }
    });
    address
}

async fn backwards(
    back: Arc<UdpSocket>,
    front: Arc<UdpSocket>,
    (client, percent, seed): (SocketAddr, u32, u64),
) {
    let mut buf = [0; 2048];
    let mut luck = ChaCha8Rng::seed_from_u64(seed ^ 1);
    loop {
        let Ok(len) = back.recv(&mut buf).await else { continue };
        for (late, datagram) in fate(&mut luck, percent, &buf[..len]) {
            let front = front.clone();
            later(late, async move {
                let _ = front.send_to(&datagram, client).await;
            });
        }
    }
}

fn later(late: bool, send: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(async move {
        if late {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        send.await;
    });
}

/// What becomes of a datagram: its copies, and which of them are late.
fn fate(luck: &mut ChaCha8Rng, percent: u32, datagram: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut happens = || luck.next_u32() % 100 < percent;
    if happens() {
        return Vec::new();
    }
    let mut copies = vec![(happens(), datagram.to_vec())];
    if happens() {
        copies.push((happens(), datagram.to_vec()));
    }
    if happens() {
        // UDP's checksum would stop it; what a broken device sends has a good one. The header's
        // version makes it malformed, so that it counts as lost.
        copies[0].1[0] ^= 0x80;
        assert!(Message::parse(&copies[0].1).is_err());
    }
    copies
}
