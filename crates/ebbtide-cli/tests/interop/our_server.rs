//! Our server, with the resources of `interop/README.md`.

use bytes::Bytes;
use ebbtide::server::{Call, Resource, Router, Subject, get, post};
use ebbtide::{ClientConfig, Code, Response, Server, ServerConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const DIGITS: &str = "012345678901234567890123456789012345678901234567890123456789";
/// The longest body that it takes.
const MAX_BODY: usize = 2 << 20;

pub(crate) struct Ours {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    time: Subject,
    times: Subject,
}

/// Digits, as many as `length`.
pub(crate) fn digits(length: usize) -> Bytes {
    (0..length).map(|n| b'0' + (n % 10) as u8).collect()
}

/// A congestion control that is as patient as a lossy relay demands.
pub(crate) fn patient() -> ClientConfig {
    ClientConfig::new().max_retransmit(8)
}

/// A state that goes on: the number of ticks of `every`, as `say` puts it.
fn ticking(subject: &Subject, every: Duration, say: fn(u64) -> String) -> Resource {
    let now = Arc::new(AtomicU64::new(0));
    let state = now.clone();
    let resource = get(move |_: &Call<'_>| Response::content(say(state.load(Ordering::Relaxed))));
    let ticks = subject.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(every).await;
            now.fetch_add(1, Ordering::Relaxed);
            ticks.changed();
        }
    });
    resource.observable(subject)
}

/// Serves at a free port of `host`.
pub(crate) fn serve(host: &str) -> Ours {
    serve_with(host, ServerConfig::new())
}

pub(crate) fn serve_with(host: &str, mut config: ServerConfig) -> Ours {
    let (time, times) = (Subject::new(), Subject::non_confirmable());
    let echo = |call: &Call<'_>| {
        Response::new(Code::CHANGED).payload(Bytes::copy_from_slice(call.payload()))
    };
    let large = digits(1 << 20);
    let count = AtomicU64::new(0);
    let router = Router::new()
        .route("/test", get(|_: &Call<'_>| Response::content(DIGITS)))
        .route("/large", get(move |_: &Call<'_>| Response::content(large.clone())))
        .route(
            "/separate",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                Response::content("that took a while")
            }),
        )
        .route("/echo", post(echo).put(echo).delete(|_: &Call<'_>| Response::new(Code::DELETED)))
        .route(
            "/count",
            post(move |_: &Call<'_>| {
                let counted = count.fetch_add(1, Ordering::Relaxed) + 1;
                Response::new(Code::CHANGED).payload(counted.to_string())
            }),
        )
        .route("/time", ticking(&time, Duration::from_millis(200), |n| n.to_string()))
        .route(
            "/times",
            ticking(&times, Duration::from_millis(500), |n| (n % 10).to_string().repeat(3000)),
        );
    config = config.max_retransmit(8).max_body(MAX_BODY);
    let server = Server::with_config(router, config, [(host, 0)]).unwrap();
    let address = server.local_addrs()[0];
    Ours { server, address, time, times }
}

impl Ours {
    /// Waits until nobody observes any more. An observer that has gone without a word is removed when a
    /// Confirmable notification fails, after MAX_TRANSMIT_SPAN or more.
    pub(crate) async fn unobserved(&self) {
        none_observes(&[&self.time, &self.times]).await;
    }

    /// The same for `/time` alone, whose states come in one block.
    pub(crate) async fn time_unobserved(&self) {
        none_observes(&[&self.time]).await;
    }

    /// Copies of requests that were recognized.
    pub(crate) fn duplicates(&self) -> u64 {
        self.server.snapshot().counters.duplicates
    }
}

async fn none_observes(subjects: &[&Subject]) {
    let observers = || subjects.iter().map(|subject| subject.observers()).sum::<usize>();
    let gone = async {
        while observers() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(120), gone).await;
    assert!(gone.is_ok(), "{} observers are left", observers());
}
