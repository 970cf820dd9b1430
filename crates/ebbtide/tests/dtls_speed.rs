//! Requests a second over DTLS and over plain UDP. `cargo test --release -p ebbtide --test dtls_speed --
//! --ignored --nocapture` prints them.

use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, ServerConfig, get};
use ebbtide::{Client, Config, Request, Response, Server};
use std::time::Duration;

const WINDOW: usize = 64;
const SPAN: Duration = Duration::from_secs(2);

#[expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]
async fn requests(client: &Client, uri: &str) -> usize {
    assert!(client.get(uri).await.unwrap().is_success());
    let ask = || async {
        let mut count = 0;
        let request = Request::get(uri).unwrap();
        let asking = async {
            loop {
                assert!(client.request(request.clone()).await.unwrap().is_success());
                count += 1;
            }
        };
        let _ = tokio::time::timeout(SPAN, asking).await;
        count
    };
    let counts = futures_util::future::join_all((0..WINDOW).map(|_| ask())).await;
    counts.into_iter().sum()
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "a measurement, for release builds"]
async fn established_sessions_are_at_least_half_as_fast_as_plain_udp() {
    let text = "0123456789".repeat(6);
    let answer = get(move |_: &Call<'_>| Response::content(text.clone()));
    let router = Router::new().route("/test", answer);
    let keys = |identity: &[u8]| (identity == b"device").then(|| Psk::new(b"secret")).flatten();
    let dtls = vec![DtlsBind::new(([127, 0, 0, 1], 0), keys)];
    let config = ServerConfig { dtls, ..ServerConfig::default() };
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let (plain, secure) = (server.local_addrs()[0], server.dtls_addrs()[0]);
    tokio::spawn(async move { drop(server.run().await) });
    let mut config = Config::default().nstart(WINDOW as u16);
    config.dtls.credentials = Psk::new(b"secret").map(|psk| Credentials::new("device", psk));
    let client = Client::with_config(config);
    for round in 0..3 {
        let plain = requests(&client, &format!("coap://{plain}/test")).await;
        let secure = requests(&client, &format!("coaps://{secure}/test")).await;
        let share = secure as f64 / plain as f64;
        println!("round {round}: {plain} plain, {secure} over DTLS in {SPAN:?}: {share:.2}");
    }
}
