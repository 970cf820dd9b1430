//! The explorer's page and lists, with its token and without.

use super::{config, serve};
use crate::{Directory, DirectoryConfig, Explorer, Gateway};
use ebbtide::server::{Call, Router, Subject, get};
use ebbtide::{Client, ContentFormat, Request};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct Opened {
    address: SocketAddr,
    token: String,
}

impl Opened {
    async fn new(explorer: Explorer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, token) = (listener.local_addr().unwrap(), explorer.token().to_owned());
        tokio::spawn(explorer.serve(listener));
        Self { address, token }
    }

    /// The head and the body of an answer.
    async fn request(&self, line: &str, token: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let fields = format!("Host: g\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n");
        let text = format!("{line} HTTP/1.1\r\n{fields}Content-Length: 0\r\n\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    async fn list(&self, path: &str) -> Value {
        let (head, body) = self.request(&format!("GET {path}"), &self.token).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head} {body}");
        serde_json::from_str(&body).unwrap()
    }
}

#[tokio::test]
async fn without_the_token_there_is_only_the_page() {
    let explorer = Opened::new(Explorer::new(&Gateway::new(config())).unwrap()).await;
    for path in ["/", "/explore.css", "/explore.js"] {
        let (head, body) = explorer.request(&format!("GET {path}"), "").await;
        assert!(
            head.starts_with("HTTP/1.1 200 ") && head.contains("frame-ancestors 'none'"),
            "{head}"
        );
        assert!(!body.contains(&explorer.token));
    }
    let other = if explorer.token.ends_with('0') { "1" } else { "0" };
    let close = format!("{}{other}", &explorer.token[..31]);
    for token in ["", "x", &close, &format!("{}0", explorer.token)] {
        for line in [
            "GET /api/devices",
            "GET /api/exchanges",
            "GET /hc/coap://127.0.0.1/",
            "PUT /hc/coap://127.0.0.1/",
        ] {
            let (head, _) = explorer.request(line, token).await;
            assert!(head.starts_with("HTTP/1.1 401 "), "{line} {token}: {head}");
        }
    }
    let (head, _) = explorer.request("POST /api/devices", &explorer.token).await;
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
}

#[tokio::test]
async fn an_address_that_the_gateway_does_not_serve_sees_nothing_with_the_token() {
    let config = config().only_for("192.0.2.0/24".parse().unwrap());
    let explorer = Opened::new(Explorer::new(&Gateway::new(config)).unwrap()).await;
    for path in ["/api/devices", "/api/links?of=coap://127.0.0.1", "/api/paths", "/api/exchanges"]
        .into_iter()
        .chain(["/hc/coap://127.0.0.1/"])
    {
        let (head, body) = explorer.request(&format!("GET {path}"), &explorer.token).await;
        assert!(head.starts_with("HTTP/1.1 403 "), "{path}: {head}");
        assert_eq!(body.trim_end(), "this gateway does not serve your address", "{path}");
    }
}

#[tokio::test]
async fn devices_resources_exchanges_and_paths_are_listed() {
    let subject = Subject::new();
    let light = get(|_: &Call<'_>| "on").attribute("rt", "light").observable(&subject);
    let device = serve(Router::new().route("/light", light));
    let directory = Directory::open(DirectoryConfig::new()).unwrap();
    let registered = serve(directory.router());
    let register =
        Request::post(format!("coap://{registered}/rd?ep=sleepy&base=coap://192.0.2.1")).unwrap();
    let register = register.format(ContentFormat::LINK_FORMAT).payload("</temp>;rt=temperature");
    Client::new().request(register).await.unwrap();
    let uri = format!("coap://{device}");
    let gateway = Gateway::new(config().backend("/far", &uri.parse().unwrap()));
    let explorer = Explorer::new(&gateway).unwrap().directory(&directory);
    let explorer = Opened::new(explorer.device(&uri.parse().unwrap())).await;

    let devices = explorer.list("/api/devices").await;
    let from: Vec<_> =
        devices["devices"].as_array().unwrap().iter().map(|device| &device["from"]).collect();
    assert_eq!(from, ["named", "a backend", "registered"]);
    // One that sleeps is not asked.
    let sleepy = explorer.list("/api/links?of=coap%3A%2F%2F192.0.2.1").await;
    assert_eq!(sleepy["links"][0]["target"], "coap://192.0.2.1/temp");
    let own = explorer.list(&format!("/api/links?of={uri}")).await;
    assert_eq!(own["links"][0]["target"], format!("{uri}/light"));
    assert_eq!(own["links"][0]["attributes"], serde_json::json!([["rt", "light"], ["obs", ""]]));

    let (_, answer) = explorer.request(&format!("GET /hc/{uri}/light"), &explorer.token).await;
    assert_eq!(answer, "on");
    let exchanges = explorer.list("/api/exchanges").await;
    let last = &exchanges["exchanges"][1];
    assert_eq!(
        (&last["request"], &last["answer"]),
        (&format!("GET {uri}/light").into(), &"2.05".into())
    );
    let paths = explorer.list("/api/paths").await;
    let names: Vec<_> =
        paths["paths"].as_array().unwrap().iter().map(|path| &path["name"]).collect();
    assert_eq!(names, ["127.0.0.0/24", &*device.to_string()]);
    assert!(paths["paths"][1]["timeout"].is_u64(), "{paths}");

    for (query, why) in
        [("", "of=URI"), ("of=%f", "not valid"), ("of=coap://192.0.2.9", "not allowed")]
    {
        let line = format!("GET /api/links?{query}");
        let (head, body) = explorer.request(&line, &explorer.token).await;
        assert!(head.starts_with("HTTP/1.1 502 ") && body.contains(why), "{head} {body}");
    }
}
