//! `ebbtide serve`: test resources, or the files of a folder.

use super::serve_resources;
use crate::client::{block_on, control};
use crate::failure::Failure;
use clap::Args;
use ebbtide::server::{ServerConfig, Subject};
use ebbtide::{Config, Server};
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
    /// Go on asking for datagrams for this long after the last ones before sleeping: shorter round
    /// trips for a busy core
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0)]
    busy_poll: u64,
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
    net.busy_poll = Duration::from_micros(args.busy_poll);
    let config = ServerConfig { net, ..ServerConfig::default() };
    block_on(serve(args, config))
}

async fn serve(args: ServeArgs, config: ServerConfig) -> Result<(), Failure> {
    let time = Subject::default();
    let router = serve_resources::router(&time);
    let addresses = if args.bind.is_empty() {
        vec!["0.0.0.0:5683".to_owned(), "[::]:5683".to_owned()]
    } else {
        args.bind
    };
    let server = Server::with_config(router, config, addresses).map_err(Failure::work)?;
    for address in server.local_addrs() {
        println!("serving at coap://{address}");
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
