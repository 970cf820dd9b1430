//! Equal requests are sent once, and answers are stored.

use super::{Through, config, serve};
use ebbtide::server::{Call, Router, get};
use ebbtide::{Code, OptionNumber, Response};
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A resource that counts what it is asked; its ETag is its state, which a PUT changes.
#[derive(Clone, Default)]
struct Counted {
    asked: Arc<AtomicUsize>,
    state: Arc<AtomicUsize>,
}

impl Counted {
    fn router(&self, max_age: u32) -> Router {
        let (read, write) = (self.clone(), self.clone());
        let read = move |call: Call<'static>| {
            let counted = read.clone();
            async move {
                counted.asked.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(100)).await;
                let state = counted.state.load(Ordering::SeqCst).to_string();
                let mut options = call.message().options();
                if options
                    .any(|opt| opt.number == OptionNumber::ETAG && opt.value == state.as_bytes())
                {
                    return Response::new(Code::VALID).etag(state.as_bytes()).max_age(max_age);
                }
                Response::content(format!("state {state}")).etag(state.as_bytes()).max_age(max_age)
            }
        };
        let write = move |_: &Call<'_>| {
            write.state.fetch_add(1, Ordering::SeqCst);
            Code::CHANGED
        };
        Router::new().route("/r", get(read).put(write))
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn equal_gets_at_the_same_time_are_sent_once() {
    let counted = Counted::default();
    let uri = format!("coap://{}/r", serve(counted.router(0)));
    let clients: Vec<_> = (0..8).map(|_| ebbtide::Client::new()).collect();
    let through = Through::gateway(config());
    let answers = join_all(clients.iter().map(|client| client.request(through.get(&uri)))).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap().text() == "state 0"));
    assert_eq!(counted.asked(), 1);
}

#[tokio::test]
async fn a_stored_answer_is_used_while_it_is_fresh_and_a_change_ends_it() {
    let counted = Counted::default();
    let uri = format!("coap://{}/r", serve(counted.router(600)));
    let through = Through::gateway(config());
    for _ in 0..3 {
        assert_eq!(through.send(through.get(&uri)).await.text(), "state 0");
    }
    assert_eq!(counted.asked(), 1);
    let known = through.send(through.get(&uri).option(OptionNumber::ETAG, b"0")).await;
    assert_eq!((known.code(), known.body().len(), counted.asked()), (Code::VALID, 0, 1));
    assert_eq!(through.send(through.put(&uri).payload("x")).await.code(), Code::CHANGED);
    assert_eq!(through.send(through.get(&uri)).await.text(), "state 1");
    assert_eq!(counted.asked(), 2);
}

#[tokio::test]
async fn an_answer_that_a_change_has_overtaken_is_neither_shared_nor_stored() {
    let counted = Counted::default();
    let (read, write) = (counted.clone(), counted.clone());
    let read = move |_: Call<'static>| {
        let state = read.state.load(Ordering::SeqCst);
        let asked = read.asked.fetch_add(1, Ordering::SeqCst);
        async move {
            // The first answer is on its way until the change is over.
            tokio::time::sleep(Duration::from_millis(if asked == 0 { 500 } else { 0 })).await;
            Response::content(format!("state {state}")).max_age(600)
        }
    };
    let write = move |_: &Call<'_>| {
        write.state.fetch_add(1, Ordering::SeqCst);
        Code::CHANGED
    };
    let uri = format!("coap://{}/r", serve(Router::new().route("/r", get(read).put(write))));
    let several = ebbtide::ClientConfig::new()
        .control(ebbtide_core::cc::ControlConfig::parse("default:nstart=4").unwrap());
    let through = Through::gateway(config().max_per_device(4).client(several));
    let first = ebbtide::Client::new();
    let before = first.request(through.get(&uri));
    let after = async {
        while counted.asked() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(through.send(through.put(&uri).payload("x")).await.code(), Code::CHANGED);
        through.send(through.get(&uri)).await
    };
    let (before, after) = tokio::join!(before, after);
    assert_eq!(before.unwrap().text(), "state 0");
    assert_eq!(after.text(), "state 1");
    assert_eq!(through.send(through.get(&uri)).await.text(), "state 1");
    assert_eq!(counted.asked(), 2);
}

#[tokio::test]
async fn a_stale_answer_is_confirmed_by_its_etag() {
    let counted = Counted::default();
    let uri = format!("coap://{}/r", serve(counted.router(0)));
    let through = Through::gateway(config());
    for _ in 0..2 {
        let answer = through.send(through.get(&uri)).await;
        assert_eq!((answer.code(), answer.text().as_ref()), (Code::CONTENT, "state 0"));
    }
    // The client's own version is compared with what the server confirmed.
    let answer = through.send(through.get(&uri).option(OptionNumber::ETAG, b"0")).await;
    assert_eq!(answer.code(), Code::VALID);
    assert_eq!(counted.asked(), 3);
}

#[tokio::test]
async fn requests_that_differ_in_an_option_of_the_cache_key_are_not_equal() {
    let counted = Counted::default();
    let uri = format!("coap://{}/r", serve(counted.router(600)));
    let through = Through::gateway(config());
    through.send(through.get(&uri)).await;
    through.send(through.get(&uri).option(OptionNumber::ACCEPT, &[])).await;
    through.send(through.get(&format!("{uri}?a"))).await;
    assert_eq!(counted.asked(), 3);
    // 65020 is elective, safe to forward, and no part of the cache key (RFC 7252 section 5.4.6).
    through.send(through.get(&uri).option(OptionNumber(65020), b"x")).await;
    assert_eq!(counted.asked(), 3);
}
