//! A gateway to one server, for measurements: `gateway ADDRESS HTTP-ADDRESS URI`. Clients of both
//! protocols find the server below `/far`, and CoAP clients 64 places at it.

use ebbtide::congestion::ControlConfig;
use ebbtide::{ClientConfig, Server, Uri};
use ebbtide_proxy::{Gateway, GatewayConfig};
use std::net::SocketAddr;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(own), Some(http), Some(uri)) = (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("gateway ADDRESS HTTP-ADDRESS URI".into());
    };
    let control = ControlConfig::parse("cocoa:nstart=64")?;
    let config = GatewayConfig::new()
        .client(ClientConfig::new().control(control))
        .max_per_device(64)
        .backend("/far", &uri.parse::<Uri>()?);
    let gateway = Gateway::new(config);
    let server = Server::bind(gateway.router(), [own.parse::<SocketAddr>()?])?;
    let listener = TcpListener::bind(http).await?;
    tokio::spawn(async move { gateway.serve_http(listener).await });
    server.run().await?;
    Ok(())
}
