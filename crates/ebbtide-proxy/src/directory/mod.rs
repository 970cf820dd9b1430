//! A directory of the resources of a network's devices (RFC 9176).

mod endpoint;
mod index;
mod lookup;
mod routes;
mod storing;
mod table;

use crate::durable::Durable;
use crate::open::FairPlaces;
use crate::system;
use crate::web_link::WebLink;
use crate::work::ClientWork;
use ebbtide::server::{Router, StateStore, StoredMap, Subject};
use endpoint::RegisteredEndpoint;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use table::DirectoryTable;

/// How often expired registrations are removed.
const EXPIRY: Duration = Duration::from_secs(1);
/// The shortest time between two notifications of a look-up that is observed.
const NOTIFIED: Duration = Duration::from_secs(1);
/// Simple registrations whose registrants are asked at the same time.
const MAX_FETCHES: usize = 256;

/// The settings of a [`Directory`].
#[derive(Default)]
#[must_use]
pub struct DirectoryConfig {
    store: Option<Arc<dyn StateStore>>,
    max_bytes: Option<usize>,
}

impl fmt::Debug for DirectoryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryConfig")
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

impl DirectoryConfig {
    /// The default settings: registrations end with the program.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores registrations, so that those that were acknowledged outlive the program. The directory must be the only
    /// one that uses this store: a server's own state ([`ServerConfig::state`](ebbtide::ServerConfig::state)) needs
    /// another one.
    pub fn state(mut self, store: impl StateStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the maximum number of bytes of all registrations, each of which counts as at least 1 KiB. An address has at
    /// most as many as are free. Any beyond it that are stored are set aside until a start with more room. Default 64 MiB.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }
}

/// A resource directory (RFC 9176): devices register their links, and clients look them up, without asking the devices,
/// which may sleep. Cloning it is cheap; all clones are the same directory.
///
/// Without security anyone may register any name. A device that registers over DTLS or TLS owns its name until the
/// registration ends (RFC 9176 section 7.5).
///
/// ```no_run
/// use ebbtide::{Server, server::StateFile};
/// use ebbtide_proxy::{Directory, DirectoryConfig};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let directory = Directory::open(DirectoryConfig::new().state(StateFile::new("registrations")))?;
/// Server::bind(directory.router(), ["127.0.0.1:5683"])?.run().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Directory {
    inner: Arc<DirectoryInner>,
}

#[derive(Debug)]
struct DirectoryInner {
    table: Mutex<DirectoryTable>,
    durable: Option<Durable>,
    endpoints: Subject,
    resources: Subject,
    fetches: Arc<FairPlaces>,
    /// Of look-ups, and of notifications of those that are observed.
    work: ClientWork,
    notified: ClientWork,
}

/// Why an endpoint is not kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum NotKept {
    /// There is no place for it.
    Full,
    /// Another one owns the name (RFC 9176 section 7.5: the one that came first).
    NotOwner,
    /// The registration to be updated has ended.
    Gone,
}

impl Directory {
    /// Opens a directory with the registrations that are stored, which it reads in the calling thread.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with time enabled.
    pub fn open(config: DirectoryConfig) -> io::Result<Self> {
        let mut table = DirectoryTable::new(config.max_bytes.unwrap_or(64 << 20));
        let mut map = config.store.map(StoredMap::load).transpose()?;
        if let Some(map) = &mut map {
            storing::restore(map, &mut table);
        }
        let subject = || Subject::new().at_most_every(NOTIFIED);
        let inner = Arc::new_cyclic(|inner| DirectoryInner {
            table: Mutex::new(table),
            durable: map.map(|map| Durable::start(map, inner.clone())),
            endpoints: subject(),
            resources: subject(),
            fetches: FairPlaces::new(MAX_FETCHES),
            work: ClientWork::default(),
            notified: ClientWork::default(),
        });
        tokio::spawn(expire(Arc::downgrade(&inner)));
        Ok(Self { inner })
    }

    /// A router with the directory's resources, `/rd`, `/rd-lookup/ep`, `/rd-lookup/res` and `/.well-known/rd`, for a
    /// [`Server`](ebbtide::Server). It can be merged with others.
    #[must_use]
    pub fn router(&self) -> Router {
        routes::router(self)
    }

    fn table(&self) -> MutexGuard<'_, DirectoryTable> {
        self.inner.table()
    }

    /// The names of the first registered endpoints, with their base URIs. Link-local ones are left out.
    pub(crate) fn endpoints(&self, max: usize) -> Vec<(String, String)> {
        let table = self.table();
        let seen = table.iter().filter(|(_, endpoint)| endpoint.base.interface.is_none());
        let named = |(_, endpoint): (u32, &RegisteredEndpoint)| {
            (endpoint.name.name.clone(), endpoint.base.text.clone())
        };
        seen.take(max).map(named).collect()
    }

    /// The links of the endpoint with this base URI.
    pub(crate) fn links_of(&self, base: &str) -> Option<Vec<WebLink>> {
        let table = self.table();
        let found = table.iter().find(|(_, endpoint)| endpoint.base.text == base);
        found.map(|(_, endpoint)| endpoint.links.clone())
    }
}

impl DirectoryInner {
    fn table(&self) -> MutexGuard<'_, DirectoryTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an endpoint, in the place of the registration `updated` if there is a number. Returns its number, and the
    /// version of the table to wait for.
    fn put(
        &self,
        endpoint: RegisteredEndpoint,
        updated: Option<u32>,
    ) -> Result<(u32, u64), NotKept> {
        let mut table = self.table();
        let number = table.number(&endpoint.name);
        // Under the lock: others may have registered the name, or removed it, since the request came.
        if updated.is_some() && updated != number {
            return Err(NotKept::Gone);
        }
        let known = number.and_then(|number| table.get(number));
        if known.is_some_and(|known| known.owner.is_some() && known.owner != endpoint.owner) {
            return Err(NotKept::NotOwner);
        }
        // What look-ups return is the same if only the lifetime begins again.
        let is_same = known.is_some_and(|known| {
            (&known.base, &known.attributes, &known.links)
                == (&endpoint.base, &endpoint.attributes, &endpoint.links)
        });
        let number = table.put(system::now(), endpoint).map_err(|_| NotKept::Full)?;
        let version = table.version();
        drop(table);
        if !is_same {
            self.notify();
        }
        Ok((number, version))
    }

    fn notify(&self) {
        self.endpoints.changed();
        self.resources.changed();
    }
}

/// Removes what expires, until the directory is dropped.
async fn expire(directory: Weak<DirectoryInner>) {
    loop {
        tokio::time::sleep(EXPIRY).await;
        let Some(directory) = directory.upgrade() else { return };
        let has_expired = directory.table().expire(system::now());
        if has_expired {
            directory.notify();
            if let Some(durable) = &directory.durable {
                durable.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::serve;
    use ebbtide::server::{Call, get};
    use ebbtide::{Client, ClientConfig, Code, ContentFormat, Response};
    use endpoint::{BaseSource, BaseUri, EndpointName};
    use std::net::{IpAddr, Ipv4Addr};

    fn owned_by(owner: Option<&[u8]>) -> RegisteredEndpoint {
        let text = "coap://192.0.2.1".to_owned();
        RegisteredEndpoint {
            name: EndpointName { name: "node1".to_owned(), sector: None },
            lifetime: 60,
            base: BaseUri { text, named_by: BaseSource::Parameter, interface: None },
            attributes: Vec::new(),
            links: Vec::new(),
            owner: owner.map(<[u8]>::to_vec),
            client: [192, 0, 2, 1].into(),
        }
    }

    #[tokio::test]
    async fn a_name_that_got_an_owner_while_a_device_was_asked_remains_the_owners() {
        let directory = Directory::open(DirectoryConfig::new()).unwrap();
        let address = serve(directory.router());
        let inner = directory.inner.clone();
        let core = get(move |_: &Call<'_>| {
            inner.put(owned_by(Some(b"owner")), None).unwrap();
            Response::content("").format(ContentFormat::LINK_FORMAT)
        });
        let router = Router::new().route("/.well-known/core", core);
        let device = Client::serving(router, ClientConfig::new()).unwrap();
        let uri = format!("coap://{address}/.well-known/rd?ep=node1");
        assert_eq!(device.post(&*uri, "").await.unwrap().code(), Code::FORBIDDEN);
        let table = directory.table();
        let kept: Vec<_> = table.iter().map(|(_, endpoint)| endpoint.owner.as_deref()).collect();
        assert_eq!(kept, [Some(&b"owner"[..])]);
    }

    /// 4.29 would end the observation, and anyone who shares the pace could cause it.
    #[tokio::test]
    async fn a_notification_waits_for_its_pace_whatever_look_ups_have_taken() {
        let directory = Directory::open(DirectoryConfig::new()).unwrap();
        let uri = format!("coap://{}/rd-lookup/ep?count=1", serve(directory.router()));
        let mut observed = Client::new().observe(&*uri).await.unwrap();
        assert_eq!(observed.next().await.unwrap().unwrap().text(), "");
        let (inner, client) = (&directory.inner, IpAddr::V4(Ipv4Addr::LOCALHOST));
        inner.work.delay(client, 1 << 24);
        inner.notified.delay(client, 20_000);
        for n in 0..300 {
            let mut endpoint = owned_by(None);
            endpoint.name.name = format!("node{n}");
            inner.table().put(system::now(), endpoint).unwrap();
        }
        assert_eq!(Client::new().get(&*uri).await.unwrap().code(), Code::TOO_MANY_REQUESTS);
        inner.notify();
        for _ in 0..2 {
            // A client whose observation has ended registers again, as often as it must.
            let next = tokio::time::timeout(Duration::from_secs(60), observed.next()).await;
            let next = next.unwrap().unwrap().unwrap();
            assert!(next.text().contains("ep=\"node"), "{}", next.code());
            inner.notify();
        }
    }

    #[tokio::test]
    async fn an_update_does_not_bring_back_what_was_removed_meanwhile() {
        let directory = Directory::open(DirectoryConfig::new()).unwrap();
        let inner = &directory.inner;
        let (number, _) = inner.put(owned_by(None), None).unwrap();
        assert_eq!(inner.put(owned_by(None), Some(number)).map(|(number, _)| number), Ok(number));
        assert!(directory.table().remove(number));
        assert_eq!(inner.put(owned_by(None), Some(number)), Err(NotKept::Gone));
        assert_eq!(directory.table().iter().count(), 0);
    }
}
