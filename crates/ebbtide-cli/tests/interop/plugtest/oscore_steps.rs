//! The OSCORE interop test specification (EricssonResearch/OSCOAP, `test-spec5.md`): our client against our server,
//! aiocoap's and Californium's, and their clients against ours.

use super::oscore::{ContextPair, protected};
use super::{LOSSES, PATIENCE, PERIOD, Seen, Tester, with_losses};
use crate::our_server::patient;
use crate::peers::{EBBTIDE, Peer, Running, free_address, output};
use crate::tap::Tap;
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Router, get};
use ebbtide::{Code, ContentFormat, OptionNumber, Response, Server, ServerConfig};
use ebbtide_core::oscore::OscoreOption;
use ebbtide_core::wire::Message;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::net::UdpSocket;

fn contexts(context: impl IntoIterator<Item = OscoreContext>) -> OscoreContexts {
    OscoreContexts::new(context).unwrap()
}

/// A client with this context.
async fn tester(server: SocketAddr, lost: u32, context: OscoreContext) -> Tester {
    Tester::with_config(server, lost, patient().oscore(contexts([context]))).await
}

fn client(pair: ContextPair) -> OscoreContext {
    pair.context(ContextPair::CLIENT, ContextPair::SERVER)
}

fn option(response: &Response, number: OptionNumber) -> Option<Vec<u8>> {
    response.options().get(number).map(|option| option.value.to_vec())
}

fn is_hello(response: &Response) {
    assert_eq!((response.code(), &*response.text()), (Code::CONTENT, "Hello World!"));
    assert_eq!(response.content_format(), Some(ContentFormat::TEXT));
}

/// A protected POST was sent, and answered by a protected 2.04.
fn is_protected(seen: &[Seen], id_context: Option<&[u8]>) {
    let message = |sent| seen.iter().rfind(|seen| seen.sent == sent).unwrap().message();
    let (asked, answered) = (message(true), message(false));
    let value = asked.option(OptionNumber::OSCORE).unwrap().value;
    let option = OscoreOption::decode(value).unwrap();
    assert_eq!((asked.code(), option.kid), (Code::POST, Some(ContextPair::CLIENT)));
    assert_eq!(option.kid_context, id_context);
    assert!(asked.option(OptionNumber::URI_PATH).is_none());
    assert_eq!(answered.code(), Code::CHANGED);
    assert!(answered.option(OptionNumber::OSCORE).is_some());
}

/// Runs all steps but that against another server. The files of the client's numbers are in `folder`.
async fn all(server: SocketAddr, lost: u32, folder: &Path) {
    let plain = Tester::new(server, lost).await;
    // Test 0.
    is_hello(&plain.get("/oscore/hello/coap").await.0);
    // Test 2.
    let c = tester(server, lost, client(ContextPair::Cd)).await;
    let (hello, seen) = c.get("/oscore/hello/1").await;
    is_hello(&hello);
    is_protected(&seen, Some(&ContextPair::ID_CONTEXT));
    let numbers = folder.join("a");
    let a = tester(server, lost, client(ContextPair::Ab).state_file(&numbers)).await;
    requests(&a).await;
    observations(&a).await;
    if lost == 0 {
        replay(&a, server).await;
    }
    drop(a);
    refusals(server, lost, &numbers).await;
}

/// Tests 1, 3, 4 and 8 to 11.
async fn requests(a: &Tester) {
    let (hello, seen) = a.get("/oscore/hello/1").await;
    is_hello(&hello);
    is_protected(&seen, None);
    let (hello, _) = a.get("/oscore/hello/2?first=1").await;
    is_hello(&hello);
    assert_eq!(option(&hello, OptionNumber::ETAG), Some(vec![0x2b]));
    let accept = a.request(Code::GET, "/oscore/hello/3").accept(ContentFormat::TEXT);
    let (hello, _) = a.ask(accept).await;
    is_hello(&hello);
    assert_eq!(option(&hello, OptionNumber::MAX_AGE), Some(vec![5]));
    let text = |method, path| a.request(method, path).format(ContentFormat::TEXT);
    let (posted, _) = a.ask(text(Code::POST, "/oscore/hello/6").payload(&b"\x4a"[..])).await;
    assert_eq!((posted.code(), &posted.body()[..]), (Code::CHANGED, &b"\x4a"[..]));
    assert_eq!(posted.content_format(), Some(ContentFormat::TEXT));
    let matching = text(Code::PUT, "/oscore/hello/7").option(OptionNumber::IF_MATCH, b"\x7b");
    assert_eq!(a.ask(matching.payload(&b"\x7a"[..])).await.0.code(), Code::CHANGED);
    let none = text(Code::PUT, "/oscore/hello/7").option(OptionNumber::IF_NONE_MATCH, b"");
    assert_eq!(a.ask(none.payload(&b"\x8a"[..])).await.0.code(), Code::PRECONDITION_FAILED);
    let delete = a.request(Code::DELETE, "/oscore/test");
    assert_eq!(a.ask(delete).await.0.code(), Code::DELETED);
}

/// Tests 5 to 7.
async fn observations(a: &Tester) {
    let (hello, _) =
        a.ask(a.request(Code::GET, "/oscore/hello/1").option(OptionNumber::OBSERVE, b"")).await;
    is_hello(&hello);
    assert_eq!(option(&hello, OptionNumber::OBSERVE), None, "it is not observed");
    let states = ["one", "two", "Terminate Observe"];
    for (path, states) in [("/oscore/observe1", &states[..]), ("/oscore/observe2", &states[..2])] {
        let mut observation = a.client.observe(a.uri(path)).await.unwrap();
        for &state in states {
            let next = tokio::time::timeout(PATIENCE, observation.next()).await;
            let seen = match next.expect("in time").expect("a state") {
                Ok(response) => response.text().into_owned(),
                Err(error) => error.to_string(),
            };
            assert!(seen.contains(state), "{path}: {seen} instead of {state}");
        }
        observation.cancel().await.unwrap();
    }
}

/// Test 15: the same request again, as another message.
async fn replay(a: &Tester, server: SocketAddr) {
    let (_, seen) = a.get("/oscore/hello/1").await;
    let mut request = seen.into_iter().find(|seen| seen.sent).unwrap().datagram;
    request[2] ^= 0x80;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(&request, server).await.unwrap();
    let mut answer = [0; 256];
    let received = tokio::time::timeout(Duration::from_secs(20), socket.recv(&mut answer)).await;
    let length = received.expect("an answer").unwrap();
    let answer = Message::parse(&answer[..length]).unwrap();
    assert_eq!(answer.code(), Code::UNAUTHORIZED);
    assert!(answer.option(OptionNumber::OSCORE).is_none());
}

/// Tests 12 to 14: an unknown ID, a wrong key of the client, and another one of the server.
async fn refusals(server: SocketAddr, lost: u32, numbers: &Path) {
    let ab = ContextPair::Ab;
    let other_secret = OscoreContext::new(b"sixteen bytes 16", b"", ContextPair::SERVER);
    let cases = [
        (ab.context(b"\xff", ContextPair::SERVER), Some(Code::UNAUTHORIZED)),
        (other_secret.state_file(numbers), Some(Code::BAD_REQUEST)),
        (ab.context(ContextPair::CLIENT, b"\x02").state_file(numbers), None),
    ];
    for (context, refusal) in cases {
        let tester = tester(server, lost, context).await;
        let asked = tester.request(Code::GET, "/oscore/hello/1").timeout(PATIENCE);
        assert!(tester.client.request(asked).await.is_err(), "{refusal:?}");
        let seen = tester.seen();
        let answer = seen.iter().rfind(|seen| !seen.sent).unwrap().message();
        let is_protected = answer.option(OptionNumber::OSCORE).is_some();
        match refusal {
            Some(code) => assert_eq!((answer.code(), is_protected), (code, false)),
            None => assert!(is_protected, "it was accepted by the server"),
        }
    }
}

/// Test 17: what is protected is not served otherwise. aiocoap's server of the tests does so.
async fn unprotected(server: SocketAddr) {
    let plain = Tester::new(server, 0).await;
    assert_eq!(plain.get("/oscore/hello/1").await.0.code(), Code::UNAUTHORIZED);
}

/// Test 16: a server that does not know OSCORE.
async fn unaware(server: SocketAddr, refusal: Code) {
    let a = tester(server, 0, client(ContextPair::Ab)).await;
    assert!(a.client.get(a.uri("/oscore/hello/coap")).await.is_err());
    let answer = a.seen().into_iter().rfind(|seen| !seen.sent).unwrap();
    assert_eq!(answer.code, refusal);
}

/// Our server, for as long as the runtime lives.
fn our_server() -> SocketAddr {
    let config = ServerConfig::new().max_retransmit(8);
    let config = config.oscore(contexts(ContextPair::ALL.map(ContextPair::server)));
    let router = protected(Router::new(), PERIOD);
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    tokio::spawn(server.run());
    address
}

/// One without OSCORE.
fn unaware_server() -> SocketAddr {
    let router = Router::new().route("/oscore/hello/coap", get(|| "Hello World!"));
    let server = Server::with_config(router, ServerConfig::new(), ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    tokio::spawn(server.run());
    address
}

/// A program of aiocoap's source distribution, with the folder of its contexts. They are made here,
/// since that distribution lacks them.
fn aiocoaps(
    program: &str,
    sender: &str,
    recipient: &str,
    names: [&str; 2],
) -> (Command, tempfile::TempDir) {
    let interop = Path::new(EBBTIDE).parent().and_then(Path::parent).unwrap().join("interop");
    let place = interop.join("aiocoap-tests/aiocoap-0.4.17/contrib/oscore-plugtest");
    let folder = tempfile::tempdir().unwrap();
    for (name, id_context) in
        names.into_iter().zip(["", r#", "id-context_hex": "37cbf3210017a2d3""#])
    {
        let context: PathBuf = folder.path().join(name);
        std::fs::create_dir(&context).unwrap();
        let settings = format!(
            r#"{{"secret_hex": "0102030405060708090a0b0c0d0e0f10", "salt_hex": "9e7ca92223786340",
                "sender-id_hex": "{sender}", "recipient-id_hex": "{recipient}"{id_context}}}"#
        );
        std::fs::write(context.join("settings.json"), settings).unwrap();
    }
    let mut command = Command::new(interop.join("aiocoap/bin/python"));
    command.args(["-W", "ignore"]).arg(place.join(program));
    (command, folder)
}

#[tokio::test]
async fn our_client_passes_every_oscore_test_against_our_server() {
    with_losses(LOSSES, |lost| async move {
        let folder = tempfile::tempdir().unwrap();
        all(our_server(), lost, folder.path()).await;
    })
    .await;
    unaware(unaware_server(), Code::BAD_OPTION).await;
    unprotected(our_server()).await;
}

#[tokio::test]
async fn our_client_passes_every_oscore_test_against_aiocoaps_server() {
    if Peer::find("aiocoap").is_none() {
        return;
    }
    let (mut command, folder) = aiocoaps("plugtest-server", "01", "", ["b", "d"]);
    let address = free_address("127.0.0.1");
    command.arg(folder.path()).args(["--bind", &address.to_string()]);
    let (_running, ready) = Running::started(command);
    assert_eq!(ready, "Plugtest server ready.");
    all(address, 0, folder.path()).await;
}

#[tokio::test]
async fn aiocoaps_client_passes_every_oscore_test_against_our_server() {
    if Peer::find("aiocoap").is_none() {
        return;
    }
    // Without a number it asks for the tests, one after the other; the last is for a server without OSCORE.
    for (server, tests) in
        [(our_server(), (0..=15).chain([17]).collect()), (unaware_server(), vec![16])]
    {
        let (mut command, folder) = aiocoaps("plugtest-client", "", "01", ["a", "c"]);
        command.arg(server.to_string()).arg(folder.path());
        let numbers: Vec<String> = tests.iter().map(|test: &u32| format!("{test}\n")).collect();
        let input = folder.path().join("tests");
        std::fs::write(&input, numbers.concat()).unwrap();
        command.stdin(std::fs::File::open(&input).unwrap());
        let run = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = run.await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{errors}");
        let is_bad = |line: &&str| {
            let line = line.to_lowercase();
            line.contains("fail")
                && !line.starts_with("check passed")
                && !line.contains("precondition failed")
        };
        assert_eq!(said.lines().find(is_bad), None, "{said}\n{errors}");
        let runs = said.matches("Running test").count();
        assert_eq!(runs, tests.len(), "{said}\n{errors}");
    }
}

#[tokio::test]
async fn our_client_passes_every_oscore_test_against_californiums_server() {
    let Some(peer) = Peer::find("californium") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (address, without) = (free_address("127.0.0.1"), free_address("127.0.0.1"));
    let mut command = Command::new(peer.program());
    let period = PERIOD.as_millis();
    command.args(["oscore-server", &address.port().to_string(), "127.0.0.1"]);
    command.args([period.to_string(), without.port().to_string()]);
    // It prints the trace of each message that it cannot decrypt.
    command.stderr(Stdio::null());
    let (_running, _) = Running::started(command);
    all(address, 0, folder.path()).await;
    unprotected(address).await;
    // Its core knows the number of the option, so that the request reaches a resource without POST.
    unaware(without, Code::METHOD_NOT_ALLOWED).await;
}

#[tokio::test]
async fn californiums_client_passes_every_oscore_test_against_our_server() {
    let Some(peer) = Peer::find("californium") else { return };
    let tap = Tap::before(our_server()).await;
    let [aware, unaware] = [tap.address, unaware_server()].map(|server| format!("coap://{server}"));
    let output = output(peer.program(), &["oscore-client", &aware, &unaware]).await;
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("all answered"), "{said}\n{errors}");
    // All states of both observations have arrived; it delivers the first of each (studies/peers.md, 17).
    let seen = tap.take();
    let messages = seen.iter().filter(|seen| seen.sent).map(|seen| Message::parse(&seen.datagram));
    let requests = messages.map(Result::unwrap).filter(|message| message.code().is_request());
    let (mut readable, mut kids) = (BTreeSet::new(), BTreeSet::new());
    for request in requests {
        let path = request.options().filter(|option| option.number == OptionNumber::URI_PATH);
        let path: Vec<_> = path.map(|segment| String::from_utf8_lossy(segment.value)).collect();
        let option = request.option(OptionNumber::OSCORE).map(|option| option.value.to_vec());
        if let Some(option) = option {
            let option = OscoreOption::decode(&option).unwrap();
            kids.insert((option.kid.unwrap().to_vec(), option.kid_context.map(<[u8]>::to_vec)));
            assert_eq!(path.concat(), "", "of a protected request");
        } else {
            readable.insert(path.join("/"));
        }
    }
    // Tests 0 and 17, and 1, 2 and 12.
    assert!(readable.iter().eq(["oscore/hello/1", "oscore/hello/coap"]), "{readable:?}");
    let with_context = (ContextPair::CLIENT.to_vec(), Some(ContextPair::ID_CONTEXT.to_vec()));
    let sent = [(ContextPair::CLIENT.to_vec(), None), with_context, (b"\xff".to_vec(), None)];
    assert_eq!(kids, BTreeSet::from(sent));
}
