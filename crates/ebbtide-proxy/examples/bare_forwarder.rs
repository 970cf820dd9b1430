//! What the library's part of a forwarded request costs: a server whose handler asks another one, without a gateway's
//! logic. `bare_forwarder ADDRESS SERVER` asks SERVER for what it is asked, without options but the path.

use ebbtide::client::RequestParts;
use ebbtide::server::{Call, Handler, Reply, Router, put};
use ebbtide::{
    Client, ClientConfig, Code, OptionNumber, Response, Server, congestion::ControlConfig,
};
use std::net::SocketAddr;

struct Forward(Client, SocketAddr);

impl Handler<Forward, ()> for Forward {
    fn call(&self, call: &Call<'_>, (): &()) -> Reply {
        let options = call.message().options();
        let options = options.filter(|opt| opt.number == OptionNumber::URI_PATH).collect();
        let (code, payload) = (call.method(), call.body());
        let parts = RequestParts { code, options, payload, block_size: None };
        let Some(asked) = self.0.direct(self.1, parts) else {
            return Reply::now(Response::new(Code::BAD_GATEWAY));
        };
        Reply::brief(
            async move { asked.await.unwrap_or_else(|_| Response::new(Code::GATEWAY_TIMEOUT)) },
        )
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(own), Some(server)) = (arguments.next(), arguments.next()) else {
        return Err("bare_forwarder ADDRESS SERVER".into());
    };
    let control = ControlConfig::parse("cocoa:nstart=64")?;
    let client = Client::with_config(ClientConfig::new().control(control).for_proxy());
    let router = Router::new().route("/echo", put(Forward(client, server.parse()?)));
    Server::bind(router, [own.parse::<SocketAddr>()?])?.run().await?;
    Ok(())
}
