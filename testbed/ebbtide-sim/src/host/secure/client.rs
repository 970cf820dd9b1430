//! A client behind DTLS.

use super::{HANDSHAKE, KEY, SecureServer, config, meet_before, timing};
use crate::host::agenda::Agenda;
use crate::host::flow::MessageFlow;
use crate::host::{
    ArrivingPacket, Client, ClientModel, ClientSetup, ExchangeLedger, Host, ObservedHost, Tag,
    server_address,
};
use crate::random::Streams;
use crate::record::Handshakes;
use crate::record::Recorder;
use crate::scenario::{Return, Security, Timers};
use ebbtide_core::cc::Sample;
use ebbtide_core::endpoint::Flight;
use ebbtide_core::testbed::OutputBuffers;
use ebbtide_core::time::Instant;
use ebbtide_dtls::{Config, Credentials, Endpoint, Event, Output, Psk, SessionId, Timing};
use std::sync::Arc;

/// A client whose messages travel in records of a session, which it opens first.
pub(crate) struct SecureClient {
    client: Client,
    pub(super) dtls: Endpoint,
    config: Config,
    security: Security,
    streams: Streams,
    credentials: Option<Credentials>,
    session: Option<SessionId>,
    is_established: bool,
    /// The flight that waits for an answer, as the congestion control knows it.
    flight: Option<Flight>,
    /// Whether the application waits for the session.
    wants_to_act: bool,
    pub(crate) measured: Handshakes,
    /// A datagram that is worked on; reused.
    bytes: Vec<u8>,
}

impl SecureClient {
    pub(crate) fn new(setup: ClientSetup<'_>, model: Arc<ClientModel>) -> Self {
        let (scenario, streams, number) = (setup.scenario, *setup.streams, setup.number);
        let config = config(scenario);
        let psk = Psk::new(&KEY).ok();
        Self {
            client: Client::new(setup, model),
            dtls: Endpoint::new(
                config.clone(),
                Box::new(streams.stream(&format!("client/{number}/dtls"))),
            ),
            config,
            security: scenario.security,
            streams,
            credentials: psk.map(|psk| Credentials::new(format!("device-{number:06}"), psk)),
            session: None,
            is_established: false,
            flight: None,
            wants_to_act: false,
            measured: Handshakes::default(),
            bytes: Vec::new(),
        }
    }

    pub(super) const fn number(&self) -> u32 {
        self.client.number()
    }

    /// Begins the session from before the run.
    pub(super) fn begin_before(&mut self) {
        let Some(credentials) = self.credentials.clone() else { return };
        let session =
            self.dtls.connect(Instant::ZERO, server_address(), credentials, Timing::default());
        self.session = Some(session);
    }

    /// Keeps of the session what the scenario says.
    pub(super) fn go_away(&mut self) {
        let Some(session) = self.session else { return };
        match self.security.returns {
            Return::ConnectionId => self.is_established = self.dtls.is_established(session),
            Return::Handshake | Return::Resumption => {
                let saved = self.dtls.saved_session(session);
                if let Some(credentials) = &mut self.credentials {
                    credentials.saved = saved;
                }
                let stream = format!("client/{}/dtls/again", self.number());
                let rng = Box::new(self.streams.stream(&stream));
                self.dtls = Endpoint::new(self.config.clone(), rng);
                self.session = None;
            }
        }
    }

    /// Begins a handshake unless there is a session. A flight is a message to the server: the client's
    /// congestion control says how long to wait for its answer.
    fn connect(&mut self, now: Instant) {
        let (None, Some(credentials)) = (self.session, self.credentials.clone()) else { return };
        let timing = self.begin_flight(now);
        self.session = Some(self.dtls.connect(now, server_address(), credentials, timing));
        self.measured.begun += 1;
    }

    fn begin_flight(&mut self, now: Instant) -> Timing {
        let default = timing(self.security.timers);
        if self.security.timers != Timers::Control {
            return default;
        }
        self.flight = self.client.exchanges.endpoint.begin_flight(now, server_address().into());
        let first = self.flight.as_ref().map(|flight| flight.timeout().into());
        first.map_or(default, |first| default.beginning_with(first))
    }

    fn end_flight(&mut self, now: Instant, sample: Option<&Sample>) {
        if let Some(flight) = self.flight.take() {
            let endpoint = &mut self.client.exchanges.endpoint;
            endpoint.end_flight(now, server_address().into(), &flight, sample);
        }
    }

    fn on_event(&mut self, now: Instant, event: &Event) {
        match event {
            Event::RoundTrip { session, sample } => {
                self.end_flight(now, Some(&sample.into()));
                let timing = self.begin_flight(now);
                self.dtls.set_timing(*session, timing);
            }
            Event::Established { session, resumed } => {
                self.is_established = true;
                self.measured.completed += 1;
                self.measured.resumed += u64::from(*resumed);
                if let Some(credentials) = &mut self.credentials {
                    credentials.saved = self.dtls.saved_session(*session);
                }
                self.end_flight(now, None);
                if std::mem::take(&mut self.wants_to_act) {
                    self.client.act(now);
                }
            }
            Event::Ended { established, .. } => {
                self.session = None;
                self.is_established = false;
                self.end_flight(now, None);
                if !established {
                    self.measured.failed += 1;
                    // A device that wants to be back tries again.
                    if self.wants_to_act {
                        self.connect(now);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Host for SecureClient {
    fn agenda(&self) -> &Agenda {
        self.client.agenda()
    }

    fn ledger(&self) -> &ExchangeLedger {
        self.client.ledger()
    }

    fn ledger_mut(&mut self) -> &mut ExchangeLedger {
        self.client.ledger_mut()
    }

    fn flow(&mut self) -> Option<&mut MessageFlow> {
        self.client.flow()
    }

    /// Requests wait for the session.
    fn act(&mut self, now: Instant) {
        if self.is_established {
            self.client.act(now);
            return;
        }
        self.client.begins(now);
        self.wants_to_act = true;
        self.connect(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
        self.dtls.handle_timeout(now);
    }

    fn finish(&mut self) {
        self.client.finish();
    }

    fn swap_buffers(&mut self, other: &mut OutputBuffers) {
        self.client.swap_buffers(other);
    }

    fn meet_before(&mut self, server: &mut SecureServer) {
        meet_before(self, server);
    }

    fn handshakes(&self) -> Handshakes {
        self.measured
    }
}

impl<R: Recorder> ObservedHost<R> for SecureClient {
    fn receive(&mut self, now: Instant, packet: ArrivingPacket<'_>, recorder: &mut R) -> bool {
        self.bytes.clear();
        self.bytes.extend_from_slice(packet.bytes);
        let (client, mut wants_to_act) = (&mut self.client, false);
        self.dtls.handle_datagram(now, server_address(), &mut self.bytes, &mut |_, message| {
            wants_to_act |=
                client.receive(now, ArrivingPacket { bytes: message, ..packet }, recorder);
        });
        wants_to_act
    }

    /// The datagrams are those of both layers.
    fn drain(
        &mut self,
        now: Instant,
        recorder: &mut R,
        send: &mut dyn FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool) {
        let mut wants_to_act = false;
        loop {
            let of_session = loop {
                match self.dtls.poll_output() {
                    Output::Transmit { datagram, .. } => {
                        self.measured.packets_up += 1;
                        self.measured.bytes_up += datagram.len() as u64;
                        send(recorder, datagram, HANDSHAKE);
                    }
                    Output::Event(event) => self.on_event(now, &event),
                    Output::Timeout(at) => break at,
                }
            };
            let (dtls, session, bytes) = (&mut self.dtls, self.session, &mut self.bytes);
            let mut has_no_session = false;
            let (at, wants) = self.client.drain(now, recorder, &mut |recorder, message, tag| {
                bytes.clear();
                let sealed = session.map(|session| dtls.send(now, session, message, bytes));
                match sealed {
                    Some(Ok(_)) => send(recorder, bytes, tag),
                    // The next transmission of the message finds a session.
                    Some(Err(_)) | None => has_no_session = true,
                }
            });
            wants_to_act |= wants;
            if has_no_session && self.session.is_none() {
                self.connect(now);
                continue;
            }
            let next = match (of_session, at) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            return (next, wants_to_act);
        }
    }
}
