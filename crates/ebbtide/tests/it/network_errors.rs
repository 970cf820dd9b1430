//! An error that the system or the network reports costs one transmission: nothing that would survive the loss of a
//! datagram ends (RFC 7252 section 4.2, RFC 7641 section 4.5).
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the system's links are down in wall time")]

use crate::common::child_process::ChildProcess;
use ebbtide::server::{Router, Server, Subject, get};
use ebbtide::{Client, ErrorKind, Response};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const INSIDE: &str = "EBBTIDE_TEST_INSIDE";
const SERVER: &str = "10.77.0.1:5683";
/// How long what follows at once may take on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// What fails between the server and its observers.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Fault {
    LinkDown,
    /// The server's address is gone until its lease is renewed.
    LeaseLost,
    /// The interface is gone, and another one takes its place and address.
    InterfaceReplaced,
    /// The observers' network does not answer for their addresses, as while a station moves from one access point to
    /// another: the system reports failed look-ups, some seconds after the datagrams.
    NeighbourSilent,
}

impl Fault {
    const ALL: [Self; 4] =
        [Self::LinkDown, Self::LeaseLost, Self::InterfaceReplaced, Self::NeighbourSilent];

    /// Begins, for the observers in the network of this process.
    fn begin(self, observers: u32) {
        match self {
            Self::LinkDown => ip("link set va down"),
            Self::LeaseLost => ip("address del 10.77.0.1/24 dev va"),
            Self::InterfaceReplaced => ip("link del va"),
            Self::NeighbourSilent => {
                inside(observers, "link set vb arp off");
                ip("neigh flush dev va");
            }
        }
    }

    fn end(self, observers: u32) {
        match self {
            Self::LinkDown => ip("link set va up"),
            Self::LeaseLost => ip("address add 10.77.0.1/24 dev va"),
            Self::InterfaceReplaced => {
                link(observers);
                inside(observers, "address add 10.77.0.2/24 dev vb");
                inside(observers, "link set vb up");
            }
            Self::NeighbourSilent => inside(observers, "link set vb arp on"),
        }
    }

    /// How long after its end all observers have the last state. Nothing but silence is known of a neighbour, so that
    /// copies leave at most 6, 29 and 93 s after the first.
    fn settles_within(self, down: Duration) -> Duration {
        match self {
            Self::NeighbourSilent if down > Duration::from_secs(20) => 3 * SOON,
            _ => SOON,
        }
    }
}

/// A fault of so long, and those who observe while it comes.
#[derive(Copy, Clone)]
struct Outage {
    fault: Fault,
    observers: usize,
    down: Duration,
}

impl Outage {
    const OBSERVERS: &str = "EBBTIDE_TEST_OBSERVERS";
    const SECONDS: &str = "EBBTIDE_TEST_SECONDS_DOWN";
    const FAULT: &str = "EBBTIDE_TEST_FAULT";

    /// The one that the side of a link was started for.
    fn of_this_side() -> Self {
        let number = |name| std::env::var(name).unwrap().parse().unwrap();
        let down = Duration::from_secs(number(Self::SECONDS) as u64);
        Self { fault: Fault::ALL[number(Self::FAULT)], observers: number(Self::OBSERVERS), down }
    }

    /// Plays both sides of the link, in networks of their own.
    fn play(self) {
        let namespaces = ["--user", "--map-root-user", "--net"];
        let possible = Command::new("unshare").args(namespaces).arg("true").status();
        let has_ip =
            Command::new("ip").arg("-Version").status().is_ok_and(|status| status.success());
        if !possible.is_ok_and(|status| status.success()) || !has_ip {
            assert!(std::env::var_os("CI").is_none(), "no namespaces, or no ip");
            println!("skipped: no namespaces, or no ip");
            return;
        }
        let mut server = side("the_side_of_the_server", &namespaces);
        server.env(Self::OBSERVERS, self.observers.to_string());
        server.env(Self::SECONDS, self.down.as_secs().to_string());
        server.env(Self::FAULT, (self.fault as usize).to_string());
        assert!(server.status().unwrap().success());
    }
}

/// A resource with a number as its state.
struct Number {
    value: Arc<AtomicU32>,
    subject: Subject,
}

impl Number {
    fn new(subject: Subject) -> Self {
        Self { value: Arc::default(), subject }
    }

    fn on(&self, router: Router, path: &str) -> Router {
        let value = self.value.clone();
        let read = move || {
            let value = value.clone();
            async move { Response::content(value.load(Ordering::SeqCst).to_string()) }
        };
        router.route(path, get(read).observable(&self.subject))
    }

    fn set(&self, value: u32) {
        self.value.store(value, Ordering::SeqCst);
        self.subject.changed();
    }
}

/// Runs `ip` with these arguments.
fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(done.success(), "ip {arguments}");
}

/// Runs `ip` in the network of this process.
fn inside(process: u32, arguments: &str) {
    let network = format!("--net=/proc/{process}/ns/net");
    let done = Command::new("nsenter").args([&network, "ip"]).args(arguments.split(' ')).status();
    assert!(done.unwrap().success(), "ip {arguments}");
}

/// Makes the link to the network of this process, and this side's address.
fn link(observers: u32) {
    ip("link add va type veth peer name vb");
    ip(&format!("link set vb netns {observers}"));
    ip("address add 10.77.0.1/24 dev va");
    ip("link set va up");
}

/// This program once more, in a network of its own, to play the part of one side of the link.
fn side(part: &str, namespaces: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    let itself = std::env::current_exe().unwrap();
    // A thousand observers have more sockets than a process may open unless it asks.
    let shell = ["sh", "-c", "ulimit -S -n $(ulimit -H -n); exec \"$0\" \"$@\""];
    command.args(namespaces).args(shell).arg(itself).args([
        "--exact",
        &format!("network_errors::{part}"),
        "--nocapture",
    ]);
    command.env(INSIDE, part);
    command
}

fn plays(part: &str) -> bool {
    std::env::var(INSIDE).is_ok_and(|inside| inside == part)
}

/// The observers, at one end of the link. They write a line when they are registered, one when they have acknowledged
/// a notification, and one when all of them have the last state.
#[tokio::test]
async fn the_side_of_the_observers() {
    if !plays("the_side_of_the_observers") {
        return;
    }
    std::io::stdin().read_line(&mut String::new()).unwrap();
    ip("address add 10.77.0.2/24 dev vb");
    ip("link set vb up");
    let mut observations = Vec::new();
    let Outage { fault, observers, down } = Outage::of_this_side();
    for n in 0..observers {
        // Each with a socket of its own.
        let client = Client::new();
        // A Non-confirmable notification that is lost silently is lost.
        let path = if fault == Fault::NeighbourSilent { 0 } else { n % 2 };
        let uri = format!("coap://{SERVER}/{path}");
        let mut observation = client.observe(uri.as_str()).await.unwrap();
        let first = timeout(SOON, observation.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(first.text(), "0");
        observations.push((client, observation));
    }
    println!("registered");
    for (_, observation) in &mut observations {
        let next = timeout(SOON, observation.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(next.text(), "1");
    }
    let client = Client::new();
    // Too long for an address that may be forged, so the client proves its own; few copies leave for others.
    let known = client.get(format!("coap://{SERVER}/long")).await.unwrap();
    assert_eq!(known.body().len(), 500);
    println!("known");
    // The separate response is due while the link is down, and the second request is sent then.
    let asked = client.clone();
    let later = tokio::spawn(async move { asked.get(format!("coap://{SERVER}/later")).await });
    let soon = tokio::spawn(async move {
        sleep(Duration::from_millis(1500)).await;
        client.get(format!("coap://{SERVER}/now")).await
    });
    for (_, observation) in &mut observations {
        while observation.next().await.unwrap().unwrap().text() != "3" {}
    }
    println!("all have the last state");
    assert_eq!(later.await.unwrap().unwrap().text(), "later");
    // The last copy of a request leaves 9 to 14 s after the first where nobody reports that it is lost.
    let outlasted = down < Duration::from_secs(8);
    let soon = soon.await.unwrap();
    assert!(soon.is_ok_and(|soon| soon.text() == "now") || !outlasted);
}

/// The server, at the other end, whose link goes down.
#[tokio::test]
async fn the_side_of_the_server() {
    if !plays("the_side_of_the_server") {
        return;
    }
    let outage = Outage::of_this_side();
    let begun = Instant::now();
    let error = Client::new().get("coap://192.0.2.1/x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());

    let mut observers = side("the_side_of_the_observers", &["--net"]);
    observers.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut observers = ChildProcess(observers.spawn().unwrap());
    let theirs = observers.0.id();
    let network = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/net")).unwrap();
    while network(&theirs.to_string()) == network("self") {
        sleep(Duration::from_millis(10)).await;
    }
    link(theirs);
    let numbers = [Number::new(Subject::new()), Number::new(Subject::non_confirmable())];
    let later = get(|| async {
        sleep(Duration::from_secs(1)).await;
        "later"
    });
    let long = get(|| async { Response::content(vec![b'l'; 500]) });
    let router = Router::new().route("/later", later).route("/long", long);
    let router = router.route("/now", get(|| async { "now" }));
    let router = numbers[1].on(numbers[0].on(router, "/0"), "/1");
    let server = Server::bind(router, [SERVER]).unwrap();
    let meter = server.meter();
    observers.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let (tell, mut said) = mpsc::unbounded_channel();
    let lines = BufReader::new(observers.0.stdout.take().unwrap()).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));

    while said.recv().await.expect("the observers ended early") != "registered" {}
    // Once an observer has acknowledged a notification, its address is not forged, and it is tried as often as others.
    numbers.iter().for_each(|number| number.set(1));
    while said.recv().await.expect("the observers ended early") != "known" {}
    sleep(Duration::from_millis(300)).await;
    outage.fault.begin(theirs);
    numbers.iter().for_each(|number| number.set(2));
    sleep(outage.down / 2).await;
    numbers.iter().for_each(|number| number.set(3));
    sleep(outage.down / 2).await;
    outage.fault.end(theirs);
    let (up, longest) = (Instant::now(), outage.fault.settles_within(outage.down));
    while timeout(longest.saturating_sub(up.elapsed()), said.recv())
        .await
        .expect("not all have the last state")
        .expect("the observers ended early")
        != "all have the last state"
    {}
    let (Outage { fault, down, .. }, took) = (outage, up.elapsed());
    println!("{fault:?} of {down:?}: all observers have the last state {took:?} after its end");
    let snapshot = meter.snapshot();
    assert_eq!((snapshot.observers, snapshot.refusals.observers_vanished), (outage.observers, 0));
    while said.recv().await.is_some() {}
    assert!(observers.0.wait().unwrap().success());
}

#[test]
fn a_link_that_is_down_for_three_seconds_ends_no_observation_and_no_exchange() {
    Outage { fault: Fault::LinkDown, observers: 16, down: Duration::from_secs(3) }.play();
}

#[test]
fn a_lost_lease_a_replaced_interface_and_a_silent_neighbour_end_none_either() {
    std::thread::scope(|scope| {
        for fault in &Fault::ALL[1..] {
            let outage = Outage { fault: *fault, observers: 16, down: Duration::from_secs(3) };
            scope.spawn(move || outage.play());
        }
    });
}

#[test]
#[ignore = "six minutes: ./ci.sh statistics"]
fn no_fault_of_three_to_sixty_seconds_loses_one_of_a_thousand_observers() {
    for seconds in [1, 3, 10, 30, 60] {
        for fault in Fault::ALL {
            Outage { fault, observers: 1000, down: Duration::from_secs(seconds) }.play();
        }
    }
}

/// The message type, 0 for Confirmable, and the message ID.
fn head(datagram: &[u8]) -> (u8, [u8; 2]) {
    (datagram[0] >> 4 & 3, [datagram[2], datagram[3]])
}

#[tokio::test]
async fn a_report_of_a_closed_port_ends_no_observation() {
    let number = Number::new(Subject::new());
    let server = Server::bind(number.on(Router::new(), "/x"), ["127.0.0.1:0"]).unwrap();
    let to = server.local_addrs()[0];
    let observer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = observer.local_addr().unwrap();
    // A Confirmable GET of /x with Observe 0.
    observer.send_to(&[0x41, 1, 0, 1, 7, 0x60, 0x51, b'x'], to).await.unwrap();
    let mut answer = [0; 64];
    let length = timeout(SOON, observer.recv(&mut answer)).await.unwrap().unwrap();
    assert_eq!((answer[length - 1], number.subject.observers()), (b'0', 1));
    drop(observer);
    number.set(1);
    // The report of the first transmission comes at once.
    sleep(Duration::from_millis(300)).await;
    assert_eq!(number.subject.observers(), 1);
    let observer = UdpSocket::bind(address).await.unwrap();
    let length = loop {
        let length = timeout(SOON, observer.recv(&mut answer)).await.expect("no retransmission");
        match length.unwrap() {
            // A ping of the congestion control, which asks before it repeats.
            4 => observer.send_to(&[0x70, 0, answer[2], answer[3]], to).await.unwrap(),
            length => break length,
        };
    };
    let (kind, id) = head(&answer);
    assert_eq!((kind, answer[length - 1]), (0, b'1'));
    observer.send_to(&[0x60, 0, id[0], id[1]], to).await.unwrap();
}

/// A server that answers one request with 2.05, and returns its address.
async fn answers_once(socket: UdpSocket) {
    let mut request = [0; 64];
    let (length, from) = socket.recv_from(&mut request).await.unwrap();
    assert!(length > 4);
    let token = usize::from(request[0] & 0xf);
    let mut response = vec![0x60 | token as u8, 0x45, request[2], request[3]];
    response.extend_from_slice(&request[4..4 + token]);
    socket.send_to(&response, from).await.unwrap();
}

#[tokio::test]
async fn a_peer_that_has_answered_may_close_its_port_for_a_moment() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = socket.local_addr().unwrap();
    let uri = format!("coap://{address}/x");
    let client = Client::new();
    let server = tokio::spawn(answers_once(socket));
    assert!(client.get(uri.as_str()).await.unwrap().is_success());
    server.await.unwrap();
    let asked = client.clone();
    let second = tokio::spawn(async move { asked.get(uri).await });
    sleep(Duration::from_millis(300)).await;
    assert!(!second.is_finished(), "{:?}", second.await);
    let server = tokio::spawn(answers_once(UdpSocket::bind(address).await.unwrap()));
    assert!(timeout(SOON, second).await.unwrap().unwrap().unwrap().is_success());
    server.await.unwrap();
}

#[tokio::test]
async fn a_closed_port_that_never_answered_is_told_at_once() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/x", socket.local_addr().unwrap());
    drop(socket);
    let begun = Instant::now();
    let error = Client::new().get(uri).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
