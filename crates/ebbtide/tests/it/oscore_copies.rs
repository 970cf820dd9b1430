//! Servers that do not give an answer again (RFC 8613 section 7.4 makes a copy a replay): libcoap refuses copies, and
//! Californium answers them with a Reset.

use crate::common::errors::source;
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Server, put};
use ebbtide::{Client, ClientConfig, OscoreFailure, Request, Response, ServerConfig};
use ebbtide_core::wire::Code;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;

fn contexts(ours: &[u8], theirs: &[u8]) -> OscoreContexts {
    OscoreContexts::new([OscoreContext::new(b"sixteen bytes 16", ours, theirs)]).unwrap()
}

/// A server, and how many POSTs it has processed.
fn serve() -> (SocketAddr, Arc<AtomicUsize>) {
    let taken = Arc::<AtomicUsize>::default();
    let counter = taken.clone();
    let take = move |_: &Call<'_>| {
        counter.fetch_add(1, Ordering::SeqCst);
        Response::new(Code::CHANGED)
    };
    let resource = put(|| Response::new(Code::CHANGED)).post(take);
    let config = ServerConfig::new().oscore(contexts(b"s", b"c"));
    let router = Router::new().route("/x", resource);
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let at = server.local_addrs()[0];
    tokio::spawn(server.run());
    (at, taken)
}

/// What a copy gets.
#[derive(Copy, Clone, Debug)]
enum Refusal {
    /// The server's, to whom it is another message.
    Unauthorized,
    Reset,
}

/// Loses the first answer, and lets copies of its request be refused.
async fn forgetful(server: SocketAddr, refusal: Refusal) -> SocketAddr {
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    back.connect(server).await.unwrap();
    let at = front.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut buf, mut first) = ([0; 1500], None);
        loop {
            let (len, client) = front.recv_from(&mut buf).await.unwrap();
            let id = [buf[2], buf[3]];
            let is_copy = first == Some(id);
            if is_copy && matches!(refusal, Refusal::Reset) {
                front.send_to(&[0x70, 0, id[0], id[1]], client).await.unwrap();
                continue;
            }
            buf[2] ^= if is_copy { 0x80 } else { 0 };
            back.send(&buf[..len]).await.unwrap();
            let len = back.recv(&mut buf).await.unwrap();
            if first.is_none() {
                first = Some(id);
            } else {
                buf[2..4].copy_from_slice(&id);
                front.send_to(&buf[..len], client).await.unwrap();
            }
        }
    });
    at
}

async fn ask(at: SocketAddr, method: Code) -> Result<Response, ebbtide::Error> {
    let config = ClientConfig::new().oscore(contexts(b"c", b"s"));
    let client = Client::with_config(config.ack_timeout(Duration::from_millis(100)));
    client.request(Request::new(method, format!("coap://{at}/x")).unwrap()).await
}

#[tokio::test]
async fn an_idempotent_request_whose_copy_was_refused_is_made_anew() {
    for refusal in [Refusal::Unauthorized, Refusal::Reset] {
        let (server, _) = serve();
        let response = ask(forgetful(server, refusal).await, Code::PUT).await;
        assert_eq!(response.map(|response| response.code()).unwrap(), Code::CHANGED, "{refusal:?}");
    }
}

#[tokio::test]
async fn another_one_is_processed_once_and_its_caller_learns_that_it_may_have_been() {
    for refusal in [Refusal::Unauthorized, Refusal::Reset] {
        let (server, taken) = serve();
        let error = ask(forgetful(server, refusal).await, Code::POST).await.unwrap_err();
        let reason = source(&error);
        assert!(matches!(reason, Some(OscoreFailure::CopyRefused(_))), "{refusal:?}: {reason:?}");
        assert_eq!(taken.load(Ordering::SeqCst), 1, "{refusal:?}");
    }
}
