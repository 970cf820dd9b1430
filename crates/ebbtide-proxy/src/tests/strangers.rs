//! Strangers at a gateway, a directory and a broker leave room to others.

use super::rfc_examples::message;
use super::{config, patient, serve};
use crate::ask::{Ask, BodyForm, StoredUse};
use crate::cell::Applicant;
use crate::forward::URGENCY;
use crate::options::Forwarded;
use crate::system;
use crate::target::Target;
use crate::{Broker, BrokerConfig, Directory, DirectoryConfig, Gateway};
use ebbtide::server::{Call, Router, Verify, get, put};
use ebbtide::{Client, ClientConfig, Code, ContentFormat, OptionNumber, Request, Response};
use ebbtide::{Server, ServerConfig};
use ebbtide_core::wire::Message;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

const PATH: OptionNumber = OptionNumber::URI_PATH;

/// Serves a router that trusts no address before it has echoed, as one on the Internet.
fn wary(router: Router) -> SocketAddr {
    let config = ServerConfig::new().verify(Verify::All);
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    tokio::spawn(server.run());
    address
}

/// Devices that answer nothing.
fn silent(count: u8) -> Vec<UdpSocket> {
    (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect()
}

/// Sends a request from an address that ignores challenges. Returns its answer when that comes.
async fn from_forged_address(
    host: usize,
    to: SocketAddr,
    request: &[u8],
) -> impl Future<Output = Vec<u8>> {
    let socket = tokio::net::UdpSocket::bind(format!("127.0.1.{}:0", host + 1)).await.unwrap();
    socket.send_to(request, to).await.unwrap();
    async move {
        let mut buffer = [0; 1280];
        loop {
            let length = socket.recv(&mut buffer).await.unwrap();
            // An acknowledgement may come before.
            if code(&buffer[..length]) != Code::EMPTY {
                return buffer[..length].to_vec();
            }
        }
    }
}

fn code(answer: &[u8]) -> Code {
    Message::parse(answer).unwrap().code()
}

/// Sends each request from an address of its own. Returns the codes of the first answers.
async fn from_forged_addresses(
    to: SocketAddr,
    requests: Vec<Vec<u8>>,
    answers: usize,
) -> Vec<Code> {
    let heard = FuturesUnordered::new();
    for (host, request) in requests.iter().enumerate() {
        heard.push(from_forged_address(host, to, request).await);
    }
    heard.take(answers).map(|answer| code(&answer)).collect().await
}

/// A client that echoes.
fn honest() -> Client {
    let local = "127.0.0.9:0".parse().unwrap();
    Client::with_config(ClientConfig::new().local_address(local))
}

#[tokio::test]
async fn a_request_that_its_server_refuses_takes_no_place_in_a_cell() {
    let gateway = Gateway::new(config());
    let limited = ServerConfig::new().limits(|limits| limits.working(4));
    let server = Server::with_config(gateway.router(), limited, ["127.0.0.1:0"]).unwrap();
    let proxy = server.local_addrs()[0];
    tokio::spawn(server.run());
    let devices = silent(10);
    let clients: Vec<_> = devices.iter().map(|_| Client::with_config(patient())).collect();
    let ask = |n: usize| {
        let request = Request::put(format!("coap://{proxy}/")).unwrap();
        let uri = format!("coap://{}/x", devices[n].local_addr().unwrap());
        clients[n].request(request.option(OptionNumber::PROXY_URI, uri.as_bytes()))
    };
    let in_flight = || gateway.cells().iter().map(|cell| cell.in_flight).sum::<usize>();
    // Half of the handlers at work may be this address's.
    let waiting = futures_util::future::join_all([ask(0), ask(1)]);
    let refused = async {
        while in_flight() < 2 {
            tokio::task::yield_now().await;
        }
        for n in 2..10 {
            assert_eq!(ask(n).await.unwrap().code(), Code::SERVICE_UNAVAILABLE);
            assert_eq!(in_flight(), 2);
        }
    };
    let test = async {
        tokio::select! {
            answers = waiting => panic!("{answers:?}"),
            () = refused => {}
        }
    };
    tokio::time::timeout(Duration::from_secs(60), test).await.unwrap();
}

#[tokio::test]
async fn the_bodies_that_one_address_lets_wait_leave_room_for_others() {
    let gateway = Gateway::new(config());
    let of = |host: u8| IpAddr::from([192, 0, 2, host]);
    let held: Vec<_> = std::iter::from_fn(|| gateway.admit_body(of(1), 1 << 20).ok()).collect();
    assert_eq!(held.len(), 32, "of 64 MiB");
    let other = gateway.admit_body(of(2), 1 << 20).unwrap();
    drop((held, other));
    assert!(gateway.admit_body(of(1), 32 << 20).is_ok());
}

#[tokio::test]
async fn the_longest_body_finds_room_beside_another_one() {
    let gateway = Gateway::new(config().max_body(80 << 20));
    let [first, second] = [1, 2].map(|host| IpAddr::from([192, 0, 2, host]));
    let held = gateway.admit_body(first, 80 << 20);
    assert!(held.is_ok() && gateway.admit_body(second, 80 << 20).is_ok());
}

/// As HTTP clients, or one host that has echoed.
#[tokio::test]
async fn open_requests_of_others_take_nothing_from_clients_that_cannot_echo() {
    let gateway = Gateway::new(config().max_requests(64));
    let others = || gateway.inner.open.admit(IpAddr::from([192, 0, 2, 1]));
    let held: Vec<_> = std::iter::from_fn(others).collect();
    assert!(held.len() >= 32);
    let changed = put(|_: &Call<'_>| Response::new(Code::CHANGED));
    let device = serve(Router::new().route("/x", changed));
    let proxy = wary(gateway.router());
    let uri = format!("coap://{device}/x");
    let request = message(Code::PUT, &[(OptionNumber::PROXY_URI, uri.as_bytes())], b"");
    for host in 0..5 {
        let answer = from_forged_address(host, proxy, &request).await.await;
        assert_eq!(code(&answer), Code::CHANGED);
    }
}

#[tokio::test]
async fn observed_requests_with_long_bodies_take_the_places_of_many() {
    let gateway = Gateway::new(config());
    let uri = format!("coap://{}/x", silent(1)[0].local_addr().unwrap());
    let fetch = message(Code::FETCH, &[(OptionNumber::PROXY_URI, uri.as_bytes())], b"");
    let fetch = Message::parse(&fetch).unwrap();
    let ask = |host: u8, body: u8| Ask {
        applicant: Applicant { client: [192, 0, 2, host].into(), urgency: URGENCY },
        target: Target::of_message(&fetch).unwrap(),
        code: Code::FETCH,
        forwarded: Forwarded::of_request(&fetch, "gateway").unwrap(),
        payload: vec![body; 1 << 20].into(),
        deadline: system::now() + Duration::from_secs(60),
        freshness: StoredUse::Stored,
        body: BodyForm::Held,
        arriving: None,
    };
    // Each takes three of 16 MiB.
    assert_eq!((0..20).filter(|body| gateway.follow(ask(1, *body)).is_ok()).count(), 3);
    assert!(gateway.follow(ask(2, 20)).is_ok());
}

#[tokio::test]
async fn forged_addresses_have_the_share_of_one_client_at_a_gateway() {
    let gateway = Gateway::new(config().max_requests(256));
    let proxy = wary(gateway.router());
    let devices = silent(60);
    let forward = |uri: &str| message(Code::PUT, &[(OptionNumber::PROXY_URI, uri.as_bytes())], b"");
    let forged =
        devices.iter().map(|at| forward(&format!("coap://{}/x", at.local_addr().unwrap())));
    // 16 are forwarded, and not answered, and one more in each second.
    let codes = from_forged_addresses(proxy, forged.collect(), 20).await;
    assert!(codes.iter().all(|code| *code == Code::UNAUTHORIZED), "{codes:?}");
    let read = get(|| Response::content("x").max_age(60));
    let changed = read.put(|_: &Call<'_>| Response::new(Code::CHANGED));
    let uri = format!("coap://{}/x", serve(Router::new().route("/x", changed)));
    let request = Request::get(format!("coap://{proxy}/")).unwrap();
    let request = request.option(OptionNumber::PROXY_URI, uri.as_bytes());
    assert_eq!(honest().request(request).await.unwrap().code(), Code::CONTENT);
    // What is stored costs nothing.
    let stored = message(Code::GET, &[(OptionNumber::PROXY_URI, uri.as_bytes())], b"");
    for host in 0..5 {
        let answer = from_forged_address(host, proxy, &stored).await.await;
        assert_eq!(code(&answer), Code::CONTENT);
    }
    let request = Request::put(format!("coap://{proxy}/")).unwrap();
    let request = request.option(OptionNumber::PROXY_URI, uri.as_bytes());
    assert_eq!(honest().request(request).await.unwrap().code(), Code::CHANGED);
}

/// The properties of a topic.
fn topic(name: char) -> Vec<u8> {
    [&b"\xa2\x00\x61"[..], &[name as u8], b"\x02\x6ccore.ps.data"].concat()
}

/// Where a directory and a broker are that have 16 KiB each.
fn small_tables() -> [SocketAddr; 2] {
    let room = 16 << 10;
    let directory = Directory::open(DirectoryConfig::new().max_bytes(room)).unwrap();
    let broker = Broker::open(BrokerConfig::new().max_bytes(room)).unwrap();
    [directory.router(), broker.router()].map(wary)
}

/// The registration of an endpoint.
fn register(n: usize) -> Vec<u8> {
    let name = format!("ep=n{n}");
    message(Code::POST, &[(PATH, b"rd"), (OptionNumber::URI_QUERY, name.as_bytes())], b"")
}

/// The creation of a topic.
fn create(n: usize) -> Vec<u8> {
    message(Code::POST, &[(PATH, b"ps")], &topic((b'a' + n as u8) as char))
}

#[tokio::test]
async fn forged_addresses_leave_half_of_a_directory_and_of_a_broker_to_others() {
    let [at_directory, at_broker] = small_tables();
    for (at, requests) in [
        (at_directory, (0..20).map(register).collect::<Vec<_>>()),
        (at_broker, (0..20).map(create).collect()),
    ] {
        let codes = from_forged_addresses(at, requests, 20).await;
        let created = codes.iter().filter(|code| **code == Code::CREATED).count();
        assert!((8..=9).contains(&created), "{codes:?}");
    }
    let links = Request::post(format!("coap://{at_directory}/rd?ep=honest")).unwrap();
    let links = links.format(ContentFormat::LINK_FORMAT).payload("</a>");
    let properties = Request::post(format!("coap://{at_broker}/ps")).unwrap().payload(topic('Z'));
    for request in [links, properties] {
        assert_eq!(honest().request(request).await.unwrap().code(), Code::CREATED);
    }
}

#[tokio::test]
async fn clients_that_cannot_echo_refresh_and_remove_what_they_have_in_a_share_that_is_used_up() {
    let [at_directory, at_broker] = small_tables();
    let ask = async |to, request: Vec<u8>| from_forged_address(0, to, &request).await.await;
    let number = |created: &[u8]| {
        assert_eq!(code(created), Code::CREATED);
        let created = Message::parse(created).unwrap();
        let path = created.options().filter(|opt| opt.number == OptionNumber::LOCATION_PATH);
        path.last().unwrap().value.to_vec()
    };
    let registered = number(&ask(at_directory, register(0)).await);
    let of_topic = number(&ask(at_broker, create(0)).await);
    let data: [(OptionNumber, &[u8]); 3] = [(PATH, b"ps"), (PATH, b"data"), (PATH, &of_topic)];
    let publish = || message(Code::PUT, &data, b"1");
    assert_eq!(code(&ask(at_broker, publish()).await), Code::CREATED);
    for (at, requests) in [
        (at_directory, (1..20).map(register).collect::<Vec<_>>()),
        (at_broker, (1..20).map(create).collect()),
    ] {
        let codes = from_forged_addresses(at, requests, 19).await;
        assert!(codes.contains(&Code::UNAUTHORIZED), "{codes:?}");
    }
    let at_registration = |code| message(code, &[(PATH, b"rd"), (PATH, &registered)], b"");
    let at_topic = |code| message(code, &[(PATH, b"ps"), (PATH, &of_topic)], b"");
    for (at, request, expected) in [
        (at_directory, register(0), Code::CREATED),
        (at_directory, at_registration(Code::POST), Code::CHANGED),
        (at_directory, at_registration(Code::DELETE), Code::DELETED),
        (
            at_broker,
            message(Code::GET, &[(PATH, b"ps"), (OptionNumber::URI_QUERY, b"rt=none")], b""),
            Code::CONTENT,
        ),
        (at_broker, at_topic(Code::GET), Code::CONTENT),
        (at_broker, publish(), Code::CHANGED),
        (at_broker, at_topic(Code::DELETE), Code::DELETED),
    ] {
        assert_eq!(code(&ask(at, request).await), expected);
    }
}

/// A share that look-ups of forged addresses use up is not that of a client which echoes.
#[tokio::test]
async fn forged_look_ups_leave_look_ups_to_others() {
    let directory = Directory::open(DirectoryConfig::new()).unwrap();
    let at = wary(directory.router());
    let (device, trusting) = (Client::new(), serve(directory.router()));
    for n in 0..300 {
        let request = Request::post(format!("coap://{trusting}/rd?ep=n{n}")).unwrap();
        assert_eq!(device.request(request).await.unwrap().code(), Code::CREATED);
    }
    let query = OptionNumber::URI_QUERY;
    let path: [(OptionNumber, &[u8]); 2] = [(PATH, b"rd-lookup"), (PATH, b"ep")];
    // With so many criteria each takes almost two seconds of what a client may cause.
    let criteria = [[(query, &b"ep"[..])].repeat(100), vec![(query, &b"count=0"[..])]].concat();
    let all = message(Code::GET, &[&path[..], &criteria].concat(), b"");
    let codes = from_forged_addresses(at, vec![all; 10], 10).await;
    assert!(codes.contains(&Code::CONTENT) && codes.contains(&Code::UNAUTHORIZED), "{codes:?}");
    let uri = format!("coap://{at}/rd-lookup/ep?count=0{}", "&ep".repeat(100));
    assert_eq!(honest().get(uri).await.unwrap().code(), Code::CONTENT);
    // What costs little is answered to all.
    let one = message(Code::GET, &[path[0], path[1], (query, b"ep=none")], b"");
    assert_eq!(code(&from_forged_address(0, at, &one).await.await), Code::CONTENT);
}

/// Ten times as many topics and bytes as there are, of one address.
#[tokio::test]
async fn one_address_that_fills_a_broker_leaves_it_to_publishers_and_subscribers() {
    let room = 64 << 10;
    let broker = Broker::open(BrokerConfig::new().max_bytes(room)).unwrap();
    let at = serve(broker.router());
    let create = |client: Client, name: String, data: Vec<u8>| async move {
        let mut topic = vec![0xa4, 0x00, 0x60 + name.len() as u8];
        topic.extend(name.as_bytes());
        topic.extend(b"\x02\x6ccore.ps.data\x03\x18\x2a\x08\x59");
        topic.extend((data.len() as u16).to_be_bytes());
        topic.extend(data);
        let request = Request::post(format!("coap://{at}/ps")).unwrap().payload(topic);
        client.request(request).await.unwrap()
    };
    let greedy = Client::new();
    let mut kept = 0;
    for n in 0..640 {
        let length = if n % 8 == 0 { 10_240 } else { 1 };
        let answer = create(greedy.clone(), format!("t{n}"), vec![b'x'; length]).await;
        kept += usize::from(answer.code() == Code::CREATED);
    }
    assert!((8..=16).contains(&kept), "{kept}: each takes two places, some twelve");
    let made = create(honest(), "mine".to_owned(), vec![b'0']).await;
    assert_eq!(made.code(), Code::CREATED);
    let path = made.options().iter().filter(|opt| opt.number == OptionNumber::LOCATION_PATH);
    let number = String::from_utf8(path.last().unwrap().value.to_vec()).unwrap();
    let data = format!("coap://{at}/ps/data/{number}");
    let mut heard = honest().observe(&*data).await.unwrap();
    assert_eq!(heard.next().await.unwrap().unwrap().text(), "0");
    let publisher = honest();
    for n in 1..=10_u8 {
        let refused = create(greedy.clone(), format!("more{n}"), vec![b'x'; 10_000]).await;
        assert_eq!(refused.code(), Code::SERVICE_UNAVAILABLE);
        let request = Request::put(&*data).unwrap().format(ContentFormat(42)).payload(vec![n]);
        assert_eq!(publisher.request(request).await.unwrap().code(), Code::CHANGED);
        // A state may come twice.
        while heard.next().await.unwrap().unwrap().body()[..] != [n] {}
    }
}
