//! What conforms in time and what depends on fixed ports and full memories, shown by bytes on the wire: a port of the
//! network that shares no code with the endpoint plays the scripts of `wire_verdicts.txt`, in virtual time.
//!
//! `docs/conformance.md` names the cases beside their clauses.

use crate::wire_words::{Remembered, Script, scripts};
use ebbtide::congestion::ControlConfig;
use ebbtide::dtls::{Credentials, Psk};
use ebbtide::network::{DatagramNetwork, DatagramPort, StreamListener};
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Server, Subject, get, post, put};
use ebbtide::{Client, ClientConfig, Code, Error, Request, Response, Uri};
use ebbtide_testnet::{Conditions, TestNetwork, play};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{advance, sleep, timeout};

/// Longer than a lifetime of message IDs.
const LONG: Duration = Duration::from_secs(1000);
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
/// One that remembers little.
const SMALL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
const SCRIPT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(224, 0, 1, 187));

/// A script under way.
struct Scene {
    network: TestNetwork,
    port: Box<dyn DatagramPort>,
    /// Those on which nothing has been sent.
    listeners: BTreeMap<u16, Box<dyn StreamListener>>,
    secured: Box<dyn DatagramPort>,
    peer: SocketAddr,
    client: Client,
    asked: VecDeque<JoinHandle<Result<String, Error>>>,
    remembered: Remembered,
    /// The present state of the observable resources.
    changed: [Subject; 2],
    state: Arc<AtomicU32>,
    /// When the script sent or received something last, and when it sent.
    last: Duration,
    sent: Duration,
    /// Of the numbers of a client with OSCORE.
    numbers: TempDir,
}

fn serve(network: &TestNetwork, changed: &[Subject; 2], state: &Arc<AtomicU32>) {
    for address in [SERVER, SMALL] {
        let (posts, shown) = (AtomicU32::new(0), state.clone());
        let count = move |_: &Call<'_>| {
            let count = posts.fetch_add(1, Ordering::SeqCst) + 1;
            Response::new(Code::CHANGED).payload(count.to_string())
        };
        let show = move |_: &Call<'_>| Response::content(shown.load(Ordering::SeqCst).to_string());
        let length = |call: &Call<'_>| {
            Response::new(Code::CHANGED).payload(call.payload().len().to_string())
        };
        let slow = get(|| async {
            sleep(Duration::from_secs(5)).await;
            "slow"
        });
        let router = Router::new()
            .route("/t", get(|| async { "hi" }))
            .route("/p", post(count))
            .route("/u", put(length))
            .route("/s", slow)
            .route("/o", get(show.clone()).observable(&changed[0]))
            .route("/n", get(show).observable(&changed[1]));
        let config = network.server_config();
        let config = match address {
            SMALL => config.limits(|limits| limits.remembered_messages(8).block_bytes(2500)),
            _ => config,
        };
        let server = Server::with_config(router, config, [SocketAddr::from((address, 5683))]);
        let server = server.unwrap();
        if address == SERVER {
            server.join(GROUP, 0).unwrap();
        }
        tokio::spawn(server.run());
    }
}

impl Scene {
    fn begin(network: TestNetwork) -> Self {
        let (changed, state) = ([Subject::new(), Subject::non_confirmable()], Arc::default());
        serve(&network, &changed, &state);
        let port = network.bind((SCRIPT, 5683).into()).unwrap();
        let secured = network.bind((SCRIPT, 5684).into()).unwrap();
        let streams = network.streams().unwrap();
        let listeners = [80, 443, 5683, 5684]
            .map(|port| (port, streams.listen((SCRIPT, port).into()).unwrap()))
            .into();
        let client = Client::with_config(network.client_config());
        Self {
            network,
            port,
            listeners,
            secured,
            peer: (SERVER, 5683).into(),
            client,
            asked: VecDeque::new(),
            remembered: Remembered::default(),
            changed,
            state,
            last: Duration::ZERO,
            sent: Duration::ZERO,
            numbers: TempDir::new().unwrap(),
        }
    }

    async fn line(&mut self, line: &str) -> Result<(), String> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            ">" => {
                self.port.send(self.peer, &self.remembered.bytes(rest)).unwrap();
                self.last = self.network.elapsed();
                self.sent = self.last;
            }
            "<" => {
                let (span, words) = spanned(rest);
                let got = timeout(LONG, received(&*self.port)).await.map_err(|_| "nothing came")?;
                self.peer = got.1;
                self.in_time(span)?;
                if !self.remembered.matches(words, &got.0) {
                    return Err(format!("came {:02x?}", got.0));
                }
            }
            "secured" => {
                let (got, _) =
                    timeout(LONG, received(&*self.secured)).await.map_err(|_| "nothing came")?;
                if !self.remembered.matches(rest, &got) {
                    return Err(format!("came {got:02x?}"));
                }
            }
            "connected" => {
                let listener = &self.listeners[&rest.parse().unwrap()];
                let accepted = timeout(LONG, poll_fn(|cx| listener.poll_accept(cx))).await;
                accepted.map_err(|_| "no connection")?.unwrap();
            }
            // Since what was sent last.
            "took" => {
                self.last = self.sent;
                self.in_time(spanned(rest).0)?;
            }
            "silent" => {
                if let Ok((got, _)) = timeout(seconds(rest), received(&*self.port)).await {
                    return Err(format!("came {got:02x?}"));
                }
            }
            "wait" => sleep(seconds(rest)).await,
            // The machine is so busy that all timers are late.
            "late" => advance(seconds(rest)).await,
            "small" => self.peer = (SMALL, 5683).into(),
            "group" => self.peer = (GROUP, 5683).into(),
            "move" => self.port = self.network.bind("0.0.0.0:0".parse().unwrap()).unwrap(),
            "change" => {
                self.state.fetch_add(1, Ordering::SeqCst);
                self.changed.iter().for_each(Subject::changed);
            }
            "client" => self.start_client(rest).await,
            "get" | "non" | "post" => self.ask(command, rest),
            "ends" => {
                let (span, shown) = spanned(rest);
                let asked = self.asked.pop_front().expect("a request");
                let ended = timeout(LONG, asked).await.map_err(|_| "goes on")?.unwrap();
                self.in_time(span)?;
                let ended = ended.unwrap_or_else(|_| "error".to_owned());
                if ended != shown {
                    return Err(format!("ended with {ended}"));
                }
            }
            _ => panic!("no command: {line}"),
        }
        Ok(())
    }

    /// Something happens: not sooner nor later than these seconds after what was before.
    fn in_time(&mut self, span: Option<[f64; 2]>) -> Result<(), String> {
        let now = self.network.elapsed();
        let passed = (now - std::mem::replace(&mut self.last, now)).as_secs_f64();
        match span {
            Some([from, to]) if !(from..=to).contains(&passed) => Err(format!("after {passed} s")),
            _ => Ok(()),
        }
    }

    /// Another client, once nothing is left of the one before.
    async fn start_client(&mut self, words: &str) {
        for asked in self.asked.drain(..) {
            asked.abort();
            let _ = asked.await;
        }
        self.client = Client::with_config(self.network.client_config());
        sleep(Duration::from_millis(1)).await;
        let config: ClientConfig = self.network.client_config();
        self.client = Client::with_config(match words {
            "psk" => config.credentials(Credentials::new("device", Psk::new(b"key").unwrap())),
            // One after the other, with the same file.
            "oscore" => {
                let context = OscoreContext::new(&[7; 16], b"c", b"s");
                let context = context.state_file(self.numbers.path().join("numbers"));
                config.oscore(OscoreContexts::new([context]).unwrap())
            }
            control => config.control(ControlConfig::parse(control).unwrap()),
        });
    }

    fn ask(&mut self, command: &str, at: &str) {
        let uri = match at.starts_with('/') {
            true => format!("coap://{SCRIPT}{at}"),
            false => at.to_owned(),
        };
        let request = match command {
            "post" => Request::post(&*uri).unwrap(),
            "non" => Request::get(&*uri).unwrap().non_confirmable(),
            _ => Request::get(&*uri).unwrap(),
        };
        let (client, uri) = (self.client.clone(), uri.parse::<Uri>().unwrap());
        self.asked.push_back(tokio::spawn(async move {
            let answer = client.request(request).await?;
            Ok(match answer.code() {
                Code::CREATED => match uri.location(&answer) {
                    Some(made) => made.to_string(),
                    None => "nowhere".to_owned(),
                },
                _ if answer.is_success() => answer.text().into_owned(),
                _ => answer.error_for_status().unwrap_err().to_string(),
            })
        }));
    }
}

/// The seconds within which something has to happen, and the rest of the line.
fn spanned(words: &str) -> (Option<[f64; 2]>, &str) {
    let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
    let span = first.strip_suffix('s').and_then(|span| span.split_once(".."));
    match span.map(|(from, to)| (from.parse(), to.parse())) {
        Some((Ok(from), Ok(to))) => (Some([from, to]), rest),
        _ => (None, words),
    }
}

fn seconds(words: &str) -> Duration {
    Duration::from_secs_f64(words.parse().unwrap())
}

/// The next datagram, but for the pings of congestion control.
async fn received(port: &dyn DatagramPort) -> (Vec<u8>, SocketAddr) {
    let mut buffer = vec![0; 65_536];
    loop {
        let arrived = poll_fn(|cx| port.poll_receive(cx, &mut buffer)).await.unwrap();
        match buffer[..arrived.length] {
            [0x40, 0, high, low] => port.send(arrived.from, &[0x70, 0, high, low]).unwrap(),
            ref datagram => return (datagram.to_vec(), arrived.from),
        }
    }
}

#[test]
fn every_case_that_takes_its_time_is_as_the_wire_says() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wire_verdicts.txt");
    let mut failed = String::new();
    for Script { name, lines } in scripts(&fs::read_to_string(file).unwrap()) {
        let why = std::sync::Mutex::new(None);
        play(1, Conditions::new(), async |network| {
            let mut scene = Scene::begin(network);
            for line in &lines {
                if let Err(error) = scene.line(line).await {
                    let trace = scene.network.trace();
                    *why.lock().unwrap() = Some(format!("{name}: {line}: {error}\n{trace}\n"));
                    return;
                }
            }
        });
        failed.extend(why.into_inner().unwrap());
    }
    assert!(failed.is_empty(), "\n{failed}");
}
