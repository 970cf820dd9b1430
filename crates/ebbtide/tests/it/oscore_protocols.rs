//! What OSCORE (RFC 8613) leaves as it is: requests after one that was not answered, long bodies, No-Response.

use crate::common::eventually::eventually;
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Server, get, put};
use ebbtide::{Client, ClientConfig, Request, Response, ServerConfig};
use ebbtide_core::wire::{Code, OptionNumber};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;

const BODY: usize = 200_000;

fn contexts(ours: &[u8], theirs: &[u8]) -> OscoreContexts {
    OscoreContexts::new([OscoreContext::new(b"sixteen bytes 16", ours, theirs)]).unwrap()
}

fn client() -> Client {
    Client::with_config(ClientConfig::new().oscore(contexts(b"c", b"s")))
}

/// A server, and how many bodies it has taken.
fn serve() -> (SocketAddr, Arc<AtomicUsize>) {
    let taken = Arc::<AtomicUsize>::default();
    let counter = taken.clone();
    let take = move |call: &Call<'_>| {
        counter.fetch_add(1, Ordering::SeqCst);
        Response::new(Code::CHANGED).payload(call.payload().len().to_string())
    };
    let router = Router::new()
        .route("/long", get(|_: &Call<'_>| Response::content("x".repeat(BODY))))
        .route("/take", put(take))
        .route("/hello", get(|| "hello"));
    let config = ServerConfig::new().oscore(contexts(b"s", b"c")).oscore_required(true);
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let at = server.local_addrs()[0];
    tokio::spawn(server.run());
    (at, taken)
}

#[tokio::test]
async fn a_first_request_without_an_answer_blocks_nothing() {
    let (server, _) = serve();
    let (front, back) = (
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
    );
    let at = front.local_addr().unwrap();
    back.connect(server).await.unwrap();
    tokio::spawn(async move {
        let (mut one, mut two) = ([0; 2048], [0; 2048]);
        let (_, client) = front.recv_from(&mut one).await.unwrap();
        let lost = [one[2], one[3]];
        loop {
            tokio::select! {
                arrived = front.recv_from(&mut one) => {
                    let (len, _) = arrived.unwrap();
                    // No copy of the first message arrives either.
                    if one[2..4] != lost {
                        back.send(&one[..len]).await.unwrap();
                    }
                }
                arrived = back.recv(&mut two) => {
                    let len = arrived.unwrap();
                    front.send_to(&two[..len], client).await.unwrap();
                }
            }
        }
    });
    let client = client();
    let uri = format!("coap://{at}/hello");
    let first = Request::get(uri.as_str()).unwrap().timeout(Duration::from_millis(50));
    assert!(client.request(first).await.is_err());
    for _ in 0..3 {
        assert_eq!(client.get(uri.as_str()).await.unwrap().text(), "hello");
    }
}

#[tokio::test]
async fn bodies_of_200_kb_go_both_ways_in_blocks() {
    let (at, taken) = serve();
    let client = client();
    let long = client.get(format!("coap://{at}/long").as_str()).await.unwrap();
    assert_eq!(long.body().len(), BODY);
    let uri = format!("coap://{at}/take");
    for q_block in [false, true] {
        let request = Request::put(uri.as_str()).unwrap().payload(vec![7; BODY]);
        let request = if q_block { request.q_block() } else { request };
        assert_eq!(client.request(request).await.unwrap().text(), BODY.to_string());
    }
    assert_eq!(taken.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_request_that_wants_no_response_is_processed_and_gets_none() {
    let (at, taken) = serve();
    let client = client();
    let request = Request::put(format!("coap://{at}/take").as_str())
        .unwrap()
        .non_confirmable()
        .option(OptionNumber::NO_RESPONSE, &[2 | 8 | 16])
        .timeout(Duration::from_millis(200));
    assert!(client.request(request).await.is_err(), "nothing comes");
    eventually(|| taken.load(Ordering::SeqCst) == 1).await;
    assert_eq!(client.get(format!("coap://{at}/hello").as_str()).await.unwrap().text(), "hello");
}
