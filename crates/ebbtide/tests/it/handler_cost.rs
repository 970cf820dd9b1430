//! What a request costs a server: with a plain handler, with a typed one behind layers, with several workers.
//! `cargo test --release -p ebbtide handler_cost -- --ignored --nocapture` measures it.
#![cfg(target_os = "linux")]

use crate::common::many_clients::{GET, ManyClients, Outgoing};
use ebbtide::server::{
    Call, ConcurrencyLimit, Data, Path, Router, Server, State, Timeout, Verify, get,
};
use ebbtide::{Client, ContentFormat, Response, ServerConfig};
use serde::Serialize;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Requests that are on their way at a time.
const WINDOW: u32 = 64;
const THREAD: &str = "ebbtide-served";

#[derive(Clone, Serialize)]
struct Reading {
    celsius: f32,
}

fn plain() -> Router {
    let body = r#"{"celsius":22.5}"#;
    let show = move |_: &Call<'_>| Response::content(body).format(ContentFormat::JSON);
    Router::new().route("/rooms/{room}", get(show))
}

fn layered() -> Router {
    async fn show(
        State(readings): State<Arc<[Reading]>>,
        Path(room): Path<usize>,
    ) -> Option<Data<Reading>> {
        readings.get(room).cloned().map(Data)
    }
    let readings: Arc<[Reading]> = vec![Reading { celsius: 22.5 }; 10].into();
    Router::new()
        .route("/rooms/{room}", get(show))
        .with_state(readings)
        .layer(Timeout(Duration::from_secs(5)))
        .layer(ConcurrencyLimit::new(1000))
}

/// Serves in a thread of its own.
fn serve(router: Router, workers: usize) -> SocketAddr {
    let (tell, told) = std::sync::mpsc::channel();
    let served = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let config = ServerConfig::new().workers(workers).verify(Verify::None);
            let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
            tell.send(server.local_addrs()[0]).unwrap();
            server.run().await.unwrap();
        });
    };
    std::thread::Builder::new().name(THREAD.into()).spawn(served).unwrap();
    told.recv().unwrap()
}

/// Nanoseconds that threads of servers have run.
fn spent() -> u64 {
    let threads = fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    let threads = threads.filter(|thread| {
        fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.starts_with("ebbtide-"))
    });
    let nanos = threads.map(|thread| fs::read_to_string(thread.join("schedstat")).unwrap());
    nanos.map(|stat| stat.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Nanoseconds of the server for each of so many requests.
fn cost(many: &mut ManyClients, id: &mut u16, rounds: u32) -> u64 {
    let options = [(11, &b"rooms"[..]), (11, &b"7"[..])];
    let before = spent();
    for _ in 0..rounds {
        *id = id.wrapping_add(1);
        for n in 0..WINDOW {
            many.say(n, &Outgoing { options: &options, id: *id, ..GET });
        }
        many.flush();
        let mut answered = 0;
        while answered < WINDOW as usize {
            answered += many.hear(|_| false, |_, message| assert_eq!(message.payload().len(), 16));
            std::thread::yield_now();
        }
    }
    (spent() - before) / u64::from(rounds * WINDOW)
}

/// The least of several rounds each, which alternate.
fn compare(one: SocketAddr, other: SocketAddr) -> (u64, u64) {
    let (mut one, mut other) = (ManyClients::new(one), ManyClients::new(other));
    let (mut id, mut least) = (0, (u64::MAX, u64::MAX));
    for _ in 0..10 {
        least.0 = least.0.min(cost(&mut one, &mut id, 500));
        least.1 = least.1.min(cost(&mut other, &mut id, 500));
    }
    least
}

#[test]
#[ignore = "it measures, for which it wants to be optimised"]
fn a_typed_handler_behind_layers_costs_at_most_a_quarter_more() {
    let (plain, layered) = compare(serve(plain(), 1), serve(layered(), 1));
    println!("plain {plain} ns, typed and layered {layered} ns");
    assert!(layered * 4 <= plain * 5, "{plain} and {layered} ns");
}

#[test]
#[ignore = "it measures, for which it wants to be optimised"]
fn two_workers_cost_at_most_half_as_much_again_for_a_request_as_one() {
    let (one, two) = compare(serve(plain(), 1), serve(plain(), 2));
    println!("one worker {one} ns, two {two} ns");
    // The window is divided, so that each of them receives and sends in shorter batches.
    assert!(two * 2 <= one * 3, "{one} and {two} ns");
}

#[tokio::test]
async fn workers_divide_the_peers_and_their_metrics_add_up() {
    let config = ServerConfig::new().workers(2);
    let server = Server::with_config(plain(), config, ["127.0.0.1:0"]).unwrap();
    let addresses = server.local_addrs();
    assert_eq!(addresses.len(), 1, "one address, whoever is behind it: {addresses:?}");
    let meter = server.meter();
    assert_eq!(meter.snapshot().sockets, 2);
    let handle = server.handle();
    let address = addresses[0];
    let serving = tokio::spawn(server.run());
    for _ in 0..64 {
        // Each has a port of its own.
        let client = Client::new();
        let response = client.get(format!("coap://{address}/rooms/7")).await.unwrap();
        assert_eq!(response.text(), r#"{"celsius":22.5}"#);
    }
    assert_eq!(meter.snapshot().counters.received, 64);
    assert!(handle.shutdown(Duration::from_secs(5)).await);
    serving.await.unwrap().unwrap();
    // All sockets are closed: the address is free.
    Server::bind(plain(), [address]).unwrap();
}
