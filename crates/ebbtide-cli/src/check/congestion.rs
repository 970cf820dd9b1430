//! The effect of a server on the network: amplification (RFC 7252 section 11.3, RFC 9175 section 2.4).
#![expect(clippy::disallowed_methods, reason = "a plain socket waits by the system's clock")]

use super::peer::Draft;
use super::{CheckSocket, CheckedServer, Finding, Rule};
use ebbtide_core::wire::Type;
use std::time::{Duration, Instant};

pub(super) const RULES: &[Rule] = &[Rule::should(
    "RFC 9175 2.4",
    "A request whose address is not proven yields at most three times its bytes.",
    amplification,
)];

/// How long all that one request yields is waited for.
const YIELD: Duration = Duration::from_secs(1);

/// Bytes of IPv4 and UDP headers, which both directions carry.
const HEADERS: usize = 28;

/// The bytes of a request of this path and of all that comes back when the client stays silent.
fn yielded(peer: &mut CheckSocket, path: &str) -> (usize, usize) {
    let kind = Type::NonConfirmable;
    let (datagram, _) = peer.encode(&Draft { path, kind, token: b"", ..Draft::default() });
    peer.send(&datagram);
    let deadline = Instant::now() + YIELD;
    let mut bytes = 0;
    while let Some(answer) = peer.receive(deadline) {
        bytes += answer.len() + HEADERS;
    }
    (datagram.len() + HEADERS, bytes)
}

/// The resource that yields most for a byte, if that is more than three bytes.
fn amplification(peer: &mut CheckSocket, server: &CheckedServer) -> Finding {
    if server.is_local {
        return Finding::Untried("a stranger cannot forge addresses of this machine".to_owned());
    }
    let mut worst: Option<(f64, String)> = None;
    for path in server.paths.iter().map(String::as_str).chain(["/.well-known/core"]) {
        let (sent, received) = yielded(peer, path);
        let factor = received as f64 / sent as f64;
        if worst.as_ref().is_none_or(|(most, _)| factor > *most) {
            worst = Some((factor, format!("{sent} bytes to {path} yield {received}: {factor:.1}")));
        }
    }
    Finding::unless(worst.filter(|(factor, _)| *factor > 3.0).map(|(_, text)| text))
}
