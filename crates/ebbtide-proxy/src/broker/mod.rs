//! A broker of topics, to which clients publish and which others observe (draft-ietf-core-coap-pubsub-21).

mod properties;
mod routes;
mod storing;
mod table;
mod topic;

use crate::durable::Durable;
use crate::open::FairPlaces;
use crate::system;
use crate::work::ClientWork;
use ebbtide::server::{Router, StateStore, StoredMap};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use table::{AT_ONCE, Due, TopicTable};

/// How often topics are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Changes that wait until they are stored.
const MAX_WAITING: usize = 4096;

/// The settings of a [`Broker`].
#[derive(Default)]
#[must_use]
pub struct BrokerConfig {
    store: Option<Arc<dyn StateStore>>,
    max_bytes: Option<usize>,
}

impl fmt::Debug for BrokerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerConfig").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}

impl BrokerConfig {
    /// The default settings: topics end with the program.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores topics and their latest publications, so that those that were acknowledged outlive the program. The
    /// broker must be the only one that uses this store.
    pub fn state(mut self, store: impl StateStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the maximum number of bytes of all topics and publications, each of which counts as at least 1 KiB. An
    /// address has at most as many as are free. Any beyond it that are stored are set aside until a start with
    /// more room. Default 64 MiB.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }
}

/// A broker (draft-ietf-core-coap-pubsub-21): clients create topics, publish to them, and observe what others publish,
/// without knowing each other. Cloning it is cheap; all clones are the same broker.
///
/// A client that creates a topic over DTLS or TLS owns it: it alone may configure and delete it. Without security
/// everyone may. All clients may publish and subscribe.
///
/// ```no_run
/// use ebbtide::Server;
/// use ebbtide_proxy::{Broker, BrokerConfig};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let broker = Broker::open(BrokerConfig::new())?;
/// Server::bind(broker.router(), ["127.0.0.1:5683"])?.run().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Broker {
    inner: Arc<BrokerInner>,
}

#[derive(Debug)]
struct BrokerInner {
    /// Not locked while subjects report a change: their observers' requests lock it.
    table: Mutex<TopicTable>,
    durable: Option<Durable>,
    waiting: Arc<FairPlaces>,
    work: ClientWork,
}

impl Broker {
    /// Opens a broker with the topics that are stored, which it reads in the calling thread.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with time enabled.
    pub fn open(config: BrokerConfig) -> io::Result<Self> {
        Self::with_waiting(config, MAX_WAITING)
    }

    /// At most so many changes may wait until they are stored.
    fn with_waiting(config: BrokerConfig, waiting: usize) -> io::Result<Self> {
        let mut table = TopicTable::new(config.max_bytes.unwrap_or(64 << 20));
        let mut map = config.store.map(StoredMap::load).transpose()?;
        if let Some(map) = &mut map {
            storing::restore(map, &mut table);
        }
        let inner = Arc::new_cyclic(|inner| BrokerInner {
            table: Mutex::new(table),
            durable: map.map(|map| Durable::start(map, inner.clone())),
            waiting: FairPlaces::new(waiting),
            work: ClientWork::default(),
        });
        tokio::spawn(look(Arc::downgrade(&inner)));
        Ok(Self { inner })
    }

    /// A router with the broker's resources: `/ps`, and the topics and their data below it. It can be merged with
    /// others.
    #[must_use]
    pub fn router(&self) -> Router {
        routes::router(self)
    }
}

impl BrokerInner {
    fn table(&self) -> MutexGuard<'_, TopicTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends topics that expire and checks subscribers, until the broker is dropped.
async fn look(broker: Weak<BrokerInner>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(broker) = broker.upgrade() else { return };
        loop {
            let all = broker.table().take_due(system::now(), system::unix_seconds());
            let is_last = all.len() < AT_ONCE;
            for due in all {
                match due {
                    Due::Expired(subject) => {
                        // Its observers are answered that there is no such topic.
                        subject.changed();
                        if let Some(durable) = &broker.durable {
                            durable.wake();
                        }
                    }
                    Due::Silent(subject) => subject.changed(),
                }
            }
            if is_last {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::serve;
    use ebbtide::server::TestServer;
    use ebbtide::{Client, Code, OptionNumber, Request};
    use futures_util::FutureExt;
    use std::sync::Condvar;

    /// A disk that takes nothing until it is released.
    #[derive(Clone, Debug, Default)]
    struct StuckDisk(Arc<(Mutex<bool>, Condvar)>);

    impl StuckDisk {
        fn release(&self) {
            *self.0.0.lock().unwrap() = true;
            self.0.1.notify_all();
        }
    }

    impl StateStore for StuckDisk {
        fn load(&self) -> io::Result<Option<Vec<u8>>> {
            Ok(None)
        }

        fn save(&self, _: &[u8]) -> io::Result<()> {
            let (is_free, freed) = &*self.0;
            let waited = freed.wait_while(is_free.lock().unwrap(), |is_free| !*is_free);
            waited.map(drop).map_err(|_| io::ErrorKind::Other.into())
        }
    }

    #[derive(Clone, Debug, Default)]
    struct FailingDisk(Arc<Mutex<bool>>);

    impl StateStore for FailingDisk {
        fn load(&self) -> io::Result<Option<Vec<u8>>> {
            Ok(None)
        }

        fn save(&self, _: &[u8]) -> io::Result<()> {
            match *self.0.lock().unwrap() {
                true => Ok(()),
                false => Err(io::ErrorKind::StorageFull.into()),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_topic_that_cannot_be_stored_is_not_there() {
        let disk = FailingDisk::default();
        let broker = Broker::open(BrokerConfig::new().state(disk.clone())).unwrap();
        let server = TestServer::new(broker.router());
        let create = || {
            let topic = &b"\xa2\x00\x61a\x02\x6ccore.ps.data"[..];
            server.request(Request::post("coap://broker/ps").unwrap().payload(topic))
        };
        assert_eq!(create().await.code(), Code::SERVICE_UNAVAILABLE);
        assert_eq!(broker.inner.table().len(), 0);
        // One whose handler is dropped has no answer either.
        assert!(create().now_or_never().is_none());
        assert_eq!(broker.inner.table().len(), 0);
        *disk.0.lock().unwrap() = true;
        assert_eq!(create().await.code(), Code::CREATED);
        assert_eq!(broker.inner.table().len(), 1);
    }

    #[tokio::test]
    async fn a_client_whose_changes_wait_for_the_disk_is_told_to_be_slower() {
        let disk = StuckDisk::default();
        let config = BrokerConfig::new().state(disk.clone());
        let broker = Broker::with_waiting(config, 2).unwrap();
        let address = serve(broker.router());
        let client = Client::new();
        let create = async |name: u8| {
            let topic = [&b"\xa2\x00\x61"[..], &[name], b"\x02\x6ccore.ps.data"].concat();
            let request = Request::post(format!("coap://{address}/ps")).unwrap().payload(topic);
            client.request(request).await.unwrap()
        };
        let second = async {
            while broker.inner.table().iter().next().is_none() {
                tokio::task::yield_now().await;
            }
            let refused = create(b'b').await;
            disk.release();
            refused
        };
        let (first, second) = tokio::join!(create(b'a'), second);
        assert_eq!((first.code(), second.code()), (Code::CREATED, Code::TOO_MANY_REQUESTS));
        assert_eq!(second.options().get_uint(OptionNumber::MAX_AGE), Some(1));
        assert_eq!(create(b'b').await.code(), Code::CREATED);
    }
}
