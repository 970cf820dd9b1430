//! Requests with Proxy-Uri and Proxy-Scheme.

use super::{Through, config, serve};
use crate::GatewayConfig;
use ebbtide::server::{Call, Router, get, put};
use ebbtide::{Code, ContentFormat, OptionNumber, Request, Response};
use std::net::UdpSocket;
use std::time::Duration;

/// Answers with what it was asked.
fn echo(call: &Call<'_>) -> Response {
    let hops = call.message().option(OptionNumber::HOP_LIMIT).and_then(|opt| opt.as_uint());
    let query: Vec<_> = call.query().collect();
    let body = format!(
        "{} {} {query:?} hops {hops:?} {} bytes",
        call.method(),
        call.path(),
        call.payload().len()
    );
    Response::content(body).etag(b"v1").format(ContentFormat::TEXT)
}

fn server() -> Router {
    Router::new().fallback(get(echo).put(echo).conditional())
}

#[tokio::test]
async fn a_request_is_forwarded_in_both_forms_and_its_answer_comes_back_whole() {
    let (server, through) = (serve(server()), Through::gateway(config()));
    let answer = through.send(through.get(&format!("coap://{server}/a/b%20c?d=1"))).await;
    assert_eq!(answer.text(), "0.01 /a/b c [\"d=1\"] hops Some(16) 0 bytes");
    let numbers: Vec<_> = answer.options().iter().map(|opt| opt.number).collect();
    assert_eq!(numbers, [OptionNumber::ETAG, OptionNumber::CONTENT_FORMAT]);

    let body = vec![7; 5000];
    let request = Request::put(format!("coap://{}/a", through.proxy)).unwrap();
    let request = request
        .option(OptionNumber::URI_HOST, server.ip().to_string().as_bytes())
        .option(OptionNumber::URI_PORT, &server.port().to_be_bytes())
        .option(OptionNumber::PROXY_SCHEME, b"coap")
        .option(OptionNumber::HOP_LIMIT, &[3])
        .option(OptionNumber::IF_MATCH, b"v1")
        .payload(body);
    let answer = through.send(request).await;
    assert_eq!(answer.text(), "0.03 /a [] hops Some(2) 5000 bytes");
}

#[tokio::test]
async fn a_name_is_resolved_and_reaches_the_server_as_uri_host() {
    let host = |call: &Call<'_>| {
        let host = call
            .message()
            .option(OptionNumber::URI_HOST)
            .and_then(|opt| opt.as_str().map(str::to_owned));
        host.unwrap_or_default()
    };
    let server = serve(Router::new().route("/host", get(host)));
    let through = Through::gateway(config());
    let answer =
        through.send(through.get(&format!("coap://localhost:{}/host", server.port()))).await;
    assert_eq!(answer.text(), "localhost");
}

#[tokio::test]
async fn what_is_not_allowed_is_not_asked() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let uri = format!("coap://{}/", server.local_addr().unwrap());
    let everywhere = GatewayConfig::new().allow("0.0.0.0/0".parse().unwrap());
    for config in [GatewayConfig::new(), everywhere] {
        let through = Through::gateway(config);
        let answer = through.send(through.get(&uri)).await;
        assert_eq!(answer.code(), Code::PROXYING_NOT_SUPPORTED);
    }
    let through = Through::gateway(config().only_for("192.0.2.0/24".parse().unwrap()));
    assert_eq!(through.send(through.get(&uri)).await.code(), Code::FORBIDDEN);
    assert!(server.recv(&mut [0; 64]).is_err(), "nothing has arrived");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_bad_gateway_and_a_silent_one_a_timeout() {
    let through = Through::gateway(config().deadline(Duration::from_secs(1)));
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let answer = through.send(through.get(&format!("coap://{free}/"))).await;
    assert_eq!(answer.code(), Code::BAD_GATEWAY, "{}", answer.text());
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}/", silent.local_addr().unwrap());
    assert_eq!(through.send(through.get(&uri)).await.code(), Code::GATEWAY_TIMEOUT);
}

#[tokio::test]
async fn a_loop_ends_at_the_hop_limit_and_names_the_proxy() {
    let through = Through::gateway(config().name("first"));
    let request = through.get("coap://127.0.0.1/").option(OptionNumber::HOP_LIMIT, &[1]);
    let answer = through.send(request).await;
    assert_eq!((answer.code(), answer.text().as_ref()), (Code::HOP_LIMIT_REACHED, "first"));
}

#[tokio::test]
async fn without_a_gateway_a_server_refuses_proxy_requests_and_its_own_resources_remain_beside_one()
{
    let own = || Router::new().route("/own", put(|_: &Call<'_>| Code::CHANGED));
    let plain = Through { client: ebbtide::Client::new(), proxy: serve(own()) };
    let answer = plain.send(plain.get("coap://127.0.0.1/")).await;
    assert_eq!(answer.code(), Code::PROXYING_NOT_SUPPORTED);
    let gateway = crate::Gateway::new(config());
    let both = serve(own().merge(gateway.router()));
    let answer = plain.client.put(format!("coap://{both}/own"), "x").await.unwrap();
    assert_eq!(answer.code(), Code::CHANGED);
}

#[tokio::test]
async fn a_backend_of_all_paths_has_its_own_list_of_resources() {
    let server = serve(Router::new().route("/own", get(echo)));
    let all = GatewayConfig::new().backend("/", &format!("coap://{server}/").parse().unwrap());
    let gateway = serve(crate::Gateway::new(all).router());
    let listed = ebbtide::Client::new().get(format!("coap://{gateway}/.well-known/core")).await;
    assert_eq!(listed.unwrap().text(), "</own>");
}

#[tokio::test]
async fn beside_a_backend_of_all_paths_a_programs_own_resources_can_be_discovered() {
    let server = serve(Router::new().route("/far", get(echo)));
    let all = GatewayConfig::new().backend("/", &format!("coap://{server}/").parse().unwrap());
    let own = Router::new().route("/own", get(|| async { "here" }));
    let gateway = serve(crate::Gateway::new(all).router_beside(own));
    let client = ebbtide::Client::new();
    let text = async |path| {
        client.get(format!("coap://{gateway}{path}")).await.unwrap().text().into_owned()
    };
    assert_eq!(text("/.well-known/core").await, "</own>");
    assert_eq!(text("/own").await, "here");
    assert!(text("/far").await.starts_with("0.01 /far"));
}

#[tokio::test]
async fn two_gateways_that_take_each_other_for_the_server_end_a_request_at_its_time_limit() {
    // The port of the second one is known before it serves.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let to = |port: u16| format!("coap://127.0.0.1:{port}/").parse().unwrap();
    let short = || GatewayConfig::new().deadline(Duration::from_millis(500));
    let first = serve(crate::Gateway::new(short().backend("/", &to(port))).router());
    let second = crate::Gateway::new(short().backend("/", &to(first.port())));
    let second = ebbtide::Server::bind(second.router(), [("127.0.0.1", port)]).unwrap();
    tokio::spawn(second.run());
    // Each hop holds a place, so the places of the cell end the loop before the hop limit does.
    let ended = ebbtide::Client::new().get(format!("coap://{first}/x")).await.unwrap();
    assert!(matches!(ended.code(), Code::SERVICE_UNAVAILABLE | Code::GATEWAY_TIMEOUT), "{ended:?}");
}
