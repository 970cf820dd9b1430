//! The settings of a gateway.

use crate::access::{Prefix, Reach};
use crate::backend::Backends;
use crate::cell::{CellConfig, CellLimits};
use ebbtide::congestion::{Algorithm, ControlConfig};
use ebbtide::{ClientConfig, Uri};
use std::time::Duration;

/// The settings of a [`Gateway`](crate::Gateway). By default no server can be reached: see [`Self::allow`].
#[derive(Clone, Debug)]
#[must_use]
pub struct GatewayConfig {
    pub(crate) access: Reach,
    pub(crate) backends: Backends,
    pub(crate) cells: Vec<CellConfig>,
    pub(crate) limits: CellLimits,
    pub(crate) client: ClientConfig,
    pub(crate) deadline: Duration,
    pub(crate) max_requests: usize,
    pub(crate) max_body: usize,
    pub(crate) cache_bytes: usize,
    pub(crate) name: String,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl GatewayConfig {
    /// The default settings.
    pub fn new() -> Self {
        Self {
            access: Reach::default(),
            backends: Backends::default(),
            cells: Vec::new(),
            limits: CellLimits { cell: 256, device: 1 },
            client: ClientConfig::new().control(Self::control()),
            deadline: Duration::from_secs(60),
            max_requests: 16_384,
            max_body: 1 << 20,
            cache_bytes: 64 << 20,
            name: "ebbtide".to_owned(),
        }
    }

    /// The default congestion control of requests to devices, for a [`Self::client`] of your own: `ebb:initial-rto=2s`.
    /// A device that is not known yet gets RFC 7252's first timeout: the cell's budget leaves no queue that would have
    /// to be noticed sooner, and each device's first exchange would cost a ping.
    pub fn control() -> ControlConfig {
        ControlConfig::parse("ebb:initial-rto=2s").unwrap_or(ControlConfig::new(Algorithm::DEFAULT))
    }

    /// Lets clients reach the addresses with this prefix. Those that mean this machine or this link (loopback,
    /// link-local, unspecified) are reached only by a prefix that lies within their range, such as
    /// `127.0.0.0/8`. Groups cannot be reached.
    pub fn allow(mut self, targets: Prefix) -> Self {
        self.access.targets.push(targets);
        self
    }

    /// Lets CoAP clients reach the addresses with this prefix over HTTP and HTTPS, by Proxy-Uri or
    /// Proxy-Scheme (RFC 7252 section 10.1). [`Self::allow`] does not, since HTTP servers behind a
    /// gateway are most likely not meant for its clients. Loopback and link-local addresses need a
    /// prefix within their range here as well.
    pub fn allow_http(mut self, targets: Prefix) -> Self {
        self.access.web.push(targets);
        self
    }

    /// Lets a path of the gateway stand for a URI, with all that is below it, for CoAP and HTTP
    /// clients (a reverse proxy, RFC 7252 section 5.7.3). It needs no [`Self::allow`]. Of several
    /// such paths the longest decides; a path that has a backend already gets the new one.
    pub fn backend(mut self, path: &str, uri: &Uri) -> Self {
        self.backends.add(path, uri);
        self
    }

    /// Serves clients with one of these prefixes alone; others are answered 4.03. By default all clients are served.
    pub fn only_for(mut self, clients: Prefix) -> Self {
        self.access.clients.push(clients);
        self
    }

    /// Adds a cell. Addresses of no such cell are divided into cells by IPv4 /24 and IPv6 /64.
    pub fn cell(mut self, cell: CellConfig) -> Self {
        self.cells.push(cell);
        self
    }

    /// Sets the maximum number of requests in flight in a cell without a number of its own. Default 256.
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.limits.cell = requests;
        self
    }

    /// Sets the maximum number of requests in flight to one device. Default 1 (NSTART, RFC 7252 section 4.7).
    pub fn max_per_device(mut self, requests: u32) -> Self {
        self.limits.device = requests;
        self
    }

    /// Sets how requests are sent: congestion control, keys, limits. By default with
    /// [`Self::control`].
    pub fn client(mut self, client: ClientConfig) -> Self {
        self.client = client;
        self
    }

    /// Sets how long a request may take, if its client does not ask for less. Default 60 s.
    pub fn deadline(mut self, span: Duration) -> Self {
        self.deadline = span;
        self
    }

    /// Sets the maximum number of requests that wait or are in flight, and of those that are observed for clients,
    /// which count once for each KiB. A client's address has at most as many as are free; further requests are
    /// answered 5.03. Default 16384 each.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// Sets the maximum length, in bytes, of the body of a request, and of an HTTP server's answer that is held, shared
    /// and stored. Longer answers to GET pass through block by block, each for one client. The bodies of all requests
    /// that wait or are in flight have at most 64 MiB, or twice this length if that is more. Default 1 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets the maximum number of bytes of stored answers; 0 stores none. Default 64 MiB.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets the name by which this proxy is known in diagnostics of loops and in Via. Default `ebbtide`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}
