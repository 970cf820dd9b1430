//! What a route does not take is refused at once, and what it does not know is not ignored.

use ebbtide::server::{Call, Router, Server, Subject, get, put};
use ebbtide::{Client, Code, Response};
use ebbtide_core::wire::{Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use std::time::Duration;
use tokio::net::UdpSocket;

const IF_NONE_MATCH: u16 = 5;
const BLOCK1: u16 = 27;
const PROXY_URI: u16 = 35;
const PROXY_SCHEME: u16 = 39;
const SIZE1: u16 = 60;

fn changed(call: &Call<'_>) -> Response {
    Response::new(Code::CHANGED).payload(call.payload().len().to_string())
}

/// A resource that exists.
fn absent(call: &Call<'_>) -> Response {
    if call.if_none_match() { Response::new(Code::PRECONDITION_FAILED) } else { changed(call) }
}

fn router(subject: &Subject) -> Router {
    Router::new()
        .route("/plain", put(changed).get(|_: &Call<'_>| Response::content("plain")))
        .route("/conditional", put(changed).conditional())
        .route("/absent", put(absent).conditional())
        .route("/small", put(changed).delete(changed).max_body(100))
        .route(
            "/private",
            put(changed).authorize(|call| match call.query().any(|argument| argument == "key=1") {
                true => Ok(()),
                false => Err(Response::new(Code::FORBIDDEN)),
            }),
        )
        .route("/observed", get(|_: &Call<'_>| Response::content("state")).observable(subject))
        .route("/a b/\"q\"", get(changed).attribute("title", "say \"hi\" \\").attribute("sz", "5"))
        .route("/rooms/{room}", get(changed))
        .route(
            "/files/{dir}/{*path}",
            get(|call: &Call<'_>| {
                let (dir, path) = (call.param("dir").unwrap(), call.param("path").unwrap());
                Response::content(format!("{dir}|{path}"))
            }),
        )
        .route(
            "/{*any}",
            get(|call: &Call<'_>| Response::content(call.param("any").unwrap().to_owned())),
        )
}

struct Scene {
    server: Server,
    socket: UdpSocket,
    id: u16,
}

async fn scene() -> Scene {
    let server = Server::bind(router(&Subject::new()), ["127.0.0.1:0"]).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    Scene { server, socket, id: 0 }
}

/// An answer: its code, its options and its payload.
type Answer = (Code, Vec<(u16, Vec<u8>)>, Vec<u8>);

impl Scene {
    async fn ask(&mut self, code: Code, options: &[(u16, &[u8])], payload: &[u8]) -> Answer {
        self.id += 1;
        let options: Vec<_> = options
            .iter()
            .map(|&(number, value)| Opt { number: OptionNumber(number), value })
            .collect();
        let content = Content { code, options: &options, payload };
        let mut buffer = [0; 2048];
        let (id, token) = (MessageId(self.id), Token::EMPTY);
        let encoded = content.encode(&mut buffer, Type::Confirmable, id, token).unwrap();
        self.socket.send(&buffer[..encoded.len]).await.unwrap();
        let length = tokio::time::timeout(Duration::from_secs(10), self.socket.recv(&mut buffer));
        let length = length.await.expect("an answer").unwrap();
        let message = Message::parse(&buffer[..length]).unwrap();
        assert_eq!(message.message_id(), id);
        let options = message.options().map(|opt| (opt.number.0, opt.value.to_vec())).collect();
        (message.code(), options, message.payload().to_vec())
    }

    async fn links(&mut self, query: &str) -> String {
        let options = [(11, b".well-known".as_slice()), (11, b"core"), (15, query.as_bytes())];
        let (code, options, payload) = self.ask(Code::GET, &options, b"").await;
        assert_eq!((code, options), (Code::CONTENT, vec![(12, vec![40])]));
        String::from_utf8(payload).unwrap()
    }
}

#[tokio::test]
async fn a_request_for_a_proxy_is_answered_that_there_is_none() {
    let mut scene = scene().await;
    for options in [
        vec![(PROXY_URI, b"coap://example.com/plain".as_slice())],
        vec![(11, b"plain"), (PROXY_URI, b"coap://example.com/plain")],
        vec![(11, b"plain"), (PROXY_SCHEME, b"coap")],
    ] {
        let (code, _, payload) = scene.ask(Code::GET, &options, b"").await;
        assert_eq!((code, payload), (Code::PROXYING_NOT_SUPPORTED, vec![]), "{options:?}");
    }
}

#[tokio::test]
async fn the_payload_of_a_get_or_delete_is_ignored() {
    let mut scene = scene().await;
    let (code, _, payload) = scene.ask(Code::GET, &[(11, b"rooms"), (11, b"1")], b"body").await;
    assert_eq!((code, payload), (Code::CHANGED, b"0".to_vec()), "RFC 7252 section 5.5");
    let small = [(11, b"small".as_slice())];
    // Longer than a body of this route may be.
    let (code, _, payload) = scene.ask(Code::DELETE, &small, &[7; 200]).await;
    assert_eq!((code, payload), (Code::CHANGED, b"0".to_vec()));
    let (code, ..) = scene.ask(Code::PUT, &small, &[7; 200]).await;
    assert_eq!(code, Code::REQUEST_ENTITY_TOO_LARGE);
}

#[tokio::test]
async fn a_condition_is_refused_by_a_route_that_does_not_know_it() {
    let mut scene = scene().await;
    let none_match = (IF_NONE_MATCH, b"".as_slice());
    let (code, ..) = scene.ask(Code::PUT, &[none_match, (11, b"plain")], b"x").await;
    assert_eq!(code, Code::BAD_OPTION);
    let (code, ..) = scene.ask(Code::PUT, &[(1, b"tag"), (11, b"plain")], b"x").await;
    assert_eq!(code, Code::BAD_OPTION);
    let (code, ..) = scene.ask(Code::PUT, &[none_match, (11, b"conditional")], b"x").await;
    assert_eq!(code, Code::CHANGED);
}

#[tokio::test]
async fn if_none_match_of_the_first_block_holds_for_the_whole_body() {
    let mut scene = scene().await;
    let none_match = (IF_NONE_MATCH, b"".as_slice());
    let path = (11, b"absent".as_slice());
    let (first, last) = ((BLOCK1, [0x0a].as_slice()), (BLOCK1, [0x12].as_slice()));
    for (condition, expected) in [
        (true, Code::PRECONDITION_FAILED),
        (false, Code::CHANGED),
        (true, Code::PRECONDITION_FAILED),
    ] {
        let mut options = vec![path, first];
        options.extend(condition.then_some(none_match));
        options.sort_unstable();
        let (code, ..) = scene.ask(Code::PUT, &options, &[7; 64]).await;
        assert_eq!(code, Code::CONTINUE);
        // RFC 7959 section 2.10: other blocks must not have the option.
        let (code, ..) = scene.ask(Code::PUT, &[path, last], &[8; 10]).await;
        assert_eq!(code, expected, "{condition}");
    }
}

#[tokio::test]
async fn an_upload_that_nobody_wants_ends_with_its_first_block() {
    let mut scene = scene().await;
    let first = (BLOCK1, [0x0a].as_slice());
    let size = (SIZE1, [101].as_slice());
    for (path, extra, expected) in [
        (b"observed".as_slice(), None, Code::METHOD_NOT_ALLOWED),
        (b"private", None, Code::FORBIDDEN),
        (b"small", Some(size), Code::REQUEST_ENTITY_TOO_LARGE),
        (b"private", Some((15, b"key=1".as_slice())), Code::CONTINUE),
        (b"plain", None, Code::CONTINUE),
    ] {
        let mut options = vec![(11, path), first];
        options.extend(extra);
        let (code, options, _) = scene.ask(Code::PUT, &options, &[0; 64]).await;
        assert_eq!(code, expected, "{path:?}");
        assert!(options.contains(&(BLOCK1, vec![0x0a])), "{options:?}");
        if code == Code::REQUEST_ENTITY_TOO_LARGE {
            assert!(options.contains(&(SIZE1, vec![100])), "{options:?}");
        }
    }
    assert_eq!(scene.server.snapshot().load.uploads, 2, "only those that may go on");
}

#[tokio::test]
async fn a_last_parameter_stands_for_all_segments_that_are_left() {
    let scene = scene().await;
    let client = Client::new();
    let address = scene.server.local_addrs()[0];
    for (path, expected) in
        [("/files/x/a/b/c", "x|a/b/c"), ("/files/x/a", "x|a"), ("/files/x", "x|"), ("/q/r", "q/r")]
    {
        let answer = client.get(format!("coap://{address}{path}")).await.unwrap();
        assert_eq!(answer.text(), expected, "{path}");
    }
}

#[tokio::test]
async fn the_list_of_resources_is_valid_link_format_though_a_route_takes_every_path() {
    let mut scene = scene().await;
    let all = scene.links("").await;
    assert_eq!(
        all,
        "</plain>,</conditional>,</absent>,</small>,</private>,</observed>;obs,\
         </a%20b/%22q%22>;title=\"say \\\"hi\\\" \\\\\";sz=5"
    );
    assert_eq!(scene.links("obs").await, "</observed>;obs");
    assert_eq!(scene.links("title").await, "</a%20b/%22q%22>;title=\"say \\\"hi\\\" \\\\\";sz=5");
    assert_eq!(scene.links("href=/pl*").await, "</plain>");
    let options = [(11, b".well-known".as_slice()), (11, b"core"), (17, &[60])];
    assert_eq!(scene.ask(Code::GET, &options, b"").await.0, Code::NOT_ACCEPTABLE);
}
