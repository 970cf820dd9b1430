//! The adapter of coap-rs for the interoperability matrix; `../README.md` describes it.
//!
//!     interop-coap-rs server PORT HOST [coap]
//!     interop-coap-rs ask URI

use coap::client::ObserveMessage;
use coap::request::RequestBuilder;
use coap::{Server, UdpCoAPClient};
use coap_lite::{CoapOption, CoapRequest, MessageClass, Packet, RequestType, ResponseType};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};

const UNSUPPORTED: i32 = 127;

fn digits(length: usize) -> Vec<u8> {
    b"0123456789".iter().copied().cycle().take(length).collect()
}

const TAG: [u8; 1] = [0x2a];
const ECHO: u16 = 252;

fn has_tag(message: &Packet, option: CoapOption) -> bool {
    message.get_first_option(option).is_some_and(|value| value[..] == TAG)
}

static COUNTED: AtomicU64 = AtomicU64::new(0);

async fn answer(mut request: Box<CoapRequest<SocketAddr>>) -> Box<CoapRequest<SocketAddr>> {
    use RequestType::{Delete, Fetch, Get, IPatch, Patch, Post, Put};
    let method = *request.get_method();
    let path = request.get_path();
    let body = request.message.payload.clone();
    let of = |expected: RequestType, code, body: Vec<u8>| {
        if method == expected { (code, body) } else { (ResponseType::MethodNotAllowed, vec![]) }
    };
    let content = |body| of(Get, ResponseType::Content, body);
    let (code, payload) = match path.as_str() {
        "test" => content(digits(60)),
        "large" => content(digits(1 << 20)),
        "medium" => content(digits(10_000)),
        "a b" => content(b"spaced".to_vec()),
        "separate" => {
            tokio::time::sleep(Duration::from_millis(500)).await;
            content(b"that took a while".to_vec())
        }
        "query" => {
            let parts = request.message.get_option(CoapOption::UriQuery).cloned().unwrap_or_default();
            let parts: Vec<String> =
                parts.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect();
            content(parts.join("&").into_bytes())
        }
        "echo" => match method {
            Put | Post | Patch | IPatch => (ResponseType::Changed, body),
            Fetch => (ResponseType::Content, body),
            Delete => (ResponseType::Deleted, vec![]),
            _ => (ResponseType::MethodNotAllowed, vec![]),
        },
        "tagged" if method == Put => {
            let refused = request.message.get_option(CoapOption::IfNoneMatch).is_some()
                || request.message.get_option(CoapOption::IfMatch).is_some()
                    && !has_tag(&request.message, CoapOption::IfMatch);
            (if refused { ResponseType::PreconditionFailed } else { ResponseType::Changed }, vec![])
        }
        "tagged" => {
            let accepted = request.message.get_first_option(CoapOption::Accept);
            if accepted.is_some_and(|format| format.iter().any(|byte| *byte != 0)) {
                (ResponseType::NotAcceptable, vec![])
            } else {
                let same = has_tag(&request.message, CoapOption::ETag);
                if let Some(response) = &mut request.response {
                    response.message.add_option(CoapOption::ETag, TAG.to_vec());
                }
                if same { (ResponseType::Valid, vec![]) } else { content(b"tagged".to_vec()) }
            }
        }
        "fresh" => match request.message.get_first_option(CoapOption::from(ECHO)) {
            Some(_) => content(b"fresh".to_vec()),
            None => {
                if let Some(response) = &mut request.response {
                    response.message.add_option(CoapOption::from(ECHO), b"echo-me!".to_vec());
                }
                (ResponseType::Unauthorized, vec![])
            }
        },
        "length" => of(Put, ResponseType::Changed, body.len().to_string().into_bytes()),
        "count" => {
            let count = if method == Post { COUNTED.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
            of(Post, ResponseType::Changed, count.to_string().into_bytes())
        }
        // A PUT changes the state, of which the library notifies the observers.
        "time" | "times" if method == Put => (ResponseType::Changed, vec![]),
        "time" | "times" => content(body),
        ".well-known/core" => content(
            b"</test>,</large>,</medium>,</echo>,</length>,</count>,</time>;obs,</times>;obs".to_vec(),
        ),
        _ => (ResponseType::NotFound, vec![]),
    };
    if let Some(response) = &mut request.response {
        response.message.header.code = MessageClass::Response(code);
        response.message.payload = payload;
    }
    request
}

/// The library notifies observers of what is PUT to a resource: this client of its own server does.
async fn tick(server: SocketAddr, path: &'static str, every: u64, state: fn(u64) -> Vec<u8>) {
    let client = UdpCoAPClient::new(server).await.expect("a socket");
    for n in 0.. {
        tokio::time::sleep(Duration::from_millis(every)).await;
        let request = RequestBuilder::new(path, RequestType::Put).data(Some(state(n))).build();
        let _ = client.send(request).await;
    }
}

async fn serve(port: &str, host: &str, scheme: &str) {
    if scheme != "coap" {
        std::process::exit(UNSUPPORTED);
    }
    let address = SocketAddr::new(host.parse().expect("an address"), port.parse().expect("a port"));
    let server = Server::new_udp(address).expect("the address is free");
    tokio::spawn(tick(address, "/time", 250, |n| n.to_string().into_bytes()));
    tokio::spawn(tick(address, "/times", 500, |n| vec![b'0' + (n % 10) as u8; 3000]));
    println!("ready");
    server.run(answer).await.expect("it serves");
}

fn hexadecimal(bytes: &[u8]) -> String {
    if bytes.is_empty() { "-".into() } else { bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
}

fn shown(message: &Packet) -> String {
    let mut options = Vec::new();
    for (number, values) in message.options() {
        options.extend(values.iter().map(|value| format!("{number}:{}", hexadecimal(value).replace('-', ""))));
    }
    let options = if options.is_empty() { "-".into() } else { options.join(",") };
    format!("{} {options} {}", message.header.get_code(), hexadecimal(&message.payload))
}

fn from_hexadecimal(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap_or(0)).collect()
}

async fn one(client: &mut UdpCoAPClient, line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let method = match words[0] {
        "GET" => RequestType::Get,
        "POST" => RequestType::Post,
        "PUT" => RequestType::Put,
        "DELETE" => RequestType::Delete,
        "FETCH" => RequestType::Fetch,
        "PATCH" => RequestType::Patch,
        "IPATCH" => RequestType::IPatch,
        other => {
            println!("unsupported no API for {other}");
            return Ok(());
        }
    };
    let (path, query) = words[1].split_once('?').unwrap_or((words[1], ""));
    let path = path.replace("%20", " ");
    let queries: Vec<Vec<u8>> =
        query.split('&').filter(|part| !part.is_empty()).map(|part| part.as_bytes().to_vec()).collect();
    let mut request = RequestBuilder::new(&path, method).queries(queries);
    let (mut wait, mut observe, mut options) = (8.0, 0, Vec::new());
    client.set_block1_size(1024);
    for word in &words[2..] {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "non" => request = request.confirmable(false),
            "payload" => request = request.data(Some(from_hexadecimal(value))),
            "digits" => request = request.data(Some(digits(value.parse().unwrap_or(0)))),
            "wait" => wait = value.parse().unwrap_or(wait),
            "observe" => observe = value.parse().unwrap_or(1),
            "opt" => {
                let (number, value) = value.split_once(':').unwrap_or((value, ""));
                let number: u16 = number.parse().map_err(|_| "a number")?;
                options.push((CoapOption::from(number), from_hexadecimal(value)));
            }
            "block" => {
                let size: usize = value.parse().unwrap_or(1024);
                client.set_block1_size(size);
                if method == RequestType::Get {
                    options.push((CoapOption::Block2, vec![size.trailing_zeros() as u8 - 4]));
                }
            }
            _ => {}
        }
    }
    let request = request.options(options).build();
    let limit = Duration::from_secs_f64(wait);
    let asked = async {
        if observe == 0 {
            let response = client.send(request).await.map_err(|error| error.to_string())?;
            println!("{}", shown(&response.message));
            return Ok(());
        }
        let (sender, mut states) = tokio::sync::mpsc::unbounded_channel();
        let handler = move |state| drop(sender.send(state));
        let cancel = client.observe(&path, handler).await.map_err(|error| error.to_string())?;
        for _ in 0..observe {
            match states.recv().await {
                Some(Ok(state)) => println!("{}", shown(&state)),
                Some(Err(error)) => return Err(error.to_string()),
                None => return Err("the observation has ended".into()),
            }
        }
        let _ = cancel.send(ObserveMessage::Terminate);
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(())
    };
    tokio::time::timeout(limit, asked).await.map_err(|_| "no answer".to_owned())?
}

async fn ask(uri: &str) {
    let Some(address) = uri.strip_prefix("coap://") else { std::process::exit(UNSUPPORTED) };
    let mut client = UdpCoAPClient::new(address.parse::<SocketAddr>().expect("an address")).await.expect("a socket");
    client.set_receive_timeout(Duration::from_millis(500));
    client.set_transport_retries(8);
    println!("ready");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Err(error) = one(&mut client, &line).await {
            println!("error {}", error.replace('\n', " "));
        }
        println!(".");
    }
    std::process::exit(0);
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", port, host] => serve(port, host, "coap").await,
        ["server", port, host, scheme] => serve(port, host, scheme).await,
        ["ask", uri] => ask(uri).await,
        _ => std::process::exit(2),
    }
}
