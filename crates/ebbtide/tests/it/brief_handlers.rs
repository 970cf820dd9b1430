//! Answers that the task of a socket waits for.

use crate::common::eventually::eventually;
use ebbtide::server::{Call, Handler, Reply, Router, Server, get, post};
use ebbtide::{Client, Code, Response, ServerConfig};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;

/// A handler whose answer is the output of a brief future.
struct Brief<F>(F);

impl<F, A> Handler<Brief<F>, ()> for Brief<F>
where
    F: Fn() -> A + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    fn call(&self, _: &Call<'_>, (): &()) -> Reply {
        Reply::brief((self.0)())
    }
}

#[tokio::test]
async fn a_brief_answer_that_takes_long_is_separate_and_its_handler_runs_once() {
    let (calls, (finish, finished)) = (Arc::new(AtomicUsize::new(0)), watch::channel(false));
    let counted = calls.clone();
    let slow = Brief(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut finished = finished.clone();
        async move {
            finished.wait_for(|finished| *finished).await.unwrap();
            Response::content("that took a while")
        }
    });
    let config = ServerConfig::new().acknowledge_after(Duration::from_millis(20));
    let router = Router::new().route("/s", get(slow));
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let meter = server.meter();
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    let mut buffer = [0; 64];
    let mut received = async || {
        let received = tokio::time::timeout(Duration::from_secs(10), socket.recv(&mut buffer));
        let length = received.await.expect("a message").unwrap();
        buffer[..length].to_vec()
    };
    for copy in 0..2 {
        socket.send(&[0x41, 1, 0x12, 0x34, copy, 0xb1, b's']).await.unwrap();
        assert_eq!(received().await, [0x60, 0, 0x12, 0x34], "the acknowledgement");
    }
    assert_eq!(meter.snapshot().load.working, 1);
    finish.send_replace(true);
    let response = received().await;
    // Confirmable, with the token of the first copy.
    assert_eq!((response[0], response[1], response[4]), (0x41, 0x45, 0));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    eventually(|| meter.snapshot().load.working == 0).await;
}

#[tokio::test]
async fn many_brief_answers_are_ready_in_any_order_and_one_that_panics_is_an_error() {
    let turn = Arc::new(AtomicUsize::new(0));
    let ready = turn.clone();
    let mixed = Brief(move || {
        let turn = ready.fetch_add(1, Ordering::SeqCst);
        async move {
            if !turn.is_multiple_of(3) {
                tokio::time::sleep(Duration::from_millis(turn as u64 % 5)).await;
            }
            assert_ne!(turn, 7, "a bug");
            Response::content("x")
        }
    });
    let server = Server::bind(Router::new().route("/s", post(mixed)), ["127.0.0.1:0"]).unwrap();
    let (meter, at) = (server.meter(), server.local_addrs()[0]);
    tokio::spawn(server.run());
    let clients: Vec<_> = (0..40).map(|_| Client::new()).collect();
    let asked = clients.iter().map(|client| client.post(format!("coap://{at}/s"), ""));
    let answers = futures_util::future::join_all(asked).await;
    let codes = |code| {
        let is = |answer: &&Result<Response, _>| answer.as_ref().is_ok_and(|a| a.code() == code);
        answers.iter().filter(is).count()
    };
    assert_eq!((codes(Code::CONTENT), codes(Code::INTERNAL_SERVER_ERROR)), (39, 1));
    assert_eq!(meter.snapshot().refusals.handler_panics, 1);
    eventually(|| meter.snapshot().load.working == 0).await;
}

#[tokio::test]
async fn a_socket_that_is_closed_drops_what_its_answers_wait_for() {
    let held = Arc::new(());
    let hold = held.clone();
    let endless = Brief(move || {
        let hold = hold.clone();
        async move {
            let () = std::future::pending().await;
            drop(hold);
            Response::new(Code::CONTENT)
        }
    });
    let server = Server::bind(Router::new().route("/s", get(endless)), ["127.0.0.1:0"]).unwrap();
    let (at, handle) = (server.local_addrs()[0], server.handle());
    let running = tokio::spawn(server.run());
    let asking = tokio::spawn(async move { Client::new().get(format!("coap://{at}/s")).await });
    eventually(|| Arc::strong_count(&held) == 3).await;
    assert!(!handle.shutdown(Duration::ZERO).await, "an answer is awaited");
    eventually(|| Arc::strong_count(&held) < 3).await;
    asking.abort();
    running.abort();
}

/// A future that is ready at once, and whose destructor panics.
struct Faulty(Option<Response>);

impl Future for Faulty {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Response> {
        self.0.take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        panic!("a bug in a destructor");
    }
}

#[tokio::test]
async fn a_destructor_that_panics_ends_neither_its_request_nor_its_socket() {
    let brief = || Faulty(Some(Response::content("brief")));
    let endless = || Faulty(None);
    let config = ServerConfig::new().limits(|limits| limits.working(2));
    let router = Router::new()
        .route("/brief", get(Brief(brief)))
        .route("/later", get(move || async move { brief().await }))
        .route("/endless", get(Brief(endless)));
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let (at, meter) = (server.local_addrs()[0], server.meter());
    tokio::spawn(server.run());
    let get = async |path: &str| Client::new().get(format!("coap://{at}/{path}")).await.unwrap();
    assert_eq!(get("brief").await.text(), "brief");
    // This one panics while it is polled.
    assert_eq!(get("later").await.code(), Code::INTERNAL_SERVER_ERROR);
    let waiting =
        tokio::spawn(async move { Client::new().get(format!("coap://{at}/endless")).await });
    eventually(|| meter.snapshot().load.working == 1).await;
    // What is refused is dropped before it is polled.
    assert_eq!(get("brief").await.code(), Code::SERVICE_UNAVAILABLE);
    assert!(!waiting.is_finished());
    waiting.abort();
}
