//! The most that a gateway on one thread could reach: a relay without any logic, which receives and sends in batches
//! as Ebbtide does (recvmmsg, GRO, GSO). It serves one client at a time, and looks at no message.
//!
//! `bare_relay ADDRESS SERVER` passes what arrives at ADDRESS to SERVER, and back.

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// A batch of datagrams of one segment size.
const BUFFER: usize = 64 << 10;

struct Side {
    io: UdpSocket,
    state: UdpSocketState,
}

impl Side {
    async fn bind(address: SocketAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(address).await?;
        let state = UdpSocketState::new(UdpSockRef::from(&io))?;
        Ok(Self { io, state })
    }

    /// Passes a batch to the other side, and returns its sender. Without a destination it is dropped.
    fn pass(
        &self,
        buffers: &mut [Vec<u8>],
        other: &Self,
        to: Option<SocketAddr>,
    ) -> io::Result<Option<SocketAddr>> {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let received = {
            let mut slices: Vec<_> = buffers.iter_mut().map(|room| IoSliceMut::new(room)).collect();
            let receive = || self.state.recv(UdpSockRef::from(&self.io), &mut slices, &mut meta);
            self.io.try_io(Interest::READABLE, receive)?
        };
        let mut from = None;
        for (meta, buffer) in meta.iter().zip(buffers.iter()).take(received) {
            from = Some(meta.addr);
            let Some(destination) = to else { continue };
            let contents = buffer.get(..meta.len).unwrap_or_default();
            let segment_size = (meta.stride < meta.len).then_some(meta.stride);
            let transmit =
                Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
            // What a full socket does not take is lost: the client repeats it.
            let send = || other.state.try_send(UdpSockRef::from(&other.io), &transmit);
            let _ = other.io.try_io(Interest::WRITABLE, send);
        }
        Ok(from)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(own), Some(server)) = (arguments.next(), arguments.next()) else {
        return Err("bare_relay ADDRESS SERVER".into());
    };
    let server: SocketAddr = server.parse()?;
    let clients = Side::bind(own.parse()?).await?;
    let servers = Side::bind("127.0.0.1:0".parse()?).await?;
    let mut buffers = vec![vec![0; BUFFER]; BATCH_SIZE];
    let mut client = None;
    loop {
        tokio::select! {
            ready = clients.io.readable() => {
                ready?;
                client = clients.pass(&mut buffers, &servers, Some(server)).unwrap_or(client);
            }
            ready = servers.io.readable() => {
                ready?;
                let _ = servers.pass(&mut buffers, &clients, client);
            }
        }
    }
}
