//! A soak: honest clients over UDP, TCP and DTLS beside hostile ones. Honest requests are answered, and
//! neither descriptors nor tasks nor memory grow.
//!
//! A program of its own: it counts the descriptors of its process.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a soak lasts for a span of real time; in a test a panic is how it fails"
)]

#[path = "it/common/counting.rs"]
#[allow(dead_code, reason = "a part of it")]
mod counting;
#[path = "it/common/many_clients.rs"]
#[allow(dead_code, reason = "a part of it")]
mod many_clients;

use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, Server, Subject, Verify, get, put};
use ebbtide::stream::Listen;
use ebbtide::{Client, ClientConfig, Code, Request, Response, ServerConfig};
use ebbtide_core::wire::Type;
use many_clients::{GET, ManyClients, Outgoing};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, UdpSocket};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, timeout};

fn router(state: &Subject) -> Router {
    Router::new()
        .route("/x", get(|_: &Call<'_>| Response::content("x")))
        .route("/long", get(|_: &Call<'_>| Response::content(vec![b'l'; 20_000])))
        .route("/state", get(|_: &Call<'_>| Response::content("state")).observable(state))
        .route(
            "/length",
            put(|call: &Call<'_>| {
                Response::new(Code::CHANGED).payload(call.payload().len().to_string())
            }),
        )
        .route(
            "/slow",
            get(|| async {
                sleep(Duration::from_millis(100)).await;
                Response::content("slow")
            })
            .max_unverified(10),
        )
}

/// Limits that are reached soon, so that what is measured is the server at its limits.
fn config() -> ServerConfig {
    let keys =
        |identity: &[u8]| (identity == b"device").then(|| Psk::new(b"secret").ok()).flatten();
    ServerConfig::new()
        .verify(Verify::All)
        .limits(|limits| limits.observers(400).block_bytes(2 << 20))
        .bind_dtls(DtlsBind::new(([127, 0, 0, 1], 0), keys))
        .limits(|limits| limits.remembered_messages(2000).peers(1000))
        .connection_limits(|limits| limits.bytes(4 << 20).connections(300))
}

/// Numbers of requests that were answered, and that failed.
#[derive(Default)]
struct Honest {
    answered: Cell<u64>,
    failed: Cell<u64>,
}

impl Honest {
    async fn ask(&self, client: &Client, base: &str) {
        let answer = |path: &str| client.get(format!("{base}/{path}"));
        let put = Request::put(format!("{base}/length")).unwrap().payload(vec![b'p'; 9000]);
        let answers = [
            timeout(Duration::from_secs(60), answer("x")).await,
            timeout(Duration::from_secs(60), answer("long")).await,
            timeout(Duration::from_secs(60), answer("slow")).await,
            timeout(Duration::from_secs(60), client.request(put)).await,
        ];
        let lengths = [1, 20_000, 4, 4];
        for (answer, length) in answers.into_iter().zip(lengths) {
            match answer {
                Ok(Ok(response)) if response.is_success() => {
                    assert_eq!(response.body().len(), length);
                    self.answered.set(self.answered.get() + 1);
                }
                other => {
                    println!("{base}: {other:?}");
                    self.failed.set(self.failed.get() + 1);
                }
            }
        }
    }
}

/// Floods by datagrams from addresses that are forged.
async fn forge(udp: SocketAddr, coaps: SocketAddr, end: Instant) {
    let mut many = ManyClients::new(udp);
    let garbage = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut number = 0_u32;
    while Instant::now() < end {
        for _ in 0..20 {
            number = number.wrapping_add(1);
            let (host, id, token) = (number * 31 % 60_000, number as u16, number.to_be_bytes());
            let say = Outgoing { id, token: &token, ..GET };
            let (observe, path) = ((6, &b""[..]), |name: &'static str| (11, name.as_bytes()));
            let block = (27, &[0x0e][..]);
            match number % 7 {
                0 => many.say(host, &Outgoing { options: &[path("long")], ..say }),
                1 => many.say(host, &Outgoing { options: &[observe, path("state")], ..say }),
                2 => {
                    let (code, payload) = (Code::PUT, &[b'u'; 1024][..]);
                    let options = &[path("length"), block];
                    many.say(host, &Outgoing { code, options, payload, ..say });
                }
                3 => many.say(host, &Outgoing { code: Code::POST, options: &[path("x")], ..say }),
                4 => many.say(host, &Outgoing { options: &[path("slow")], ..say }),
                5 => {
                    let (kind, code) = (Type::Acknowledgement, Code::EMPTY);
                    many.say(host, &Outgoing { kind, code, token: &[], ..say });
                }
                _ => {
                    // The beginning of a handshake, and nothing.
                    let hello = [&[22, 254, 253, 0, 0, 0, 0, 0][..], &token, &[9; 40]].concat();
                    let _ = garbage.try_send_to(&hello, coaps);
                }
            }
        }
        many.flush();
        while many.hear(|_| false, |_, _| {}) > 0 {}
        sleep(Duration::from_millis(20)).await;
    }
}

/// Connections that send half a message and wait, or end at once.
async fn connect(tcp: SocketAddr, end: Instant) {
    let mut held = std::collections::VecDeque::new();
    let mut number = 0_u8;
    while Instant::now() < end {
        number = number.wrapping_add(1);
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 1, number % 8], 0).into()).unwrap();
        if let Ok(mut stream) = socket.connect(tcp).await {
            let half = [&[0x00, 0xe1, 0xe0, 0xf8, 0xf3, 0x02, 0xff][..], &[7; 30_000]].concat();
            let _ = timeout(Duration::from_millis(50), stream.write_all(&half)).await;
            held.push_back(stream);
        }
        if held.len() > 100 {
            held.pop_front();
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Descriptors, tasks, and bytes that are in use.
#[derive(Copy, Clone, Debug, Default)]
struct Held {
    descriptors: usize,
    tasks: usize,
    bytes: isize,
}

impl Held {
    fn now() -> Self {
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            bytes: counting::bytes_in_use(),
        }
    }

    fn most(self, other: Self) -> Self {
        Self {
            descriptors: self.descriptors.max(other.descriptors),
            tasks: self.tasks.max(other.tasks),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// The most that is held until then.
async fn watch(until: Instant) -> Held {
    let mut most = Held::default();
    while Instant::now() < until {
        most = most.most(Held::now());
        sleep(Duration::from_millis(100)).await;
    }
    most
}

async fn soak(span: Duration) {
    let state = Subject::new();
    let server = Server::with_config(router(&state), config(), ["127.0.0.1:0"]).unwrap();
    let server = server.listen(Listen::Tcp(([127, 0, 0, 1], 0).into())).unwrap();
    let (udp, coaps) = (server.local_addrs()[0], server.dtls_addrs()[0]);
    let tcp = server.listeners()[0].1;
    let began = Instant::now();
    let end = began + span;
    let honest = Rc::new(Honest::default());
    for base in [format!("coap://{udp}"), format!("coap+tcp://{tcp}"), format!("coaps://{coaps}")] {
        let honest = honest.clone();
        tokio::task::spawn_local(async move {
            let config = ClientConfig::new()
                .credentials(Psk::new(b"secret").ok().map(|key| Credentials::new("device", key)));
            let client = Client::with_config(config);
            while Instant::now() < end {
                honest.ask(&client, &base).await;
                sleep(Duration::from_millis(50)).await;
            }
        });
    }
    tokio::task::spawn_local(forge(udp, coaps, end));
    tokio::task::spawn_local(connect(tcp, end));
    tokio::task::spawn_local(async move {
        while Instant::now() < end {
            state.changed();
            sleep(Duration::from_secs(1)).await;
        }
    });
    // First all limits are reached.
    watch(began + span / 2).await;
    let before = watch(began + span * 3 / 4).await;
    let after = watch(end).await;
    let snapshot = server.snapshot();
    let (answered, failed) = (honest.answered.get(), honest.failed.get());
    println!("{answered} answered, {failed} failed; {before:?}, then {after:?}");
    println!("{:?}", snapshot.refusals);
    assert!(failed * 1000 <= answered, "{failed} of {answered} failed");
    assert!(answered > span.as_secs(), "{answered} answered");
    assert!(after.descriptors <= before.descriptors + 20, "{before:?}, then {after:?}");
    assert!(after.tasks <= before.tasks + before.tasks / 4 + 20, "{before:?}, then {after:?}");
    let slack = before.bytes / 10 + (2 << 20);
    assert!(after.bytes <= before.bytes + slack, "{before:?}, then {after:?}");
    assert!(snapshot.refusals.challenged > 0 && snapshot.counters.unknown_answers > 0);
}

#[tokio::test]
async fn a_mixed_load_of_some_seconds_leaves_descriptors_tasks_and_memory_flat() {
    LocalSet::new().run_until(soak(Duration::from_secs(8))).await;
}

#[tokio::test]
#[ignore = "ten minutes: ./ci.sh statistics"]
async fn a_mixed_load_of_ten_minutes_leaves_descriptors_tasks_and_memory_flat() {
    LocalSet::new().run_until(soak(Duration::from_secs(600))).await;
}
