//! The client of a device sends the datagrams of an endpoint's client: both get the same input.

use crate::common::{SERVER, address, client, credentials, server};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_dtls::{
    AlertDescription, CipherSuite, ClientIo, ClientState, Config, Credentials, Endpoint, Event,
    Failure, Output, PskClient, SavedSession, SendError, SessionId, Timing,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;

const DELAY: Duration = Duration::from_millis(50);

/// Datagrams that left, data that arrived, and what is due.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    sent: Vec<Vec<u8>>,
    data: Vec<Vec<u8>>,
    due: Option<Instant>,
    established: bool,
    ended: Option<Failure>,
}

/// A client of each kind.
struct Both {
    endpoint: Endpoint,
    /// The session, or its handshake, at the endpoint.
    session: SessionId,
    /// The handshake there that tries whether the server has lost the session.
    trial: Option<SessionId>,
    device: PskClient,
    rng: ChaCha8Rng,
    credentials: Credentials,
    saved: Option<SavedSession>,
    is_established: bool,
    /// The random value of the last handshake.
    random: Vec<u8>,
    /// Handshakes that followed the first one.
    again: usize,
}

impl Both {
    fn connect(now: Instant, seed: u64, credentials: Credentials) -> (Self, Outcome) {
        let suites = vec![CipherSuite::PskAes128Ccm8];
        let config = Config {
            suites,
            cid_length: Some(0),
            return_routability: false,
            mtu: 512,
            ..Config::default()
        };
        let mut endpoint = client(config, seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // An endpoint draws the secret of its cookies.
        rng.fill_bytes(&mut [0; 32]);
        let session =
            endpoint.connect(now, address(SERVER), credentials.clone(), Timing::default());
        let mut sent = Vec::new();
        let send = &mut |datagram: &[u8]| sent.push(datagram.to_vec());
        let io = &mut ClientIo { now, rng: &mut rng, send };
        let device = PskClient::connect(io, credentials.clone(), Timing::default());
        let random = random_of(&sent[0]).unwrap().to_vec();
        let (trial, saved, is_established, again) = Default::default();
        let mut both = Self {
            endpoint,
            session,
            trial,
            device,
            rng,
            credentials,
            saved,
            is_established,
            random,
            again,
        };
        let outcome = both.compare(now, sent, Vec::new(), Vec::new());
        (both, outcome)
    }

    /// Gives both the same input, and compares what follows.
    fn step(&mut self, now: Instant, input: Option<&[u8]>) -> Outcome {
        let (mut sent, mut data, mut delivered) = (Vec::new(), Vec::new(), Vec::new());
        let send = &mut |datagram: &[u8]| sent.push(datagram.to_vec());
        let io = &mut ClientIo { now, rng: &mut self.rng, send };
        match input {
            Some(datagram) => {
                let deliver = &mut |_, data: &[u8]| delivered.push(data.to_vec());
                let from = address(SERVER);
                self.endpoint.handle_datagram(now, from, &mut datagram.to_vec(), deliver);
                let mut copy = datagram.to_vec();
                let mut rest = &mut copy[..];
                while let Some(arrived) = self.device.receive(io, rest) {
                    data.push(arrived.data.to_vec());
                    rest = arrived.rest;
                }
            }
            None => {
                self.endpoint.handle_timeout(now);
                self.device.handle_timeout(io);
            }
        }
        self.compare(now, sent, data, delivered)
    }

    fn compare(
        &mut self,
        now: Instant,
        sent: Vec<Vec<u8>>,
        data: Vec<Vec<u8>>,
        delivered: Vec<Vec<u8>>,
    ) -> Outcome {
        let mut of_endpoint = Outcome { data: delivered, ..Outcome::default() };
        self.drain(&mut of_endpoint);
        let random = sent.iter().rev().find_map(|datagram| random_of(datagram));
        if let Some(random) = random.filter(|random| **random != self.random) {
            // The server has said that it has lost the session. A device then begins another one, which an endpoint
            // leaves to its driver.
            self.random = random.to_vec();
            self.again += 1;
            self.credentials.saved = self.saved.take().or(self.credentials.saved.take());
            let credentials = self.credentials.clone();
            let begun = self.endpoint.connect(now, address(SERVER), credentials, Timing::default());
            match self.is_established {
                true => self.trial = Some(begun),
                false => self.session = begun,
            }
            self.drain(&mut of_endpoint);
        }
        let state = self.device.state();
        let due = self.device.timeout();
        let ended = if let ClientState::Ended(failure) = state { Some(failure) } else { None };
        let of_device =
            Outcome { sent, data, due, established: state == ClientState::Established, ended };
        of_endpoint.established = self.is_established;
        if self.trial.is_some() {
            // The endpoint has the timers of two sessions.
            of_endpoint.due = due;
        }
        assert_eq!(of_device, of_endpoint);
        of_device
    }

    /// Fetches the output of the endpoint.
    fn drain(&mut self, outcome: &mut Outcome) {
        loop {
            match self.endpoint.poll_output() {
                Output::Transmit { datagram, .. } => outcome.sent.push(datagram.to_vec()),
                Output::Event(Event::Established { session, .. }) => {
                    (self.session, self.trial, self.is_established) = (session, None, true);
                    self.saved = self.endpoint.saved_session(session);
                }
                Output::Event(Event::Ended { reason: Failure::Replaced, .. }) => {}
                Output::Event(Event::Ended { session, .. }) if self.trial == Some(session) => {
                    (self.trial, self.credentials.saved) = (None, None);
                    // A device says nothing of a trial that has failed, since its session goes on.
                    outcome.sent.retain(|datagram| datagram[0] != 21);
                }
                Output::Event(Event::Ended { reason, .. }) => {
                    self.is_established = false;
                    outcome.ended = Some(reason);
                }
                Output::Event(Event::RoundTrip { sample, .. }) => {
                    assert_eq!(self.device.take_round_trip(), Some(sample));
                }
                Output::Event(_) => {}
                Output::Timeout(at) => {
                    outcome.due = at;
                    break;
                }
            }
        }
    }

    fn send(&mut self, now: Instant, data: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        self.endpoint.send(now, self.session, data, &mut record).unwrap();
        let mut sent = Vec::new();
        let send = &mut |datagram: &[u8]| sent.push(datagram.to_vec());
        self.device.send(&mut ClientIo { now, rng: &mut self.rng, send }, data).unwrap();
        assert_eq!(sent, [&record[..]]);
        record
    }
}

/// The random value of a ClientHello.
fn random_of(datagram: &[u8]) -> Option<&[u8]> {
    // A record of epoch 0 with a message of this kind; before the value are their headers and the version.
    let is_hello = datagram[0] == 22 && datagram[3..5] == [0, 0] && datagram[13] == 1;
    is_hello.then(|| &datagram[13 + 12 + 2..][..32])
}

/// How a session went.
#[derive(Debug)]
struct Played {
    ended: Option<Failure>,
    /// Records with data that arrived at the clients.
    arrived: usize,
    /// Handshakes after the first one.
    again: usize,
}

/// Plays a session with a server over a network that loses, repeats and changes datagrams.
fn play(seed: u64, credentials: Credentials) -> Played {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut now = Instant::ZERO + Duration::from_secs(1000);
    let mut server = server(Config::default(), seed + 1);
    let mut in_flight: BTreeMap<(Instant, u64), (bool, Vec<u8>)> = BTreeMap::new();
    let (mut both, mut outcome) = Both::connect(now, seed, credentials);
    let (mut number, mut arrived, mut at_server) = (0, 0, None);
    for _ in 0..200 {
        let mut left: Vec<_> = outcome.sent.drain(..).map(|datagram| (true, datagram)).collect();
        arrived += outcome.data.drain(..).len();
        if outcome.ended.is_some() {
            return Played { ended: outcome.ended, arrived, again: both.again };
        }
        let mut due = outcome.due;
        loop {
            match server.poll_output() {
                Output::Transmit { datagram, .. } => left.push((false, datagram.to_vec())),
                Output::Event(Event::Established { session, .. }) => at_server = Some(session),
                Output::Event(Event::Ended { .. }) => at_server = None,
                Output::Event(_) => {}
                Output::Timeout(at) => {
                    due = due.into_iter().chain(at).min();
                    break;
                }
            }
        }
        match (dice.next_u32() % 8, at_server) {
            (0, _) if outcome.established => left.push((true, both.send(now, b"a request"))),
            (1..4, Some(session)) => {
                let mut record = Vec::new();
                server.send(now, session, b"a response", &mut record).unwrap();
                left.push((false, record));
            }
            (4, Some(session)) if arrived > 5 => {
                server.close(now, session);
                at_server = None;
            }
            _ => {}
        }
        for (to_server, mut datagram) in left {
            let (fate, place) = (dice.next_u32() % 20, dice.next_u32() as usize);
            let copies = [1, 0, 0, 0, 2].get(fate as usize).copied().unwrap_or(1);
            if fate == 0 {
                let at = place % datagram.len();
                datagram[at] ^= 1 << (place % 8);
            }
            for _ in 0..copies {
                number += 1;
                let late = DELAY + Duration::from_millis((dice.next_u32() % 200).into());
                in_flight.insert((now + late, number), (to_server, datagram.clone()));
            }
        }
        let next = in_flight.first_key_value().map(|((at, _), _)| *at);
        // An idle session goes on after a while.
        now = now.max(due.into_iter().chain(next).min().unwrap_or(now + DELAY));
        match in_flight.first_entry().filter(|entry| entry.key().0 <= now).map(|it| it.remove()) {
            Some((true, mut datagram)) => {
                let from = address(crate::common::CLIENT);
                server.handle_datagram(now, from, &mut datagram, &mut |_, _| {});
            }
            Some((false, datagram)) => outcome = both.step(now, Some(&datagram)),
            None => {
                server.handle_timeout(now);
                outcome = both.step(now, None);
            }
        }
    }
    Played { ended: None, arrived, again: both.again }
}

#[test]
fn a_device_sends_what_an_endpoint_sends_whatever_is_lost_repeated_or_changed() {
    let (mut closed, mut arrived, mut again) = (0, 0, 0);
    for seed in 0..60 {
        let played = play(seed, credentials("device", b"secret"));
        closed += usize::from(played.ended == Some(Failure::ClosedByPeer));
        arrived += played.arrived;
        again += played.again;
    }
    assert!(closed > 10 && arrived > 400 && again > 20, "{closed}, {arrived}, {again}");
}

#[test]
fn a_device_with_a_wrong_key_ends_as_an_endpoint_does() {
    let refused = Failure::Refused(AlertDescription::DECRYPT_ERROR);
    let ends: Vec<_> =
        (0..10).map(|seed| play(seed, credentials("device", b"wrong")).ended).collect();
    assert!(ends.contains(&Some(refused)), "{ends:?}");
    // The others have missed that, and begin again, since the server says that it knows nothing of their handshake.
    assert!(ends.iter().flatten().count() > 5, "{ends:?}");
}

#[test]
fn a_device_resumes_its_session_and_sends_nothing_before_the_handshake_is_complete() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut server = server(Config::default(), 2);
    let now = Instant::ZERO;
    let mut saved = None;
    for round in 0..2 {
        let mut sent = Vec::new();
        let (credentials, mut datagrams) =
            (Credentials { saved: saved.take(), ..credentials("device", b"secret") }, 0);
        let send = &mut |datagram: &[u8]| sent.push(datagram.to_vec());
        let io = &mut ClientIo { now, rng: &mut rng, send };
        let mut device = PskClient::connect(io, credentials, Timing::default());
        assert_eq!(device.send(io, b"early"), Err(SendError::NotEstablished));
        while let Some(mut datagram) = sent.pop() {
            datagrams += 1;
            let from = address(crate::common::CLIENT);
            server.handle_datagram(now, from, &mut datagram, &mut |_, _| {});
            while let Output::Transmit { datagram, .. } = server.poll_output() {
                let send = &mut |datagram: &[u8]| sent.push(datagram.to_vec());
                let io = &mut ClientIo { now, rng: &mut rng, send };
                assert!(device.receive(io, &mut datagram.to_vec()).is_none());
            }
        }
        assert_eq!(device.state(), ClientState::Established);
        assert_eq!(datagrams, 3);
        saved = device.saved_session().cloned();
        assert!(saved.is_some(), "round {round}");
    }
}

/// A device and its server, between which nothing is lost.
struct Path {
    now: Instant,
    rng: ChaCha8Rng,
    server: Endpoint,
    device: PskClient,
    /// The session at the server.
    at_server: Option<SessionId>,
    /// The requests that arrived at the server.
    arrived: usize,
    /// Datagrams that left the device.
    left: usize,
}

impl Path {
    fn new() -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let now = Instant::ZERO + Duration::from_secs(1000);
        let mut sent = Vec::new();
        let send = &mut |datagram: &[u8]| sent.push(datagram.to_vec());
        let io = &mut ClientIo { now, rng: &mut rng, send };
        let device = PskClient::connect(io, credentials("device", b"secret"), Timing::default());
        let server = server(Config::default(), 4);
        let mut path = Self { now, rng, server, device, at_server: None, arrived: 0, left: 0 };
        path.deliver(sent);
        assert_eq!(path.device.state(), ClientState::Established);
        path
    }

    /// Makes a call of the device, and lets everything arrive.
    fn call<R>(&mut self, call: impl FnOnce(&mut PskClient, &mut ClientIo<'_>) -> R) -> R {
        let mut result = None;
        let sent = self.undelivered(|device, io| result = Some(call(device, io)));
        self.deliver(sent);
        result.unwrap()
    }

    /// Makes a call of the device, and returns what it sends.
    fn undelivered(
        &mut self,
        call: impl FnOnce(&mut PskClient, &mut ClientIo<'_>),
    ) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        let send = &mut |datagram: &[u8]| sent.push(datagram.to_vec());
        call(&mut self.device, &mut ClientIo { now: self.now, rng: &mut self.rng, send });
        sent
    }

    fn deliver(&mut self, mut to_server: Vec<Vec<u8>>) {
        while !to_server.is_empty() {
            self.left += to_server.len();
            for mut datagram in to_server.drain(..) {
                let from = address(crate::common::CLIENT);
                let mut arrived = 0;
                self.server
                    .handle_datagram(self.now, from, &mut datagram, &mut |_, _| arrived += 1);
                self.arrived += arrived;
            }
            loop {
                match self.server.poll_output() {
                    Output::Transmit { datagram, .. } => {
                        let send = &mut |datagram: &[u8]| to_server.push(datagram.to_vec());
                        let io = &mut ClientIo { now: self.now, rng: &mut self.rng, send };
                        assert!(self.device.receive(io, &mut datagram.to_vec()).is_none());
                    }
                    Output::Event(Event::Established { session, .. }) => {
                        self.at_server = Some(session);
                    }
                    Output::Event(_) => {}
                    Output::Timeout(_) => break,
                }
            }
        }
    }

    /// Begins a handshake, whose hello is lost. Returns the length of the session ID in it.
    fn hello(&mut self) -> u8 {
        let mut length = None;
        // Record, handshake message, version and random come before it.
        let send = &mut |hello: &[u8]| length = Some(hello[13 + 12 + 2 + 32]);
        self.device.reconnect(&mut ClientIo { now: self.now, rng: &mut self.rng, send });
        length.unwrap()
    }

    fn request(&mut self) {
        self.call(|device, io| device.send(io, b"a request")).unwrap();
    }

    /// The server loses what it knew. `unknown_answered` says how often in a second it tells clients.
    fn restart(&mut self, unknown_answered: u32) {
        let mut config = Config::default();
        config.limits.unknown_answered = unknown_answered;
        self.server = server(config, 5);
    }
}

/// A fatal bad_record_mac in plain text.
const FORGED: [u8; 15] = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 20];

#[test]
fn a_device_that_closes_its_session_ends_it_at_the_server() {
    let Path { now, mut rng, mut server, device, .. } = Path::new();
    let mut sent = Vec::new();
    let send = &mut |datagram: &[u8]| sent.push(datagram.to_vec());
    device.close(&mut ClientIo { now, rng: &mut rng, send });
    let [datagram] = &mut sent[..] else { panic!("{sent:?}") };
    server.handle_datagram(now, address(crate::common::CLIENT), datagram, &mut |_, _| {});
    assert_eq!(server.sessions(), 0);
}

#[test]
fn a_device_whose_server_has_restarted_begins_another_session_when_that_says_so() {
    let mut path = Path::new();
    path.request();
    path.restart(1);
    path.request();
    assert_eq!((path.arrived, path.device.state()), (1, ClientState::Established));
    path.request();
    assert_eq!(path.arrived, 2, "in the new session");
}

#[test]
fn a_device_whose_server_restarts_during_the_handshake_begins_another_one() {
    let mut path = Path::new();
    path.restart(1024);
    let mut sent = Vec::new();
    let step = |path: &mut Path, sent: &mut Vec<Vec<u8>>, input: Option<&mut [u8]>| {
        let send = &mut |datagram: &[u8]| sent.push(datagram.to_vec());
        let io = &mut ClientIo { now: path.now, rng: &mut path.rng, send };
        match input {
            Some(datagram) => assert!(path.device.receive(io, datagram).is_none()),
            None => path.device.reconnect(io),
        }
    };
    step(&mut path, &mut sent, None);
    // Until ClientKeyExchange, which is lost.
    while sent[0][13] != 16 {
        let from = address(crate::common::CLIENT);
        path.server.handle_datagram(path.now, from, &mut sent[0], &mut |_, _| {});
        sent.clear();
        while let Output::Transmit { datagram, .. } = path.server.poll_output() {
            let mut datagram = datagram.to_vec();
            step(&mut path, &mut sent, Some(&mut datagram));
        }
    }
    path.restart(1024);
    assert_eq!(path.device.state(), ClientState::Handshake);
    path.now = path.device.timeout().unwrap();
    path.call(|device, io| device.handle_timeout(io));
    assert_eq!(path.device.state(), ClientState::Established);
    let arrived = path.arrived;
    path.request();
    assert_eq!(path.arrived, arrived + 1);
}

#[test]
fn a_device_whose_server_forgets_each_handshake_gives_up() {
    let mut path = Path::new();
    path.restart(1024);
    let unknown = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 20];
    let mut hellos = path.undelivered(|device, io| device.reconnect(io));
    for restarts in 0..=3 {
        // Until ClientKeyExchange and its first copy, which are lost.
        while hellos[0][13] != 16 {
            let from = address(crate::common::CLIENT);
            path.server.handle_datagram(path.now, from, &mut hellos[0], &mut |_, _| {});
            while let Output::Transmit { datagram, .. } = path.server.poll_output() {
                let mut datagram = datagram.to_vec();
                let answers = path.undelivered(|device, io| {
                    assert!(device.receive(io, &mut datagram).is_none());
                });
                if !answers.is_empty() {
                    hellos = answers;
                }
            }
        }
        path.restart(1024);
        while path.device.timeout().is_some_and(|at| at < path.now + Duration::from_secs(11)) {
            path.now = path.device.timeout().unwrap();
            path.undelivered(|device, io| device.handle_timeout(io));
        }
        path.now = path.now + Duration::from_secs(11);
        hellos = path.undelivered(|device, io| {
            assert!(device.receive(io, &mut { unknown }).is_none());
        });
        assert_eq!(hellos.len(), usize::from(restarts < 3), "after {restarts}");
    }
    while let Some(at) = path.device.timeout() {
        path.now = at;
        path.undelivered(|device, io| device.handle_timeout(io));
    }
    assert_eq!(path.device.state(), ClientState::Ended(Failure::NoAnswer));
}

#[test]
fn a_device_whose_server_is_silent_about_its_restart_reconnects_when_it_gives_up() {
    let mut path = Path::new();
    path.restart(0);
    path.request();
    assert_eq!((path.arrived, path.device.state()), (0, ClientState::Established));
    path.call(|device, io| device.reconnect(io));
    path.request();
    assert_eq!(path.arrived, 1);
}

/// And a fatal handshake_failure after it.
const FORGED_TWICE: [u8; 30] = [
    21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 20, //
    21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 40,
];

#[test]
fn forged_alerts_end_neither_a_session_nor_the_handshake_that_tries_it() {
    let mut path = Path::new();
    let request = path.undelivered(|device, io| device.send(io, b"a request").unwrap());
    let hello = path.undelivered(|device, io| {
        assert!(device.receive(io, &mut { FORGED_TWICE }).is_none());
    });
    assert_eq!((hello.len(), path.device.state()), (1, ClientState::Established));
    // What the server answers in the session before still arrives.
    path.deliver(request);
    let session = path.at_server.unwrap();
    let mut answer = Vec::new();
    path.server.send(path.now, session, b"an answer", &mut answer).unwrap();
    path.undelivered(|device, io| {
        assert_eq!(device.receive(io, &mut answer).unwrap().data, b"an answer");
    });
    // Every datagram of the handshake is lost, until it is given up.
    while let Some(at) = path.device.timeout() {
        path.now = at;
        path.undelivered(|device, io| device.handle_timeout(io));
    }
    path.request();
    assert_eq!((path.arrived, path.at_server), (2, Some(session)), "in the session before");
    // And one that arrives makes another session.
    path.call(|device, io| assert!(device.receive(io, &mut { FORGED_TWICE }).is_none()));
    path.request();
    assert_eq!((path.arrived, path.device.state()), (3, ClientState::Established));
    assert_ne!(path.at_server, Some(session));
}

#[test]
fn a_session_that_a_fatal_alert_has_ended_is_not_resumed() {
    let mut path = Path::new();
    path.call(|device, io| device.reconnect(io));
    assert!(path.device.saved_session().is_some());
    path.server.end_sessions(path.now, |_| false);
    path.deliver(vec![Vec::new()]);
    let refused = Failure::Refused(AlertDescription::ACCESS_DENIED);
    assert_eq!(path.device.state(), ClientState::Ended(refused));
    assert!(path.device.saved_session().is_none());
    let hello = path.hello();
    assert_eq!(hello, 0, "the length of the session's ID");
}

#[test]
fn a_resumption_that_fails_is_followed_by_a_full_handshake() {
    let mut path = Path::new();
    path.restart(0);
    // The server is silent.
    assert_eq!(path.hello(), 16);
    while let Some(at) = path.device.timeout() {
        path.now = at;
        let send = &mut |_: &[u8]| {};
        path.device.handle_timeout(&mut ClientIo { now: at, rng: &mut path.rng, send });
    }
    assert_eq!(path.device.state(), ClientState::Ended(Failure::NoAnswer));
    assert_eq!(path.hello(), 0);
}

#[test]
fn forged_alerts_bring_a_handshake_in_ten_seconds_at_most_and_none_at_rest() {
    let mut path = Path::new();
    let before = path.left;
    path.call(|device, io| device.receive(io, &mut { FORGED }).is_none());
    assert_eq!(path.left, before, "nothing is unanswered");
    let mut handshakes = 0;
    for _ in 0..100 {
        path.request();
        let before = path.left;
        path.call(|device, io| device.receive(io, &mut { FORGED }).is_none());
        handshakes += usize::from(path.left > before);
        assert_eq!(path.device.state(), ClientState::Established);
        path.now = path.now + Duration::from_millis(500);
    }
    assert_eq!(handshakes, 5, "in 50 s");
}
