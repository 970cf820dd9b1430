//! What a server does with requests to a group (RFC 7252 section 8), on the loopback interface.

use ebbtide::server::{Call, Router, Server, get, interface_index};
use ebbtide::{Response, ServerConfig};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 86, 83);

/// A member, and a socket that sends to the group by the loopback interface.
async fn member(leisure: Duration) -> (Server, UdpSocket) {
    let config = ServerConfig::new().transport(|transport| transport.default_leisure(leisure));
    let router = Router::new()
        .route("/now", get(|_: &Call<'_>| Response::content("now")))
        .route("/empty", get(|_: &Call<'_>| Response::new(Code::CONTENT)))
        .route("/ready", get(|| async { Response::content("ready") }))
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Response::content("slow")
            }),
        );
    let server = Server::with_config(router, config, ["0.0.0.0:0"]).unwrap();
    server.join(GROUP.into(), interface_index("lo").unwrap()).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket2::SockRef::from(&socket).set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    (server, socket)
}

async fn ask(server: &Server, socket: &UdpSocket, kind: Type, id: u16, path: &str) {
    let options = [Opt { number: OptionNumber::URI_PATH, value: path.as_bytes() }];
    let content = Content { code: Code::GET, options: &options, payload: &[] };
    let mut buf = [0; 64];
    let token = Token::new(&id.to_be_bytes()).unwrap();
    let encoded = content.encode(&mut buf, kind, MessageId(id), token).unwrap();
    let group = SocketAddr::from((GROUP, server.local_addrs()[0].port()));
    socket.send_to(&buf[..encoded.len], group).await.unwrap();
}

/// The payload of the next message, and who sent it.
async fn receive(socket: &UdpSocket) -> Option<(String, IpAddr)> {
    let mut buf = [0; 2048];
    let got = tokio::time::timeout(Duration::from_secs(1), socket.recv_from(&mut buf)).await;
    let (len, from) = got.ok()?.unwrap();
    let message = Message::parse(&buf[..len]).unwrap();
    assert_eq!(message.kind(), Type::NonConfirmable);
    Some((String::from_utf8_lossy(message.payload()).into_owned(), from.ip()))
}

#[tokio::test]
async fn a_member_answers_from_its_own_address_whichever_handler_it_is() {
    let (server, socket) = member(Duration::from_millis(10)).await;
    for (id, path) in ["now", "ready", "slow"].into_iter().enumerate() {
        ask(&server, &socket, Type::NonConfirmable, id as u16, path).await;
        let (payload, from) = receive(&socket).await.unwrap();
        assert_eq!((payload.as_str(), from.is_multicast()), (path, false));
    }
}

#[tokio::test]
async fn a_member_keeps_silent_about_errors_and_nothing_and_to_confirmable_requests() {
    let (server, socket) = member(Duration::from_millis(10)).await;
    ask(&server, &socket, Type::NonConfirmable, 1, "missing").await;
    ask(&server, &socket, Type::NonConfirmable, 2, "empty").await;
    ask(&server, &socket, Type::Confirmable, 3, "now").await;
    assert_eq!(receive(&socket).await, None);
}

#[tokio::test]
async fn a_member_rejects_nothing_that_came_to_the_group() {
    let (server, socket) = member(Duration::from_millis(10)).await;
    let port = server.local_addrs()[0].port();
    // A format error, a ping, and an unknown critical option, 65001, all Confirmable.
    let wrong: [&[u8]; 3] =
        [&[0x49, 1, 0, 1], &[0x40, 0, 0, 2], &[0x40, 1, 0, 3, 0xe0, 0xfc, 0xdc]];
    for bytes in wrong {
        socket.send_to(bytes, (GROUP, port)).await.unwrap();
    }
    assert_eq!(receive(&socket).await, None, "a thousand members would answer at once");
    // The same to this member alone is rejected.
    let mut buf = [0; 64];
    for bytes in wrong {
        socket.send_to(bytes, ("127.0.0.1", port)).await.unwrap();
        let got = tokio::time::timeout(Duration::from_secs(5), socket.recv_from(&mut buf)).await;
        let (len, _) = got.unwrap().unwrap();
        let message = Message::parse(&buf[..len]).unwrap();
        assert!(matches!(message.kind(), Type::Reset | Type::Acknowledgement), "{message:?}");
    }
}

#[tokio::test]
async fn answers_to_a_group_are_spread_over_the_leisure() {
    let leisure = Duration::from_secs(300);
    let (server, socket) = member(leisure).await;
    for id in 0..20 {
        ask(&server, &socket, Type::NonConfirmable, id, "ready").await;
    }
    // Each comes within the first second with a probability of 1 in 300.
    let mut soon = 0;
    while receive(&socket).await.is_some() {
        soon += 1;
    }
    assert!(soon < 10, "{soon} of 20 came at once");
}

#[tokio::test]
async fn joining_says_what_is_wrong() {
    let unknown = interface_index("no-such-one").unwrap_err().to_string();
    assert!(unknown.contains("no interface 'no-such-one'"), "{unknown}");
    let server = Server::bind(Router::new(), ["127.0.0.1:0"]).unwrap();
    let bound = server.join(GROUP.into(), 0).unwrap_err().to_string();
    assert!(bound.contains("no socket is bound to all addresses"), "{bound}");
    let server = Server::bind(Router::new(), ["0.0.0.0:0"]).unwrap();
    let unicast = server.join(Ipv4Addr::LOCALHOST.into(), 0).unwrap_err().to_string();
    assert!(unicast.contains("group 127.0.0.1 cannot be joined"), "{unicast}");
}
