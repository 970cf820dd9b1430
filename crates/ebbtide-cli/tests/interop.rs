//! Other implementations, each as a client of `ebbtide serve` and as a server for the library's
//! client. `interop/build.sh` brings them; where one is missing its tests say so and are skipped,
//! but fail in continuous integration.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

use ebbtide::{Client, Code, Request};
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const EBBTIDE: &str = env!("CARGO_BIN_EXE_ebbtide");
const DIGITS: &str = "012345678901234567890123456789012345678901234567890123456789";

/// A program that is stopped when the test is over.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Running {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
    // The first line says that it serves; what it says later must not block it.
    if let Some(stdout) = running.0.stdout.take() {
        let mut lines = BufReader::new(stdout).lines();
        lines.next();
        std::thread::spawn(move || lines.for_each(drop));
    }
    running
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn peer(name: &str) -> Option<PathBuf> {
    let target = Path::new(EBBTIDE).parent()?.parent()?;
    let program = target.join("interop").join(name).join("peer");
    present(name, program.exists()).then_some(program)
}

fn present(name: &str, is: bool) -> bool {
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(is || !ci, "{name} is missing: interop/build.sh {name}");
    if !is {
        eprintln!("skipped: {name} is missing; interop/build.sh {name} brings it");
    }
    is
}

fn serve() -> (Running, u16) {
    let port = free_port();
    (start(EBBTIDE, &["serve", "--bind", &format!("127.0.0.1:{port}")]), port)
}

/// Their client asks for everything and says so.
fn asks_us(name: &str) {
    let Some(program) = peer(name) else { return };
    let (_server, port) = serve();
    let output = Command::new(program).args(["client", &port.to_string()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("all answered"), "{said}\n{errors}");
}

/// Our client asks their server for everything.
fn answers_us(name: &str, uploads: Uploads) {
    let Some(program) = peer(name) else { return };
    let port = free_port();
    let _server = start(program, &["server", &port.to_string()]);
    run(ask_everything(port, uploads));
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), work).await };
    runtime.block_on(limited).expect("within a minute");
}

/// Which bodies are sent.
#[derive(Copy, Clone, PartialEq)]
enum Uploads {
    /// Those of one block.
    Short,
    /// Those of many blocks, too.
    Long,
}

async fn ask_everything(port: u16, uploads: Uploads) {
    let base = format!("coap://127.0.0.1:{port}");
    let client = Client::new().unwrap();
    assert_eq!(client.get(format!("{base}/test")).await.unwrap().text(), DIGITS);
    let large: Vec<u8> = (0..1 << 20).map(|n| b'0' + (n % 10) as u8).collect();
    let got = client.get(format!("{base}/large")).await.unwrap();
    assert!(got.body() == &large, "Block2: {} {} bytes", got.code(), got.body().len());
    for code in [Code::PUT, Code::POST] {
        let request = Request::new(code, format!("{base}/echo")).unwrap();
        let got = client.request(request.clone().payload("hi")).await.unwrap();
        assert_eq!((got.code(), got.body().as_ref()), (Code::CHANGED, b"hi".as_slice()));
        if uploads == Uploads::Short {
            continue;
        }
        let got = client.request(request.payload(large.clone())).await.unwrap();
        assert!(got.body() == &large, "Block1: {} {} bytes", got.code(), got.body().len());
    }
    let slow = client.get(format!("{base}/separate")).await.unwrap();
    assert_eq!(slow.code(), Code::CONTENT, "separate");
    assert_eq!(client.get(format!("{base}/missing")).await.unwrap().code(), Code::NOT_FOUND);
    let mut time = client.observe(format!("{base}/time")).await.unwrap();
    let mut states = Vec::new();
    while states.len() < 3 {
        let state = time.next().await.expect("more states").unwrap();
        states.push(state.text().parse::<u64>().unwrap());
    }
    assert!(states.is_sorted_by(|a, b| a < b), "{states:?}");
    client.ping(base.as_str()).await.unwrap();
    drop(time);
    assert_eq!(client.open_exchanges(), 0);
}

#[test]
fn our_client_gets_all_from_our_server() {
    let (_server, port) = serve();
    run(ask_everything(port, Uploads::Long));
}

#[test]
#[ignore = "builds peers in four languages: ci.sh --full does, as does interop/build.sh"]
fn aiocoap_gets_all_from_our_server() {
    asks_us("aiocoap");
}

#[test]
#[ignore = "builds peers in four languages: ci.sh --full does, as does interop/build.sh"]
fn our_client_gets_all_from_aiocoap() {
    answers_us("aiocoap", Uploads::Long);
}

#[test]
#[ignore = "builds peers in four languages: ci.sh --full does, as does interop/build.sh"]
fn californium_gets_all_from_our_server() {
    asks_us("californium");
}

#[test]
#[ignore = "builds peers in four languages: ci.sh --full does, as does interop/build.sh"]
fn our_client_gets_all_from_californium() {
    answers_us("californium", Uploads::Long);
}

#[test]
#[ignore = "builds peers in four languages: ci.sh --full does, as does interop/build.sh"]
fn go_coap_gets_all_from_our_server() {
    asks_us("go-coap");
}

/// go-coap 3.5 takes blocks for parts of one upload only if their requests have the same token,
/// which RFC 7959 does not ask for: it answers a longer upload with its last block.
#[test]
#[ignore = "builds peers in four languages: ci.sh --full does, as does interop/build.sh"]
fn our_client_gets_all_from_go_coap() {
    answers_us("go-coap", Uploads::Short);
}

fn libcoap(program: &str) -> Option<String> {
    let found =
        Command::new(program).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status();
    present("libcoap", found.is_ok()).then(|| program.to_owned())
}

fn coap_client(args: &[&str]) -> Option<String> {
    let program = libcoap("coap-client-notls")?;
    let output = Command::new(program).args(["-B", "20"]).args(args).output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn libcoap_gets_all_from_our_server() {
    let (_server, port) = serve();
    let base = format!("coap://127.0.0.1:{port}");
    let get = |path: &str| coap_client(&["-m", "get", &format!("{base}{path}")]);
    let Some(test) = get("/test") else { return };
    assert_eq!(test.trim(), DIGITS);
    assert_eq!(get("/large").unwrap().trim_end().len(), 1 << 20);
    assert_eq!(get("/separate").unwrap().trim(), "that took two seconds");
    assert!(get("/.well-known/core").unwrap().contains("</time>"));
    let echo = format!("{base}/echo");
    assert_eq!(coap_client(&["-m", "put", "-e", "hi", &echo]).unwrap().trim(), "hi");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("body");
    std::fs::write(&file, DIGITS.repeat(1 << 14)).unwrap();
    let sent = coap_client(&["-b", "1024", "-m", "post", "-f", file.to_str().unwrap(), &echo]);
    assert!(sent.unwrap().trim_end() == DIGITS.repeat(1 << 14), "Block1 and Block2");
    let observed = coap_client(&["-s", "3", "-m", "get", &format!("{base}/time")]).unwrap();
    assert!(observed.trim().len() >= 30, "three times at least: {observed}");
}

#[test]
fn our_client_gets_all_from_libcoap() {
    let Some(program) = libcoap("coap-server-notls") else { return };
    let port = free_port();
    let mut command = Command::new(program);
    command.args(["-A", "127.0.0.1", "-d", "10", "-p", &port.to_string()]);
    let _server = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    run(async {
        let base = format!("coap://127.0.0.1:{port}");
        let client = Client::new().unwrap();
        // It says nothing when it serves.
        while client.ping(base.as_str()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(client.get(base.as_str()).await.unwrap().text().contains("libcoap"));
        let body: Vec<u8> = (0..1 << 20).map(|n| (n % 251) as u8).collect();
        let large = format!("{base}/large");
        let put = client.put(large.as_str(), body.clone()).await.unwrap();
        assert_eq!(put.code(), Code::CREATED);
        assert!(client.get(large.as_str()).await.unwrap().body() == &body, "Block1 and Block2");
        assert_eq!(client.delete(large.as_str()).await.unwrap().code(), Code::DELETED);
        assert_eq!(client.get(large.as_str()).await.unwrap().code(), Code::NOT_FOUND);
        assert_eq!(client.get(format!("{base}/async?1")).await.unwrap().text(), "done");
        let mut time = client.observe(format!("{base}/time")).await.unwrap();
        for _ in 0..3 {
            assert!(time.next().await.unwrap().unwrap().is_success());
        }
    });
}
