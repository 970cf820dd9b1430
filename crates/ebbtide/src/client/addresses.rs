//! Which of a name's addresses is asked, in the manner of RFC 8305.

use super::ClientInner;
use super::session::{HandshakeEnd, Session};
use crate::error::{Cause, Error};
use crate::message::{Scheme, Uri, UriError};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Names whose address is remembered; the first in the alphabet goes for another.
const MAX_NAMES: usize = 1024;
/// How long an attempt has before the next address is tried too (RFC 8305 section 5: Connection Attempt
/// Delay).
const ATTEMPT: Duration = Duration::from_millis(250);

/// The addresses at which the servers of names were found. They hold as long as the name has them.
#[derive(Debug, Default)]
pub(super) struct KnownAddresses {
    names: Mutex<BTreeMap<(Scheme, String, u16), SocketAddr>>,
}

impl KnownAddresses {
    fn get(&self, uri: &Uri) -> Option<SocketAddr> {
        self.lock().get(&key(uri)).copied()
    }

    fn set(&self, uri: &Uri, address: SocketAddr) {
        let mut names = self.lock();
        names.insert(key(uri), address);
        if names.len() > MAX_NAMES {
            names.pop_first();
        }
    }

    /// The server was not reached there: next time all addresses are tried.
    pub(super) fn forget(&self, uri: &Uri) {
        if uri.address().is_none() {
            self.lock().remove(&key(uri));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(Scheme, String, u16), SocketAddr>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(uri: &Uri) -> (Scheme, String, u16) {
    (uri.scheme(), uri.host().to_owned(), uri.port())
}

/// The address in a URI, if there is one that is complete: a link-local one needs a zone.
pub(super) fn literal(uri: &Uri) -> Option<SocketAddr> {
    let address = uri.address().filter(|_| uri.zone().is_none())?;
    let needs_zone = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    (!needs_zone).then(|| SocketAddr::new(address, uri.port()))
}

/// All addresses that a URI's host and port mean, the families in turn (RFC 8305 section 4), beginning
/// with the one that the system prefers; at least one.
pub(super) async fn all(uri: &Uri) -> Result<Vec<SocketAddr>, Error> {
    if let Some(address) = literal(uri) {
        return Ok(vec![address]);
    }
    if let (Some(address), None) = (uri.address(), uri.zone()) {
        return Err(UriError::NoZone(address.to_string()).into());
    }
    let host =
        uri.zone().map_or_else(|| uri.host().to_owned(), |zone| format!("{}%{zone}", uri.host()));
    let looked_up = Box::pin(tokio::net::lookup_host((host.as_str(), uri.port()))).await;
    let found: Result<Vec<_>, _> = looked_up.map(Iterator::collect);
    let found = match found {
        Ok(found) => found,
        Err(source) => return Err(unresolved(&host, Some(Arc::new(source)))),
    };
    let Some(first) = found.first() else { return Err(unresolved(&host, None)) };
    let (mut preferred, mut others): (Vec<_>, Vec<_>) =
        found.iter().copied().partition(|address| address.is_ipv4() == first.is_ipv4());
    preferred.dedup();
    others.dedup();
    let mut others = others.into_iter();
    let mut ordered = Vec::with_capacity(found.len());
    for address in preferred {
        ordered.push(address);
        ordered.extend(others.next());
    }
    ordered.extend(others);
    Ok(ordered)
}

/// The error of a name without an address; `source` is the resolver's error, if there is one.
pub(super) fn unresolved(host: &str, source: Option<Arc<io::Error>>) -> Error {
    Cause::Resolve { host: host.to_owned(), source }.into()
}

/// Opens a session with the server that a URI names, at one of these addresses. Several addresses
/// are tried one after the other, at most `ATTEMPT` apart, by a CoAP ping or by a handshake, and
/// the first one that answers is used. If no address answers, `coap` uses the first one and other
/// schemes return the first error.
pub(super) async fn reach(
    inner: &Arc<ClientInner>,
    uri: &Uri,
    addresses: &[SocketAddr],
    end: HandshakeEnd,
) -> Result<Session, Error> {
    let Some(&first) = addresses.first() else {
        return Err(unresolved(uri.host(), None));
    };
    if addresses.len() == 1 || first.ip().is_multicast() {
        return Session::open(inner, uri, first, end).await;
    }
    Box::pin(reach_one_of(inner, uri, first, addresses)).await
}

/// Opens a session at one of several addresses, of which `first` is the first.
async fn reach_one_of(
    inner: &Arc<ClientInner>,
    uri: &Uri,
    first: SocketAddr,
    addresses: &[SocketAddr],
) -> Result<Session, Error> {
    if let Some(known) = inner.found.get(uri).filter(|known| addresses.contains(known)) {
        match Session::open(inner, uri, known, HandshakeEnd::Separate).await {
            Ok(session) => return Ok(session),
            Err(_) => inner.found.forget(uri),
        }
    }
    let mut attempts = FuturesUnordered::new();
    let mut rest = addresses.iter().copied();
    let mut why = None;
    loop {
        attempts.extend(rest.next().map(|address| attempt(inner, uri, address)));
        if attempts.is_empty() {
            // A server that answers no pings may be there all the same.
            return match (uri.scheme(), why) {
                (Scheme::Coap, _) | (_, None) => {
                    Session::open(inner, uri, first, HandshakeEnd::Separate).await
                }
                (_, Some(error)) => Err(error),
            };
        }
        let tried = if rest.len() > 0 {
            tokio::time::timeout(ATTEMPT, attempts.next()).await.ok().flatten()
        } else {
            attempts.next().await
        };
        match tried {
            Some(Ok(session)) => {
                inner.found.set(uri, session.address);
                return Ok(session);
            }
            Some(Err(error)) => why = why.or(Some(error)),
            None => {}
        }
    }
}

/// Opens a session with this address. Over `coap`, a CoAP ping checks that an endpoint answers
/// there.
async fn attempt(
    inner: &Arc<ClientInner>,
    uri: &Uri,
    address: SocketAddr,
) -> Result<Session, Error> {
    let session = Session::open(inner, uri, address, HandshakeEnd::Separate).await?;
    // A DTLS handshake has been answered.
    if uri.scheme() == Scheme::Coap {
        session.ping()?.reset().await?;
    }
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Call, Router, Server, get};
    use crate::{Client, Response};

    #[tokio::test]
    async fn the_first_address_at_which_somebody_answers_is_taken_and_remembered() {
        let router = Router::new().route("/x", get(|_: &Call<'_>| Response::content("x")));
        let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
        let there = server.local_addrs()[0];
        // One that is silent, and one at which no program listens.
        let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let closed =
            tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let addresses = [silent.local_addr().unwrap(), closed, there];
        let inner = Client::new().inner;
        let uri: Uri = format!("coap://two.test:{}/x", there.port()).parse().unwrap();
        for name in ["first", "remembered"] {
            let begun = tokio::time::timeout(
                Duration::from_secs(5),
                reach(&inner, &uri, &addresses, HandshakeEnd::Separate),
            );
            assert_eq!(begun.await.unwrap().unwrap().address, there, "{name}");
        }
        assert_eq!(inner.found.get(&uri), Some(there));
        inner.found.forget(&uri);
        assert_eq!(inner.found.get(&uri), None);
    }

    #[tokio::test]
    async fn if_nobody_answers_pings_the_first_address_is_asked() {
        let closed = |socket: tokio::net::UdpSocket| socket.local_addr().unwrap();
        let first = closed(tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let second = closed(tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let inner = Client::new().inner;
        let uri: Uri = "coap://two.test/x".parse().unwrap();
        let session = reach(&inner, &uri, &[first, second], HandshakeEnd::Separate).await.unwrap();
        assert_eq!(session.address, first);
    }
}
