//! libcoap, by its example programs as Debian packages them: they bring resources of their own.

use super::our_client::is_forgotten;
use super::our_server::{DIGITS, digits, serve, serve_with};
use super::peers::{
    EBBTIDE, LOSING, REPEATING, Running, answers_pings, ebbtide, free_address, output, present,
};
use super::relay::{Trouble, relay};
use ebbtide::server::Verify;
use ebbtide::{Client, Code, ErrorKind, OptionNumber, Request, ServerConfig};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

const CLIENT: &str = "coap-client-notls";
const SERVER: &str = "coap-server-notls";

pub(crate) fn found() -> bool {
    let mut command = Command::new(CLIENT);
    let run = command.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status();
    present("libcoap", run.is_ok())
}

/// What `coap-client` says, and whether as an error.
async fn ask(args: &[&str], server: SocketAddr, path: &str) -> String {
    let uri = format!("coap://{server}{path}");
    let output = output(CLIENT, &[&["-B", "30"], args, &[&uri]].concat()).await;
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).trim().to_owned()
}

/// Starts `coap-server`, which says nothing when it serves.
pub(crate) async fn served(host: &str, client: &Client) -> (Running, SocketAddr) {
    let address = free_address(host);
    let port = address.port().to_string();
    let running = Running::silent(SERVER, &["-A", host, "-d", "10", "-p", &port]);
    answers_pings(client, &format!("coap://{address}")).await;
    (running, address)
}

#[tokio::test]
async fn its_client_gets_everything_from_our_server() {
    if !found() {
        return;
    }
    let ours = serve("127.0.0.1");
    let at = ours.address;
    assert_eq!(ask(&[], at, "/test").await, DIGITS);
    assert!(ask(&[], at, "/.well-known/core").await.contains("</time>"));
    for method in ["put", "post"] {
        assert_eq!(ask(&["-m", method, "-e", "hi"], at, "/echo").await, "hi");
    }
    assert_eq!(ask(&["-m", "delete"], at, "/echo").await, "");
    assert_eq!(ask(&[], at, "/separate").await, "that took a while");
    assert_eq!(ask(&["-H", "3"], at, "/test").await, DIGITS, "Hop-Limit");
    assert_eq!(ask(&[], at, "/missing").await, "4.04");
    assert_eq!(ask(&["-m", "delete"], at, "/test").await, "4.05");
    assert!(ask(&["-O", "65001,x"], at, "/test").await.starts_with("4.02"));
    let silent = ask(&["-B", "1", "-N", "-O", "258,0x02"], at, "/test").await;
    assert!(!silent.contains(DIGITS), "No-Response: {silent}");
    let observed = ask(&["-w", "-s", "2"], at, "/time").await;
    assert!(observed.lines().count() >= 3, "three states at least: {observed}");
    let observed = ask(&["-w", "-s", "4"], at, "/times").await;
    let whole = |line: &&str| line.len() == 3000 && line.bytes().all(|b| b == line.as_bytes()[0]);
    assert!(observed.lines().filter(whole).count() >= 2, "two states at least: {observed}");
    ours.unobserved().await;
}

#[tokio::test]
async fn its_client_creates_a_topic_at_our_broker_and_subscribes_to_it() {
    if !found() {
        return;
    }
    let broker = free_address("127.0.0.1");
    let (at, client) = (broker.to_string(), Client::new());
    let (_broker, _) = Running::ready(EBBTIDE, &["serve", "--broker", "--bind", &at]);
    // {0: "a", 2: "core.ps.data"}
    let topic = "%A2%00%61a%02%6Ccore.ps.data";
    let made = ask(&["-m", "post", "-t", "606", "-e", topic], broker, "/ps").await;
    assert!(made.contains("/ps/data/"), "{made}");
    let listed = ask(&[], broker, "/ps?rt=core.ps.data").await;
    let data = listed.trim_matches(['<', '>']);
    assert_eq!(ask(&["-m", "put", "-e", "first"], broker, data).await, "");
    assert_eq!(ask(&[], broker, data).await, "first");
    let uri = format!("coap://{broker}{data}");
    let publish = async {
        for n in 0.. {
            client.put(&*uri, format!("n{n}")).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let seen = tokio::select! {
        seen = ask(&["-w", "-s", "2"], broker, data) => seen,
        () = publish => unreachable!("it has no end"),
    };
    assert!(seen.matches('n').count() >= 2, "two publications at least: {seen}");
}

#[tokio::test]
async fn its_client_sends_and_gets_bodies_of_a_megabyte() {
    if !found() {
        return;
    }
    let ours = serve("127.0.0.1");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("body").to_str().unwrap().to_owned();
    let put = ["-b", "1024", "-m", "put", "-f", &file];
    let large = digits(1 << 20);
    std::fs::write(&file, &large).unwrap();
    let got = ask(&["-b", "1024"], ours.address, "/large").await;
    assert!(got.as_bytes() == large, "Block2: {} bytes", got.len());
    let got = ask(&put, ours.address, "/echo").await;
    assert!(got.as_bytes() == large, "Block1 and Block2: {} bytes", got.len());
    std::fs::write(&file, digits(3 << 20)).unwrap();
    let refused = ask(&put, ours.address, "/echo").await;
    assert!(refused.starts_with("4.13"), "{refused}");
}

#[tokio::test]
async fn its_posts_are_processed_once_by_our_server_though_everything_comes_twice() {
    if !found() {
        return;
    }
    let ours = serve("127.0.0.1");
    let relay = relay(ours.address, REPEATING, 4).await;
    for n in 1..=5 {
        let counted = ask(&["-m", "post", "-e", "x"], relay, "/count").await;
        assert_eq!(counted, n.to_string());
    }
    assert!(ours.duplicates() >= 5, "{}", ours.duplicates());
}

/// Its first timeout is two to three seconds, whatever the path, so this asks less than others do.
#[tokio::test]
async fn its_client_gets_its_answers_from_our_server_though_much_is_lost() {
    if !found() {
        return;
    }
    let ours = serve("127.0.0.1");
    let relay = relay(ours.address, LOSING, 4).await;
    let work = (1..=4).map(|_| async { ask(&["-m", "post", "-e", "x"], relay, "/count").await });
    for (n, post) in work.enumerate() {
        assert_eq!(post.await, (n + 1).to_string());
    }
    let body = String::from_utf8(digits(5000).to_vec()).unwrap();
    assert_eq!(ask(&["-m", "put", "-e", &body], relay, "/echo").await, body);
    assert_eq!(ask(&[], relay, "/separate").await, "that took a while");
}

#[tokio::test]
async fn its_client_echoes_what_our_server_challenges_it_with() {
    if !found() {
        return;
    }
    let config = ServerConfig::new().verify(Verify::All);
    let ours = serve_with("127.0.0.1", config);
    assert_eq!(ask(&[], ours.address, "/times").await.len(), 3000);
}

#[tokio::test]
async fn our_client_gets_everything_from_its_server() {
    if !found() {
        return;
    }
    let client = Client::new();
    let (_server, at) = served("127.0.0.1", &client).await;
    let base = format!("coap://{at}");
    assert!(client.get(base.as_str()).await.unwrap().text().contains("libcoap"));
    let large = format!("{base}/large");
    let body = digits(1 << 20);
    let put = client.put(large.as_str(), body.clone()).await.unwrap();
    assert_eq!(put.code(), Code::CREATED);
    assert!(client.get(large.as_str()).await.unwrap().body() == &body, "Block1 and Block2");
    assert_eq!(client.post(large.as_str(), "x").await.unwrap().code(), Code::CHANGED);
    assert_eq!(client.delete(large.as_str()).await.unwrap().code(), Code::DELETED);
    assert_eq!(client.get(large.as_str()).await.unwrap().code(), Code::NOT_FOUND);
    assert_eq!(client.get(format!("{base}/async?1")).await.unwrap().text(), "done");
    let deleted = client.delete(base.as_str()).await.unwrap();
    assert_eq!(deleted.code(), Code::METHOD_NOT_ALLOWED);
    let unknown = Request::get(base.as_str()).unwrap().option(OptionNumber(65001), b"x");
    // Its 4.02 repeats the option, so that the response has to be rejected as well (section 5.4.1).
    let refused = client.request(unknown).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::BadOption);
    let hops = Request::get(base.as_str()).unwrap().option(OptionNumber::HOP_LIMIT, &[3]);
    assert!(client.request(hops).await.unwrap().is_success());
    let silent = Request::get(base.as_str()).unwrap().option(OptionNumber::NO_RESPONSE, &[2]);
    let silent = silent.non_confirmable().timeout(Duration::from_millis(500));
    assert!(client.request(silent).await.is_err(), "No-Response");
    let mut time = client.observe(format!("{base}/time")).await.unwrap();
    for _ in 0..3 {
        assert!(time.next().await.unwrap().unwrap().is_success());
    }
    drop(time);
    is_forgotten(&client, Duration::from_millis(1500)).await;
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

/// Its example server has nothing that changes but the resources that a PUT creates: a notification
/// longer than a block is that of such a one.
#[tokio::test]
async fn our_client_observes_a_resource_of_its_server_that_is_longer_than_a_block() {
    if !found() {
        return;
    }
    let client = Client::new();
    let (_server, at) = served("127.0.0.1", &client).await;
    let uri = format!("coap://{at}/example_data");
    let mut observation = client.observe(uri.as_str()).await.unwrap();
    let first = observation.next().await.unwrap().unwrap();
    assert!(first.body().len() > 1024, "{} bytes", first.body().len());
    let changed = digits(3000);
    assert_eq!(client.put(uri.as_str(), changed.clone()).await.unwrap().code(), Code::CHANGED);
    let second = observation.next().await.unwrap().unwrap();
    assert!(second.body() == &changed, "{} bytes", second.body().len());
}

#[tokio::test]
async fn its_client_gets_what_our_command_serves() {
    if !found() {
        return;
    }
    let (_serving, said) = Running::ready(EBBTIDE, &["serve", "--bind", "[::1]:0"]);
    let address = said.rsplit('/').next().unwrap().parse().unwrap();
    assert_eq!(ask(&[], address, "/test").await, DIGITS);
    assert_eq!(ask(&["-m", "post", "-e", "hi"], address, "/echo").await, "hi");
}

#[tokio::test]
async fn our_discover_lists_its_resources_by_ipv6() {
    if !found() {
        return;
    }
    let (_server, at) = served("::1", &Client::new()).await;
    let server = ask(&[], at, "/").await;
    assert!(server.contains("libcoap"), "{server}");
    let links = ebbtide(&["discover", &format!("coap://{at}")]).await;
    assert!(links.lines().any(|link| link.starts_with("</time>")), "{links}");
}

/// It repeats no answer (`studies/peers.md`): what comes twice is processed twice. Each of these
/// requests leaves the same state behind and has a first answer that the client goes by.
async fn change_through(trouble: Trouble, length: usize, rounds: usize) {
    let client = Client::with_config(super::our_server::patient());
    let (_server, at) = served("127.0.0.1", &client).await;
    let base = format!("coap://{}/changing", relay(at, trouble, 4).await);
    for _ in 0..rounds {
        let made = client.put(base.as_str(), "made").await.unwrap();
        assert_eq!(made.code(), Code::CREATED);
        assert_eq!(client.get(base.as_str()).await.unwrap().text(), "made");
        let body = digits(length);
        assert_eq!(client.put(base.as_str(), body.clone()).await.unwrap().code(), Code::CHANGED);
        assert!(client.get(base.as_str()).await.unwrap().body() == &body);
        assert_eq!(client.delete(base.as_str()).await.unwrap().code(), Code::DELETED);
    }
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

#[tokio::test]
async fn our_client_takes_the_first_answer_of_its_server_though_everything_comes_twice() {
    if found() {
        change_through(REPEATING, 1000, 3).await;
    }
}

#[tokio::test]
async fn our_client_gets_its_answers_from_its_server_though_much_is_lost() {
    if found() {
        change_through(LOSING, 3000, 5).await;
    }
}
