//! `ebbtide proxy`: a gateway to CoAP servers.

use super::serve_broker::BrokerArgs;
use super::serve_directory::DirectoryArgs;
use super::serve_explore::ExploreArgs;
use super::serve_metrics::{self, Exports};
use super::serve_security::SecurityArgs;
use crate::client::interrupt::Interrupt;
use crate::client::psk::PskArgs;
use crate::client::tls::TlsArgs;
use crate::client::{block_on, control, seconds};
use crate::failure::Failure;
use crate::log::{LeftOut, LogArgs};
use crate::settings::SettingsArgs;
use clap::Args;
use ebbtide::server::{Router, StateFile};
use ebbtide::{ClientConfig, Server, ServerConfig, Uri};
use ebbtide_proxy::{Broker, CellConfig, Directory, Gateway, GatewayConfig, Prefix};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;

/// Forward requests to the servers of a network, which they cannot flood
#[derive(Args, Debug)]
pub(crate) struct ProxyArgs {
    /// Let clients reach the addresses with this prefix, such as 10.0.0.0/8 or 192.0.2.7; may be repeated. Loopback and
    /// link-local addresses need a prefix within their range, such as 127.0.0.0/8
    #[arg(long, value_name = "PREFIX", required_unless_present_any = ["allow_http", "backend", "directory", "broker"])]
    allow: Vec<Prefix>,
    /// Let CoAP clients reach the addresses with this prefix over HTTP and HTTPS, as in coap-client -P PROXY
    /// http://192.0.2.7/; may be repeated
    #[arg(long, value_name = "PREFIX")]
    allow_http: Vec<Prefix>,
    /// Let a path of this gateway stand for a URI, with all that is below it: /PATH=coap://HOST/; may be repeated
    #[arg(long, value_name = "PATH=URI", value_parser = backend)]
    backend: Vec<BackendArg>,
    /// Address and port for CoAP clients; may be repeated [default: 127.0.0.1:5683]. Over TCP or WebSockets as in
    /// coap+tcp://0.0.0.0:5683, coap+ws://0.0.0.0:8080
    #[arg(long, value_name = "ADDR")]
    bind: Vec<String>,
    /// Answer HTTP clients at this address as well, as in http://ADDR/hc/coap://192.0.2.7/temperature
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Answer HTTPS clients at this address, with --cert and --key
    #[arg(long, value_name = "ADDR", requires = "cert")]
    https: Option<String>,
    /// Serve clients with this prefix alone; may be repeated
    #[arg(long, value_name = "PREFIX")]
    only_for: Vec<Prefix>,
    /// Addresses that share a link, and the most requests in flight to them: PREFIX[,PREFIX...][=N]; may be repeated.
    /// Other addresses are divided by IPv4 /24 and IPv6 /64
    #[arg(long, value_name = "CELL", value_parser = cell)]
    cell: Vec<CellConfig>,
    /// The most requests in flight to a cell
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    max_in_flight: u32,
    /// The most requests in flight to a device
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    max_per_device: u32,
    /// Answer or refuse each request within this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    deadline: Duration,
    /// The most bytes of stored answers; 0 stores none
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    cache: usize,
    /// The most bytes of a request's body, and of an HTTP server's answer that is held. A longer answer passes through
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    max_body: usize,
    /// Store here which clients observe what, so that a restarted proxy goes on with them, and DTLS sessions with their
    /// keys
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Serve metrics for Prometheus at http://ADDR/metrics, with the load of each cell
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
    #[command(flatten)]
    directory: DirectoryArgs,
    #[command(flatten)]
    broker: BrokerArgs,
    #[command(flatten)]
    explore: ExploreArgs,
    #[command(flatten)]
    security: SecurityArgs,
    #[command(flatten)]
    towards: TowardsArgs,
    /// The name of this proxy in diagnostics of loops
    #[arg(long, value_name = "NAME", default_value = "ebbtide")]
    name: String,
    /// Congestion control of requests to the devices, with settings as in `cocoa:nstart=4`. By default
    /// ebb:initial-rto=2s
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Security of requests to the devices
#[derive(Args, Debug)]
struct TowardsArgs {
    /// Trust devices over TLS and DTLS with a certificate of the authorities in this PEM file, instead of the system's
    #[arg(long, value_name = "FILE")]
    device_ca: Option<PathBuf>,
    /// The certificate for devices that ask for one, PEM
    #[arg(long, value_name = "FILE", requires = "device_key")]
    device_cert: Option<PathBuf>,
    /// That certificate's private key, PEM
    #[arg(long, value_name = "FILE", requires = "device_cert")]
    device_key: Option<PathBuf>,
    /// The identity and pre-shared key for devices over DTLS: a file with a line IDENTITY:KEY
    #[arg(long, value_name = "FILE")]
    device_psk_file: Option<PathBuf>,
}

impl TowardsArgs {
    fn apply(self, config: ClientConfig) -> Result<ClientConfig, Failure> {
        let args = TlsArgs {
            ca: self.device_ca,
            cert: self.device_cert,
            key: self.device_key,
            peer_keys: None,
            raw_key: None,
            insecure: false,
            #[cfg(feature = "dtls13")]
            dtls13: false,
            psk: PskArgs::of_file(self.device_psk_file),
        };
        args.apply(config)
    }
}

/// A path and the URI for which it stands.
#[derive(Clone, Debug)]
struct BackendArg {
    path: String,
    uri: Uri,
}

fn backend(text: &str) -> Result<BackendArg, String> {
    let (path, uri) =
        text.split_once('=').filter(|(path, _)| path.starts_with('/')).ok_or_else(|| {
            format!("'{text}' is not a path and a URI, such as /floor/2=coap://192.0.2.7/")
        })?;
    if path.contains(['{', '}']) {
        return Err(format!("'{path}' has braces, which a path of a backend must not have"));
    }
    let uri = uri.parse::<Uri>().map_err(|error| error.to_string())?;
    Ok(BackendArg { path: path.to_owned(), uri })
}

/// The cell that an argument describes.
fn cell(text: &str) -> Result<CellConfig, String> {
    let (prefixes, max) = match text.split_once('=') {
        Some((prefixes, max)) => (prefixes, Some(max)),
        None => (text, None),
    };
    let prefixes = prefixes.split(',').map(str::parse).collect::<Result<Vec<Prefix>, _>>();
    let cell = CellConfig::new(prefixes.map_err(|error| error.to_string())?);
    let Some(max) = max else { return Ok(cell) };
    match max.parse() {
        Ok(max) if max > 0 => Ok(cell.max_in_flight(max)),
        _ => Err(format!("'{max}' is not a number of requests in flight, such as 16")),
    }
}

/// Forwards requests until it is interrupted.
///
/// # Errors
///
/// Returns an error if an address cannot be bound, or an argument is wrong.
pub(crate) fn run(args: ProxyArgs) -> Result<(), Failure> {
    let log = args.log.start()?;
    let control = match &args.cc {
        Some(cc) => control(cc)?,
        None => GatewayConfig::control(),
    };
    let client = args.towards.apply(ClientConfig::new().control(control))?;
    let mut config = GatewayConfig::new()
        .client(client)
        .max_in_flight(args.max_in_flight)
        .max_per_device(args.max_per_device)
        .deadline(args.deadline)
        .cache_bytes(args.cache)
        .max_body(args.max_body)
        .name(args.name);
    config = args
        .backend
        .iter()
        .fold(config, |config, backend| config.backend(&backend.path, &backend.uri));
    config = args.allow.into_iter().fold(config, GatewayConfig::allow);
    config = args.allow_http.into_iter().fold(config, GatewayConfig::allow_http);
    config = args.only_for.into_iter().fold(config, GatewayConfig::only_for);
    config = args.cell.into_iter().fold(config, GatewayConfig::cell);
    let served = Served {
        binds: args.bind,
        http: args.http,
        https: args.https,
        state: args.state,
        metrics: args.metrics,
        left_out: log.left_out(),
        directory: args.directory,
        broker: args.broker,
        explore: args.explore,
        security: args.security,
    };
    super::serve::raise_file_limit();
    block_on(async move {
        log.report_gaps();
        served.forward(config).await
    })
}

/// A listener for HTTP clients, which an option names by its scheme.
struct HttpListener {
    scheme: &'static str,
    /// The host in the option.
    host: String,
    listener: TcpListener,
}

impl HttpListener {
    async fn bind(scheme: &'static str, address: Option<String>) -> Result<Option<Self>, Failure> {
        let Some(address) = address else { return Ok(None) };
        let listener = TcpListener::bind(&address).await.map_err(|error| {
            Failure::work(format_args!(
                "--{scheme} {address}: {error}; give HOST:PORT, such as 127.0.0.1:8080"
            ))
        })?;
        let host = address.rsplit_once(':').map_or("", |(host, _)| host).to_owned();
        Ok(Some(Self { scheme, host, listener }))
    }

    /// The origin of its URIs; `None` if it listens at all addresses, since none of them is then known to clients.
    fn origin(&self) -> Option<String> {
        let address = self.listener.local_addr().ok()?;
        let is_named = !address.ip().is_unspecified();
        is_named.then(|| format!("{}://{}:{}", self.scheme, self.host, address.port()))
    }
}

/// The addresses of the proxy, and its resources besides those that it forwards to.
struct Served {
    binds: Vec<String>,
    http: Option<String>,
    https: Option<String>,
    state: Option<PathBuf>,
    metrics: Option<String>,
    left_out: LeftOut,
    directory: DirectoryArgs,
    broker: BrokerArgs,
    explore: ExploreArgs,
    security: SecurityArgs,
}

impl Served {
    async fn forward(self, config: GatewayConfig) -> Result<(), Failure> {
        let Self { mut binds, http, https, state, metrics, left_out, directory, .. } = self;
        let (broker, explore, security) = (self.broker, self.explore, self.security);
        if binds.is_empty() {
            // Not at all addresses: whoever is to be served by a proxy is named.
            binds.push(format!("127.0.0.1:{}", ebbtide::DEFAULT_PORT));
        }
        let gateway = Gateway::new(config);
        let explored = gateway.clone();
        let directory = directory.open(state.as_deref())?;
        let broker = broker.open(state.as_deref())?;
        let own = [directory.as_ref().map(Directory::router), broker.as_ref().map(Broker::router)];
        let mut router = match own.into_iter().flatten().reduce(Router::merge) {
            Some(own) => gateway.router_beside(own),
            None => gateway.router(),
        };
        let http = HttpListener::bind("http", http).await?;
        let https = HttpListener::bind("https", https).await?;
        if let Some(origin) = [&http, &https].into_iter().flatten().find_map(HttpListener::origin) {
            router = router.merge(gateway.http_link(&origin));
        }
        let security = security.read()?;
        let binds = security.binds(&binds).await?;
        let mut own = security.apply(ServerConfig::new(), &binds)?;
        if let Some(path) = state {
            own = own.state(StateFile::new(path));
        }
        let failed = |error: ebbtide::BindError| match error.concerns_state() {
            true => Failure::work(format_args!("--state {error}")),
            false => Failure::work(format_args!("--bind: {error}")),
        };
        let server = Server::with_config(router, own, binds.sockets);
        let mut server = server.map_err(failed)?;
        for listener in binds.listeners {
            server = server.listen(listener).map_err(failed)?;
        }
        let reloads = security.at_hangup(&server, None)?;
        for address in server.local_addrs() {
            writeln!(io::stdout(), "proxy at coap://{address}")?;
        }
        for address in server.dtls_addrs() {
            writeln!(io::stdout(), "proxy at coaps://{address}")?;
        }
        for (scheme, address) in server.listeners() {
            writeln!(io::stdout(), "proxy at {scheme}://{address}")?;
        }
        if let Some(HttpListener { listener, .. }) = http {
            writeln!(io::stdout(), "gateway at http://{}/hc/", listener.local_addr()?)?;
            let gateway = gateway.clone();
            tokio::spawn(async move { gateway.serve_http(listener).await });
        }
        if let (Some(HttpListener { listener, .. }), Some(tls)) = (https, security.tls.clone()) {
            writeln!(io::stdout(), "gateway at https://{}/hc/", listener.local_addr()?)?;
            // The certificate was accepted when it was read.
            tokio::spawn(async move { gateway.serve_https(listener, tls.server()).await });
        }
        if let Some(address) = metrics {
            let listener = serve_metrics::bind(&address).await?;
            writeln!(io::stdout(), "metrics at http://{}/metrics", listener.local_addr()?)?;
            let exports = Exports::new(server.meter(), left_out, reloads, security.tls.clone());
            tokio::spawn(serve_metrics::answer(listener, exports.gateway(explored.clone())));
        }
        explore.start(&explored, None, directory.as_ref()).await?;
        let mut interrupt = Interrupt::new()?;
        let asked = async {
            interrupt.received().await;
        };
        server.run_until(asked, super::serve::GRACE).await?;
        Ok(())
    }
}
