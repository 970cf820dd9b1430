//! OSCORE (RFC 8613): requests and responses that are protected end to end, also through proxies.
//!
//! A client and a server that share a secret each make an [`OscoreContext`] of it, with the IDs the
//! other way round, and give it to [`ClientConfig::oscore`](crate::ClientConfig::oscore). A client
//! then protects all its requests to single servers, over any transport; a server verifies those
//! that are protected, and a handler learns who sent them from
//! [`Call::identity`](crate::server::Call::identity).
//!
//! ```no_run
//! use ebbtide::oscore::{OscoreContext, OscoreContexts};
//!
//! # async fn example(secret: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let context = OscoreContext::new(secret, b"sensor", b"cloud").state_file("sensor.state");
//! let config = ebbtide::ClientConfig::new().oscore(OscoreContexts::new([context])?);
//! let response = ebbtide::Client::with_config(config).get("coap://192.0.2.7/temperature").await?;
//! # Ok(()) }
//! ```

mod client;
#[cfg(feature = "edhoc")]
mod ending;
mod lookup;
#[cfg(feature = "edhoc")]
mod made;
mod renewals;
mod sequence_file;
mod server;
mod store;

pub(crate) use client::{ClientContext, ResponseOpener};
pub use ebbtide_core::oscore::{Algorithm, ParameterError};
#[cfg(feature = "edhoc")]
pub(crate) use made::MadeContext;
pub(crate) use server::{Unopened, VerifiedRequest};

use crate::message::Uri;
use crate::proved_identity::ProvedIdentity;
use core::fmt;
use ebbtide_core::oscore::{
    ContextName, ContextTable, MasterSecret, Numbering, OuterMessage, SecurityContext,
};
use ebbtide_core::session::with_options;
use ebbtide_core::wire::Content;
use lookup::AtomicServerLookup;
use renewals::Renewals;
use sequence_file::SequenceFile;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use store::NumberStore;
use zeroize::Zeroizing;

/// The parameters of a security context that is shared with one peer.
#[derive(Clone)]
#[must_use]
pub struct OscoreContext {
    secret: Zeroizing<Vec<u8>>,
    salt: Vec<u8>,
    id_context: Option<Vec<u8>>,
    sender_id: Vec<u8>,
    recipient_id: Vec<u8>,
    algorithm: Algorithm,
    identity: Option<Arc<[u8]>>,
    origin: ContextOrigin,
    servers: Servers,
    state: State,
}

/// The state of a context after a restart.
#[derive(Clone, Debug)]
enum State {
    /// Another one: the secret is new.
    None,
    /// The same one, with the numbers in this file.
    File(PathBuf),
    /// One with keys that are made anew with the peer.
    Renewed,
}

/// Where a context comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum ContextOrigin {
    /// A shared secret.
    Shared,
    /// A handshake.
    #[cfg_attr(not(feature = "edhoc"), expect(dead_code, reason = "a handshake makes it"))]
    Handshake,
    /// An exchange of new keys.
    Renewal,
    /// A handshake that is not complete: it is for the request that ends it, and for no other.
    EndingHandshake,
}

/// The servers to which a client protects its requests with a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    /// Those that have none of their own.
    All,
    /// This one.
    One(Box<ServerName>),
    /// None: it is for the answers to a client, and for requests to that client.
    #[cfg_attr(not(feature = "edhoc"), expect(dead_code, reason = "a handshake makes it"))]
    None,
}

/// The name of a server: at any port, if none is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerName {
    host: String,
    port: Option<u16>,
}

impl Servers {
    #[cfg(feature = "edhoc")]
    fn of(uri: &Uri) -> Self {
        Self::One(Box::new(ServerName { host: uri.host().to_owned(), port: Some(uri.port()) }))
    }

    /// Whether it is for the server of this URI and not for all.
    fn names(&self, uri: &Uri) -> bool {
        match self {
            Self::One(server) => {
                let ServerName { host, port } = &**server;
                host.eq_ignore_ascii_case(uri.host()) && port.is_none_or(|port| port == uri.port())
            }
            Self::All | Self::None => false,
        }
    }

    fn is_all(&self) -> bool {
        *self == Self::All
    }
}

impl OscoreContext {
    /// A context with this Master Secret, this endpoint's ID and the peer's ID, of at most 7 bytes
    /// each (6 with AES-GCM).
    ///
    /// A secret must be used with one pair of IDs in one place only: two programs, or two runs of
    /// one program, that begin with the same keys would use the same nonces. [`Self::state_file`]
    /// prevents the latter.
    pub fn new(secret: &[u8], sender_id: &[u8], recipient_id: &[u8]) -> Self {
        Self {
            secret: Zeroizing::new(secret.to_vec()),
            salt: Vec::new(),
            id_context: None,
            sender_id: sender_id.to_vec(),
            recipient_id: recipient_id.to_vec(),
            algorithm: Algorithm::default(),
            identity: None,
            origin: ContextOrigin::Shared,
            servers: Servers::All,
            state: State::None,
        }
    }

    /// Sets the Master Salt. Default: empty.
    pub fn salt(mut self, salt: &[u8]) -> Self {
        self.salt = salt.to_vec();
        self
    }

    /// Sets the ID Context, of at most 32 bytes, which requests then contain. Default: none.
    pub fn id_context(mut self, id_context: &[u8]) -> Self {
        self.id_context = Some(id_context.to_vec());
        self
    }

    /// Sets the AEAD algorithm. Default: AES-CCM-16-64-128.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Sets the peer's identity for handlers. Default: the bytes of its ID.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.identity = Some(name.into().into_bytes().into());
        self
    }

    /// Uses the context for a client's requests to this host only, a name or an address, and to
    /// this port if one is given. Default: for all requests for which there is no other context.
    pub fn server(mut self, host: impl Into<String>, port: Option<u16>) -> Self {
        self.servers = Servers::One(Box::new(ServerName { host: host.into(), port }));
        self
    }

    /// Keeps the sequence numbers in this file, which is made if it is not there, and which no
    /// other program can use at the same time. It is replaced whenever it changes, so its folder
    /// must be writable. Without a file, the secret must be a new one at each
    /// start of the program, or [renewed](Self::renewed).
    ///
    /// As long as the secret is in use, the file must not be removed, nor replaced by an older copy.
    pub fn state_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.state = State::File(path.into());
        self
    }

    /// Makes new keys with the peer before the first request after each start, in place of a state
    /// file and an ID context (RFC 8613 appendix B.2). Both sides must do so. It is the way out if
    /// a state file was lost, and takes one exchange.
    pub fn renewed(mut self) -> Self {
        self.state = State::Renewed;
        self.id_context = None;
        self.origin = ContextOrigin::Renewal;
        self
    }

    fn derive(
        &self,
        numbering: Numbering,
        store: NumberStore,
    ) -> Result<SecurityContext<NumberStore>, ParameterError> {
        let (ours, theirs) = (&self.sender_id, &self.recipient_id);
        SecurityContext::resume(&self.master_secret(), ours, theirs, numbering, store)
    }

    fn master_secret(&self) -> MasterSecret<'_> {
        let id_context = self.id_context.as_deref();
        MasterSecret {
            secret: &self.secret,
            salt: &self.salt,
            id_context,
            algorithm: self.algorithm,
        }
    }
}

/// Shows no secret.
impl fmt::Debug for OscoreContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OscoreContext")
            .field("sender_id", &self.sender_id)
            .field("recipient_id", &self.recipient_id)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// The reason why contexts cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum ContextError {
    /// A parameter is not valid.
    Parameter {
        /// The position of the context in the list.
        index: usize,
        /// The reason.
        reason: ParameterError,
    },
    /// An earlier context has the same ID of the peer, and the same ID Context.
    SameName {
        /// The position of the context in the list.
        index: usize,
    },
    /// The file of its sequence numbers cannot be used.
    State {
        /// The position of the context in the list.
        index: usize,
        /// The file.
        path: PathBuf,
        /// The error of the operating system; of the kind `ResourceBusy` if another program uses the file.
        source: io::Error,
    },
}

impl ContextError {
    /// The position of the context in the list.
    #[must_use]
    pub fn index(&self) -> usize {
        match self {
            Self::Parameter { index, .. }
            | Self::SameName { index }
            | Self::State { index, .. } => *index,
        }
    }
}

impl fmt::Display for ContextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { reason, .. } => reason.fmt(f),
            Self::SameName { .. } => {
                f.write_str("an earlier context has the same recipient ID and ID context")
            }
            Self::State { path, source, .. } if source.kind() == io::ErrorKind::ResourceBusy => {
                write!(f, "another program uses the security context: {} is locked", path.display())
            }
            Self::State { path, source, .. } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl core::error::Error for ContextError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Parameter { reason, .. } => Some(reason),
            Self::State { source, .. } => Some(source),
            Self::SameName { .. } => None,
        }
    }
}

/// A context in use. A server may have very many.
struct ContextInUse {
    context: Mutex<SecurityContext<NumberStore>>,
    /// The peer's identity for handlers.
    identity: ProvedIdentity,
    servers: Servers,
    /// Present if its keys were made with the peer.
    made: Option<Box<KeysMade>>,
}

/// The further state of a context whose keys were made with the peer.
struct KeysMade {
    /// Those among which it is.
    contexts: Weak<AllContexts>,
    /// How the server finds it, if its keys were made anew.
    lookup: Option<AtomicServerLookup>,
    /// Whether the handshake is complete.
    is_complete: AtomicBool,
}

impl ContextInUse {
    fn lookup(&self) -> Option<&AtomicServerLookup> {
        self.made.as_ref()?.lookup.as_ref()
    }

    fn is_complete(&self) -> bool {
        self.made.as_ref().is_none_or(|made| made.is_complete.load(Ordering::Acquire))
    }

    fn lock(&self) -> MutexGuard<'_, SecurityContext<NumberStore>> {
        self.context.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The security contexts of clients and servers. Clones share them.
#[derive(Clone)]
pub struct OscoreContexts(Arc<AllContexts>);

#[derive(Default)]
struct AllContexts {
    in_use: RwLock<ContextTable<Arc<ContextInUse>>>,
    renewals: Renewals,
}

impl fmt::Debug for OscoreContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table();
        f.debug_list().entries(table.iter().map(|(_, entry)| *entry.lock().recipient_id())).finish()
    }
}

impl OscoreContexts {
    /// Derives the keys of all contexts, and opens their files if no context is wrong.
    ///
    /// # Errors
    ///
    /// See [`ContextError`].
    pub fn new(contexts: impl IntoIterator<Item = OscoreContext>) -> Result<Self, ContextError> {
        let (all, mut kept) = (Self::empty(), Vec::new());
        for (index, given) in contexts.into_iter().enumerate() {
            let state = matches!(given.state, State::File(_)).then(|| given.clone());
            let number = all.add(index, given)?;
            kept.extend(number.zip(state).map(|(number, given)| (index, number, given)));
        }
        for (index, number, given) in kept {
            all.resume(index, number, &given)?;
        }
        Ok(all)
    }

    pub(crate) fn empty() -> Self {
        Self(Arc::default())
    }

    fn renewals(&self) -> &Renewals {
        &self.0.renewals
    }

    fn table(&self) -> RwLockReadGuard<'_, ContextTable<Arc<ContextInUse>>> {
        self.0.in_use.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, ContextTable<Arc<ContextInUse>>> {
        self.0.in_use.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the context at this position in a list, without its file. Returns its number, unless keys are made first.
    fn add(&self, index: usize, given: OscoreContext) -> Result<Option<u32>, ContextError> {
        let context = given.derive(Numbering::Fresh, NumberStore::Volatile);
        let context = context.map_err(|reason| ContextError::Parameter { index, reason })?;
        if matches!(given.state, State::Renewed) {
            let peer = *context.recipient_id();
            let is_new = !self.table().has(&peer) && self.renewals().add(peer, given);
            return if is_new { Ok(None) } else { Err(ContextError::SameName { index }) };
        }
        self.insert(index, given, context).map(Some)
    }

    /// Goes on with the numbers in the file of a context that nothing has used yet.
    fn resume(&self, index: usize, number: u32, given: &OscoreContext) -> Result<(), ContextError> {
        let (State::File(path), Some(entry)) = (&given.state, self.get(number)) else {
            return Ok(());
        };
        let (numbering, file) = SequenceFile::open(path).map_err(|source| ContextError::State {
            index,
            path: path.clone(),
            source,
        })?;
        let context = given.derive(numbering, NumberStore::File(Box::new(file)));
        *entry.lock() = context.map_err(|reason| ContextError::Parameter { index, reason })?;
        Ok(())
    }

    /// Adds a context that was derived. Returns its number.
    fn insert(
        &self,
        index: usize,
        given: OscoreContext,
        context: SecurityContext<NumberStore>,
    ) -> Result<u32, ContextError> {
        let name = ContextName {
            kid: *context.recipient_id(),
            kid_context: context.id_context().copied(),
        };
        let OscoreContext { identity, servers, origin, .. } = given;
        let identity = identity.map_or(ProvedIdentity::Id(name.kid), ProvedIdentity::Shared);
        let made = (origin != ContextOrigin::Shared).then(|| {
            Box::new(KeysMade {
                contexts: Arc::downgrade(&self.0),
                lookup: (origin == ContextOrigin::Renewal).then(AtomicServerLookup::default),
                is_complete: AtomicBool::new(origin != ContextOrigin::EndingHandshake),
            })
        });
        let entry = ContextInUse { context: Mutex::new(context), identity, servers, made };
        let added = self.table_mut().add(name, Arc::new(entry));
        added.map_err(|_| ContextError::SameName { index })
    }

    /// The context for a client's requests to a server.
    pub(crate) fn for_server(&self, uri: &Uri) -> Option<ClientContext> {
        let (table, mut for_all) = (self.table(), None);
        for (number, entry) in table.iter().filter(|(_, entry)| entry.is_complete()) {
            if entry.servers.names(uri) {
                return Some(ClientContext::new(number, entry.clone()));
            }
            for_all = for_all.or_else(|| entry.servers.is_all().then_some((number, entry)));
        }
        for_all.map(|(number, entry)| ClientContext::new(number, entry.clone()))
    }

    /// Forgets a context that was made with the server, since the server does not know it any more.
    fn forget_made(&self, number: u32) {
        let mut table = self.table_mut();
        if table.get(number).is_some_and(|entry| entry.made.is_some()) {
            table.remove(number);
        }
    }

    fn get(&self, number: u32) -> Option<Arc<ContextInUse>> {
        self.table().get(number).cloned()
    }

    fn client_context(&self, number: u32) -> Option<ClientContext> {
        Some(ClientContext::new(number, self.get(number)?))
    }
}

/// Calls `send` with a protected message.
fn with_protected<R>(
    outer: &OuterMessage<'_>,
    plain: &Content<'_>,
    send: impl FnOnce(&Content<'_>) -> R,
) -> R {
    with_options(outer.options(plain), |options| {
        send(&Content { code: outer.code, options, payload: outer.payload })
    })
}

/// The bytes that the protection of a message adds at most: a code and a tag.
const SEAL: usize = 17;

/// Calls `with` with a buffer of this length. That for a short message is on the stack.
pub(crate) fn with_buffer<R>(length: usize, with: impl FnOnce(&mut [u8]) -> R) -> R {
    match length {
        0..=128 => with([0; 128].get_mut(..length).unwrap_or_default()),
        129..=512 => with([0; 512].get_mut(..length).unwrap_or_default()),
        _ => with(&mut vec![0; length]),
    }
}

/// The longest payload of a message that is protected. AES-CCM-16-64-128 encrypts less than 64 KiB, options included.
pub(crate) const MAX_PROTECTED: usize = 63 << 10;
