//! Requests of CoAP clients for resources of HTTP servers.

use super::rfc_examples::message;
use super::{Through, config, patient};
use crate::{Gateway, GatewayConfig};
use ebbtide::server::Verify;
use ebbtide::{Client, Code, ContentFormat, OptionNumber, Request, Response, Server, ServerConfig};
use ebbtide_core::wire::Message;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The requests that an HTTP server has received.
type Asked = Arc<Mutex<Vec<String>>>;

/// An HTTP server that answers as `answer` says, and keeps what it was asked.
async fn web(answer: impl Fn(&str) -> String + Send + 'static) -> (SocketAddr, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Asked::default());
    let kept = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut request, mut buf) = (String::new(), [0; 4096]);
            let is_whole = |request: &str| {
                let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
                if head.contains("transfer-encoding: chunked") {
                    return body.ends_with("\r\n0\r\n\r\n");
                }
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                body.len() >= length.map_or(0, |length| length.parse().unwrap())
            };
            while !is_whole(&request) {
                let length = stream.read(&mut buf).await.unwrap();
                request.push_str(std::str::from_utf8(&buf[..length]).unwrap());
            }
            let _ = stream.write_all(answer(&request).as_bytes()).await;
            kept.lock().unwrap().push(request);
        }
    });
    (address, asked)
}

fn reply(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn gateway() -> Through {
    Through::gateway(GatewayConfig::new().allow_http("127.0.0.0/8".parse().unwrap()))
}

fn numbers(answer: &Response) -> Vec<u16> {
    answer.options().iter().map(|opt| opt.number.0).collect()
}

#[tokio::test]
async fn a_request_and_its_answer_are_translated() {
    let json =
        "200 OK\r\nContent-Type: application/json\r\nETag: \"v1\"\r\nCache-Control: max-age=9";
    let (server, asked) = web(move |_| reply(json, "{}")).await;
    let through = gateway();
    let uri = format!("http://{server}/a%2Fb/c?d=e%26f&g");
    let request = through
        .get(&uri)
        .option(OptionNumber::ACCEPT, &[50])
        .option(OptionNumber::HOP_LIMIT, &[14]);
    let answer = through.send(request).await;
    assert_eq!((answer.code(), answer.text().as_ref()), (Code::CONTENT, "{}"));
    assert_eq!(answer.content_format(), Some(ContentFormat::JSON));
    assert_eq!(numbers(&answer), [4, 12, 14]);
    assert_eq!(answer.options().get(OptionNumber::ETAG).unwrap().value, b"v1");
    assert_eq!(
        asked.lock().unwrap()[0],
        format!(
            "GET /a%2Fb/c?d=e%26f&g HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\
             via: 1.1 ebbtide, 1.1 coap, 1.1 coap\r\naccept: application/json\r\n\r\n"
        )
    );
    // The other form, with a body in blocks.
    let body = "x".repeat(3000);
    let request = Request::put(format!("coap://{}/a%20b?c=d", through.proxy)).unwrap();
    let request = request
        .option(OptionNumber::URI_HOST, b"127.0.0.1")
        .option(OptionNumber::URI_PORT, &server.port().to_be_bytes())
        .option(OptionNumber::PROXY_SCHEME, b"http")
        .option(OptionNumber::IF_MATCH, b"v1")
        .format(ContentFormat::TEXT)
        .payload(body.clone());
    assert_eq!(through.send(request).await.code(), Code::CHANGED);
    let asked = asked.lock().unwrap();
    assert!(asked[1].starts_with("PUT /a%20b?c=d HTTP/1.1\r\n"), "{}", asked[1]);
    let (head, chunks) = asked[1].split_once("\r\n\r\n").unwrap();
    assert!(head.contains("if-match: \"v1\"\r\n"), "{head}");
    assert_eq!(chunks.matches('x').count(), body.len());
    assert!(asked[1].contains("content-type: text/plain; charset=utf-8\r\n"), "{}", asked[1]);
}

#[tokio::test]
async fn an_answer_is_stored_as_long_as_http_allows_and_then_confirmed() {
    let (server, asked) = web(|request| match request {
        fresh if fresh.starts_with("GET /fresh") => {
            reply("200 OK\r\nCache-Control: max-age=60", "1")
        }
        known if known.contains("if-none-match: \"v1\"\r\n") => {
            let tag = match known {
                weak if weak.starts_with("GET /weak") => "\r\nETag: W/\"v1\"",
                bare if bare.starts_with("GET /bare") => "",
                _ => "\r\nETag: \"v1\"",
            };
            reply(&format!("304 Not Modified{tag}"), "")
        }
        unsuitable if unsuitable.contains("if-none-match") => reply("400 Bad Request", ""),
        // Without a statement, and for this client alone.
        old if ["old", "weak", "bare"]
            .iter()
            .any(|path| old.starts_with(&format!("GET /{path}"))) =>
        {
            reply("200 OK\r\nETag: \"v1\"", "1")
        }
        lines if lines.starts_with("GET /lines") => {
            reply("200 OK\r\nCache-Control: max-age=60\r\nCache-Control: private", "1")
        }
        _ => reply("200 OK\r\nCache-Control: private, max-age=60", "1"),
    })
    .await;
    let mut through = gateway();
    through.client = Client::with_config(patient());
    for (path, requests) in
        [("fresh", 1), ("old", 3), ("weak", 3), ("bare", 3), ("private", 3), ("lines", 3)]
    {
        asked.lock().unwrap().clear();
        for _ in 0..3 {
            let answer = through.send(through.get(&format!("http://{server}/{path}"))).await;
            assert_eq!((answer.code(), answer.text().as_ref()), (Code::CONTENT, "1"), "{path}");
        }
        assert_eq!(asked.lock().unwrap().len(), requests, "{path}");
    }
}

#[tokio::test]
async fn http_has_a_permission_of_its_own() {
    let (server, asked) = web(|_| reply("200 OK", "")).await;
    let everywhere = || "0.0.0.0/0".parse().unwrap();
    for config in [config(), GatewayConfig::new().allow_http(everywhere())] {
        let through = Through::gateway(config);
        let answer = through.send(through.get(&format!("http://{server}/"))).await;
        assert_eq!(answer.code(), Code::PROXYING_NOT_SUPPORTED);
    }
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_misbehaves_is_a_bad_gateway_and_a_silent_one_a_timeout() {
    let (server, _) = web(|request| match request {
        long if long.starts_with("GET /long") => {
            format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n{}",
                "x".repeat(4095)
            )
        }
        head if head.starts_with("GET /head") => {
            format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(40_000))
        }
        moved if moved.starts_with("GET /moved") => {
            reply("302 Found\r\nLocation: http://127.0.0.1:1/", "")
        }
        put if put.starts_with("PUT") => reply("200 OK", &"x".repeat(2001)),
        coded if coded.starts_with("GET /coded") => reply("200 OK\r\nContent-Encoding: br", "x"),
        _ => "SSH-2.0-x\r\n".to_owned(),
    })
    .await;
    let allowed = || GatewayConfig::new().allow_http("127.0.0.0/8".parse().unwrap());
    let through = Through::gateway(allowed().max_body(2000).deadline(Duration::from_secs(20)));
    for (path, why) in [
        ("long", "the answer has no end"),
        ("head", "the server does not speak HTTP"),
        ("moved", "the server answers 302, and refers to http://127.0.0.1:1/"),
        ("coded", "the server's content coding has no number"),
        ("ssh", "the server does not speak HTTP"),
    ] {
        let answer = through.send(through.get(&format!("http://{server}/{path}"))).await;
        assert_eq!((answer.code(), answer.text().as_ref()), (Code::BAD_GATEWAY, why), "{path}");
    }
    // An answer to PUT does not pass through.
    let answer = through.send(through.put(&format!("http://{server}/")).payload("x")).await;
    assert_eq!(
        (answer.code(), answer.text().as_ref()),
        (Code::BAD_GATEWAY, "the answer is too long")
    );
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let through = Through::gateway(allowed().deadline(Duration::from_millis(300)));
    let uri = format!("http://{}/", silent.local_addr().unwrap());
    assert_eq!(through.send(through.get(&uri)).await.code(), Code::GATEWAY_TIMEOUT);
}

#[tokio::test]
async fn an_observation_of_http_is_a_single_answer() {
    let (server, _) = web(|_| reply("200 OK\r\nContent-Type: text/html", "<p>")).await;
    let through = gateway();
    let observed = through.get(&format!("http://{server}/"));
    let mut observation = Client::new().observe_with(observed).await.unwrap();
    let only = observation.next().await.unwrap().unwrap();
    assert_eq!((only.text().as_ref(), only.content_format()), ("<p>", None));
    assert!(observation.next().await.is_none());
}

#[tokio::test]
async fn few_requests_of_addresses_that_may_be_forged_become_requests_of_http() {
    let (server, asked) = web(move |_| reply("200 OK\r\nCache-Control: no-store", "1")).await;
    let gateway = Gateway::new(GatewayConfig::new().allow_http("127.0.0.0/8".parse().unwrap()));
    // A server that trusts no address before it has echoed, as one on the Internet.
    let wary = ServerConfig::new().verify(Verify::All);
    let proxy = Server::with_config(gateway.router(), wary, ["127.0.0.1:0"]).unwrap();
    let address = proxy.local_addrs()[0];
    tokio::spawn(proxy.run());
    let (began, mut challenged) = (crate::system::now(), 0);
    let forged = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for n in 0..200 {
        let uri = format!("http://{server}/{n}");
        let mut request = message(Code::POST, &[(OptionNumber::PROXY_URI, uri.as_bytes())], b"");
        // Each has a message ID and a token of its own.
        (request[0], request[3]) = (0x41, n);
        request.insert(4, n);
        forged.send_to(&request, address).await.unwrap();
        let mut buf = [0; 1500];
        loop {
            let length = forged.recv(&mut buf).await.unwrap();
            let answer = Message::parse(&buf[..length]).unwrap();
            if answer.token_bytes() == [n] {
                challenged += usize::from(answer.option(OptionNumber::ECHO).is_some());
                break;
            }
        }
    }
    let seconds = began.elapsed().as_secs() as usize + 2;
    let sent = asked.lock().unwrap().len();
    assert_eq!(sent + challenged, 200);
    assert!((1..=64 * seconds).contains(&sent), "{sent} in {seconds} s");
    // A client that echoes is served in any case.
    let through = Through { client: Client::new(), proxy: address };
    let honest = through.send(through.get(&format!("http://{server}/x"))).await;
    assert_eq!(honest.code(), Code::CONTENT);
}
