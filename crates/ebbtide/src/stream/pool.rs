//! A client's connections: one to each server, shared by all requests to it.

use super::config::StreamConfig;
use super::connect::connect;
use super::counters::{StreamCounters, Tally};
use super::link::{Answerer, Link};
use crate::error::Error;
use crate::message::{Scheme, Uri, UriError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The server's address and name: TLS certificates and HTTP's Host refer to names.
type Key = (Scheme, SocketAddr, String);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Pool {
    /// Answers the servers' requests.
    answerer: Option<Answerer>,
    places: Mutex<BTreeMap<Key, Arc<PoolSlot>>>,
    tally: Arc<Tally>,
}

/// A slot for the connection to a server. It is locked while connecting, so that requests that
/// arrive meanwhile wait for the same connection.
#[derive(Debug, Default)]
struct PoolSlot {
    link: tokio::sync::Mutex<Option<Arc<Link>>>,
}

impl Pool {
    pub(crate) fn new(answerer: Option<Answerer>) -> Self {
        Self { answerer, places: Mutex::default(), tally: Arc::default() }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<PoolSlot>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection for a URI, either the open one or a new one.
    pub(crate) async fn link(
        &self,
        config: &StreamConfig,
        uri: &Uri,
        remote: SocketAddr,
    ) -> Result<Arc<Link>, Error> {
        if !cfg!(feature = "tcp") {
            let error = UriError::Feature { scheme: uri.scheme().name(), feature: "tcp" };
            return Err(error.into());
        }
        let named = uri.scheme().is_secure() || uri.scheme().is_websocket();
        let name = if named { uri.host().to_owned() } else { String::new() };
        let place = {
            let mut places = self.places();
            let key = (uri.scheme(), remote, name);
            if !places.contains_key(&key) {
                // Slots whose connections have ended are removed when a new one is added; a locked
                // slot is in use.
                places.retain(|_, place| match place.link.try_lock() {
                    Ok(link) => {
                        link.as_ref().is_some_and(|link| link.is_open() || link.holds_off())
                    }
                    Err(_) => true,
                });
            }
            places.entry(key).or_default().clone()
        };
        let mut open = place.link.lock().await;
        if let Some(link) = open.as_ref().filter(|link| link.is_open()) {
            return Ok(link.clone());
        }
        if let Some(until) = open.as_ref().and_then(|link| link.hold_off()) {
            // RFC 8323 section 5.5. Requests wait, each within its own time limit.
            tokio::time::sleep_until(until).await;
        }
        let link = connect(config, &self.tally, uri, remote, self.answerer.clone()).await?;
        *open = Some(link.clone());
        Ok(link)
    }

    fn links(&self) -> Vec<Arc<Link>> {
        let places = self.places();
        let links = places.values().filter_map(|place| place.link.try_lock().ok()?.clone());
        links.collect()
    }

    /// The number of requests that have not ended.
    pub(crate) fn open_requests(&self) -> usize {
        self.links().iter().map(|link| link.open_requests()).sum()
    }

    pub(crate) fn counters(&self) -> StreamCounters {
        let mut counters = self.tally.counters();
        for link in self.links() {
            let state = link.lock();
            if state.over.is_none() {
                counters.open += 1;
                counters.messages += state.connection.counters();
            }
        }
        counters
    }

    /// Releases all connections.
    pub(crate) fn close(&self) {
        self.links().iter().for_each(|link| link.release());
    }
}
