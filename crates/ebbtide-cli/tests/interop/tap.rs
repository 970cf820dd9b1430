//! What a client sends and receives: a tap on its side of the path.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;
use tokio::sync::Notify;

/// A datagram that passed.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) sent: bool,
    pub(crate) datagram: Vec<u8>,
}

#[derive(Clone)]
pub(crate) struct Tap {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    rebind: Arc<Notify>,
}

impl Tap {
    /// Stands between one client and `server`.
    pub(crate) async fn before(server: SocketAddr) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let tap = Self {
            address: front.local_addr().unwrap(),
            seen: Arc::default(),
            rebind: Arc::default(),
        };
        let recording = tap.clone();
        tokio::spawn(async move {
            let (mut request, mut response) = ([0; 2048], [0; 2048]);
            let mut client = None;
            let mut back = towards(server).await;
            loop {
                tokio::select! {
                    Ok((length, from)) = front.recv_from(&mut request) => {
                        client = Some(from);
                        recording.saw(true, &request[..length]);
                        let _ = back.send(&request[..length]).await;
                    }
                    Ok(length) = back.recv(&mut response) => {
                        recording.saw(false, &response[..length]);
                        if let Some(client) = client {
                            let _ = front.send_to(&response[..length], client).await;
                        }
                    }
                    () = recording.rebind.notified() => back = towards(server).await,
                }
            }
        });
        tap
    }

    fn saw(&self, sent: bool, datagram: &[u8]) {
        let datagram = datagram.to_vec();
        self.seen.lock().unwrap().push(Seen { sent, datagram });
    }

    /// What passed since this was last asked.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// From now on the server sees the client at another port, as when a NAT has forgotten it.
    pub(crate) fn rebind(&self) {
        self.rebind.notify_one();
    }
}

async fn towards(server: SocketAddr) -> UdpSocket {
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    back.connect(server).await.unwrap();
    back
}
