//! A client that keeps the handlers at work leaves room for others.

use crate::common::eventually::eventually;
use crate::common::many_clients::{GET, ManyClients, Outgoing};
use ebbtide::server::{Call, Resource, Router, Server, Subject, Verify, delete, get, post};
use ebbtide::{Client, Code, Response, ServerConfig};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

const MAX: usize = 40;

/// A handler that counts its calls at once, and waits until the gate opens.
fn waiting_for(gate: &Arc<Semaphore>, calls: &Arc<AtomicUsize>) -> Resource {
    let (gate, calls) = (gate.clone(), calls.clone());
    post(move || {
        calls.fetch_add(1, Ordering::SeqCst);
        let gate = gate.clone();
        async move {
            let _passed = gate.acquire().await;
            Code::CHANGED
        }
    })
}

#[tokio::test]
async fn forged_addresses_get_half_of_the_places_of_handlers_at_work() {
    let (gate, calls) = (Arc::new(Semaphore::new(0)), Arc::default());
    let limited = ServerConfig::new().verify(Verify::All).limits(|limits| limits.working(MAX));
    let router = Router::new().route("/slow", waiting_for(&gate, &calls));
    let server = Server::with_config(router, limited, ["127.0.0.1:0"]).unwrap();
    let (meter, at) = (server.meter(), server.local_addrs()[0]);
    let mut many = ManyClients::new(at);
    for n in 0..3 * MAX as u32 {
        many.say(n, &Outgoing { code: Code::POST, options: &[(11, &b"slow"[..])], ..GET });
    }
    many.flush();
    let mut challenged = 0;
    eventually(|| {
        many.hear(
            |_| false,
            |_, message| {
                challenged += usize::from(message.code() == Code::UNAUTHORIZED);
            },
        );
        challenged == 3 * MAX - MAX / 2
    })
    .await;
    assert_eq!(meter.snapshot().load.working, MAX / 2);
    // A client that echoes has a place.
    let honest =
        tokio::spawn(async move { Client::new().post(format!("coap://{at}/slow"), "").await });
    eventually(|| meter.snapshot().load.working == MAX / 2 + 1).await;
    gate.add_permits(1000);
    assert_eq!(honest.await.unwrap().unwrap().code(), Code::CHANGED);
    assert_eq!(calls.load(Ordering::SeqCst), MAX / 2 + 1, "what was challenged was not called");
}

#[tokio::test]
async fn what_is_challenged_for_want_of_a_place_has_not_been_done_and_is_done_once() {
    let (gate, calls) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = calls.clone();
    let removed = delete(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Code::DELETED }
    });
    let slow = waiting_for(&gate, &Arc::default());
    let router = Router::new().route("/slow", slow).route("/topic", removed);
    let limited = ServerConfig::new().verify(Verify::All).limits(|limits| limits.working(MAX));
    let server = Server::with_config(router, limited, ["127.0.0.1:0"]).unwrap();
    let (meter, at) = (server.meter(), server.local_addrs()[0]);
    let remove = async || Client::new().delete(format!("coap://{at}/topic")).await.unwrap().code();
    assert_eq!(remove().await, Code::DELETED);
    let mut many = ManyClients::new(at);
    let mut say = |n, code, path: &[u8]| {
        many.say(n, &Outgoing { code, options: &[(11, path)], ..GET });
        many.flush();
    };
    (0..MAX as u32 / 2).for_each(|n| say(n, Code::POST, b"slow"));
    eventually(|| meter.snapshot().load.working == MAX / 2).await;
    (100..110).for_each(|n| say(n, Code::DELETE, b"topic"));
    eventually(|| meter.snapshot().refusals.challenged == 10).await;
    assert_eq!(calls.load(Ordering::SeqCst), 1, "forged addresses removed it");
    assert_eq!(remove().await, Code::DELETED);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_long_request_finds_its_places_where_few_may_be_at_work() {
    let open = Arc::new(Semaphore::new(1000));
    for (working, length) in [(1, 40_000), (2, 40_000), (6, 200_000)] {
        let config = ServerConfig::new().limits(|limits| limits.working(working));
        let router = Router::new().route("/slow", waiting_for(&open, &Arc::default()));
        let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
        let uri = format!("coap://{}/slow", server.local_addrs()[0]);
        // The first has its places in any case.
        for _ in 0..2 {
            let answer = Client::new().post(&*uri, vec![0; length]).await.unwrap();
            assert_eq!(answer.code(), Code::CHANGED, "{working} at work, {length} bytes");
        }
    }
}

#[tokio::test]
async fn one_address_gets_half_of_the_places_of_handlers_at_work_and_a_newcomer_finds_one() {
    let (gate, calls) = (Arc::new(Semaphore::new(0)), Arc::default());
    let config = ServerConfig::new().limits(|limits| limits.working(MAX));
    let router = Router::new().route("/slow", waiting_for(&gate, &calls));
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let meter = server.meter();
    let many = RefCell::new(ManyClients::new(server.local_addrs()[0]));
    // How often each client was answered with which code.
    let heard = RefCell::new(BTreeMap::<(u32, Code), usize>::new());
    let hear = || {
        many.borrow_mut().hear(
            |_| true,
            |n, message| *heard.borrow_mut().entry((n, message.code())).or_default() += 1,
        );
    };
    let answered = |n, code| heard.borrow().get(&(n, code)).copied().unwrap_or_default();
    let options = [(11, &b"slow"[..])];
    let say = |n, ids: core::ops::Range<u16>| {
        for id in ids {
            let post = Outgoing { code: Code::POST, id, options: &options, ..GET };
            many.borrow_mut().say(n, &post);
        }
        many.borrow_mut().flush();
    };
    let (greedy, newcomer) = (0, 1);
    say(greedy, 0..100);
    eventually(|| {
        hear();
        answered(greedy, Code::SERVICE_UNAVAILABLE) == 100 - MAX / 2
    })
    .await;
    assert_eq!(meter.snapshot().load.working, MAX / 2);
    assert_eq!(calls.load(Ordering::SeqCst), MAX / 2, "what was refused was not called");
    say(newcomer, 0..5);
    eventually(|| {
        hear();
        meter.snapshot().load.working == MAX / 2 + 5
    })
    .await;
    // Two more addresses share what is left by the same rule.
    say(2, 0..100);
    say(3, 0..100);
    eventually(|| {
        hear();
        let refused = |n| answered(n, Code::SERVICE_UNAVAILABLE);
        refused(2) + refused(3) + meter.snapshot().load.working == 200 + MAX / 2 + 5
    })
    .await;
    assert_eq!(answered(newcomer, Code::SERVICE_UNAVAILABLE), 0);
    assert!(answered(2, Code::SERVICE_UNAVAILABLE) < 100);
    assert!(answered(3, Code::SERVICE_UNAVAILABLE) < 100);
    gate.add_permits(1000);
    eventually(|| {
        hear();
        answered(greedy, Code::CHANGED) == MAX / 2 && answered(newcomer, Code::CHANGED) == 5
    })
    .await;
    // Places that were given back may be taken again.
    eventually(|| meter.snapshot().load.working == 0).await;
    say(greedy, 200..201);
    eventually(|| {
        hear();
        answered(greedy, Code::CHANGED) == MAX / 2 + 1
    })
    .await;
}

#[tokio::test]
async fn a_long_request_takes_more_places_of_handlers_at_work() {
    let gate = Arc::new(Semaphore::new(0));
    let limited = ServerConfig::new().limits(|limits| limits.working(MAX));
    let router = Router::new().route("/slow", waiting_for(&gate, &Arc::default()));
    let server = Server::with_config(router, limited, ["127.0.0.1:0"]).unwrap();
    let (meter, at) = (server.meter(), server.local_addrs()[0]);
    let working = || meter.snapshot().load.working;
    let ask = |body| async move { Client::new().post(format!("coap://{at}/slow"), body).await };
    // Six times 16 KiB, and a rest.
    let long = vec![0; 6 * 16 * 1024 + 1];
    let first = tokio::spawn(ask(long.clone()));
    eventually(|| working() == 7).await;
    let second = tokio::spawn(ask(long.clone()));
    eventually(|| working() == 14).await;
    let short = tokio::spawn(ask(Vec::new()));
    eventually(|| working() == 15).await;
    gate.add_permits(1000);
    for answer in [first, second, short] {
        assert_eq!(answer.await.unwrap().unwrap().code(), Code::CHANGED);
    }
    eventually(|| working() == 0).await;
}

#[tokio::test]
async fn separate_responses_that_nobody_acknowledges_hold_up_no_others() {
    const REQUESTS: u16 = 100;
    let (gate, state) = (Arc::new(Semaphore::new(0)), Subject::new());
    let config = ServerConfig::new()
        .acknowledge_after(Duration::from_millis(1))
        .limits(|limits| limits.exchanges(64).queue_per_peer(100));
    let observed = get(|_: &Call<'_>| Response::content("state")).observable(&state);
    let router =
        Router::new().route("/slow", waiting_for(&gate, &Arc::default())).route("/state", observed);
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let many = RefCell::new(ManyClients::new(server.local_addrs()[0]));
    let heard = RefCell::new(BTreeMap::<(u32, Code), usize>::new());
    let (silent, observer, other) = (0, 1, 2);
    let hear = |n: u32, code: Code| {
        many.borrow_mut().hear(
            |n| n != silent,
            |n, message| *heard.borrow_mut().entry((n, message.code())).or_default() += 1,
        );
        heard.borrow().get(&(n, code)).copied().unwrap_or_default()
    };
    let observe = [(6, &b""[..]), (11, b"state")];
    many.borrow_mut().say(observer, &Outgoing { options: &observe, token: b"o", ..GET });
    many.borrow_mut().flush();
    eventually(|| hear(observer, Code::CONTENT) >= 1).await;
    let slow = [(11, &b"slow"[..])];
    let post = Outgoing { code: Code::POST, options: &slow, ..GET };
    for id in 0..REQUESTS {
        let token = &id.to_be_bytes();
        many.borrow_mut().say(silent, &Outgoing { id, token, ..post });
    }
    many.borrow_mut().flush();
    eventually(|| hear(silent, Code::EMPTY) >= usize::from(REQUESTS)).await;
    many.borrow_mut().say(other, &post);
    many.borrow_mut().flush();
    eventually(|| hear(other, Code::EMPTY) >= 1).await;
    gate.add_permits(1000);
    eventually(|| hear(silent, Code::CHANGED) > 0).await;
    state.changed();
    eventually(|| hear(observer, Code::CONTENT) >= 2).await;
    eventually(|| hear(other, Code::CHANGED) >= 1).await;
}
