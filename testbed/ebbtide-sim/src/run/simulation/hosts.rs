//! The hosts of a replication: one for each client, and the servers.

use super::read_ahead::ReadAhead;
use crate::engine::Engine;
use crate::host::{
    Answerer, Arrivals, ConstantServer, ObservedHost, SecureServer, Timetable, endpoint_config,
};
use crate::net::Delay;
use crate::random::Streams;
use crate::record::Recorder;
use crate::run::client_timer::ClientTimer;
use crate::run::event::NetEvent;
use crate::run::motes::Motes;
use crate::run::network::Net;
use crate::run::roster::{self, Roster};
use crate::scenario::{Return, Scenario, SecurityMode};
use ebbtide_core::cc::{Algorithm, ControlConfig};
use ebbtide_core::testbed::OutputBuffers;
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;

/// The clients of a replication.
pub(super) struct ClientHosts<R: Recorder> {
    pub(super) hosts: Vec<Box<dyn ObservedHost<R>>>,
    /// The timer of each client.
    pub(super) timers: Vec<ClientTimer>,
    /// The requests of each client that arrived at the server.
    pub(super) arrived: Vec<Arrivals>,
    /// Whether any client sends a flow of messages.
    pub(super) has_flows: bool,
    /// Whether any client has a server's end of its own.
    pub(super) has_ends: bool,
    /// For each class whose requests go by the clock.
    pub(super) timetables: Vec<Option<Timetable>>,
    /// Time that a client's host needs to act on a response.
    pub(super) processing: (Delay, ChaCha8Rng),
    /// For the output of the client whose turn it is.
    pub(super) buffers: OutputBuffers,
    pub(super) ahead: ReadAhead,
}

impl<R: Recorder> ClientHosts<R> {
    /// Creates all clients, and schedules their first events.
    pub(super) fn new(
        scenario: &Scenario,
        roster: &Roster,
        streams: &Streams,
        engine: &mut Engine<NetEvent>,
    ) -> Self {
        let mut hosts = roster.devices(streams);
        let mut timetables = Vec::new();
        for class in &roster.classes {
            let (timetable, starts) = Timetable::new(class, streams).unzip();
            let starts = starts.unwrap_or_else(|| roster::starts(class, streams));
            for (client, start) in class.clients().zip(starts) {
                engine.schedule(Instant::from_nanos(start), NetEvent::Act(client));
            }
            timetables.push(timetable);
        }
        Self {
            timers: vec![ClientTimer::default(); hosts.len()],
            arrived: hosts.iter().map(|_| Arrivals::default()).collect(),
            has_flows: hosts.iter_mut().any(|host| host.flow().is_some()),
            has_ends: hosts.iter_mut().any(|host| host.server_end().is_some()),
            hosts,
            timetables,
            processing: (scenario.clients.processing.delay(), streams.stream("clients/processing")),
            buffers: OutputBuffers::default(),
            ahead: ReadAhead::new(scenario.clients.count),
        }
    }
}

/// The servers of a replication.
pub(super) struct ServerHosts {
    pub(super) constant: ConstantServer,
    /// Its DTLS sessions.
    pub(super) sessions: Option<SecureServer>,
    /// The endpoint of all devices that observe.
    pub(super) observers: ConstantServer,
    /// For each class that downloads, the server.
    pub(super) downloads: Vec<Option<Answerer>>,
    /// The servers on the nodes of a low-power network.
    pub(super) motes: Motes,
    /// The request that a server is at; reused.
    pub(super) request: Vec<u8>,
}

impl ServerHosts {
    /// Creates the servers, with what they and the clients know of each other before the run.
    pub(super) fn new<R: Recorder>(
        scenario: &Scenario,
        roster: &Roster,
        net: &mut Net,
        clients: &mut [Box<dyn ObservedHost<R>>],
        streams: &Streams,
    ) -> Self {
        let mut sessions =
            scenario.security.has_sessions().then(|| SecureServer::new(scenario, streams));
        if let Some(server) = &mut sessions
            && scenario.security.returns != Return::Handshake
        {
            clients.iter_mut().for_each(|client| client.meet_before(server));
        }
        let mut config = endpoint_config(scenario, ControlConfig::new(Algorithm::Default));
        if config.measurement.is_some() {
            // It keeps a wave for each client. Peers that began by sending the option get half of the places.
            config.limits.peers = config.limits.peers.max(2 * scenario.clients.count as usize);
        }
        let payloads = roster.classes.iter().map(|class| class.scenario.workload.response_payload);
        let mut constant = ConstantServer::new(config, payloads, "server", streams);
        if scenario.security.mode == SecurityMode::Oscore {
            constant.protect(scenario.clients.count);
        }
        Self {
            constant,
            sessions,
            observers: roster.observers(clients, streams),
            downloads: roster.downloads(streams),
            motes: Motes::new(scenario, roster, &net.serving_nodes(), streams),
            request: Vec::new(),
        }
    }
}
