//! What conforms is shown by bytes on the wire, exchanged with a plain socket that shares no code with the endpoint.
//!
//! `wire_verdicts.txt` has a script for each case, and `docs/conformance.md` names the cases beside their clauses.

use crate::common::wire_words::{self, Remembered, Script};
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{
    Call, HandlerError, Router, Server, Subject, Verify, get, interface_index, one_block, post, put,
};
use ebbtide::{
    Client, ClientConfig, Code, ContentFormat, Error, OptionNumber, Peer, QBlockParameters,
    Request, Response, ServerConfig,
};
use ebbtide_core::time::Micros;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// A retransmission comes after 3 s at most, on a busy machine somewhat later.
const SOON: Duration = Duration::from_secs(20);
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 86, 84);

/// The names of all cases, those that take their time included.
pub(crate) fn names() -> BTreeSet<String> {
    let timed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testbed/ebbtide-testnet/tests/it/wire_verdicts.txt"
    );
    let timed = wire_words::scripts(&fs::read_to_string(timed).unwrap());
    scripts().into_iter().chain(timed).map(|script| script.name).collect()
}

fn scripts() -> Vec<Script> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wire_verdicts.txt");
    wire_words::scripts(&fs::read_to_string(file).unwrap())
}

/// The server of the scripts, and what they change at it.
struct Served {
    address: SocketAddr,
    /// Of one that trusts no address before it has echoed.
    strict: SocketAddr,
    /// Of a member of the group.
    member: SocketAddr,
    /// Of one with OSCORE.
    oscore: SocketAddr,
    state: Arc<AtomicU32>,
    subject: Subject,
}

/// The state that is an error.
const GONE: u32 = u32::MAX;

fn serve() -> Served {
    let (state, subject) = (Arc::new(AtomicU32::new(0)), Subject::new());
    let (shown, posts) = (state.clone(), AtomicU32::new(0));
    let observed = move |_: &Call<'_>| match shown.load(Ordering::SeqCst) {
        GONE => Response::new(Code::NOT_FOUND),
        state => Response::content(state.to_string()),
    };
    let counted = move |_: &Call<'_>| {
        let count = posts.fetch_add(1, Ordering::SeqCst) + 1;
        Response::new(Code::CHANGED).payload(count.to_string())
    };
    let changed =
        |call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().len().to_string());
    let slow = get(|| async {
        sleep(Duration::from_millis(300)).await;
        "slow"
    });
    let back = async |peer: Peer| -> Result<String, HandlerError> {
        Ok(peer.get("/t").await?.text().into_owned())
    };
    let from_file = |call: &Call<'_>| {
        let fill = |room: &mut [u8], _| {
            room.fill(b'f');
            Ok(room.len())
        };
        one_block(call, Response::new(Code::CONTENT), 2048, fill).unwrap()
    };
    let long = || get(|_: &Call<'_>| Response::content(vec![b'b'; 2000]));
    let shown = state.clone();
    let changing = move |_: &Call<'_>| match shown.load(Ordering::SeqCst) {
        state @ 0..2 => Response::content(state.to_string()).format(ContentFormat::TEXT),
        state => Response::content(state.to_string()).format(ContentFormat::JSON),
    };
    let exists = AtomicBool::new(false);
    let create = move |_: &Call<'_>| match exists.swap(true, Ordering::SeqCst) {
        false => Response::new(Code::CREATED),
        true => Response::new(Code::PRECONDITION_FAILED),
    };
    let router = Router::new()
        .route("/t", get(|| async { "hi" }).put(changed))
        .route("/p", post(counted))
        .route("/s", slow)
        .route("/o", get(observed).observable(&subject))
        .route("/b", long())
        .route("/back", get(back))
        .route("/u", put(changed).max_body(100))
        .route("/f", get(from_file))
        .route("/l", long().observable(&subject))
        .route("/c", get(changing).observable(&subject))
        .route("/n", put(create).conditional());
    let start = |router, config: ServerConfig, at: &str| {
        let quick =
            QBlockParameters { non_timeout: Micros::from_millis(20), ..QBlockParameters::DEFAULT };
        let config =
            config.transport(|transport| transport.q_block(quick).default_leisure(Duration::ZERO));
        let server = Server::with_config(router, config, [at]).unwrap();
        let address = server.local_addrs()[0];
        if address.ip().is_unspecified() {
            server.join(GROUP.into(), interface_index("lo").unwrap()).unwrap();
        }
        tokio::spawn(server.run());
        SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()))
    };
    let local = "127.0.0.1:0";
    let only = |path, resource| Router::new().route(path, resource);
    let posts = AtomicU32::new(0);
    let long_count = move |_: &Call<'_>| {
        let count = posts.fetch_add(1, Ordering::SeqCst) + 1;
        Response::new(Code::CHANGED).payload(count.to_string().repeat(200))
    };
    let slow_long = get(|| async {
        sleep(Duration::from_millis(300)).await;
        "long".repeat(100)
    });
    let distrusted = only("/b", long()).route("/q", post(long_count)).route("/sl", slow_long);
    let strict = start(distrusted, ServerConfig::new().verify(Verify::All), local);
    let secret: Vec<u8> = (1..=16).collect();
    let salt = [0x9e, 0x7c, 0xa9, 0x22, 0x23, 0x78, 0x63, 0x40];
    let context = OscoreContext::new(&secret, &[1], &[]).salt(&salt);
    let renewed = OscoreContext::new(&[7; 16], b"s", b"c").renewed();
    let contexts = OscoreContexts::new([context, renewed]).unwrap();
    let vector = get(|_: &Call<'_>| Response::new(Code::CONTENT).payload("Hello World!"));
    let oscore = start(only("/tv1", vector), ServerConfig::new().oscore(contexts), local);
    let member = start(only("/t", get(|| async { "hi" })), ServerConfig::new(), "0.0.0.0:0");
    let address = start(router, ServerConfig::new(), local);
    Served { address, strict, member, oscore, state, subject }
}

/// One script under way: a socket, and what it remembers of the message that it received last.
struct Scene<'s> {
    served: &'s Served,
    socket: UdpSocket,
    client: Client,
    /// The server, or the client once it has sent something.
    peer: SocketAddr,
    remembered: Remembered,
    /// A port that is closed for a while.
    closed: Option<SocketAddr>,
    asked: Option<JoinHandle<Result<Vec<Response>, Error>>>,
    observed: Vec<Observed>,
}

/// An observation of a client.
struct Observed {
    states: UnboundedReceiver<String>,
    task: JoinHandle<()>,
}

impl Observed {
    fn start(client: Client, uri: String) -> Self {
        let (tell, states) = unbounded_channel();
        let task = tokio::spawn(async move {
            let mut observation = client.observe(uri).await.unwrap();
            loop {
                tokio::select! {
                    // The script wants no more.
                    () = tell.closed() => {
                        let _ = observation.cancel().await;
                        return;
                    }
                    state = observation.next() => {
                        let Some(Ok(state)) = state else { return };
                        let _ = tell.send(state.text().into_owned());
                    }
                }
            }
        });
        Self { states, task }
    }
}

impl Scene<'_> {
    async fn line(&mut self, line: &str) -> Result<(), String> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            ">" => {
                let bytes = self.remembered.bytes(rest);
                self.socket.send_to(&bytes, self.peer).await.unwrap();
            }
            "<" => {
                let got = self.received().await?;
                if !self.remembered.matches(rest, &got) {
                    return Err(format!("came {got:02x?}"));
                }
            }
            // What came before is not answered, since the answer to this ping comes next.
            "silent" => {
                let of_group = self.peer.ip().is_multicast();
                let peer = if of_group { self.served.member } else { self.peer };
                self.socket.send_to(&[0x40, 0, 0xff, 0xfe], peer).await.unwrap();
                let got = self.received().await?;
                if got != [0x70, 0, 0xff, 0xfe] {
                    return Err(format!("came {got:02x?}"));
                }
            }
            "strict" => self.peer = self.served.strict,
            "oscore" => self.peer = self.served.oscore,
            "close" => {
                let closed = std::mem::replace(&mut self.socket, socket().await);
                self.closed = Some(closed.local_addr().unwrap());
            }
            "open" => {
                // So that something has come meanwhile.
                sleep(Duration::from_millis(300)).await;
                let at = self.closed.take().expect("a closed port");
                self.socket = UdpSocket::bind(at).await.unwrap();
            }
            "group" => self.peer = (GROUP, self.served.member.port()).into(),
            "move" => self.socket = socket().await,
            "join" => {
                let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
                socket.join_multicast_v4(GROUP, Ipv4Addr::LOCALHOST).unwrap();
                self.socket = socket;
            }
            "change" => {
                self.served.state.fetch_add(1, Ordering::SeqCst);
                self.served.subject.changed();
            }
            "gone" => {
                self.served.state.store(GONE, Ordering::SeqCst);
                self.served.subject.changed();
            }
            "get" => {
                let request = Request::get(self.uri(rest)).unwrap();
                let client = self.client.clone();
                self.asked =
                    Some(tokio::spawn(async move { Ok(vec![client.request(request).await?]) }));
            }
            "put" | "put-small" => {
                let (path, bytes) = rest.split_once(' ').expect("a path and a number");
                let body = vec![b'a'; bytes.parse().unwrap()];
                let request = Request::put(self.uri(path)).unwrap().payload(body);
                let mut request = request.option(OptionNumber::IF_NONE_MATCH, b"");
                if command == "put-small" {
                    self.client = Client::with_config(ClientConfig::new().block_size(16));
                    request = request.block_size(16);
                }
                let client = self.client.clone();
                self.asked =
                    Some(tokio::spawn(async move { Ok(vec![client.request(request).await?]) }));
            }
            "ask-group" => {
                let port = self.socket.local_addr().unwrap().port();
                let request = Request::get(format!("coap://{GROUP}:{port}{rest}")).unwrap();
                let request = request.option(OptionNumber::ETAG, b"e");
                let client = self.client.clone();
                self.asked = Some(tokio::spawn(async move {
                    let answers = client.request_group(request, Duration::from_secs(1)).await?;
                    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
                }));
            }
            "ends" => {
                let asked = self.asked.take().expect("a request");
                let ended = timeout(SOON, asked).await.map_err(|_| "goes on")?.unwrap();
                let text = |answer: &Response| match answer.code().class() {
                    2 => answer.text().into_owned(),
                    class => format!("{class} {}", answer.text()),
                };
                let shown = match ended {
                    Ok(answers) => answers.iter().map(text).collect::<Vec<_>>().join(" "),
                    Err(_) => "error".to_owned(),
                };
                if shown != rest {
                    return Err(format!("ended with {shown}"));
                }
            }
            "observe" => {
                self.observed.push(Observed::start(self.client.clone(), self.uri(rest)));
            }
            "state" => {
                let observed = self.observed.last_mut().expect("an observation");
                let state = timeout(SOON, observed.states.recv()).await;
                let state = state.map_err(|_| "no state")?;
                if state.as_deref() != Some(rest) {
                    return Err(format!("state {state:?}"));
                }
            }
            "drop" => {
                let task = self.observed.pop().expect("an observation").task;
                task.abort();
                let _ = task.await;
            }
            "cancel" => self.observed.last_mut().expect("an observation").states.close(),
            _ => panic!("no command: {line}"),
        }
        Ok(())
    }

    /// A resource of the script.
    fn uri(&self, path: &str) -> String {
        format!("coap://127.0.0.1:{}{path}", self.socket.local_addr().unwrap().port())
    }

    /// The next datagram, but for the pings of congestion control.
    async fn received(&mut self) -> Result<Vec<u8>, String> {
        let mut buffer = [0; 2048];
        loop {
            let received = timeout(SOON, self.socket.recv_from(&mut buffer)).await;
            let (length, from) = received.map_err(|_| "nothing came")?.unwrap();
            self.peer = from;
            match buffer[..length] {
                [0x40, 0, high, low] => {
                    self.socket.send_to(&[0x70, 0, high, low], from).await.unwrap();
                }
                ref datagram => return Ok(datagram.to_vec()),
            }
        }
    }
}

/// A socket of the loopback interface.
async fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket2::SockRef::from(&socket).set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    socket
}

/// A client that answers requests, too.
fn client() -> Client {
    let loopback = interface_index("lo").unwrap();
    let config = ClientConfig::new().transport(|transport| transport.multicast_interface(loopback));
    Client::serving(Router::new().route("/t", get(|| async { "hi" })), config).unwrap()
}

#[tokio::test]
async fn every_case_is_as_the_wire_says() {
    let served = serve();
    let mut failed = String::new();
    for Script { name, lines } in scripts() {
        served.state.store(0, Ordering::SeqCst);
        let mut scene = Scene {
            served: &served,
            socket: socket().await,
            client: client(),
            peer: served.address,
            remembered: Remembered::default(),
            closed: None,
            asked: None,
            observed: Vec::new(),
        };
        for line in lines {
            if let Err(why) = scene.line(&line).await {
                writeln!(failed, "{name}: {line}: {why}").unwrap();
                break;
            }
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
}
