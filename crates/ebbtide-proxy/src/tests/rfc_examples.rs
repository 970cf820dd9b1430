//! The examples of RFC 7252, RFC 8075 and RFC 9176 that concern a gateway or a directory, as the RFCs print them. Only
//! names and addresses that an example leaves to the reader are those of the test.

use super::http::{exchange, gateway, request, status};
use super::{Through, config, serve};
use crate::target::Target;
use crate::{Directory, DirectoryConfig, Gateway};
use ebbtide::server::{Call, Router, get};
use ebbtide::{Client, ClientConfig, Code, ContentFormat, OptionNumber, Response};
use ebbtide_core::wire::{Content, Message, MessageId, Opt, Token, Type};
use std::net::SocketAddr;
use tokio::net::UdpSocket;

/// Sends these bytes to a server, and returns the bytes of its answer.
pub(super) async fn answer(server: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(datagram, server).await.unwrap();
    let mut buf = [0; 2048];
    let length = socket.recv(&mut buf).await.unwrap();
    buf[..length].to_vec()
}

/// A Confirmable request with the message ID 0x7d34 and no token.
pub(super) fn message(code: Code, options: &[(OptionNumber, &[u8])], payload: &[u8]) -> Vec<u8> {
    let options: Vec<_> = options.iter().map(|&(number, value)| Opt { number, value }).collect();
    let mut buf = [0; 2048];
    let content = Content { code, options: &options, payload };
    let id = MessageId(0x7d34);
    let encoded = content.encode(&mut buf, Type::Confirmable, id, Token::EMPTY).unwrap();
    buf[..encoded.len].to_vec()
}

const PATH: OptionNumber = OptionNumber::URI_PATH;
const QUERY: OptionNumber = OptionNumber::URI_QUERY;
const LINKS: (OptionNumber, &[u8]) = (OptionNumber::CONTENT_FORMAT, &[40]);

/// RFC 7252, figure 16: `CON [0x7d34], GET, temperature`, with the answer `"22.3 C"`, through a proxy in both forms of
/// section 5.10.2.
#[tokio::test]
async fn the_first_example_of_rfc_7252_passes_a_proxy_without_a_change() {
    let server = serve(Router::new().route("/temperature", get(|_: &Call<'_>| "22.3 C")));
    let proxy = Through::gateway(config().cache_bytes(0)).proxy;
    // 0x44 0x01 0x7d34, and Uri-Path as 0xbb "temperature": here without the token.
    let direct = message(Code::GET, &[(PATH, b"temperature")], b"");
    assert_eq!(direct, b"\x40\x01\x7d\x34\xbbtemperature");
    let expected = b"\x60\x45\x7d\x34\xff22.3 C";
    let uri = format!("coap://{server}/temperature");
    let (host, port) = (server.ip().to_string(), server.port().to_be_bytes());
    let by_uri = message(Code::GET, &[(OptionNumber::PROXY_URI, uri.as_bytes())], b"");
    let by_scheme = message(
        Code::GET,
        &[
            (OptionNumber::URI_HOST, host.as_bytes()),
            (OptionNumber::URI_PORT, &port),
            (PATH, b"temperature"),
            (OptionNumber::PROXY_SCHEME, b"coap"),
        ],
        b"",
    );
    for (to, datagram) in [(server, direct), (proxy, by_uri), (proxy, by_scheme)] {
        let got = answer(to, &datagram).await;
        let (got, expected) = (Message::parse(&got).unwrap(), Message::parse(expected).unwrap());
        assert_eq!((got.code(), got.payload()), (expected.code(), expected.payload()));
        assert_eq!(got.message_id(), expected.message_id());
    }
}

/// RFC 7252, appendix B: options and the URIs that they compose.
#[test]
fn the_uris_of_rfc_7252_appendix_b_are_those_of_their_options() {
    let hello = "\u{3053}\u{3093}\u{306b}\u{3061}\u{306f}";
    for (host, port, path, query, uri) in [
        ("2001:db8::2:1", 5683, &[][..], &[][..], "coap://[2001:db8::2:1]:5683/"),
        ("example.net", 5683, &[], &[], "coap://example.net:5683/"),
        (
            "example.net",
            5683,
            &[".well-known", "core"],
            &[],
            "coap://example.net:5683/.well-known/core",
        ),
        (
            "xn--18j4d.example",
            5683,
            &[hello],
            &[],
            "coap://xn--18j4d.example:5683/%E3%81%93%E3%82%93%E3%81%AB%E3%81%A1%E3%81%AF",
        ),
        (
            "198.51.100.1",
            61616,
            &["", "/", "", ""],
            &["//", "?&"],
            "coap://198.51.100.1:61616//%2F//?%2F%2F&%3F%26",
        ),
    ] {
        let mut options: Vec<(OptionNumber, Vec<u8>)> =
            vec![(OptionNumber::URI_HOST, host.into()), (OptionNumber::URI_PORT, vec![])];
        options[1].1 = u16::to_be_bytes(port).to_vec();
        options.extend(path.iter().map(|segment| (PATH, segment.as_bytes().to_vec())));
        options.extend(query.iter().map(|argument| (QUERY, argument.as_bytes().to_vec())));
        options.push((OptionNumber::PROXY_SCHEME, b"coap".to_vec()));
        let options: Vec<_> = options.iter().map(|(number, value)| (*number, &**value)).collect();
        let datagram = message(Code::GET, &options, b"");
        let target = Target::of_message(&Message::parse(&datagram).unwrap()).unwrap();
        assert_eq!(target.uri(), uri);
        assert_eq!(Target::parse(uri).unwrap(), target);
    }
}

/// RFC 8075, sections 5.3 and 5.3.2: Hosting HTTP URIs; section 5.3.1: one without a scheme.
#[tokio::test]
async fn the_uris_of_rfc_8075_section_5_3_lead_to_their_targets() {
    let read = |call: &Call<'_>| format!("{} {:?}", call.path(), call.query().collect::<Vec<_>>());
    let server = ebbtide::Server::bind(Router::new().fallback(get(read)), ["[::1]:0"]).unwrap();
    let port = server.local_addrs()[0].port();
    tokio::spawn(server.run());
    let (_, http) = gateway(config().allow("::1".parse().unwrap())).await;
    // coap://[2001:db8::1]/light?on becomes https://p.example.com/hc/coap://%5B2001:db8::1%5D/light?on
    for authority in
        [format!("%5B::1%5D:{port}"), format!("%5b::1%5d:{port}"), format!("[::1]:{port}")]
    {
        let got = request(http, "GET", &format!("coap://{authority}/light?on"), "\r\n").await;
        assert!(got.ends_with("/light [\"on\"]"), "{authority}: {got}");
    }
    let got = request(http, "GET", "s.example.com/light", "\r\n").await;
    assert_eq!(status(&got), "400");
}

/// RFC 8075, section 5.5.1: the third and the fourth example.
#[tokio::test]
async fn the_gateway_is_discovered_as_in_rfc_8075_section_5_5_1() {
    let (_, http) = gateway(config()).await;
    let asked = "GET /.well-known/core?rt=core.hc HTTP/1.1\r\nHost: p.example.com\r\nConnection: close\r\n\r\n";
    let got = exchange(http, asked).await;
    assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
    assert!(got.contains("content-type: application/link-format\r\n"), "{got}");
    assert!(got.ends_with("\r\n\r\n</hc/>;rt=\"core.hc\""), "{got}");
    let got = exchange(http, &asked.replace("rt=core.hc", "rt=other")).await;
    assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\n"), "{got}");
}

/// RFC 8075, section 5.5.1: the first and the second example, for CoAP clients.
#[tokio::test]
async fn coap_clients_discover_the_gateway_as_in_rfc_8075_section_5_5_1() {
    let listed = |gateway: Gateway| async move {
        let router = gateway.router().merge(gateway.http_link("http://p.example.com"));
        let options = [(PATH, &b".well-known"[..]), (PATH, b"core"), (QUERY, b"rt=core.hc")];
        let got = answer(serve(router), &message(Code::GET, &options, b"")).await;
        let got = Message::parse(&got).unwrap();
        (got.code(), String::from_utf8(got.payload().to_vec()).unwrap())
    };
    let link = "</hc/>;anchor=\"http://p.example.com\";rt=\"core.hc\"";
    assert_eq!(listed(Gateway::new(config())).await, (Code::CONTENT, link.to_owned()));
    // The list of a server that has all paths is its own.
    let server = serve(Router::new().route("/own", get(|_: &Call<'_>| "x").attribute("rt", "own")));
    let all = config().backend("/", &format!("coap://{server}/").parse().unwrap());
    assert_eq!(listed(Gateway::new(all)).await, (Code::CONTENT, String::new()));
}

/// RFC 8075, section 6.2: a Content-Format without a media type, in both directions.
#[tokio::test]
async fn a_format_without_a_media_type_is_coap_payload_as_in_rfc_8075_section_6_2() {
    let echo = |call: &Call<'_>| Response::content("x").format(call.format().unwrap());
    let read = |_: &Call<'_>| Response::content("x").format(ContentFormat(65000));
    let server = serve(Router::new().route("/r", get(read).put(echo)));
    let (_, http) = gateway(config()).await;
    let uri = format!("coap://{server}/r");
    let got = request(http, "GET", &uri, "\r\n").await;
    assert!(got.contains("content-type: application/coap-payload;cf=65000\r\n"), "{got}");
    let fields = "Content-Type: application/coap-payload;cf=60\r\nContent-Length: 1\r\n\r\nx";
    let got = request(http, "PUT", &uri, fields).await;
    assert!(got.contains("content-type: application/cbor\r\n"), "{got}");
}

fn directory() -> SocketAddr {
    serve(Directory::open(DirectoryConfig::new()).unwrap().router())
}

/// Registers links under a name; returns the segment of the location that stands for 4521.
async fn register(directory: SocketAddr, query: &[&str], links: &str) -> Vec<u8> {
    let query = query.iter().map(|argument| (QUERY, argument.as_bytes()));
    let options: Vec<_> = [(PATH, &b"rd"[..]), LINKS].into_iter().chain(query).collect();
    let got = answer(directory, &message(Code::POST, &options, links.as_bytes())).await;
    // 2.01 Created, Location-Path: /rd/4521
    assert!(got.starts_with(b"\x60\x41\x7d\x34\x82rd"), "{got:02x?}");
    got[8..].to_vec()
}

async fn look_up(directory: SocketAddr, kind: &str, query: &str) -> String {
    let options = [(PATH, &b"rd-lookup"[..]), (PATH, kind.as_bytes()), (QUERY, query.as_bytes())];
    let got = answer(directory, &message(Code::GET, &options, b"")).await;
    let got = Message::parse(&got).unwrap();
    assert_eq!(got.code(), Code::CONTENT);
    String::from_utf8(got.payload().to_vec()).unwrap()
}

/// RFC 9176, section 4.3, figure 5 (its second example has optional formats).
#[tokio::test]
async fn a_directory_is_discovered_as_in_rfc_9176_section_4_3() {
    let options = [(PATH, &b".well-known"[..]), (PATH, b"core"), (QUERY, b"rt=core.rd*")];
    let got = answer(directory(), &message(Code::GET, &options, b"")).await;
    let got = Message::parse(&got).unwrap();
    let links = std::str::from_utf8(got.payload()).unwrap();
    for link in [
        "</rd>;rt=\"core.rd\";ct=40",
        "</rd-lookup/ep>;rt=\"core.rd-lookup-ep\";ct=40",
        "</rd-lookup/res>;rt=\"core.rd-lookup-res\";ct=40",
    ] {
        assert!(links.split(',').any(|listed| listed.starts_with(link)), "{links}");
    }
}

/// RFC 9176, sections 5, 5.3.1 and 5.3.2: a registration, its update and its removal.
#[tokio::test]
async fn the_registration_of_rfc_9176_section_5_is_updated_and_removed() {
    let directory = directory();
    let links = concat!(
        "</sensors/temp>;rt=temperature-c;if=sensor,\n<http://www.example.com/sensors/temp>;\n",
        "  anchor=\"/sensors/temp\";rel=describedby"
    );
    let query = ["ep=endpoint1", "lt=500", "base=coap://local-proxy-old.example.com"];
    let number = register(directory, &query, links).await;
    let own = [(PATH, &b"rd"[..]), (PATH, &*number)];
    let changed = b"\x60\x44\x7d\x34";
    assert_eq!(answer(directory, &message(Code::POST, &own, b"")).await, changed);
    let listed = |base: &str| {
        format!(
            "<{base}/sensors/temp>;rt=temperature-c;if=sensor,\
             <http://www.example.com/sensors/temp>;anchor=\"{base}/sensors/temp\";rel=describedby"
        )
    };
    let found = look_up(directory, "res", "ep=endpoint1").await;
    assert_eq!(found, listed("coap://local-proxy-old.example.com"));
    let moved = [own[0], own[1], (QUERY, b"base=coaps://new.example.com")];
    assert_eq!(answer(directory, &message(Code::POST, &moved, b"")).await, changed);
    let found = look_up(directory, "res", "ep=endpoint1").await;
    assert_eq!(found, listed("coaps://new.example.com"));
    assert_eq!(answer(directory, &message(Code::DELETE, &own, b"")).await, b"\x60\x42\x7d\x34");
    assert_eq!(look_up(directory, "res", "ep=endpoint1").await, "");
}

/// RFC 9176, section 5.1: simple registration, `POST /.well-known/rd?lt=6000&ep=node1`.
#[tokio::test]
async fn the_simple_registration_of_rfc_9176_section_5_1_is_answered_when_the_list_has_come() {
    let core = Router::new().route("/sen/temp", get(|_: &Call<'_>| "22"));
    let device = Client::serving(core, ClientConfig::new()).unwrap();
    let directory = directory();
    let uri = format!("coap://{directory}/.well-known/rd?lt=6000&ep=node1");
    assert_eq!(device.post(&*uri, "").await.unwrap().code(), Code::CHANGED);
    let listed = look_up(directory, "res", "ep=node1").await;
    assert!(listed.ends_with("/sen/temp>") && !listed.contains(','), "{listed}");
}

/// RFC 9176, section 6.3: look-ups of resources, of pages of them, and of endpoints.
#[tokio::test]
async fn the_look_ups_of_rfc_9176_section_6_3_find_what_they_find_there() {
    let directory = directory();
    let base = "base=coap://[2001:db8:3::123]:61616";
    let links = "</temp>;rt=\"tag:example.org,2020:temperature\"";
    register(directory, &["ep=node1", base], links).await;
    assert_eq!(
        look_up(directory, "res", "rt=tag:example.org,2020:temperature").await,
        "<coap://[2001:db8:3::123]:61616/temp>;rt=\"tag:example.org,2020:temperature\""
    );
    let ten: Vec<_> = (0..10).map(|n| format!("</res/{n}>;ct=60")).collect();
    let pages = self::directory();
    register(pages, &["ep=node1", base], &ten.join(",")).await;
    for page in 0..2 {
        let options = [
            (PATH, &b"rd-lookup"[..]),
            (PATH, b"res"),
            (QUERY, if page == 0 { b"page=0" } else { b"page=1" }),
            (QUERY, b"count=5"),
        ];
        let got = answer(pages, &message(Code::GET, &options, b"")).await;
        let listed = (5 * page..5 * page + 5)
            .map(|n| format!("<coap://[2001:db8:3::123]:61616/res/{n}>;ct=60"));
        let listed = listed.collect::<Vec<_>>().join(",");
        assert_eq!(Message::parse(&got).unwrap().payload(), listed.as_bytes());
    }
    let node7 = [
        "ep=node7",
        "base=coap://[2001:db8:3::129]:61616",
        "et=tag:example.com,2020:platform",
        "d=floor-3",
    ];
    let number = String::from_utf8(register(directory, &node7, "</x>").await).unwrap();
    let found = look_up(directory, "ep", "et=tag:example.com,2020:platform").await;
    assert!(found.starts_with(&format!("</rd/{number}>;")), "{found}");
    assert_eq!(found.matches('<').count(), 1, "{found}");
    for attribute in [
        "base=\"coap://[2001:db8:3::129]:61616\"",
        "ep=\"node7\"",
        "et=\"tag:example.com,2020:platform\"",
        "d=\"floor-3\"",
        "rt=\"core.rd-ep\"",
    ] {
        assert!(found.split(';').any(|part| part == attribute), "{attribute} in {found}");
    }
}
