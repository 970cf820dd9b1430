//! The error of binding a socket.

use core::fmt;
use ebbtide_core::params::SpanTooLong;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// The error of binding a socket, of a setting that does not allow it, or of a stored state that cannot be loaded.
#[derive(Clone, Debug)]
pub struct BindError {
    step: FailedStep,
    source: Arc<io::Error>,
}

/// The step that failed, which decides the text before that of the source.
#[derive(Clone, Copy, Debug)]
enum FailedStep {
    /// A setting, or the system's randomness.
    Preparing,
    /// Loading the stored state, or storing it again.
    State,
    /// The name of an address.
    Resolving,
    /// Binding this address.
    Binding(SocketAddr),
}

impl BindError {
    /// A failure at this address.
    pub(crate) fn new(address: SocketAddr, source: io::Error) -> Self {
        Self { step: FailedStep::Binding(address), source: Arc::new(source) }
    }

    /// A name that has no address.
    pub(crate) fn unresolved(source: io::Error) -> Self {
        Self { step: FailedStep::Resolving, source: Arc::new(source) }
    }

    /// A failure that has nothing to do with an address.
    pub(crate) fn unprepared(source: io::Error) -> Self {
        Self { step: FailedStep::Preparing, source: Arc::new(source) }
    }

    /// A stored state that cannot be loaded, or not stored again.
    pub(crate) fn of_state(source: io::Error) -> Self {
        Self { step: FailedStep::State, source: Arc::new(source) }
    }

    /// Whether the stored state is the reason ([`ServerConfig::state`](crate::ServerConfig::state)).
    #[must_use]
    pub const fn concerns_state(&self) -> bool {
        matches!(self.step, FailedStep::State)
    }

    /// The address; `None` if a name has none, or if the failure has nothing to do with an address.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        match self.step {
            FailedStep::Binding(address) => Some(address),
            FailedStep::Preparing | FailedStep::State | FailedStep::Resolving => None,
        }
    }

    /// The kind of the operating system's error.
    #[must_use]
    pub fn io_kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = &self.source;
        let is_setting = source.get_ref().is_some_and(|error| error.is::<SpanTooLong>());
        // The text of these says all that there is to say.
        if is_setting || source.kind() == io::ErrorKind::InvalidData {
            return source.fmt(f);
        }
        let address = match self.step {
            FailedStep::Preparing | FailedStep::State => return source.fmt(f),
            FailedStep::Resolving => {
                return write!(f, "there is no address to bind to: {source}");
            }
            FailedStep::Binding(address) => address,
        };
        match source.kind() {
            io::ErrorKind::AddrInUse => {
                write!(f, "{address} is in use: another program serves there, choose another port")
            }
            io::ErrorKind::AddrNotAvailable => {
                write!(f, "{address} is not an address of this machine")
            }
            io::ErrorKind::PermissionDenied => {
                write!(f, "{address} cannot be bound: ports below 1024 need a privilege")
            }
            _ => write!(f, "{address} cannot be bound: {source}"),
        }
    }
}

impl core::error::Error for BindError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&*self.source)
    }
}
