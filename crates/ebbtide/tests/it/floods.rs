//! Those who mean harm, or are broken: memory stays bounded, everything is counted, and those who
//! are there are served.

use crate::common::eventually::eventually;
use crate::common::many_clients::{GET, ManyClients, Outgoing, address};
use ebbtide::metrics::Meter;
use ebbtide::server::{Call, Router, Server, Subject, Verify, get, post, put};
use ebbtide::{Client, Code, Request, Response, ServerConfig};
use ebbtide_core::wire::{OptionNumber, Type};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;

fn resources(state: &Subject) -> Router {
    let length =
        |call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().len().to_string());
    Router::new()
        .route("/x", get(|_: &Call<'_>| Response::content("x")))
        .route("/long", get(|_: &Call<'_>| Response::content(vec![b'x'; 900])))
        .route("/state", get(|_: &Call<'_>| Response::content("state")).observable(state))
        .route("/length", put(length).post(length))
        .route("/post", post(|_: &Call<'_>| Response::new(Code::CHANGED)))
        .route("/costly", get(|| async { Response::content("read from a disk") }).max_unverified(3))
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Response::content(vec![b's'; 30])
            }),
        )
}

struct Scene {
    server: SocketAddr,
    meter: Meter,
    state: Subject,
    many: ManyClients,
    _server: Server,
}

/// A server that trusts no address before it has echoed, as one on the Internet.
fn scene(change: impl FnOnce(ServerConfig) -> ServerConfig) -> Scene {
    let state = Subject::new();
    let config = change(ServerConfig::new().verify(Verify::All));
    let server = Server::with_config(resources(&state), config, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    let many = ManyClients::new(address);
    Scene { server: address, meter: server.meter(), state, many, _server: server }
}

impl Scene {
    /// Lets what was said take effect; what comes back, as long as something does.
    async fn settle(&mut self) -> Vec<(u32, Vec<u8>)> {
        self.many.flush();
        let mut heard = Vec::new();
        let mut silent = 0;
        while silent < 20 {
            tokio::task::yield_now().await;
            let count = self.many.hear(|_| false, |n, m| heard.push((n, m.as_bytes().to_vec())));
            silent = if count == 0 { silent + 1 } else { 0 };
        }
        heard
    }
}

fn uri(server: SocketAddr, path: &str) -> String {
    format!("coap://{server}{path}")
}

/// All clients from `0` say something, a few at a time.
async fn flood(scene: &mut Scene, count: u32, say: impl Fn(u32, &mut ManyClients)) -> usize {
    let mut answers = 0;
    for first in (0..count).step_by(200) {
        for n in first..count.min(first + 200) {
            say(n, &mut scene.many);
        }
        answers += scene.settle().await.len();
    }
    answers
}

#[tokio::test]
async fn requests_from_a_hundred_thousand_addresses_leave_nothing_behind() {
    let mut scene = scene(|config| config);
    let options = [(11, &b"x"[..])];
    let get = |n, many: &mut ManyClients| many.say(n, &Outgoing { options: &options, ..GET });
    flood(&mut scene, 1000, get).await;
    let before = crate::common::counting::bytes_in_use();
    let answers = flood(&mut scene, 100_000, get).await;
    assert!(answers > 90_000, "{answers}");
    let snapshot = scene.meter.snapshot();
    assert_eq!((snapshot.peers, snapshot.remembered), (0, 0));
    let grown = crate::common::counting::bytes_in_use() - before;
    assert!(grown < 100_000, "{grown} bytes");
}

#[tokio::test]
async fn posts_from_forged_addresses_fill_half_of_the_memory_and_honest_ones_are_processed() {
    let mut scene = scene(|config| config.limits(|limits| limits.remembered_messages(2000)));
    let options = [(11, &b"post"[..])];
    let post = Outgoing { code: Code::POST, options: &options, ..GET };
    flood(&mut scene, 10_000, |n, many| many.say(n, &post)).await;
    let snapshot = scene.meter.snapshot();
    assert_eq!(snapshot.remembered, 1000);
    assert!(snapshot.refusals.challenged > 8000, "{:?}", snapshot.refusals);
    // It is challenged too, echoes, and is processed.
    let client = Client::new();
    for _ in 0..100 {
        let response = client.post(uri(scene.server, "/post"), "").await.unwrap();
        assert_eq!(response.code(), Code::CHANGED);
    }
    // Of the first one the message that was challenged is remembered as well, once its client has echoed;
    // the same request again is another one.
    assert_eq!(scene.meter.snapshot().remembered, 1000 + 2 + 99);
    assert_eq!(scene.meter.snapshot().counters.refused, 0);
}

#[tokio::test]
async fn uploads_that_never_finish_take_bounded_memory_and_honest_ones_go_on() {
    // The worst case: whoever floods has the addresses that it uses.
    let mut scene =
        scene(|config| config.limits(|limits| limits.block_bytes(200_000)).verify(Verify::None));
    let server = scene.server;
    let honest = tokio::spawn(async move {
        let client = Client::new();
        let body = vec![b'h'; 20_000];
        for _ in 0..20 {
            let request = Request::put(uri(server, "/length")).unwrap().payload(body.clone());
            let response = client.request(request).await.unwrap();
            assert_eq!(response.text(), "20000");
        }
    });
    let block = [0; 1024];
    let begin = |n: u32, many: &mut ManyClients| {
        let tag = n.to_be_bytes();
        let options = [(11, b"length".as_slice()), (27, &[0x0e]), (292, &tag)];
        many.say(
            n % 60_000,
            &Outgoing { code: Code::PUT, options: &options, payload: &block, ..GET },
        );
    };
    let mut begun = 0;
    while !honest.is_finished() {
        for _ in 0..20 {
            begin(begun, &mut scene.many);
            begun += 1;
        }
        scene.settle().await;
        let load = scene.meter.snapshot().load;
        assert!(load.block_bytes <= 200_000 && load.uploads <= 1024, "{load:?}");
    }
    honest.await.unwrap();
    flood(&mut scene, 2000, begin).await;
    let snapshot = scene.meter.snapshot();
    // With the answers to the honest ones.
    assert!(snapshot.load.uploads <= 195 + 20, "{:?}", snapshot.load);
    assert!(snapshot.refusals.uploads_evicted > 1000, "{:?}", snapshot.refusals);
}

#[tokio::test]
async fn an_upload_that_finds_no_room_is_refused_at_its_first_block_and_the_others_finish() {
    let mut scene =
        scene(|config| config.limits(|limits| limits.block_bytes(100_000)).verify(Verify::None));
    let size = 30_000_u32.to_be_bytes();
    let block = [0; 1024];
    let send = |n: u32, id: u16, num: u32, many: &mut ManyClients| {
        let option = ((num << 4) | 0x0e).to_be_bytes();
        let option = &option[option.iter().take_while(|byte| **byte == 0).count()..];
        let options = [(11, b"length".as_slice()), (27, option), (60, &size[2..])];
        let say = Outgoing { code: Code::PUT, id, options: &options, payload: &block, ..GET };
        many.say(n, &say);
    };
    for num in 0..20 {
        for n in 0..3 {
            send(n, num as u16, num, &mut scene.many);
        }
        let heard = scene.settle().await;
        let codes: Vec<_> = heard.iter().map(|(_, bytes)| bytes[1]).collect();
        assert_eq!(codes, [0x5f; 3], "block {num}");
        // Three times 30 kB are promised: a fourth has no room, however little has come.
        if num > 0 {
            send(9, num as u16, 0, &mut scene.many);
            let heard = scene.settle().await;
            let answer = ebbtide_core::wire::Message::parse(&heard[0].1).unwrap();
            assert_eq!(answer.code(), Code::SERVICE_UNAVAILABLE);
            assert!(answer.option(OptionNumber::MAX_AGE).is_some());
        }
    }
    assert_eq!(scene.meter.snapshot().refusals.uploads_evicted, 0);
}

#[tokio::test]
async fn an_upload_of_an_unknown_address_waits_for_an_echo_while_half_of_the_room_is_taken() {
    let mut scene = scene(|config| config.limits(|limits| limits.block_bytes(100_000)));
    let block = [0; 1024];
    flood(&mut scene, 1000, |n, many| {
        let options = [(11, b"length".as_slice()), (27, &[0x0e])];
        many.say(n, &Outgoing { code: Code::PUT, options: &options, payload: &block, ..GET });
    })
    .await;
    let snapshot = scene.meter.snapshot();
    assert!(snapshot.load.block_bytes <= 51_200, "{:?}", snapshot.load);
    assert_eq!(snapshot.refusals.uploads_evicted, 0);
    assert_eq!(snapshot.refusals.challenged as usize, 1000 - snapshot.load.uploads);
    let client = Client::new();
    let request = Request::put(uri(scene.server, "/length")).unwrap().payload(vec![0; 20_000]);
    assert_eq!(client.request(request).await.unwrap().text(), "20000");
}

#[tokio::test]
async fn observers_that_vanish_are_removed_counted_and_hold_nobody_up() {
    let mut scene = scene(|config| {
        config.limits(|limits| limits.observers(3000)).ack_timeout(Duration::from_millis(1000))
    });
    let client = Client::new();
    let mut honest = client.observe(uri(scene.server, "/state")).await.unwrap();
    honest.next().await.unwrap().unwrap();
    // Its first notification proves it.
    scene.state.changed();
    honest.next().await.unwrap().unwrap();
    let options = [(6, &[][..]), (11, b"state")];
    let register = |n, many: &mut ManyClients| many.say(n, &Outgoing { options: &options, ..GET });
    flood(&mut scene, 4000, register).await;
    // Who has not echoed gets half of the places.
    assert_eq!(scene.state.observers(), 1500);
    assert_eq!(scene.meter.snapshot().refusals.challenged, 2501);
    // Another one who is there is not held up by those who are not, though it has proved nothing.
    let newcomer = Client::new();
    let mut newcomer = newcomer.observe(uri(scene.server, "/state")).await.unwrap();
    newcomer.next().await.unwrap().unwrap();
    assert_eq!(scene.state.observers(), 1501);
    scene.state.changed();
    let next = tokio::time::timeout(Duration::from_secs(20), newcomer.next()).await;
    next.expect("held up").unwrap().unwrap();
    drop(newcomer);
    scene.state.changed();
    for _ in 0..5 {
        let next = tokio::time::timeout(Duration::from_secs(20), honest.next()).await;
        next.expect("held up").unwrap().unwrap();
        scene.state.changed();
        scene.settle().await;
        let exchanges = scene.meter.snapshot().exchanges;
        assert!(exchanges.queued + exchanges.open <= 1025, "{exchanges:?}");
    }
    // One after the other is given up, and only it stays.
    let given_up = async {
        while scene.state.observers() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            scene.settle().await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(300), given_up).await;
    assert!(in_time.is_ok(), "{} observers are left", scene.state.observers());
    let snapshot = scene.meter.snapshot();
    assert_eq!(snapshot.refusals.observers_vanished, 1499);
    scene.state.changed();
    honest.next().await.unwrap().unwrap();
}

#[tokio::test]
async fn an_address_that_never_answers_gets_at_most_three_times_its_bytes() {
    let mut scene = scene(|config| {
        config.acknowledge_after(Duration::from_millis(20)).ack_timeout(Duration::from_millis(50))
    });
    let observe = (6, &[][..]);
    let asked: [&[(u16, &[u8])]; 4] =
        [&[(11, b"x")], &[(11, b"long")], &[observe, (11, b"state")], &[(11, b"slow")]];
    let headers = 28;
    for (n, options) in asked.into_iter().enumerate() {
        scene.many.say(n as u32, &Outgoing { options, token: b"abcd", ..GET });
    }
    let mut got = scene.settle().await;
    scene.state.changed();
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        got.extend(scene.settle().await);
    }
    for (n, options) in asked.into_iter().enumerate() {
        let request: usize = 4 + 4 + options.iter().map(|(_, v)| 1 + v.len()).sum::<usize>();
        let answers = got.iter().filter(|(whom, _)| *whom == n as u32);
        let lengths: Vec<_> = answers.map(|(_, bytes)| bytes.len() + headers).collect();
        let sum: usize = lengths.iter().sum();
        assert!(!lengths.is_empty(), "{options:?}: {}", address(n as u32));
        assert!(sum <= 3 * (request + headers), "{options:?}: {lengths:?} for {request}");
    }
    assert_eq!(scene.meter.snapshot().refusals.challenged, 1);
}

#[tokio::test]
async fn answers_that_no_server_sent_are_counted_and_ignored() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let forger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new();
    let asking = {
        let (client, uri) = (client.clone(), uri(server.local_addr().unwrap(), "/x"));
        tokio::spawn(async move { client.get(uri).await })
    };
    let mut buf = [0; 64];
    let (len, whom) = server.recv_from(&mut buf).await.unwrap();
    let request = &buf[..len];
    let tkl = usize::from(request[0] & 15);
    let answer = |header: u8, code: u8, token: &[u8]| {
        let mut bytes = vec![header | tkl as u8, code, request[2], request[3]];
        bytes.extend_from_slice(token);
        bytes
    };
    let token = &request[4..4 + tkl];
    let wrong: Vec<u8> = token.iter().map(|byte| byte ^ 0x55).collect();
    for _ in 0..100 {
        // From the right place with the wrong token; from the wrong port with everything right: a
        // response, and a Reset.
        server.send_to(&answer(0x60, 0x45, &wrong), whom).await.unwrap();
        forger.send_to(&answer(0x60, 0x45, token), whom).await.unwrap();
        forger.send_to(&[0x70, 0, request[2], request[3]], whom).await.unwrap();
        // A Reset for another message ID.
        server.send_to(&[0x70, 0, !request[2], request[3]], whom).await.unwrap();
        tokio::task::yield_now().await;
    }
    let counted = || client.snapshot().counters;
    eventually(|| counted().wrong_tokens + counted().unknown_answers >= 400).await;
    assert_eq!((counted().wrong_tokens, counted().unknown_answers), (100, 300));
    assert!(!asking.is_finished());
    server.send_to(&answer(0x60, 0x45, token), whom).await.unwrap();
    assert_eq!(asking.await.unwrap().unwrap().code(), Code::CONTENT);
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

#[tokio::test]
async fn a_challenge_is_answered_in_kind_and_fits_the_request() {
    let mut scene = scene(|config| config.limits(|limits| limits.remembered_messages(2)));
    let options = [(11, &b"post"[..])];
    let post = Outgoing { code: Code::POST, options: &options, token: b"t", ..GET };
    scene.many.say(0, &post);
    scene.many.say(1, &Outgoing { kind: Type::NonConfirmable, id: 7, ..post });
    scene.many.say(0, &post);
    let heard = scene.settle().await;
    let of = |n| {
        let of = heard.iter().filter(move |(whom, _)| *whom == n);
        of.map(|(_, bytes)| ebbtide_core::wire::Message::parse(bytes).unwrap())
    };
    let codes: Vec<_> = of(0).map(|message| message.code()).collect();
    assert_eq!(codes, [Code::CHANGED, Code::CHANGED], "its copy is known, not challenged");
    let challenge = of(1).next().unwrap();
    assert_eq!((challenge.kind(), challenge.code()), (Type::NonConfirmable, Code::UNAUTHORIZED));
    assert_eq!(challenge.token_bytes(), b"t");
    assert!(challenge.option(OptionNumber::ECHO).is_some());
}

#[tokio::test]
async fn a_resource_that_is_expensive_to_make_is_made_for_few_addresses_that_may_be_forged() {
    let mut scene = scene(|config| config);
    let options = [(11, &b"costly"[..])];
    for n in 0..500 {
        scene.many.say(n, &Outgoing { options: &options, ..GET });
    }
    let heard = scene.settle().await;
    let codes = |code: Code| heard.iter().filter(|(_, bytes)| bytes[1] == code.0).count();
    assert_eq!(codes(Code::CONTENT) + codes(Code::UNAUTHORIZED), 500);
    // Three a second, on a machine that takes some seconds for all of it.
    assert!(codes(Code::CONTENT) < 100, "{} were answered", codes(Code::CONTENT));
    // A client that echoes is served, and from then on without a challenge.
    let client = Client::new();
    for _ in 0..10 {
        let response = client.get(uri(scene.server, "/costly")).await.unwrap();
        assert_eq!(response.text(), "read from a disk");
    }
    let snapshot = scene.meter.snapshot();
    assert!(snapshot.refusals.challenged as usize <= codes(Code::UNAUTHORIZED) + 1);
    // Here all addresses are this machine's.
    let counted = snapshot.refused.get("challenged", "loopback");
    assert_eq!(counted, snapshot.refusals.challenged);
}

#[tokio::test]
async fn nothing_of_a_long_answer_is_kept_for_addresses_that_have_not_echoed() {
    let mut scene = scene(|config| config);
    let options = [(11, &b"long"[..])];
    let answers =
        flood(&mut scene, 2000, |n, many| many.say(n, &Outgoing { options: &options, ..GET }));
    assert!(answers.await > 1900);
    let snapshot = scene.meter.snapshot();
    assert!(snapshot.refusals.challenged > 1900, "{:?}", snapshot.refusals);
    assert_eq!((snapshot.load.downloads, snapshot.load.block_bytes), (0, 0));
}

#[tokio::test]
async fn refusals_are_counted_by_reason_and_class_of_address() {
    let mut scene = scene(|config| {
        config.limits(|limits| limits.observers(4)).max_rate(50).verify(Verify::None)
    });
    let observe = [(6, &b""[..]), (11, &b"state"[..])];
    for n in 0..10 {
        scene.many.say(n, &Outgoing { options: &observe, ..GET });
    }
    let options = [(11, &b"x"[..])];
    for id in 0..80 {
        scene.many.say(20, &Outgoing { options: &options, id, ..GET });
    }
    scene.settle().await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(&[0x40, 1], scene.server).await.unwrap();
    let meter = scene.meter.clone();
    eventually(|| meter.snapshot().refused.get("malformed", "loopback") == 1).await;
    let snapshot = scene.meter.snapshot();
    assert_eq!(snapshot.refused.get("observer-refused", "loopback"), 6);
    let too_many = snapshot.refused.get("too-many-requests", "loopback");
    assert_eq!(too_many, snapshot.refusals.too_many_requests);
    assert!(too_many > 0);
    let text = snapshot.to_string();
    let line = "ebbtide_refused_total{reason=\"observer-refused\",from=\"loopback\"} 6";
    assert!(text.lines().any(|found| found == line), "{text}");
}

#[tokio::test]
async fn many_observations_of_one_endpoint_call_their_handler_about_once_for_each_state() {
    const OBSERVATIONS: u8 = 200;
    let (state, calls) = (Subject::new(), Arc::new(AtomicU32::new(0)));
    let counted = calls.clone();
    let show = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        "state"
    };
    let router = Router::new().route("/state", get(show).observable(&state));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    let mut buffer = [0; 100];
    for token in 0..OBSERVATIONS {
        let mut registration = vec![0x41, 1, 0, token, token, 0x60, 0x55];
        registration.extend(b"state");
        socket.send(&registration).await.unwrap();
        socket.recv(&mut buffer).await.unwrap();
    }
    assert_eq!(calls.load(Ordering::Relaxed), u32::from(OBSERVATIONS));
    // More notifications than one peer's queue takes, of which none is acknowledged.
    state.changed();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let notified = calls.load(Ordering::Relaxed) - u32::from(OBSERVATIONS);
    assert!(notified > 0, "the observers are notified");
    assert!(notified <= 2 * u32::from(OBSERVATIONS), "{notified} calls for one change");
}
