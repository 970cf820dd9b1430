//! Requests of one client that are equal, at the same time.

use ebbtide::server::{Call, Router, Server, post};
use ebbtide::{Client, Code, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

#[tokio::test]
async fn long_answers_to_equal_posts_are_not_mixed() {
    let calls = Arc::new(AtomicU8::new(0));
    let ticket = post(move |_: &Call<'_>| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        Response::new(Code::CHANGED).payload(vec![b'a' + call; 5000])
    });
    let server = Server::bind(Router::new().route("/ticket", ticket), ["127.0.0.1:0"]).unwrap();
    let uri = format!("coap://{}/ticket", server.local_addrs()[0]);
    tokio::spawn(server.run());
    let client = Client::new();
    let requests: Vec<_> = (0..5)
        .map(|_| {
            let (client, uri) = (client.clone(), uri.clone());
            tokio::spawn(async move { client.post(uri, "one").await.unwrap() })
        })
        .collect();
    let mut tickets = Vec::new();
    for request in requests {
        let response = request.await.unwrap();
        let body = response.body();
        assert_eq!((response.code(), body.len()), (Code::CHANGED, 5000));
        assert!(body.iter().all(|byte| *byte == body[0]), "a mixture");
        tickets.push(body[0]);
    }
    tickets.sort_unstable();
    assert_eq!(tickets, b"abcde");
}
