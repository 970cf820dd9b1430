//! A relay between a client and a server that loses, repeats, reorders and corrupts datagrams. The
//! interop tests of the command use it too.

use ebbtide_core::wire::Message;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;

/// How many of a hundred datagrams in each direction suffer what.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) lost: u32,
    pub(crate) repeated: u32,
    pub(crate) late: u32,
    pub(crate) damaged: u32,
}

/// Starts a relay to `server` and says where it listens.
pub(crate) async fn relay(server: SocketAddr, trouble: Trouble, seed: u64) -> SocketAddr {
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
                    tokio::spawn(backwards(back.clone(), front.clone(), (from, trouble, seed)));
                    backs.insert(from, back.clone());
                    back
                }
            };
            for (late, datagram) in fate(&mut luck, trouble, &buf[..len]) {
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
    (client, trouble, seed): (SocketAddr, Trouble, u64),
) {
    let mut buf = [0; 2048];
    let mut luck = ChaCha8Rng::seed_from_u64(seed ^ 1);
    loop {
        let Ok(len) = back.recv(&mut buf).await else { continue };
        for (late, datagram) in fate(&mut luck, trouble, &buf[..len]) {
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
fn fate(luck: &mut ChaCha8Rng, trouble: Trouble, datagram: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut happens = |percent| luck.next_u32() % 100 < percent;
    if happens(trouble.lost) {
        return Vec::new();
    }
    let mut copies = vec![(happens(trouble.late), datagram.to_vec())];
    if happens(trouble.repeated) {
        copies.push((happens(trouble.late), datagram.to_vec()));
    }
    if happens(trouble.damaged) {
        // UDP's checksum would stop it; what a broken device sends has a good one. The header's
        // version makes it malformed, so that it counts as lost.
        copies[0].1[0] ^= 0x80;
        assert!(Message::parse(&copies[0].1).is_err());
    }
    copies
}
