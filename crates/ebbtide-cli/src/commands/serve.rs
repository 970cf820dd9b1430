//! `ebbtide serve`: test resources, or the files of a folder.

use super::serve_broker::BrokerArgs;
use super::serve_directory::DirectoryArgs;
use super::serve_explore::ExploreArgs;
use super::serve_limits::LimitArgs;
use super::serve_notify::ServiceManager;
use super::serve_security::SecurityArgs;
use super::{serve_files, serve_memory, serve_metrics, serve_resources, serve_sockets};
use crate::client::flow::over_tcp_as_in_a_scenario;
use crate::client::interrupt::Interrupt;
use crate::client::oscore::OscoreArgs;
use crate::client::{block_on, control, psk};
use crate::failure::Failure;
use crate::log::{LeftOut, LogArgs};
use crate::settings::SettingsArgs;
use clap::Args;
use ebbtide::congestion::Algorithm;
use ebbtide::server::{StateFile, Subject, interface_index};
use ebbtide::stream::Listen;
use ebbtide::{Server, ServerConfig};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

/// Serve test resources, or the files of a folder
#[derive(Args, Debug)]
#[cfg_attr(
    feature = "dtls13",
    expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")
)]
pub(crate) struct ServeArgs {
    /// Address and port; may be repeated [default: 0.0.0.0:5683 and [::]:5683]. With DTLS as in
    /// coaps://0.0.0.0:5684; over TCP, TLS or WebSockets as in coap+tcp://0.0.0.0:5683,
    /// coaps+tcp://, coap+ws://, coaps+ws://
    #[arg(long, value_name = "ADDR")]
    bind: Vec<String>,
    #[command(flatten)]
    security: SecurityArgs,
    /// Also serve clients of coaps with DTLS 1.3, with the certificate. It must be issued by an authority
    /// that the clients trust themselves
    #[cfg(feature = "dtls13")]
    #[arg(long, requires = "cert")]
    dtls13: bool,
    /// Append the secrets of DTLS sessions to this file (NSS format: Wireshark decrypts a capture with
    /// them)
    #[arg(long, value_name = "FILE")]
    keylog: Option<PathBuf>,
    #[command(flatten)]
    oscore: OscoreArgs,
    /// Also answer requests to the All CoAP Nodes groups (224.0.1.187, ff02::fd, ff05::fd), on
    /// this interface or on the one that the system chooses
    #[arg(long, value_name = "INTERFACE")]
    multicast: Option<Option<String>>,
    /// Congestion control of separate responses and notifications
    #[arg(long, default_value = Algorithm::DEFAULT.name(), value_name = "NAME")]
    cc: String,
    /// Also act as a scenario's server: offer the resource that its clients request, over UDP and
    /// TCP, with its patience
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Option<String>,
    /// Serve the files of this folder. If this is a link, it is followed again at SIGHUP
    #[arg(short, long, value_name = "PATH")]
    dir: Option<PathBuf>,
    /// Let clients replace and delete those files (PUT, DELETE)
    #[arg(long, requires = "dir")]
    writable: bool,
    /// Answer such a change only when it is on the disk (fsync), so that it survives a loss of
    /// power
    #[arg(long, requires = "writable")]
    durable: bool,
    /// Refuse such changes when the folder's files would occupy more than this many bytes (5.03, or 4.13 for a
    /// single file). A client's address has at most as much as is free to others
    #[arg(long, value_name = "BYTES", requires = "writable")]
    max_disk: Option<u64>,
    /// Serve metrics for Prometheus at http://ADDR/metrics
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
    /// Sockets for each UDP address, each with a thread of its own, among which the system divides the
    /// clients (Linux). An address whose sockets the service manager hands over (LISTEN_FDS) has as many as these
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// The first byte of DTLS connection IDs, by which a balancer in front of several servers finds
    /// the one that has a session
    #[arg(long, value_name = "N")]
    server_id: Option<u8>,
    /// Store here which clients observe what, and DTLS sessions with their keys, so that a
    /// restarted server goes on with them
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    #[command(flatten)]
    directory: DirectoryArgs,
    #[command(flatten)]
    broker: BrokerArgs,
    #[command(flatten)]
    explore: ExploreArgs,
    /// Keep polling for datagrams for this many microseconds after the last ones before sleeping:
    /// shorter round trips at the cost of a busy core
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    busy_poll: u64,
    /// Read all files and look up all names, say whether they are valid, and end without serving
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Serves until it is interrupted.
///
/// # Errors
///
/// Returns an error if an address cannot be bound, or an argument is wrong.
pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    let sockets = serve_sockets::handed_over()?;
    let log = args.log.start()?;
    let mut net = args.limits.apply(ServerConfig::new()).control(control(&args.cc)?);
    if args.scenario.is_some() {
        net = net.transport(over_tcp_as_in_a_scenario);
    }
    let config = net
        .key_log(psk::key_log(args.keylog.as_deref())?)
        .research(|research| research.busy_poll(Duration::from_micros(args.busy_poll)))
        .workers(args.workers.into())
        .sockets(sockets);
    let config = match args.server_id {
        Some(id) => config.server_id(id),
        None => config,
    };
    #[cfg(feature = "dtls13")]
    if args.dtls13 && args.keylog.is_some() {
        tracing::warn!(
            "--keylog: only the secrets of DTLS 1.2 are written; sessions of DTLS 1.3 have no key log"
        );
    }
    #[cfg(feature = "dtls13")]
    let config = config.dtls13(args.dtls13.then(ebbtide::dtls::Dtls13Config::default));
    let config = match args.oscore.contexts()? {
        Some(contexts) => config.oscore(contexts),
        None => config,
    };
    let config = match args.oscore.credentials()? {
        Some(credentials) => config.edhoc(credentials),
        None => config,
    };
    // A server that was given contexts is not for clients that have none.
    let config = config.oscore_required(args.oscore.is_asked_for());
    let config = match &args.state {
        Some(path) => config.state(StateFile::new(path)),
        None => config,
    };
    raise_file_limit();
    block_on(async {
        log.report_gaps();
        serve(args, config, log.left_out()).await
    })
}

/// Fewer open files than this are worth a warning.
#[cfg(target_os = "linux")]
const FEW_FILES: u64 = 1024;

/// Raises the limit of open files to the system's maximum. Many systems begin with 1,024; that is
/// fewer than the connections that a server accepts, and at the limit no file could be opened
/// either.
pub(crate) fn raise_file_limit() {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
            && soft < hard
        {
            // If it fails, the server works as well, for fewer clients.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
        if let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE)
            && soft < FEW_FILES
        {
            tracing::warn!(
                limit = soft,
                "few files may be open, so few connections are accepted: raise ulimit -n"
            );
        }
    }
}

async fn serve(args: ServeArgs, config: ServerConfig, log: LeftOut) -> Result<(), Failure> {
    let time = Subject::default();
    let access = serve_files::Access {
        writable: args.writable,
        durable: args.durable,
        max_disk: args.max_disk,
    };
    let open = |path: &PathBuf| serve_files::Folder::open(path, access);
    let folder = args.dir.as_ref().map(open).transpose();
    let folder = folder.map_err(|error| Failure::usage(format_args!("--dir {error}")))?;
    let mut router = match &folder {
        Some(folder) => folder.router(),
        None => serve_resources::router(&time),
    };
    if let Some(name) = &args.scenario {
        let workload = super::flow::scenario(name, &[])?.workload;
        router = serve_resources::of_scenario(router, &workload);
    }
    let directory = args.directory.open(args.state.as_deref())?;
    if let Some(directory) = &directory {
        router = router.merge(directory.router());
    }
    if let Some(broker) = args.broker.open(args.state.as_deref())? {
        router = router.merge(broker.router());
    }
    let security = args.security.read()?;
    let mut binds = security.binds(&args.bind).await?;
    if args.scenario.is_some() {
        binds.listeners.extend(binds.sockets.iter().copied().map(Listen::Tcp));
    }
    let failed = |error: ebbtide::BindError| match error.concerns_state() {
        true => Failure::work(format_args!("--state {error}")),
        false => Failure::work(format_args!("--bind: {error}")),
    };
    let config = security.apply(config, &binds)?;
    if args.check {
        writeln!(io::stdout(), "the configuration is valid")?;
        return Ok(());
    }
    let metrics = match &args.metrics {
        Some(address) => Some(serve_metrics::bind(address).await?),
        None => None,
    };
    let mut server = Server::with_config(router, config, binds.sockets).map_err(failed)?;
    for listener in binds.listeners {
        server = server.listen(listener).map_err(failed)?;
    }
    if let Some(address) = server.unused_sockets().first() {
        let why = format_args!(
            "LISTEN_FDS: a socket at {address} was handed over, but no --bind asks for it: add --bind \
             {address}, or take it out of the socket unit"
        );
        return Err(Failure::usage(why));
    }
    for address in server.local_addrs() {
        writeln!(io::stdout(), "serving at coap://{address}")?;
    }
    for address in server.dtls_addrs() {
        writeln!(io::stdout(), "serving at coaps://{address}")?;
    }
    let reloads = security.at_hangup(&server, folder)?;
    for (scheme, address) in server.listeners() {
        writeln!(io::stdout(), "serving at {scheme}://{address}")?;
    }
    args.explore.start_for_server(&server.local_addrs(), directory.as_ref()).await?;
    if let Some(interface) = &args.multicast {
        join(&server, interface.as_deref())?;
    }
    if let Some(listener) = metrics {
        writeln!(io::stdout(), "metrics at http://{}/metrics", listener.local_addr()?)?;
        let exports =
            serve_metrics::Exports::new(server.meter(), log, reloads, security.tls.clone());
        tokio::spawn(serve_metrics::answer(listener, exports));
    }
    tokio::spawn(async move {
        let mut second = tokio::time::interval(Duration::from_secs(1));
        loop {
            second.tick().await;
            time.changed();
        }
    });
    serve_memory::release_when_free();
    if let Some(manager) = ServiceManager::from_environment() {
        manager.ready();
    }
    let (mut once, mut again) = (Interrupt::new()?, Interrupt::new()?);
    let asked = async {
        once.received().await;
        if let Some(manager) = ServiceManager::from_environment() {
            manager.stopping();
        }
    };
    let insisted = async {
        again.received().await;
        again.received().await
    };
    tokio::select! {
        ended = server.run_until(asked, GRACE) => ended?,
        code = insisted => return Err(Failure::Exit(code)),
    }
    Ok(())
}

/// How long requests that are being processed and observers may delay the end: less than supervisors wait before they
/// kill (Docker 10 s, systemd 90 s, Kubernetes 30 s).
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Joins All CoAP Nodes on an interface.
fn join(server: &Server, interface: Option<&str>) -> Result<(), Failure> {
    // Without one the system chooses by its routes, and there may be none to the groups.
    let hint =
        if interface.is_none() { "; name the interface, as in --multicast eth0" } else { "" };
    let wrong = |error| Failure::usage(format_args!("--multicast: {error}{hint}"));
    let interface = interface.map_or(Ok(0), interface_index).map_err(wrong)?;
    for group in server.join_all_coap_nodes(interface).map_err(wrong)? {
        writeln!(io::stdout(), "member of {group}")?;
    }
    Ok(())
}
