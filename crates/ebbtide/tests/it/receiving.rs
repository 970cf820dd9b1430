//! A socket is read whether or not the tasks of its calls are polled.

use ebbtide::server::{Call, Router, Server, get};
use ebbtide::{Client, Code, Response};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::timeout;

const LATEST: Duration = Duration::from_millis(1000);

/// Receives a message; `None` if there is none in time.
async fn next(socket: &UdpSocket) -> Option<(Vec<u8>, SocketAddr)> {
    let mut buffer = [0; 1500];
    let (length, from) = timeout(LATEST, socket.recv_from(&mut buffer)).await.ok()?.unwrap();
    Some((buffer[..length].to_vec(), from))
}

/// A Confirmable separate response (2.05) to this request, with one byte.
fn separate(request: &[u8], id: u8) -> Vec<u8> {
    let token = &request[4..4 + usize::from(request[0] & 15)];
    let head = [0x40 | token.len() as u8, Code::CONTENT.0, 0x7a, id];
    [&head[..], token, &[0xff, b'x']].concat()
}

#[tokio::test]
async fn a_response_is_acknowledged_though_the_task_that_waits_for_it_is_not_polled() {
    let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new();
    let mut asked = pin!(client.get(format!("coap://{}/x", peer.local_addr().unwrap())));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(asked.as_mut().poll(&mut cx).is_pending());
    let (request, from) = next(&peer).await.unwrap();
    for _ in 0..2 {
        // The task of the call does not come.
        peer.send_to(&[0x60, 0, request[2], request[3]], from).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    peer.send_to(&separate(&request, 1), from).await.unwrap();
    let (acknowledged, _) = next(&peer).await.expect("no acknowledgement");
    assert_eq!(acknowledged, [0x60, 0, 0x7a, 1]);
    assert_eq!(asked.await.unwrap().body(), "x");
}

#[tokio::test]
async fn a_socket_goes_on_receiving_when_the_call_that_waits_is_dropped() {
    let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new();
    let uri = format!("coap://{}/x", peer.local_addr().unwrap());
    let from;
    {
        let mut asked = pin!(client.get(&uri));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(asked.as_mut().poll(&mut cx).is_pending());
        let (request, sender) = next(&peer).await.unwrap();
        from = sender;
        for _ in 0..2 {
            peer.send_to(&[0x60, 0, request[2], request[3]], sender).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    // A ping is answered by a Reset.
    peer.send_to(&[0x40, 0, 0x7b, 1], from).await.unwrap();
    assert_eq!(next(&peer).await.expect("no Reset").0, [0x70, 0, 0x7b, 1]);
}

#[tokio::test]
async fn requests_one_after_the_other_and_at_the_same_time_are_all_answered() {
    let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/x", peer.local_addr().unwrap());
    let server = tokio::spawn(async move {
        while let Some((request, from)) = next(&peer).await {
            let token = &request[4..4 + usize::from(request[0] & 15)];
            let head = [0x60 | token.len() as u8, Code::CONTENT.0, request[2], request[3]];
            let answer = [&head[..], token, &[0xff, b'x']].concat();
            peer.send_to(&answer, from).await.unwrap();
        }
    });
    let client = Client::new();
    for _ in 0..200 {
        assert_eq!(client.get(&uri).await.unwrap().body(), "x");
    }
    for _ in 0..50 {
        let (first, second) = tokio::join!(client.get(&uri), client.get(&uri));
        assert_eq!((first.unwrap().body(), second.unwrap().body()), (&"x".into(), &"x".into()));
    }
    assert_eq!(client.snapshot().open_exchanges(), 0);
    server.abort();
}

#[tokio::test]
async fn a_call_may_be_dropped_at_any_point_and_those_beside_it_go_on() {
    let router = Router::new()
        .route("/now", get(|_: &Call<'_>| Response::content("x")))
        .route("/long", get(|_: &Call<'_>| Response::content("x".repeat(5000))))
        .route(
            "/later",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(3)).await;
                Response::content("x")
            }),
        );
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let at = server.local_addrs()[0];
    let client = Client::new();
    let uri = |path: &str| format!("coap://{at}/{path}");
    for path in ["now", "long", "later"] {
        for polls in 0..40 {
            let (dropped, beside) = (client.get(uri(path)), client.get(uri("later")));
            let some_polls = async {
                let mut dropped = pin!(dropped);
                for _ in 0..polls {
                    let poll = std::future::poll_fn(|cx| Poll::Ready(dropped.as_mut().poll(cx)));
                    if poll.await.is_ready() {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            };
            // NSTART is 1: the call beside it leaves when the place of the dropped one is free.
            let (_, answered) = tokio::join!(some_polls, timeout(LATEST, beside));
            assert_eq!(answered.unwrap().unwrap().text(), "x", "{path}, {polls} polls");
            let one = timeout(LATEST, client.get(uri("now"))).await;
            assert_eq!(one.unwrap().unwrap().text(), "x", "{path}, {polls} polls");
        }
    }
}
