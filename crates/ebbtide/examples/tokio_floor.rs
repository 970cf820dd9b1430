//! The limit of a client on tokio that has one request at a time: a Confirmable GET of /test with
//! `send_to`, its answer with `recv_from`, again. It compares the message ID and nothing else, and
//! repeats nothing. `studies/scripts/bench_peers.sh clients` runs it beside the library's client.
//!
//! `cargo run --release -p ebbtide --example tokio_floor PORT SECONDS` prints requests per second.

#![allow(clippy::disallowed_methods, reason = "a load generator measures wall time")]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(port), Some(span)) = (arguments.next(), arguments.next()) else {
        return Err("usage: tokio_floor PORT SECONDS".into());
    };
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?));
    let span = Duration::from_secs_f64(span.parse()?);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    let mut request = *b"\x44\x01\x00\x00\x01\x02\x03\x04\xb4test";
    let mut response = [0; 2048];
    let (began, mut answered) = (Instant::now(), 0_u32);
    while began.elapsed() < span {
        let id = (answered as u16).to_be_bytes();
        request[2..4].copy_from_slice(&id);
        socket.send_to(&request, server).await?;
        let (length, _) = socket.recv_from(&mut response).await?;
        if length < 4 || response[2..4] != id {
            return Err("the answer is not to the last request".into());
        }
        answered += 1;
    }
    println!("{:.0}", f64::from(answered) / began.elapsed().as_secs_f64());
    Ok(())
}
