//! `ebbtide serve`: test resources, or the files of a folder.

use super::{serve_files, serve_metrics, serve_resources};
use crate::client::flow::over_tcp_as_in_a_scenario;
use crate::client::{block_on, control};
use crate::failure::Failure;
use cap_std::fs::Dir;
use clap::Args;
use ebbtide::server::{ServerConfig, Subject};
use ebbtide::stream::Listen;
use ebbtide::{Config, DEFAULT_PORT, Server};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Serve resources to try things on, or the files of a folder
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Address and port, several times for several [default: 0.0.0.0:5683 and [::]:5683]
    #[arg(long, value_name = "ADDR")]
    bind: Vec<String>,
    /// Congestion control of separate responses and notifications
    #[arg(long, default_value = "fasor-token", value_name = "NAME")]
    cc: String,
    /// Be a scenario's server, too: offer what its clients ask for, over UDP and TCP, with its
    /// patience
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Option<String>,
    /// Serve the files of this folder
    #[arg(short, long, value_name = "PATH")]
    dir: Option<PathBuf>,
    /// Let clients replace and delete those files (PUT, DELETE)
    #[arg(long, requires = "dir")]
    writable: bool,
    /// Offer metrics to Prometheus at http://ADDR/metrics
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
    /// Show messages, timeouts and what congestion control learnt; on standard error
    #[arg(short, long)]
    verbose: bool,
}

/// Serves until it is interrupted.
///
/// # Errors
///
/// If an address cannot be bound, or an argument is wrong.
pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    if args.verbose {
        crate::client::verbose::start();
    }
    let mut net = Config::with_control(control(&args.cc)?);
    if args.scenario.is_some() {
        net = over_tcp_as_in_a_scenario(net);
    }
    let config = ServerConfig { net, ..ServerConfig::default() };
    block_on(serve(args, config))
}

async fn serve(args: ServeArgs, config: ServerConfig) -> Result<(), Failure> {
    let time = Subject::default();
    let mut router = match &args.dir {
        Some(path) => serve_files::router(open(path)?, args.writable),
        None => serve_resources::router(&time),
    };
    if let Some(name) = &args.scenario {
        let workload = super::flow::scenario(name, &[])?.workload;
        router = serve_resources::of_scenario(router, &workload);
    }
    let metrics = match &args.metrics {
        Some(address) => Some(serve_metrics::bind(address).await?),
        None => None,
    };
    let failed = |error| Failure::work(format_args!("--bind: {error}"));
    let addresses = addresses(&args.bind).await?;
    let mut server = Server::with_config(router, config, &addresses[..]).map_err(failed)?;
    if args.scenario.is_some() {
        for address in addresses {
            server = server.listen(Listen::Tcp(address)).map_err(failed)?;
        }
    }
    for address in server.local_addrs() {
        println!("serving at coap://{address}");
    }
    if let Some(listener) = metrics {
        println!("metrics at http://{}/metrics", listener.local_addr()?);
        tokio::spawn(serve_metrics::answer(listener, server.meter()));
    }
    tokio::spawn(async move {
        let mut second = tokio::time::interval(Duration::from_secs(1));
        loop {
            second.tick().await;
            time.changed();
        }
    });
    tokio::select! {
        () = server.run() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

/// The folder that `--dir` names.
fn open(path: &Path) -> Result<Dir, Failure> {
    Dir::open_ambient_dir(path, cap_std::ambient_authority())
        .map_err(|error| Failure::usage(format_args!("--dir {}: {error}", path.display())))
}

/// The addresses that `--bind` names; without it all of this machine's.
async fn addresses(texts: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    if texts.is_empty() {
        let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        return Ok(any.map(|ip| SocketAddr::new(ip, DEFAULT_PORT)).to_vec());
    }
    let mut addresses = Vec::new();
    for text in texts {
        let found = tokio::net::lookup_host(text.as_str()).await.map_err(|error| {
            Failure::usage(format_args!(
                "--bind {text}: {error}; it takes HOST:PORT, such as 127.0.0.1:5683 or [::]:5683"
            ))
        })?;
        addresses.extend(found);
    }
    Ok(addresses)
}
