//! What a server does with single datagrams, looked at from outside.

use crate::common::eventually::eventually;
use ebbtide::server::{Call, Router, Server, Subject, Verify, get};
use ebbtide::{Client, Response, ServerConfig};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::watch;

/// How long silence is listened to.
const SHORT: Duration = Duration::from_millis(300);
const N: fn(u16) -> OptionNumber = OptionNumber;

async fn serve(config: ServerConfig, router: Router) -> (Server, UdpSocket) {
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    (server, socket)
}

async fn send(socket: &UdpSocket, kind: Type, id: u16, options: &[(u16, &[u8])]) {
    ask(socket, (kind, Code::GET), id, options).await;
}

async fn ask(socket: &UdpSocket, (kind, code): (Type, Code), id: u16, options: &[(u16, &[u8])]) {
    let options: Vec<_> =
        options.iter().map(|(number, value)| Opt { number: N(*number), value }).collect();
    let content = Content { code, options: &options, payload: &[] };
    let mut buf = [0; 256];
    let token = Token::new(&id.to_be_bytes()).unwrap();
    let encoded = content.encode(&mut buf, kind, MessageId(id), token).unwrap();
    socket.send(&buf[..encoded.len]).await.unwrap();
}

/// What comes within this time.
async fn within(time: Duration, socket: &UdpSocket) -> Option<Vec<u8>> {
    let mut buf = vec![0; 2048];
    let len = tokio::time::timeout(time, socket.recv(&mut buf)).await.ok()?.unwrap();
    buf.truncate(len);
    Some(buf)
}

/// What must come, however busy the machine is.
async fn receive(socket: &UdpSocket) -> Vec<u8> {
    within(Duration::from_secs(30), socket).await.expect("an answer")
}

fn long() -> Router {
    Router::new().route("/x", get(|_: &Call<'_>| Response::content(vec![b'x'; 800])))
}

#[tokio::test]
async fn an_unverified_address_gets_no_more_than_three_times_what_it_sent_until_it_echoes() {
    let config = ServerConfig::new().verify(Verify::All);
    let (server, socket) = serve(config, long()).await;
    send(&socket, Type::Confirmable, 1, &[(11, b"x")]).await;
    let challenge = receive(&socket).await;
    let message = Message::parse(&challenge).unwrap();
    assert_eq!(message.code(), Code::UNAUTHORIZED);
    assert!(challenge.len() < 60);
    let echo = message.option(OptionNumber::ECHO).unwrap().value.to_vec();
    send(&socket, Type::Confirmable, 2, &[(11, b"x"), (252, &echo)]).await;
    let answer = receive(&socket).await;
    assert_eq!(Message::parse(&answer).unwrap().payload().len(), 800);
    // The library's client does that by itself.
    let uri = format!("coap://{}/x", server.local_addrs()[0]);
    assert_eq!(Client::new().get(uri).await.unwrap().body().len(), 800);
}

#[tokio::test]
async fn a_challenge_that_comes_late_is_not_confirmable() {
    let slow = get(|| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Response::content(vec![b'x'; 800])
    });
    let config =
        ServerConfig::new().verify(Verify::All).acknowledge_after(Duration::from_millis(1));
    let (_server, socket) = serve(config, Router::new().route("/x", slow)).await;
    send(&socket, Type::Confirmable, 1, &[(11, b"x")]).await;
    let acknowledgement = receive(&socket).await;
    assert_eq!(Message::parse(&acknowledgement).unwrap().code(), Code::EMPTY);
    let challenge = receive(&socket).await;
    let message = Message::parse(&challenge).unwrap();
    assert!(message.option(OptionNumber::ECHO).is_some());
    // RFC 9175 section 2.4: "never as a separate one", which would be repeated.
    assert_eq!((message.kind(), message.code()), (Type::NonConfirmable, Code::UNAUTHORIZED));
    assert_eq!(message.token_bytes(), [0, 1]);
    // The value of the challenge is as good as any.
    let echo = message.option(OptionNumber::ECHO).unwrap().value.to_vec();
    send(&socket, Type::NonConfirmable, 2, &[(11, b"x"), (252, &echo)]).await;
    let answer = receive(&socket).await;
    assert_eq!(Message::parse(&answer).unwrap().payload().len(), 800);
}

#[tokio::test]
async fn a_client_that_wants_no_response_gets_an_acknowledgement_at_most() {
    let (_server, socket) = serve(ServerConfig::new(), long()).await;
    send(&socket, Type::NonConfirmable, 1, &[(11, b"x"), (258, &[2])]).await;
    assert_eq!(within(SHORT, &socket).await, None);
    send(&socket, Type::Confirmable, 2, &[(11, b"x"), (258, &[2])]).await;
    let answer = receive(&socket).await;
    assert_eq!(Message::parse(&answer).unwrap().code(), Code::EMPTY);
    // It did not ask to be spared errors.
    send(&socket, Type::NonConfirmable, 3, &[(11, b"y"), (258, &[2])]).await;
    let answer = receive(&socket).await;
    assert_eq!(Message::parse(&answer).unwrap().code(), Code::NOT_FOUND);
}

#[tokio::test]
async fn a_request_for_a_later_block_of_an_error_gets_the_error() {
    let changed = |_: &Call<'_>| Response::new(Code::CHANGED);
    let resource = get(|_: &Call<'_>| Response::content(vec![b'x'; 800])).put(changed);
    let router = Router::new().route("/x", resource);
    let (_server, socket) = serve(ServerConfig::new(), router).await;
    let second = &[0x16][..];
    let con = Type::Confirmable;
    for (id, code, path, expected) in [
        (1, Code::GET, b"missing".as_slice(), Code::NOT_FOUND),
        // Nothing is kept of the answer to a PUT: it must be made again.
        (2, Code::PUT, b"x", Code::REQUEST_ENTITY_INCOMPLETE),
        (3, Code::PUT, b"x", Code::REQUEST_ENTITY_INCOMPLETE),
        (4, Code::GET, b"x", Code::BAD_REQUEST),
    ] {
        ask(&socket, (con, code), id, &[(11, path), (23, second)]).await;
        let answer = receive(&socket).await;
        assert_eq!(Message::parse(&answer).unwrap().code(), expected, "{id}");
    }
}

#[tokio::test]
async fn a_slow_handler_is_acknowledged_first_and_its_response_repeated_until_it_arrives() {
    let (done, waits) = watch::channel(false);
    let slow = get(move || {
        let mut waits = waits.clone();
        async move {
            waits.wait_for(|done| *done).await.unwrap();
            Response::content("slow")
        }
    });
    let (_server, socket) = serve(ServerConfig::new(), Router::new().route("/slow", slow)).await;
    send(&socket, Type::Confirmable, 7, &[(11, b"slow")]).await;
    let first = receive(&socket).await;
    let message = Message::parse(&first).unwrap();
    assert_eq!((message.kind(), message.code()), (Type::Acknowledgement, Code::EMPTY));
    done.send(true).unwrap();
    let second = receive(&socket).await;
    let message = Message::parse(&second).unwrap();
    assert_eq!((message.kind(), message.payload()), (Type::Confirmable, b"slow".as_slice()));
}

#[tokio::test]
async fn an_observer_that_resets_a_notification_is_forgotten() {
    let subject = Subject::new();
    let resource = get(|_: &Call<'_>| Response::content("state")).observable(&subject);
    let (_server, socket) = serve(ServerConfig::new(), Router::new().route("/s", resource)).await;
    send(&socket, Type::Confirmable, 1, &[(6, &[]), (11, b"s")]).await;
    let registered = receive(&socket).await;
    assert!(Message::parse(&registered).unwrap().option(OptionNumber::OBSERVE).is_some());
    assert_eq!(subject.observers(), 1);
    subject.changed();
    let notification = receive(&socket).await;
    let id = Message::parse(&notification).unwrap().message_id().0.to_be_bytes();
    socket.send(&[0x70, 0, id[0], id[1]]).await.unwrap();
    eventually(|| subject.observers() == 0).await;
}

#[tokio::test]
async fn non_confirmable_notifications_follow_each_other_without_waiting_for_a_reset() {
    let subject = Subject::non_confirmable();
    let resource = get(|_: &Call<'_>| Response::content("state")).observable(&subject);
    let mut config = ServerConfig::new();
    // A Reset would be waited for during eight of these, congestion control's pace is one.
    config = config.ack_timeout(Duration::from_millis(1000));
    let (_server, socket) = serve(config, Router::new().route("/s", resource)).await;
    send(&socket, Type::Confirmable, 1, &[(6, &[]), (11, b"s")]).await;
    receive(&socket).await;
    let mut notified = 0;
    let begin = async {
        while notified < 3 {
            subject.changed();
            if let Some(notification) = within(SHORT, &socket).await {
                assert_eq!(Message::parse(&notification).unwrap().kind(), Type::NonConfirmable);
                notified += 1;
            }
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(8), begin).await;
    assert!(done.is_ok(), "{notified} notifications within the wait for one Reset");
}

#[tokio::test]
async fn a_notification_of_an_error_has_no_observe_option_and_is_the_last_one() {
    let subject = Subject::new();
    let gone = Arc::new(AtomicBool::new(false));
    let is_gone = gone.clone();
    let state = move |_: &Call<'_>| match is_gone.load(Ordering::SeqCst) {
        true => Response::new(Code::NOT_FOUND),
        false => Response::content("state"),
    };
    let router = Router::new().route("/s", get(state).observable(&subject));
    let (_server, socket) = serve(ServerConfig::new(), router).await;
    send(&socket, Type::Confirmable, 1, &[(6, &[]), (11, b"s")]).await;
    receive(&socket).await;
    gone.store(true, Ordering::SeqCst);
    subject.changed();
    let notification = receive(&socket).await;
    let message = Message::parse(&notification).unwrap();
    assert_eq!((message.code(), message.token_bytes()), (Code::NOT_FOUND, &[0, 1][..]));
    assert!(message.option(OptionNumber::OBSERVE).is_none(), "RFC 7641 section 4.2");
    assert_eq!(subject.observers(), 0);
}

#[tokio::test]
async fn a_method_that_a_resource_does_not_have_is_answered_4_05() {
    let (_server, socket) = serve(ServerConfig::new(), long()).await;
    // DELETE, and a method that nobody has registered.
    for (id, code) in [(1, Code::DELETE), (3, Code(0x1f))] {
        for (id, kind, expected) in [
            (id, Type::Confirmable, Type::Acknowledgement),
            (id + 1, Type::NonConfirmable, Type::NonConfirmable),
        ] {
            ask(&socket, (kind, code), id, &[(11, b"x")]).await;
            let answer = receive(&socket).await;
            let message = Message::parse(&answer).unwrap();
            assert_eq!((message.kind(), message.code()), (expected, Code::METHOD_NOT_ALLOWED));
            assert_eq!(message.token_bytes(), id.to_be_bytes());
        }
    }
}

#[tokio::test]
async fn a_dropped_observation_is_ended_by_the_reset_of_the_next_notification() {
    let subject = Subject::new();
    let resource = get(|_: &Call<'_>| Response::content("state")).observable(&subject);
    let (server, _) = serve(ServerConfig::new(), Router::new().route("/s", resource)).await;
    let client = Client::new();
    let uri = format!("coap://{}/s", server.local_addrs()[0]);
    let mut observation = client.observe(uri).await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), "state");
    drop(observation);
    assert_eq!(client.snapshot().open_exchanges(), 0);
    subject.changed();
    eventually(|| subject.observers() == 0).await;
}

#[tokio::test]
async fn a_challenge_in_the_place_of_a_notification_is_not_confirmable() {
    let subject = Subject::new();
    let is_long = Arc::new(AtomicBool::new(false));
    let grows = is_long.clone();
    let state = move |_: &Call<'_>| {
        Response::content(vec![b'x'; if grows.load(Ordering::SeqCst) { 800 } else { 1 }])
    };
    let router = Router::new().route("/s", get(state).observable(&subject));
    let (_server, socket) = serve(ServerConfig::new().verify(Verify::All), router).await;
    // Long enough that its address may get a notification.
    let padding = (65000, [0; 60].as_slice());
    send(&socket, Type::Confirmable, 1, &[(6, &[]), (11, b"s"), padding]).await;
    let first = receive(&socket).await;
    assert!(Message::parse(&first).unwrap().option(OptionNumber::OBSERVE).is_some());
    is_long.store(true, Ordering::SeqCst);
    subject.changed();
    let challenge = receive(&socket).await;
    let message = Message::parse(&challenge).unwrap();
    assert!(message.option(OptionNumber::ECHO).is_some());
    // RFC 9175 section 2.4: otherwise it would be repeated to an address that may be forged.
    assert_eq!((message.kind(), message.code()), (Type::NonConfirmable, Code::UNAUTHORIZED));
    assert_eq!((message.token_bytes(), subject.observers()), (&[0, 1][..], 0));
}

#[tokio::test]
async fn a_handler_knows_notifications_and_an_observer_that_has_acknowledged_one() {
    let subject = Subject::new();
    let state = |call: &Call<'_>| {
        Response::content(format!("{} {}", call.is_notification(), call.is_verified()))
    };
    let router = Router::new().route("/s", get(state).observable(&subject));
    let (_server, socket) = serve(ServerConfig::new().verify(Verify::All), router).await;
    let padding = (65000, [0; 60].as_slice());
    send(&socket, Type::Confirmable, 1, &[(6, &[]), (11, b"s"), padding]).await;
    let mut heard: Vec<String> = Vec::new();
    while heard.len() < 3 {
        let datagram = receive(&socket).await;
        let message = Message::parse(&datagram).unwrap();
        if message.kind() == Type::Confirmable {
            let [high, low] = message.message_id().0.to_be_bytes();
            socket.send(&[0x60, 0, high, low]).await.unwrap();
        }
        heard.push(String::from_utf8(message.payload().to_vec()).unwrap());
        // A notification may come twice.
        heard.dedup();
        subject.changed();
    }
    assert_eq!(heard, ["false false", "true false", "true true"]);
}
