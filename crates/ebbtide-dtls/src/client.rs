//! A client with one session by a pre-shared key, for devices.

use crate::alert::{self, AlertDescription, AlertLevel};
use crate::cid::OwnCid;
use crate::config::{Config, Timing};
use crate::endpoint::SendError;
use crate::failure::Failure;
use crate::flight::RoundTrip;
use crate::handshake::{Context, Credentials, Handshake};
use crate::message::HandshakeType;
use crate::outbox::Outbox;
use crate::protect::{Discarded, Protection};
use crate::record::{ContentType, MAX_PLAINTEXT, RecordHeader};
use crate::session::SavedSession;
use crate::suite::CipherSuite;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use ebbtide_core::time::{Instant, Micros};
use rand_core::CryptoRng;

/// The program knows where its server is.
const SERVER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
/// Bytes of the datagrams, with their entries, that one call sends at most: more than a flight has. A datagram with many
/// forged records draws no more, since what does not fit is dropped.
const OUTBOX: usize = 2048;
/// Bytes of the longest handshake datagram.
const MTU: usize = 512;
/// How often a client believes an alert that is not protected, by which its server says that it has lost the session.
const DOUBTS: Micros = Micros::from_millis(10_000);
/// How often a handshake begins again because of such alerts before one is complete.
const MAX_RESTARTS: u8 = 3;

/// The time, the random numbers and the socket of a call.
pub struct ClientIo<'i> {
    /// The time of the call.
    pub now: Instant,
    /// The only source of randomness. Except in tests it must be unpredictable.
    pub rng: &'i mut dyn CryptoRng,
    /// Sends a datagram to the server, or drops it.
    pub send: &'i mut dyn FnMut(&[u8]),
}

/// The state of a [`PskClient`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientState {
    /// The handshake is not complete.
    Handshake,
    /// Data can be sent.
    Established,
    /// The session has ended. [`PskClient::reconnect`] begins another one.
    Ended(Failure),
}

/// Data that has arrived.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientData<'d> {
    /// The contents of a record.
    pub data: &'d [u8],
    /// The rest of the datagram, to be passed to [`PskClient::receive`] again.
    pub rest: &'d mut [u8],
}

/// A session of a device with one server, by `TLS_PSK_WITH_AES_128_CCM_8`, which RFC 7252 section 9.1.3.1 requires.
///
/// An [`Endpoint`](crate::Endpoint) has the same handshakes. This type has no tables, nothing of a
/// server and no certificates, and a program that uses it alone does not link them. The server may
/// give it a connection ID (RFC 9146), so that the session survives a change of the device's
/// address. The program passes the clock, the random numbers and the socket to each call, and calls
/// [`Self::handle_timeout`] at the instant that [`Self::timeout`] returns.
///
/// A server that has lost the session, as by a restart, may send an alert, which cannot be
/// protected any more (RFC 6347 section 4.1.2.7) and may be forged. A client that waits for an answer doubts its
/// session then, once in 10 s at most, and tries to begin another one, until which the old one goes
/// on. A handshake whose last flight was not answered in time begins again, three times at most. The program calls [`Self::reconnect`] after [`ClientState::Ended`], and when a message in
/// the session was given up, since the server may as well be silent. Observations have to be
/// registered again in the new session.
pub struct PskClient {
    config: Config,
    credentials: Credentials,
    timing: Timing,
    now: Instant,
    out: Outbox,
    handshake: Option<Box<Handshake>>,
    protection: Option<Protection>,
    /// The keys of the established session, while another handshake tries whether the server has lost it.
    doubted: Option<Box<Protection>>,
    saved: Option<SavedSession>,
    round_trips: Vec<RoundTrip>,
    state: ClientState,
    /// Whether the server has sent nothing since data was sent to it.
    is_unanswered: bool,
    /// Until when such alerts are not believed.
    believes_from: Instant,
    /// How often a handshake has begun again since the last one that was complete.
    restarts: u8,
}

/// A step of a handshake.
type Step<'s> = dyn FnMut(&mut Handshake, &mut Context<'_>) -> Result<(), Failure> + 's;

impl PskClient {
    /// Begins a handshake, whose flights are retransmitted according to `timing`.
    #[must_use]
    pub fn connect(io: &mut ClientIo<'_>, credentials: Credentials, timing: Timing) -> Self {
        let mut client = Self {
            config: Config {
                suites: [CipherSuite::PskAes128Ccm8].to_vec(),
                cid_length: Some(0),
                return_routability: false,
                mtu: MTU,
                ..Config::default()
            },
            credentials,
            timing,
            now: io.now,
            out: Outbox::new(OUTBOX),
            handshake: None,
            protection: None,
            doubted: None,
            saved: None,
            round_trips: Vec::new(),
            state: ClientState::Handshake,
            is_unanswered: false,
            believes_from: io.now,
            restarts: 0,
        };
        client.begin(io);
        client.flush(io);
        client
    }

    /// Begins another session in place of this one, with the same credentials, and resumes this one
    /// if the server allows it. Does nothing during a handshake.
    pub fn reconnect(&mut self, io: &mut ClientIo<'_>) {
        self.now = self.now.max(io.now);
        if self.state != ClientState::Handshake {
            self.restarts = 0;
            self.begin(io);
            self.flush(io);
        }
    }

    /// Begins a handshake.
    fn begin(&mut self, io: &mut ClientIo<'_>) {
        self.credentials.saved = self.saved.take().or(self.credentials.saved.take());
        let (credentials, timing) = (self.credentials.clone().into(), self.timing);
        let handshake =
            Handshake::connect(&mut self.context(io), credentials, timing, OwnCid::EMPTY);
        (self.handshake, self.protection, self.doubted) = (Some(handshake), None, None);
        (self.state, self.is_unanswered) = (ClientState::Handshake, false);
    }

    /// Whether the server has not answered: data of the session, or the last flight of a handshake.
    fn waits_in_vain(&self) -> bool {
        match self.handshake.as_ref().filter(|_| self.is_shaking_hands()) {
            Some(handshake) => handshake.is_unanswered(),
            None => self.is_unanswered,
        }
    }

    /// Begins a handshake because of an alert that is not protected. A session goes on until the
    /// handshake is complete, and a forger ends neither.
    fn doubt(&mut self, io: &mut ClientIo<'_>) {
        self.believes_from = self.now + DOUBTS;
        if self.is_shaking_hands() {
            // After some, the timers of the handshake end it: an alert that anyone can send must not keep it for ever.
            if self.restarts == MAX_RESTARTS {
                return;
            }
            self.restarts += 1;
        }
        let doubted = match self.state {
            ClientState::Established => {
                self.doubted.take().or(self.protection.take().map(Box::new))
            }
            _ => None,
        };
        self.begin(io);
        if doubted.is_some() {
            (self.state, self.doubted) = (ClientState::Established, doubted);
        }
    }

    /// Whether a handshake is not complete.
    fn is_shaking_hands(&self) -> bool {
        self.state == ClientState::Handshake || self.doubted.is_some()
    }

    /// The keys with which data is sent.
    fn sealing(&mut self) -> Option<&mut Protection> {
        self.doubted.as_deref_mut().or(self.protection.as_mut())
    }

    /// The state of the session.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        self.state
    }

    /// The secrets with which the session can be resumed later, if the server allows it
    /// ([`Credentials::saved`]).
    #[must_use]
    pub const fn saved_session(&self) -> Option<&SavedSession> {
        self.saved.as_ref()
    }

    /// The round trip of a flight that was answered, for a congestion control. Each is returned once.
    pub fn take_round_trip(&mut self) -> Option<RoundTrip> {
        self.round_trips.pop()
    }

    /// The instant at which [`Self::handle_timeout`] is to be called.
    #[must_use]
    pub fn timeout(&self) -> Option<Instant> {
        self.handshake.as_ref()?.due()
    }

    /// Retransmits a flight whose timeout has passed.
    pub fn handle_timeout(&mut self, io: &mut ClientIo<'_>) {
        self.now = self.now.max(io.now);
        if self.timeout().is_some_and(|at| at <= self.now) {
            match self.is_shaking_hands() {
                // The server no longer retransmits the flight before the last one.
                false => self.handshake = None,
                true => {
                    self.step(io, &mut |handshake, cx| handshake.handle_timeout(cx));
                }
            }
        }
        self.flush(io);
    }

    /// Processes the records of a datagram of the server up to the first with data. The datagram is used as scratch
    /// space. Malformed records, and those that are not authentic, are dropped silently.
    pub fn receive<'d>(
        &mut self,
        io: &mut ClientIo<'_>,
        datagram: &'d mut [u8],
    ) -> Option<ClientData<'d>> {
        self.now = self.now.max(io.now);
        let mut rest = datagram;
        // Bytes that cannot be a record end the datagram (RFC 6347 section 4.1.2.7).
        while let Some(header) = RecordHeader::parse(rest, 0) {
            let (record, tail) = rest.split_at_mut(header.length);
            rest = tail;
            if header.epoch == 0 {
                self.on_plain(io, record, &header);
            } else if let Some(data) = self.on_protected(io, record, &header) {
                self.flush(io);
                return Some(ClientData { data, rest });
            }
        }
        self.flush(io);
        None
    }

    /// Sends data in a record.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then.
    pub fn send(&mut self, io: &mut ClientIo<'_>, data: &[u8]) -> Result<(), SendError> {
        match self.state {
            ClientState::Handshake => return Err(SendError::NotEstablished),
            ClientState::Ended(_) => return Err(SendError::NoSession),
            ClientState::Established if data.len() > MAX_PLAINTEXT => {
                return Err(SendError::TooLong);
            }
            ClientState::Established => {}
        }
        let Some(protection) = self.sealing() else { return Err(SendError::NotEstablished) };
        let mut record = Vec::new();
        if !protection.seal(ContentType::ApplicationData, data, &mut record) {
            self.end(Failure::SequenceNumbersUsedUp, None);
            return Err(SendError::SequenceNumbersUsedUp);
        }
        self.is_unanswered = true;
        (io.send)(&record);
        Ok(())
    }

    /// Ends the session with a close_notify.
    pub fn close(mut self, io: &mut ClientIo<'_>) {
        self.send_alert(AlertLevel::Warning, AlertDescription::CLOSE_NOTIFY);
        self.flush(io);
    }

    /// A record of epoch 0, which belongs to a handshake and is not authenticated.
    fn on_plain(&mut self, io: &mut ClientIo<'_>, record: &[u8], header: &RecordHeader) {
        let body = record.get(header.start..).unwrap_or_default();
        match (header.content, alert::parse(body)) {
            (ContentType::Handshake, _) => {
                self.step(io, &mut |handshake, cx| {
                    handshake.handle_record(cx, body, false)
                });
                self.replay_early(io);
            }
            (ContentType::Alert, Some((AlertLevel::Fatal, description)))
                // The others answer a record of the session before.
                if self.state == ClientState::Handshake
                    && description != AlertDescription::BAD_RECORD_MAC =>
            {
                self.end(Failure::Refused(description), None);
            }
            // A forger gains a handshake in 10 s at most, and none from a client at rest.
            (
                ContentType::Alert,
                Some((AlertLevel::Fatal, AlertDescription::BAD_RECORD_MAC)),
            ) if self.now >= self.believes_from && self.waits_in_vain() => {
                self.doubt(io);
            }
            _ => {}
        }
    }

    /// Encrypted records that arrived before there were keys. Data is not delivered before the handshake is complete.
    fn replay_early(&mut self, io: &mut ClientIo<'_>) {
        let Some(handshake) = self.handshake.as_mut().filter(|_| self.protection.is_some()) else {
            return;
        };
        for mut record in handshake.take_early() {
            if let Some(header) = RecordHeader::parse(&record, 0) {
                let _ = self.on_protected(io, &mut record, &header);
            }
        }
    }

    /// An encrypted record. Returns the data in it.
    fn on_protected<'d>(
        &mut self,
        io: &mut ClientIo<'_>,
        record: &'d mut [u8],
        header: &RecordHeader,
    ) -> Option<&'d [u8]> {
        // Only messages of a handshake belong to one that is not complete.
        let of_doubted = self.doubted.as_deref_mut();
        let of_doubted = of_doubted.filter(|_| header.content != ContentType::Handshake);
        let Some(protection) = of_doubted.or(self.protection.as_mut()) else {
            self.handshake.as_mut()?.keep_early(record);
            return None;
        };
        let opened = match protection.open(record, header) {
            Ok(opened) => opened,
            Err(discarded) => {
                let of_handshake =
                    header.content == ContentType::Handshake && self.is_shaking_hands();
                if of_handshake && discarded == Discarded::NotAuthentic {
                    self.step(io, &mut |handshake, _| handshake.note_forgery());
                }
                return None;
            }
        };
        self.is_unanswered = false;
        let body = record.get(opened.plaintext).unwrap_or_default();
        match opened.content {
            ContentType::Handshake if self.handshake.is_some() => {
                self.step(io, &mut |handshake, cx| handshake.handle_record(cx, body, true));
            }
            // Renegotiation is refused (RFC 5746 section 4.5 allows it).
            ContentType::Handshake if body.first() != Some(&HandshakeType::Finished.number()) => {
                self.send_alert(AlertLevel::Warning, AlertDescription::NO_RENEGOTIATION);
            }
            ContentType::Alert => match alert::parse(body) {
                Some((_, AlertDescription::CLOSE_NOTIFY)) => {
                    // A close_notify is answered with another one (RFC 5246 section 7.2.1).
                    self.end(Failure::ClosedByPeer, Some(AlertDescription::CLOSE_NOTIFY));
                }
                Some((AlertLevel::Fatal, description)) => {
                    self.end(Failure::Refused(description), None);
                }
                _ => {}
            },
            // Before Finished, it must not be trusted.
            ContentType::ApplicationData if self.state == ClientState::Established => {
                // The server has received our Finished, so the last flight is no longer needed.
                if self.doubted.is_none() {
                    self.handshake = None;
                }
                return Some(body);
            }
            _ => {}
        }
        None
    }

    /// Takes one step of the handshake and carries out its consequences.
    fn step(&mut self, io: &mut ClientIo<'_>, act: &mut Step<'_>) {
        let Some(mut handshake) = self.handshake.take() else { return };
        let protection = self.protection.take();
        let mut cx = Context { protection, ..self.context(io) };
        let result = act(&mut handshake, &mut cx);
        let protection = cx.protection;
        if result.is_ok() && handshake.is_done() && self.is_shaking_hands() {
            (self.state, self.doubted, self.restarts) = (ClientState::Established, None, 0);
            self.saved = handshake.saved_session();
        }
        self.protection = protection;
        // Once the handshake is complete, only the side that spoke last keeps its flight.
        if self.is_shaking_hands() || handshake.due().is_some() {
            self.handshake = Some(handshake);
        }
        match (result, self.doubted.take()) {
            // Neither the doubt nor the failure is proved, so the session goes on.
            (Err(_), Some(doubted)) => {
                (self.handshake, self.protection) = (None, Some(*doubted));
                self.credentials.saved = None;
            }
            (Err(failure), None) => self.end(failure, failure.alert()),
            (Ok(()), doubted) => self.doubted = doubted,
        }
    }

    fn context<'c>(&'c mut self, io: &'c mut ClientIo<'_>) -> Context<'c> {
        Context {
            now: self.now,
            on_message: Handshake::on_message_at_key_client,
            rng: io.rng,
            config: &self.config,
            lookup: None,
            certificates: None,
            cache: None,
            out: &mut self.out,
            remote: SERVER,
            handshakes: 1,
            key_log: None,
            dtls13_declined: false,
            round_trips: &mut self.round_trips,
            protection: None,
        }
    }

    /// Queues an alert, encrypted if the handshake is complete.
    fn send_alert(&mut self, level: AlertLevel, description: AlertDescription) {
        let body = alert::encode(level, description);
        if self.state == ClientState::Established {
            let mut datagram = Vec::new();
            let protection = self.sealing();
            if protection.is_some_and(|it| it.seal(ContentType::Alert, &body, &mut datagram)) {
                self.out.push(SERVER, &datagram);
            }
        } else if let Some(handshake) = &mut self.handshake {
            handshake.send_alert(&mut self.out, SERVER, body);
        }
    }

    fn end(&mut self, reason: Failure, alert: Option<AlertDescription>) {
        if let Some(description) = alert {
            let level = match reason {
                Failure::ClosedByPeer => AlertLevel::Warning,
                _ => AlertLevel::Fatal,
            };
            self.send_alert(level, description);
        }
        // What a fatal alert ended must not be resumed (RFC 5246 section 7.2.2), and what cannot be
        // resumed is not tried again.
        if reason != Failure::ClosedByPeer || self.state == ClientState::Handshake {
            (self.saved, self.credentials.saved) = (None, None);
        }
        (self.handshake, self.protection, self.doubted) = (None, None, None);
        self.state = ClientState::Ended(reason);
    }

    /// Sends what waits.
    fn flush(&mut self, io: &mut ClientIo<'_>) {
        while let Some((_, datagram)) = self.out.pop() {
            (io.send)(datagram);
        }
    }
}

impl fmt::Debug for PskClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PskClient").field("state", &self.state).finish_non_exhaustive()
    }
}
