//! Through a network that loses, repeats, reorders and damages a tenth of everything, each request
//! is answered or fails, none twice, and nothing stays open.

use crate::common::eventually::eventually;
use ebbtide::config::TransportConfig;
use ebbtide::server::{Call, Router, Server, Subject, get, post, put};
use ebbtide::{Client, ClientConfig, Code, Error, Request, Response, ServerConfig};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Clients, each with a socket of its own, and requests that each has under way.
const CLIENTS: usize = 8;
const UNDER_WAY: usize = 16;
const LARGE: usize = 3000;

/// A network of milliseconds, so that what takes minutes elsewhere takes seconds.
fn server_config() -> ServerConfig {
    ServerConfig::new()
        .nstart(8)
        .ack_timeout(Duration::from_millis(50))
        .max_retransmit(6)
        .transport(short)
        .limits(|limits| limits.remembered_messages(1 << 20).remembered_bytes(64 << 20))
}

fn config() -> ClientConfig {
    ClientConfig::new()
        .nstart(8)
        .ack_timeout(Duration::from_millis(50))
        .max_retransmit(6)
        .transport(short)
}

fn short(transport: TransportConfig) -> TransportConfig {
    transport.response_timeout(Duration::from_secs(1)).max_latency(Duration::from_millis(500))
}

/// How often the handler of POST ran, by what it was sent.
type Ran = Arc<Mutex<BTreeMap<String, usize>>>;

fn resources(ran: &Ran, state: &Subject) -> Router {
    let ran = ran.clone();
    let echo = |call: &Call<'_>| {
        Response::new(Code::CHANGED).payload(bytes::Bytes::copy_from_slice(call.payload()))
    };
    let once = move |call: &Call<'_>| {
        let body = String::from_utf8(call.payload().to_vec()).unwrap();
        *ran.lock().unwrap().entry(body).or_default() += 1;
        echo(call)
    };
    let large = bytes::Bytes::from(vec![b'x'; LARGE]);
    Router::new()
        .route("/small", get(|_: &Call<'_>| Response::content("small")))
        .route("/large", get(move |_: &Call<'_>| Response::content(large.clone())).put(echo))
        .route("/once", post(once))
        .route("/state", get(|_: &Call<'_>| Response::content("state")).observable(state))
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(80)).await;
                Response::content("slow")
            }),
        )
        .route("/echo", put(echo))
}

/// Exchange number `n`. What was answered is checked; false if nothing was.
async fn exchange(client: &Client, relay: SocketAddr, n: usize) -> Result<bool, Error> {
    let uri = |path: &str| format!("coap://{relay}{path}");
    let body = n.to_string();
    let expect = |response: Response, expected: &[u8]| {
        // A late copy of a first block may have restarted an upload (RFC 7959 section 2.9.2).
        let restarted = response.code() == Code::REQUEST_ENTITY_INCOMPLETE;
        assert!(restarted || response.body().as_ref() == expected, "{n}: {response:?}");
        Ok(true)
    };
    match n % 16 {
        0 => expect(client.get(uri("/large")).await?, &[b'x'; LARGE]),
        1 => {
            let request = Request::put(uri("/large"))?.payload(vec![b'y'; LARGE]);
            expect(client.request(request).await?, &[b'y'; LARGE])
        }
        2..=5 => expect(client.post(uri("/once"), body.clone()).await?, body.as_bytes()),
        6 => {
            let request = Request::get(uri("/small"))?.non_confirmable();
            expect(client.request(request).await?, b"small")
        }
        7 => expect(client.get(uri("/slow")).await?, b"slow"),
        8 => {
            let mut observation = client.observe(uri("/state")).await?;
            for _ in 0..2 {
                let next = tokio::time::timeout(Duration::from_secs(1), observation.next()).await;
                let Ok(Some(state)) = next else { return Ok(false) };
                expect(state?, b"state")?;
            }
            Ok(true)
        }
        9 => {
            let cancelled = client.get(uri("/slow"));
            Ok(tokio::time::timeout(Duration::from_millis(n as u64 % 7), cancelled).await.is_ok())
        }
        10 => client.ping(uri("/")).await.map(|_| true),
        _ => expect(client.get(uri("/small")).await?, b"small"),
    }
}

async fn soak(count: usize) {
    let (ran, state) = (Ran::default(), Subject::new());
    let settings = server_config();
    let server = Server::with_config(resources(&ran, &state), settings, ["127.0.0.1:0"]).unwrap();
    let trouble = crate::common::relay::Trouble { lost: 10, repeated: 10, late: 10, damaged: 10 };
    let relay = crate::common::relay::relay(server.local_addrs()[0], trouble, 42).await;
    let changes = tokio::spawn({
        let state = state.clone();
        async move {
            loop {
                tokio::time::sleep(Duration::from_millis(100)).await;
                state.changed();
            }
        }
    });
    let clients: Vec<_> = (0..CLIENTS).map(|_| Client::with_config(config())).collect();
    let workers: Vec<_> = (0..CLIENTS * UNDER_WAY)
        .map(|worker| {
            let client = clients[worker % CLIENTS].clone();
            tokio::spawn(async move {
                let (mut answered, mut failed) = (0, 0);
                for n in (worker..count).step_by(CLIENTS * UNDER_WAY) {
                    match exchange(&client, relay, n).await {
                        Ok(true) => answered += 1,
                        Ok(false) | Err(_) => failed += 1,
                    }
                }
                (answered, failed)
            })
        })
        .collect();
    let (mut answered, mut failed) = (0, 0);
    for worker in workers {
        let part = worker.await.unwrap();
        answered += part.0;
        failed += part.1;
    }
    println!("{answered} answered, {failed} failed or cancelled; {:?}", server.snapshot().counters);
    assert_eq!(answered + failed, count);
    // A sixteenth is cancelled, a sixteenth is Non-confirmable.
    assert!(failed * 6 < count, "{failed} of {count}");
    let twice: Vec<_> = ran
        .lock()
        .unwrap()
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(n, _)| n.clone())
        .collect();
    assert!(twice.is_empty(), "processed twice: {twice:?}");
    for client in &clients {
        assert_eq!(client.snapshot().open_exchanges(), 0);
        let held = client.snapshot();
        assert_eq!((held.calls, held.outbox.datagrams), (0, 0));
    }
    // Observers that nobody wants any more are removed by a Reset, or give up.
    eventually(|| state.observers() == 0).await;
    changes.abort();
    let meter = server.meter();
    eventually(|| {
        let held = meter.snapshot();
        server.snapshot().counters.refused == 0
            && held.exchanges == Default::default()
            && held.load == Default::default()
            && held.outbox == Default::default()
    })
    .await;
}

#[tokio::test]
async fn two_thousand_mixed_exchanges_end_once_each_and_leave_nothing_open() {
    soak(2_000).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: ./ci.sh statistics"]
async fn a_hundred_thousand_mixed_exchanges_end_once_each_and_leave_nothing_open() {
    soak(100_000).await;
}
