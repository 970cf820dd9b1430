//! Gateways between clients and servers on loopback.

mod bodies;
mod cells;
mod directory;
mod explore;
mod forward;
mod http;
mod observe;
mod oscore;
mod pubsub;
mod rfc_examples;
mod sharing;
mod strangers;
mod web;
mod web_bodies;
mod web_downloads;

use crate::{Gateway, GatewayConfig};
use ebbtide::congestion::ControlConfig;
use ebbtide::server::Router;
use ebbtide::{Client, ClientConfig, Code, OptionNumber, Request, Response, Server};
use ebbtide_core::wire::{Content, MessageId, Opt, Token, Type};
use std::net::SocketAddr;

/// A Confirmable GET with these options, as bytes.
pub(crate) fn get_with(options: &[(OptionNumber, &[u8])]) -> Vec<u8> {
    let options: Vec<_> = options.iter().map(|&(number, value)| Opt { number, value }).collect();
    let content = Content { code: Code::GET, options: &options, payload: b"" };
    let mut buf = [0; 256];
    let encoded = content.encode(&mut buf, Type::Confirmable, MessageId(1), Token::EMPTY).unwrap();
    buf[..encoded.len].to_vec()
}

/// A gateway that may reach loopback.
fn config() -> GatewayConfig {
    GatewayConfig::new().allow("127.0.0.0/8".parse().unwrap())
}

/// The settings of a client that sends no copies: on a busy machine, one of an idempotent request may come after its
/// answer, and is then handled again.
fn patient() -> ClientConfig {
    ClientConfig::new().control(ControlConfig::parse("default:ack-timeout=60s").unwrap())
}

/// Serves a router on a free port of loopback until the runtime ends.
pub(crate) fn serve(router: Router) -> SocketAddr {
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    tokio::spawn(server.run());
    address
}

/// A CoAP client that asks through a gateway.
struct Through {
    client: Client,
    proxy: SocketAddr,
}

impl Through {
    fn gateway(config: GatewayConfig) -> Self {
        Self { client: Client::new(), proxy: serve(Gateway::new(config).router()) }
    }

    /// A GET with Proxy-Uri.
    fn get(&self, uri: &str) -> Request {
        self.asked(Request::get(format!("coap://{}/", self.proxy)).unwrap(), uri)
    }

    fn put(&self, uri: &str) -> Request {
        self.asked(Request::put(format!("coap://{}/", self.proxy)).unwrap(), uri)
    }

    fn asked(&self, request: Request, uri: &str) -> Request {
        request.option(OptionNumber::PROXY_URI, uri.as_bytes())
    }

    async fn send(&self, request: Request) -> Response {
        self.client.request(request).await.unwrap()
    }
}
