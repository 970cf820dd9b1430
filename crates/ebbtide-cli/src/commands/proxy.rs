//! `ebbtide proxy`: a gateway to CoAP servers.

use super::serve_binds::Binds;
use crate::client::interrupt::Interrupt;
use crate::client::{block_on, control, seconds};
use crate::failure::Failure;
use crate::log::LogArgs;
use crate::settings::SettingsArgs;
use clap::Args;
use ebbtide::{ClientConfig, Server, ServerConfig, Uri};
use ebbtide_proxy::{CellConfig, Gateway, GatewayConfig, Prefix};
use std::io::{self, Write as _};
use std::time::Duration;
use tokio::net::TcpListener;

/// Forward requests to the servers of a network, which they cannot flood
#[derive(Args, Debug)]
pub(crate) struct ProxyArgs {
    /// Let clients reach the addresses with this prefix, such as 10.0.0.0/8 or 192.0.2.7; may be repeated. Loopback and
    /// link-local addresses need a prefix within their range, such as 127.0.0.0/8
    #[arg(long, value_name = "PREFIX", required_unless_present = "backend")]
    allow: Vec<Prefix>,
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
    let mut config = GatewayConfig::new()
        .max_in_flight(args.max_in_flight)
        .max_per_device(args.max_per_device)
        .deadline(args.deadline)
        .cache_bytes(args.cache)
        .name(args.name);
    if let Some(cc) = &args.cc {
        config = config.client(ClientConfig::new().control(control(cc)?));
    }
    config = args
        .backend
        .iter()
        .fold(config, |config, backend| config.backend(&backend.path, &backend.uri));
    config = args.allow.into_iter().fold(config, GatewayConfig::allow);
    config = args.only_for.into_iter().fold(config, GatewayConfig::only_for);
    config = args.cell.into_iter().fold(config, GatewayConfig::cell);
    super::serve::raise_file_limit();
    block_on(async move {
        log.report_gaps();
        forward(args.bind, args.http, config).await
    })
}

async fn forward(
    mut binds: Vec<String>,
    http: Option<String>,
    config: GatewayConfig,
) -> Result<(), Failure> {
    if binds.is_empty() {
        // Not at all addresses: whoever is to be served by a proxy is named.
        binds.push(format!("127.0.0.1:{}", ebbtide::DEFAULT_PORT));
    }
    let gateway = Gateway::new(config);
    let binds = Binds::read(&binds, None, false).await?;
    let failed = |error| Failure::work(format_args!("--bind: {error}"));
    let server = Server::with_config(gateway.router(), ServerConfig::new(), binds.sockets);
    let mut server = server.map_err(failed)?;
    for listener in binds.listeners {
        server = server.listen(listener).map_err(failed)?;
    }
    for address in server.local_addrs() {
        writeln!(io::stdout(), "proxy at coap://{address}")?;
    }
    for (scheme, address) in server.listeners() {
        writeln!(io::stdout(), "proxy at {scheme}://{address}")?;
    }
    if let Some(address) = http {
        let listener = TcpListener::bind(&address).await;
        let listener = listener.map_err(|error| {
            Failure::work(format_args!(
                "--http {address}: {error}; give HOST:PORT, such as 127.0.0.1:8080"
            ))
        })?;
        writeln!(io::stdout(), "gateway at http://{}/hc/", listener.local_addr()?)?;
        tokio::spawn(async move { gateway.serve_http(listener).await });
    }
    let mut interrupt = Interrupt::new()?;
    let asked = async {
        interrupt.received().await;
    };
    server.run_until(asked, super::serve::GRACE).await?;
    Ok(())
}
