//! `serve --metrics`: what Prometheus scrapes, against load that is known; the documents and the
//! dashboard against what is scraped.

use crate::common::private::write_private;
use crate::common::{Serving, ebbtide, succeed};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};

/// A server and where its metrics are.
fn serve(arguments: &[&str]) -> (Serving, String) {
    let mut server = Serving::start(&[&["--metrics", "127.0.0.1:0"], arguments].concat());
    let url = server.after("metrics at http://");
    let address = url.strip_suffix("/metrics").unwrap().to_owned();
    (server, address)
}

pub(crate) fn http(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Every sample by its name and labels, as Prometheus would read it.
pub(crate) fn scrape(address: &str) -> BTreeMap<String, f64> {
    let answer = http(address, "GET /metrics HTTP/1.1\r\nHost: ebbtide\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    let samples = body.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

#[test]
fn a_scrape_shows_the_load_that_there_was() {
    let (server, metrics) = serve(&["--cc", "cocoa"]);
    let bench = ["--requests", "5000", "--duration", "60", "--clients", "4", "--window", "8"];
    let test = server.uri("/test");
    let report = succeed(&[&["bench", &test, "--json"], bench.as_slice()].concat());
    let report: Value = serde_json::from_str(&report).unwrap();
    let answered = report["answered"].as_f64().unwrap();
    let repeated = report["retransmissions"].as_f64().unwrap();
    assert_eq!(answered, 5000.0);
    let after = scrape(&metrics);
    let received = after["ebbtide_datagrams_received_total"];
    assert!((answered..=answered + repeated).contains(&received), "{received}: {report}");
    assert_eq!(after["ebbtide_datagrams_sent_total"], received, "each request was answered");
    assert_eq!(after["ebbtide_messages_total{control=\"cocoa\"}"], 0.0, "answers ride on ACKs");

    // Two Confirmable notifications, each acknowledged: the server's own exchanges.
    succeed(&["observe", "--count", "3", &server.uri("/time")]);
    let now = scrape(&metrics);
    let of = |name: &str| now[&format!("ebbtide_{name}{{control=\"cocoa\"}}")];
    assert!(of("messages_total") >= 2.0);
    assert_eq!(of("rto_seconds_count"), of("messages_total"));
    assert!(of("rtt_seconds_count") >= 2.0);
    assert!(of("rtt_seconds_sum") > 0.0 && of("rtt_seconds_sum") < 60.0);
    let bucket =
        |le: &str| now[&format!("ebbtide_rtt_seconds_bucket{{control=\"cocoa\",le=\"{le}\"}}")];
    assert_eq!(bucket("+Inf"), of("rtt_seconds_count"));
    assert!(bucket("0.001") <= bucket("1") && bucket("1") <= bucket("+Inf"));

    // Block-wise: 1 MB that is kept for whoever asks for its blocks.
    succeed(&["get", "-o", "-", &server.uri("/large")]);
    assert_eq!(scrape(&metrics)["ebbtide_block_bytes"], f64::from(1 << 20));
    assert_eq!(scrape(&metrics)["ebbtide_block_transfers{direction=\"download\"}"], 1.0);

    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&[0x40, 1], &server.address).unwrap();
    succeed(&["ping", "--count", "1", &server.uri("")]);
    let last = scrape(&metrics);
    assert_eq!(last["ebbtide_malformed_total{reason=\"too-short\"}"], 1.0);
    assert_eq!(last["ebbtide_ignored_total{reason=\"ping\"}"], 1.0);
}

#[test]
fn requests_are_counted_by_method_and_code_with_their_time() {
    let (server, metrics) = serve(&[]);
    for _ in 0..3 {
        assert_eq!(ebbtide(&["get", &server.uri("/missing"), "-B", "20"]).code, Some(1));
    }
    succeed(&["put", &server.uri("/echo"), "-e", "hello", "-B", "20"]);
    succeed(&["get", &server.uri("/separate"), "-B", "20"]);
    let after = scrape(&metrics);
    let count = |method: &str, code: &str| {
        after[&format!("ebbtide_requests_total{{method=\"{method}\",code=\"{code}\"}}")]
    };
    assert_eq!((count("GET", "4.04"), count("GET", "2.05")), (3.0, 1.0));
    assert_eq!(count("PUT", "2.04"), 1.0);
    // What had no handler took no time.
    assert_eq!(after["ebbtide_request_seconds_count{}"], 2.0);
    let within = |le: &str| after[&format!("ebbtide_request_seconds_bucket{{le=\"{le}\"}}")];
    assert_eq!(within("+Inf") - within("1"), 1.0, "/separate takes two seconds");
    let build = after.keys().find(|name| name.starts_with("ebbtide_build_info{")).unwrap();
    assert!(build.contains(env!("CARGO_PKG_VERSION")) && build.contains("commit="), "{build}");
    assert!(after["process_start_time_seconds"] > 1.7e9);
}

#[test]
fn promtool_has_nothing_to_say_about_a_scrape() {
    let mut promtool = Command::new("promtool");
    let promtool = promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let Ok(mut promtool) = promtool.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        assert!(std::env::var_os("CI").is_none(), "promtool is not installed");
        eprintln!("skipped: promtool is not installed");
        return;
    };
    let (server, metrics) = serve(&[]);
    succeed(&["get", &server.uri("/test"), "-B", "20"]);
    let answer = http(&metrics, "GET /metrics HTTP/1.1\r\n\r\n");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    promtool.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let said = promtool.wait_with_output().unwrap();
    let said = (
        said.status.code(),
        String::from_utf8(said.stdout).unwrap() + &String::from_utf8(said.stderr).unwrap(),
    );
    assert_eq!(said, (Some(0), String::new()));
}

#[test]
fn a_probe_sees_whether_the_server_lives_and_is_ready() {
    let (server, metrics) = serve(&[]);
    let status = |path: &str| http(&metrics, &format!("GET {path} HTTP/1.1\r\n\r\n"));
    assert!(status("/healthz").starts_with("HTTP/1.1 200 "));
    assert!(status("/readyz?verbose").starts_with("HTTP/1.1 200 "));
    assert!(status("/metrics?x=1").starts_with("HTTP/1.1 200 "));
    // A request that is not answered yet lets it live on for a while.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(&server.address).unwrap();
    socket.send(&[b"\x41\x01\x00\x01\x07\xb8", &b"separate"[..]].concat()).unwrap();
    socket.recv(&mut [0; 4]).unwrap();
    server.terminate();
    let is_told = |_: &u32| status("/readyz").starts_with("HTTP/1.1 503 ");
    assert!((0..1000).find(is_told).is_some());
    assert!(status("/healthz").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_request_other_than_a_scrape_is_refused_and_takes_no_place_for_long() {
    let (_server, metrics) = serve(&[]);
    assert!(http(&metrics, "GET /else HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(http(&metrics, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(20_000));
    let mut stream = TcpStream::connect(&metrics).unwrap();
    let _ = stream.write_all(long.as_bytes());
    // Some say nothing; their places do not run out for others.
    let idle: Vec<_> = (0..8).map(|_| TcpStream::connect(&metrics).unwrap()).collect();
    assert!(scrape(&metrics).len() > 50);
    let head = http(&metrics, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    drop(idle);
}

/// The names of metrics in a text, those of a histogram's parts without their ending.
fn names(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_name(c))
        .filter(|word| word.starts_with("ebbtide_"))
        .map(|name| {
            let part = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            part.unwrap_or(name).to_owned()
        })
        .collect()
}

fn exported() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&cert, own.cert.pem()).unwrap();
    write_private(&key, &own.signing_key.serialize_pem());
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let (_server, metrics) = serve(&["--cert", cert, "--key", key]);
    scrape(&metrics).keys().filter_map(|name| names(name).pop_first()).collect()
}

#[test]
fn the_dashboard_and_the_documents_name_the_metrics_that_there_are() {
    let exported = exported();
    let dashboard = include_str!("../../../../docs/grafana/ebbtide.json");
    let parsed: Value = serde_json::from_str(dashboard).unwrap();
    assert_eq!(parsed["title"], "Ebbtide");
    let expressions: String = parsed["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| format!("{} ", target["expr"].as_str().unwrap()))
        .collect();
    let unknown: Vec<_> = names(&expressions).difference(&exported).cloned().collect();
    assert!(unknown.is_empty(), "in the dashboard, not exported: {unknown:?}");
    let unseen: Vec<_> = exported.difference(&names(&expressions)).cloned().collect();
    assert!(unseen.is_empty(), "exported, not in the dashboard: {unseen:?}");
    assert_eq!(names(include_str!("../../../../docs/metrics.md")), exported);
}
