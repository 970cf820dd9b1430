//! `--explore ADDR`: a page for browsers.

use crate::failure::Failure;
use clap::Args;
use ebbtide::Uri;
use ebbtide_proxy::{Directory, Explorer, Gateway, GatewayConfig, Prefix};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;

/// The explorer
#[derive(Args, Debug)]
pub(crate) struct ExploreArgs {
    /// Show devices, their resources, requests and observations to a browser, at the address that is printed with its
    /// token, as in --explore 127.0.0.1:8081
    #[arg(long, value_name = "ADDR")]
    explore: Option<String>,
}

impl ExploreArgs {
    /// Serves the page for a gateway, if it is asked for. Must be called within a tokio runtime.
    pub(crate) async fn start(
        &self,
        gateway: &Gateway,
        own: Option<SocketAddr>,
        directory: Option<&Directory>,
    ) -> Result<(), Failure> {
        let Some(address) = &self.explore else { return Ok(()) };
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::work(format_args!(
                "--explore {address}: {error}; give HOST:PORT, such as 127.0.0.1:8081"
            ))
        })?;
        let mut explorer = Explorer::new(gateway)
            .map_err(|error| Failure::work(format_args!("--explore: {error}")))?;
        if let Some(directory) = directory {
            explorer = explorer.directory(directory);
        }
        if let Some(own) = own {
            let uri = format!("coap://{own}").parse::<Uri>();
            explorer = uri.iter().fold(explorer, Explorer::device);
        }
        let (at, token) = (listener.local_addr()?, explorer.token());
        writeln!(io::stdout(), "explorer at http://{at}/#token={token}")?;
        tokio::spawn(explorer.serve(listener));
        Ok(())
    }

    /// The page of a server, which reaches that server alone.
    pub(crate) async fn start_for_server(
        &self,
        served: &[SocketAddr],
        directory: Option<&Directory>,
    ) -> Result<(), Failure> {
        let own = served.first().map(|address| match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => {
                SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port())
            }
            IpAddr::V6(ip) if ip.is_unspecified() => {
                SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port())
            }
            _ => *address,
        });
        let config = GatewayConfig::new();
        let config = own.iter().fold(config, |config, own| {
            // A prefix of all bits: this address alone.
            config.allow(Prefix::new(own.ip(), u8::MAX))
        });
        self.start(&Gateway::new(config), own, directory).await
    }
}
