//! `serve --metrics ADDR`: the server's metrics over HTTP, for Prometheus, and whether it lives and is ready.
//!
//! A scrape is one short request, so this implements the minimum of HTTP: it reads a request's
//! head, answers and closes. The number of clients, their time and the size of a request are
//! bounded.

mod own;

pub(crate) use own::Exports;

use crate::failure::Failure;
use ebbtide_core::sharing_prefix;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Connections at the same time. For a further one the oldest goes, of the address that has most.
const CONNECTIONS: usize = 16;
/// The time limit of a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum number of bytes of a request's head.
const MAX_HEAD: usize = 8192;

/// Binds the address given by `--metrics`.
pub(crate) async fn bind(address: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => Failure::usage(format_args!(
            "--metrics {address}: is not a valid address: give HOST:PORT, such as 127.0.0.1:9683"
        )),
        io::ErrorKind::AddrInUse => Failure::work(format_args!(
            "--metrics: {address} is in use: another program serves there, choose another port"
        )),
        _ => Failure::work(format_args!("--metrics {address}: {error}")),
    })
}

/// Answers scrapes as long as it is polled.
pub(crate) async fn answer(listener: TcpListener, exports: Exports) {
    // The oldest first.
    let mut open: Vec<(IpAddr, AbortHandle)> = Vec::new();
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Most likely no descriptors are left; they become free again.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        open.retain(|(_, connection)| !connection.is_finished());
        if open.len() >= CONNECTIONS {
            let (_, displaced) = open.remove(oldest_of_largest(&open));
            displaced.abort();
        }
        let exports = exports.clone();
        let connection = tokio::spawn(async move {
            // A client that goes away or takes too long gets no answer.
            let _ = tokio::time::timeout(PATIENCE, converse(stream, &exports)).await;
        });
        open.push((sharing_prefix(from.ip()), connection.abort_handle()));
    }
}

fn oldest_of_largest<T>(open: &[(IpAddr, T)]) -> usize {
    let held = |of: IpAddr| open.iter().filter(|(from, _)| *from == of).count();
    // Of several, the first one.
    (0..open.len()).rev().max_by_key(|place| held(open[*place].0)).unwrap_or(0)
}

async fn converse(mut stream: TcpStream, exports: &Exports) -> io::Result<()> {
    let mut head = Vec::new();
    let (status, body) = loop {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            break reply(&head, exports);
        }
        if head.len() > MAX_HEAD {
            break refusal("431 Request Header Fields Too Large");
        }
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{}",
        body.len(),
        if head.starts_with(b"HEAD ") { "" } else { &body }
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

const OK: &str = "200 OK";

/// The status and the body of an answer.
type HttpReply = (&'static str, String);

fn refusal(status: &'static str) -> HttpReply {
    (status, format!("{status}\n"))
}

fn reply(head: &[u8], exports: &Exports) -> HttpReply {
    let mut words = head.split(|byte| byte.is_ascii_whitespace());
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    if !matches!(method, Some(b"GET" | b"HEAD")) {
        return refusal("405 Method Not Allowed");
    }
    match target.split(|byte| *byte == b'?').next() {
        Some(b"/metrics" | b"/") => (OK, exports.text()),
        // Whoever answers this lives.
        Some(b"/healthz") => (OK, "ok\n".to_owned()),
        Some(b"/readyz") if exports.is_ready() => (OK, "ok\n".to_owned()),
        Some(b"/readyz") => refusal("503 Service Unavailable"),
        _ => refusal("404 Not Found"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connection_of_the_address_with_most_gives_way() {
        let [a, b] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        assert_eq!(oldest_of_largest(&[(a, ()), (b, ()), (b, ()), (a, ()), (b, ())]), 1);
        assert_eq!(oldest_of_largest(&[(a, ()), (b, ())]), 0);
    }
}
