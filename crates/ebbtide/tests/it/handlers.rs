//! Handlers that panic, are slow, or are asynchronous and observed.

use crate::common::eventually::eventually;
use ebbtide::congestion::ControlConfig;
use ebbtide::server::{Call, Router, Server, Subject, get, post, put};
use ebbtide::{Client, ClientConfig, Code, Request, Response, ServerConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

fn uri(server: &Server, path: &str) -> String {
    format!("coap://{}{path}", server.local_addrs()[0])
}

#[tokio::test]
async fn a_handler_that_panics_is_answered_with_an_error_and_the_others_are_served() {
    let router = Router::new()
        .route("/now", get(|_: &Call<'_>| -> Response { panic!("a bug") }))
        .route("/first", get(async || -> Response { panic!("a bug in the first poll") }))
        .route(
            "/later",
            get(async || -> Response {
                tokio::time::sleep(Duration::from_millis(80)).await;
                panic!("a bug after the acknowledgement")
            }),
        )
        .route("/fine", get(|_: &Call<'_>| Response::content("fine")));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    // A GET that is repeated is handled again: this control repeats none within two seconds.
    let patient = ClientConfig::new().control(ControlConfig::parse("default").unwrap());
    let (meter, client) = (server.meter(), Client::with_config(patient));
    let paths = ["/now", "/first", "/later", "/now"].map(|path| uri(&server, path));
    let fine = uri(&server, "/fine");
    let running = tokio::spawn(server.run());
    for path in paths {
        let answer = client.get(path.clone()).await.unwrap();
        assert_eq!(answer.code(), Code::INTERNAL_SERVER_ERROR, "{path}");
        assert_eq!(client.get(fine.clone()).await.unwrap().text(), "fine");
    }
    assert_eq!(meter.snapshot().refusals.handler_panics, 4);
    assert_eq!(meter.snapshot().load.working, 0);
    assert!(!running.is_finished());
    running.abort();
}

#[tokio::test]
async fn a_resource_whose_settings_panic_is_answered_with_an_error_and_the_others_are_served() {
    let observed = get(|| "state").observable_by(|_| panic!("a bug in the choice of a subject"));
    let streamed = put(|| "stored").streamed_if(|_| panic!("a bug in the choice of a body"));
    let limited =
        get(|| "state").max_unverified_if(1, |_, _| panic!("a bug in the choice of a limit"));
    let fine = get(|_: &Call<'_>| Response::content("fine"));
    let router = Router::new()
        .route("/observed", observed)
        .route("/limited", limited)
        .route("/streamed", streamed)
        .route("/fine", fine);
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let meter = server.meter();
    let [observed, limited, streamed, fine] =
        ["/observed", "/limited", "/streamed", "/fine"].map(|path| uri(&server, path));
    let client = Client::new();
    let first = client.observe(&*observed).await.unwrap().next().await;
    let code = first.and_then(Result::ok).map(|response| response.code());
    assert_ne!(code, Some(Code::CONTENT));
    let put = Request::put(streamed).unwrap().payload(vec![1; 3000]);
    assert_eq!(client.request(put).await.unwrap().code(), Code::INTERNAL_SERVER_ERROR);
    assert_eq!(client.get(limited).await.unwrap().code(), Code::INTERNAL_SERVER_ERROR);
    assert_eq!(client.get(fine).await.unwrap().text(), "fine");
    assert!(meter.snapshot().refusals.handler_panics >= 3);
}

#[tokio::test]
async fn a_slow_handler_runs_once_however_many_copies_of_its_request_arrive() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let slow = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Response::content("that took a while")
        }
    };
    let config = ServerConfig::new().acknowledge_after(Duration::from_millis(100));
    let router = Router::new().route("/s", get(slow));
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    let message_id = [0x12, 0x34];
    // Confirmable: copies before and after the acknowledgement. The token of each is its own, as under a
    // control that marks copies.
    for copy in 0..8 {
        socket.send(&[0x41, 1, message_id[0], message_id[1], copy, 0xb1, b's']).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (mut acknowledged, mut buffer) = (0, [0; 64]);
    let response = loop {
        let received = tokio::time::timeout(Duration::from_secs(10), socket.recv(&mut buffer));
        let length = received.await.expect("a response").unwrap();
        if buffer[..length] == [0x60, 0, message_id[0], message_id[1]] {
            acknowledged += 1;
        } else {
            break buffer[..length].to_vec();
        }
    };
    assert!(acknowledged >= 1, "the first copy is acknowledged");
    // A separate response, which is Confirmable, with the token of the first copy.
    assert_eq!((response[0], response[1], response[4]), (0x41, 0x45, 0));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_asynchronous_handler_can_be_observed() {
    let (subject, state) = (Subject::new(), Arc::new(AtomicUsize::new(0)));
    let read = state.clone();
    let resource = get(move || {
        let read = read.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Response::content(read.load(Ordering::SeqCst).to_string())
        }
    });
    let router = Router::new().route("/s", resource.observable(&subject));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let client = Client::new();
    let mut observation = client.observe(uri(&server, "/s")).await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), "0");
    assert_eq!(subject.observers(), 1);
    for n in 1..4 {
        state.store(n, Ordering::SeqCst);
        subject.changed();
        assert_eq!(observation.next().await.unwrap().unwrap().text(), n.to_string());
    }
}

#[tokio::test]
async fn a_change_while_an_asynchronous_handler_registers_its_observer_is_not_missed() {
    let (subject, state) = (Subject::new(), Arc::new(AtomicUsize::new(0)));
    let (began, mut has_begun) = watch::channel(false);
    let (finish, may_finish) = watch::channel(false);
    let read = state.clone();
    let resource = get(move || {
        let (read, mut may_finish) = (read.load(Ordering::SeqCst), may_finish.clone());
        began.send_replace(true);
        async move {
            may_finish.wait_for(|may| *may).await.unwrap();
            Response::content(read.to_string())
        }
    });
    let router = Router::new().route("/s", resource.observable(&subject));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let client = Client::new();
    let observing = {
        let (client, uri) = (client.clone(), uri(&server, "/s"));
        tokio::spawn(async move {
            let mut observation = client.observe(uri).await.unwrap();
            let first = observation.next().await.unwrap().unwrap().text().into_owned();
            (first, observation.next().await.unwrap().unwrap().text().into_owned())
        })
    };
    has_begun.wait_for(|began| *began).await.unwrap();
    state.store(1, Ordering::SeqCst);
    subject.changed();
    finish.send_replace(true);
    let states = tokio::time::timeout(Duration::from_secs(10), observing).await;
    assert_eq!(states.expect("the change was missed").unwrap(), ("0".into(), "1".into()));
}

#[tokio::test]
async fn every_slow_request_of_one_client_is_answered_though_the_queue_is_short() {
    const COUNT: usize = 200;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let slow = post(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            Response::new(Code::CHANGED)
        }
    });
    let server = Server::bind(Router::new().route("/slow", slow), ["127.0.0.1:0"]).unwrap();
    let meter = server.meter();
    let config = ClientConfig::new().nstart(256).limits(|limits| limits.queue_per_peer(1000));
    let client = Client::with_config(config);
    let asking: Vec<_> = (0..COUNT)
        .map(|_| {
            let request = Request::post(uri(&server, "/slow")).unwrap();
            let request = request.timeout(Duration::from_secs(30));
            let client = client.clone();
            tokio::spawn(async move { client.request(request).await })
        })
        .collect();
    let mut answered = 0;
    for asking in asking {
        answered += usize::from(asking.await.unwrap().is_ok_and(|answer| answer.is_success()));
    }
    assert_eq!((answered, calls.load(Ordering::SeqCst)), (COUNT, COUNT));
    assert_eq!(meter.snapshot().load.working, 0);
}

#[tokio::test]
async fn more_observations_of_one_client_than_its_queue_is_long_do_not_make_the_server_spin() {
    let subject = Subject::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let resource = get(move |_: &Call<'_>| {
        counted.fetch_add(1, Ordering::SeqCst);
        Response::content("state")
    });
    let router = Router::new().route("/s", resource.observable(&subject));
    let server = Server::with_config(router, ServerConfig::new(), ["127.0.0.1:0"]).unwrap();
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    let mut buffer = [0; 64];
    for n in 0..100 {
        socket.send(&[0x41, 1, 1, n, n, 0x60, 0x51, b's']).await.unwrap();
        socket.recv(&mut buffer).await.unwrap();
    }
    assert_eq!((subject.observers(), calls.load(Ordering::SeqCst)), (100, 100));
    subject.changed();
    // Silence: one is under way, 64 wait in the queue, and of the others none is tried again before
    // one of these has ended.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let tried = calls.load(Ordering::SeqCst) - 100;
    assert!(tried <= 100, "the handler was called {tried} times");
    // All are notified once the client acknowledges.
    let mut notified = std::collections::BTreeSet::new();
    while notified.len() < 100 {
        let received = tokio::time::timeout(Duration::from_secs(10), socket.recv(&mut buffer));
        received.await.expect("a notification").unwrap();
        notified.insert(buffer[4]);
        socket.send(&[0x60, 0, buffer[2], buffer[3]]).await.unwrap();
    }
    let tried = calls.load(Ordering::SeqCst) - 100;
    assert!(tried <= 200, "the handler was called {tried} times");
    eventually(|| server.snapshot().exchanges.open == 0).await;
}
