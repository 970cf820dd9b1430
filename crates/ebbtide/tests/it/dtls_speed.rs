//! Requests a second over DTLS and over plain UDP. `cargo test --release -p ebbtide dtls_speed --
//! --ignored --nocapture` prints them.

use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, get};
use ebbtide::{Client, ClientConfig, Request, Response, Server, ServerConfig};
use std::time::Duration;

const WINDOW: usize = 64;
/// Fewer than there are message IDs for in EXCHANGE_LIFETIME.
const REQUESTS: usize = 40_000;

/// How long the requests of one client take.
#[expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]
#[expect(clippy::disallowed_methods, reason = "a measurement")]
async fn time(uri: &str) -> Duration {
    let config = ClientConfig::new()
        .nstart(WINDOW as u16)
        .credentials(Psk::new(b"secret").ok().map(|psk| Credentials::new("device", psk)));
    let client = Client::with_config(config);
    assert!(client.get(uri).await.unwrap().is_success());
    let ask = || async {
        let request = Request::get(uri).unwrap();
        for _ in 0..REQUESTS / WINDOW {
            assert!(client.request(request.clone()).await.unwrap().is_success());
        }
    };
    let began = std::time::Instant::now();
    futures_util::future::join_all((0..WINDOW).map(|_| ask())).await;
    began.elapsed()
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "a measurement, for release builds"]
async fn established_sessions_are_at_least_half_as_fast_as_plain_udp() {
    let text = "0123456789".repeat(6);
    let answer = get(move |_: &Call<'_>| Response::content(text.clone()));
    let router = Router::new().route("/test", answer);
    let keys =
        |identity: &[u8]| (identity == b"device").then(|| Psk::new(b"secret").ok()).flatten();
    let dtls = DtlsBind::new(([127, 0, 0, 1], 0), keys);
    let config = ServerConfig::new().bind_dtls(dtls);
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let (plain, secure) = (server.local_addrs()[0], server.dtls_addrs()[0]);
    tokio::spawn(async move { drop(server.run().await) });
    for round in 0..5 {
        let plain = time(&format!("coap://{plain}/test")).await;
        let secure = time(&format!("coaps://{secure}/test")).await;
        let rate = |span: Duration| REQUESTS as f64 / span.as_secs_f64();
        let share = rate(secure) / rate(plain);
        let (plain, secure) = (rate(plain), rate(secure));
        println!("round {round}: {plain:.0} requests/s plain, {secure:.0} over DTLS: {share:.2}");
    }
}
