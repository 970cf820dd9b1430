//! One replication: clients, network and servers under one virtual clock.

mod finish;
mod low_power;
mod read_ahead;

use super::background::Flows;
use super::client_timer::{ClientTimer, Fires, due};
use super::cross::Sources;
use super::event::{DOWN_LANE, LANES, Moment, NetEvent, UP_LANE};
use super::happenings::Happenings;
use super::motes::Motes;
use super::network::Net;
use super::pool::PooledPacket;
use super::roster::{self, Roster};
use super::series::SeriesRecorder;
use super::topology::{BOTTLENECK, LinkDirection};
use crate::engine::{Engine, Lane};
use crate::host::{
    Answerer, Arrivals, ArrivingPacket, ConstantServer, ObservedHost, OutgoingPacket, SecureClient,
    SecureServer, Timetable, as_kind, client_address, endpoint_config, meet_before,
};
use crate::net::Delay;
use crate::random::Streams;
use crate::record::{Discard, Recorder, RunError, sparse};
use crate::record::{ExchangeRecord, RunRecord};
use crate::scenario::{Control, Return, Scenario, SecurityMode};
use ebbtide_core::cc::{Algorithm, ControlConfig};
use ebbtide_core::testbed::OutputBuffers;
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;
use read_ahead::ReadAhead;
use std::sync::Arc;

/// How long packets may still arrive after the end of a run with an end.
const SETTLE: Duration = Duration::from_secs(10);

/// The controls of a run: usually one; in a mixed run the clients take turns.
pub type Controls = Vec<Control>;

struct Simulation<R: Recorder> {
    engine: Engine<NetEvent>,
    net: Net,
    clients: Vec<Box<dyn ObservedHost<R>>>,
    /// The timer of each client.
    timers: Vec<ClientTimer>,
    /// The requests of each client that arrived at the server.
    at_server: Vec<Arrivals>,
    /// Whether any client sends a flow of messages, or has a server's end of its own.
    has_flows: bool,
    has_ends: bool,
    server: ConstantServer,
    /// The server's DTLS sessions.
    sessions: Option<SecureServer>,
    background: Flows,
    recorder: R,
    /// Time that a client's host needs to act on a response.
    processing: (Delay, ChaCha8Rng),
    roster: Arc<Roster>,
    /// For each class whose requests go by the clock.
    timetables: Vec<Option<Timetable>>,
    /// The endpoint of all devices that observe.
    observers: ConstantServer,
    /// For each class that downloads, the server.
    downloads: Vec<Option<Answerer>>,
    /// The servers on the nodes of a low-power network.
    motes: Motes,
    happenings: Happenings,
    /// When the run ends, whatever is under way then.
    until: Option<Instant>,
    /// Whether it has ended: clients do nothing any more.
    is_over: bool,
    /// From when on packets count for the fairness of streams.
    fair_from: Option<Instant>,
    undone: u32,
    /// The clients of each class that are not done, and when the last one of those that are was.
    undone_by_class: Vec<(u32, Instant)>,
    done_at: Instant,
    /// The request that the server is at; reused.
    request: Vec<u8>,
    /// For the output of the client whose turn it is.
    buffers: OutputBuffers,
    ahead: ReadAhead,
}

/// Runs one replication.
///
/// # Errors
///
/// Returns an error if a message does not fit the MTU or the scenario never ends. See [`RunError`].
pub fn simulate(
    scenario: &Scenario,
    controls: &[Control],
    seed: u64,
    replication: u32,
    with_series: bool,
) -> Result<RunRecord, RunError> {
    let keep = Keep { series: with_series, exchanges: false };
    Ok(simulate_keeping(scenario, controls, seed, replication, keep)?.0)
}

/// Data to keep of a replication in addition to the measurements that every one takes.
#[derive(Copy, Clone, Debug)]
pub(super) struct Keep {
    /// Time series.
    pub(super) series: bool,
    /// A row for each exchange.
    pub(super) exchanges: bool,
}

/// Runs one replication; its exchanges in the order in which they ended, if they are to be kept.
pub(super) fn simulate_keeping(
    scenario: &Scenario,
    controls: &[Control],
    seed: u64,
    replication: u32,
    keep: Keep,
) -> Result<(RunRecord, Vec<ExchangeRecord>), RunError> {
    let plain = Discard::keeping(keep.exchanges).for_network(scenario);
    if keep.series {
        let (mut record, recorder) =
            simulate_with(scenario, controls, seed, replication, SeriesRecorder::around(plain))?;
        let (series, plain) = recorder.into_series(replication);
        record.totals.series = Some(series);
        return Ok((with_distributions(record, &plain), plain.exchanges()));
    }
    let (record, plain) = simulate_with(scenario, controls, seed, replication, plain)?;
    Ok((with_distributions(record, &plain), plain.exchanges()))
}

/// The record with the distributions that were measured next to it.
fn with_distributions(mut record: RunRecord, measured: &Discard) -> RunRecord {
    record.totals.rtt = sparse(measured.round_trips());
    record.totals.durations = sparse(measured.durations());
    record.totals.delivery.after = measured.after().sparse();
    if let (Some(mesh), Some(times)) = (&mut record.totals.mesh, measured.low_power()) {
        times.write(mesh);
    }
    for (index, class) in record.totals.classes.iter_mut().enumerate() {
        let Some(measured) = measured.of_class(index) else { continue };
        class.rtt = sparse(&measured.rtt);
        class.durations = sparse(&measured.durations);
        class.delivery.after = measured.after.sparse();
    }
    record
}

/// Runs one replication under an observer.
///
/// # Errors
///
/// As [`simulate`].
pub fn simulate_with<R: Recorder>(
    scenario: &Scenario,
    controls: &[Control],
    seed: u64,
    replication: u32,
    recorder: R,
) -> Result<(RunRecord, R), RunError> {
    let mut simulation = Simulation::new(scenario, controls, seed, replication, recorder);
    simulation.run()?;
    Ok(simulation.finish(replication))
}

impl<R: Recorder> Simulation<R> {
    fn new(
        scenario: &Scenario,
        controls: &[Control],
        seed: u64,
        replication: u32,
        recorder: R,
    ) -> Self {
        let streams = Streams::new(seed, replication);
        let mut engine = Engine::new(LANES);
        let roster = Arc::new(Roster::new(scenario, controls));
        let mut clients = roster.devices(&streams);
        let mut sessions =
            scenario.security.has_sessions().then(|| SecureServer::new(scenario, &streams));
        if let Some(server) = &mut sessions
            && scenario.security.returns != Return::Handshake
        {
            for client in
                clients.iter_mut().filter_map(|client| as_kind::<SecureClient>(&mut **client))
            {
                meet_before(client, server);
            }
        }
        let mut timetables = Vec::new();
        for class in &roster.classes {
            let (timetable, starts) = Timetable::new(class, &streams).unzip();
            let starts = starts.unwrap_or_else(|| roster::starts(class, &streams));
            for (client, start) in class.clients().zip(starts) {
                engine.schedule(Instant::from_nanos(start), NetEvent::Act(client));
            }
            timetables.push(timetable);
        }
        let observers = roster.observers(&mut clients, &streams);
        let downloads = roster.downloads(&streams);
        let happenings = Happenings::new(&roster.classes, &streams, &mut engine);
        let cross = Sources::new(scenario, &streams, &mut engine);
        let background = Flows::new(scenario, &streams, &mut engine);
        let payloads = roster.classes.iter().map(|class| class.scenario.workload.response_payload);
        let server = endpoint_config(scenario, ControlConfig::new(Algorithm::Default));
        let ends = roster.classes.iter().filter_map(|class| {
            Some((class.scenario.workload.ends()?, class.scenario.workload.fair_from()))
        });
        let ends = ends.reduce(|(end, fair), one| (end.max(one.0), fair.max(one.1)));
        let mut net = Net::new(scenario, &roster, cross, &streams);
        let motes = Motes::new(scenario, &roster, &net.serving_nodes(), &streams);
        let mut server = ConstantServer::new(server, payloads, "server", &streams);
        if scenario.security.mode == SecurityMode::Oscore {
            server.protect(scenario.clients.count);
        }
        Self {
            engine,
            net,
            timers: vec![ClientTimer::default(); clients.len()],
            at_server: clients.iter().map(|_| Arrivals::default()).collect(),
            has_flows: clients.iter_mut().any(|client| client.flow().is_some()),
            has_ends: clients.iter_mut().any(|client| client.server_end().is_some()),
            clients,
            server,
            sessions,
            background,
            recorder,
            processing: (scenario.clients.processing.delay(), streams.stream("clients/processing")),
            timetables,
            observers,
            downloads,
            motes,
            happenings,
            until: ends.map(|(end, _)| Instant::from_nanos(end.0)),
            is_over: false,
            fair_from: ends.map(|(_, from)| Instant::from_nanos(from.0)),
            undone: scenario.clients.count,
            undone_by_class: roster
                .classes
                .iter()
                .map(|class| (class.scenario.clients.count, Instant::ZERO))
                .collect(),
            roster,
            done_at: Instant::ZERO,
            request: Vec::new(),
            buffers: OutputBuffers::default(),
            ahead: ReadAhead::new(scenario.clients.count),
        }
    }

    fn run(&mut self) -> Result<(), RunError> {
        const CENTURY: Instant = Instant::from_nanos(3_155_760_000_000_000_000);
        while let Some((now, event)) = self.engine.pop() {
            if let Some(until) = self.until
                && now >= until
            {
                // The clients are gone; what they sent may still arrive, except in a low-power network, whose
                // energy is measured until the end.
                self.is_over = true;
                if self.net.has_mesh || now >= until + SETTLE {
                    break;
                }
            }
            if self.is_over || self.undone == 0 {
                self.background.end();
                self.net.cross.is_over = true;
            }
            self.dispatch(now, event);
            if self.net.has_mesh {
                self.settle(now);
                if self.undone == 0 && self.until.is_none() {
                    break;
                }
            }
            if self.net.error.is_some() {
                break;
            }
            if now > CENTURY {
                return Err(RunError::NeverEnds);
            }
        }
        self.net.error.take().map_or(Ok(()), Err)
    }

    fn dispatch(&mut self, now: Instant, event: NetEvent) {
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        if self.background.handle(event, &mut self.net, moment) {
            return;
        }
        match event {
            NetEvent::Act(client) => self.act(now, client),
            NetEvent::Timer(client) => {
                self.read_ahead(Lane::NEAR);
                self.timer(now, client);
            }
            NetEvent::ServerTimer(client) => self.server_timer(now, client),
            NetEvent::AtServer(packet) => {
                self.read_ahead(Engine::<NetEvent>::lane(UP_LANE));
                self.at_host(now, packet, true);
            }
            NetEvent::AtDownLink(place) => {
                let direction = LinkDirection { link: BOTTLENECK, upwards: false };
                self.net.onto_link(place, direction, moment);
            }
            NetEvent::AtLink { place, link, upwards } => {
                self.net.onto_link(place, LinkDirection { link, upwards }, moment);
            }
            NetEvent::AtAccessPoint(packet) => {
                self.net.enter_radio(packet, self.net.is_behind, moment);
            }
            NetEvent::AtClient(packet) => {
                self.read_ahead(Engine::<NetEvent>::lane(DOWN_LANE));
                self.at_host(now, packet, false);
            }
            NetEvent::LinkFree { link, upwards } => {
                self.net.link_free(LinkDirection { link, upwards }, moment);
            }
            NetEvent::Cross(index) => self.net.cross_sends(index, moment),
            NetEvent::SessionTimer => self.session_timer(now),
            NetEvent::Wifi { .. } | NetEvent::Lora { .. } | NetEvent::LowPower { .. } => {
                self.at_radio(now, event);
            }
            NetEvent::Processed(packet) => self.processed(now, packet),
            NetEvent::Happens(class) => self.report_event(now, class),
        }
    }

    fn act(&mut self, now: Instant, client: u32) {
        if self.is_over {
            return;
        }
        self.clients[client as usize].swap_buffers(&mut self.buffers);
        self.clients[client as usize].act(now);
        if let Some(timetable) = &mut self.timetables[self.roster.class_of(client)]
            && self.clients[client as usize].agenda().has_more()
            && let Some(next) = timetable.next(now, client)
        {
            self.engine.schedule(next, NetEvent::Act(client));
        }
        if self.has_flows
            && let Some(next) = self.clients[client as usize].flow().and_then(|flow| flow.next(now))
        {
            self.engine.schedule(next, NetEvent::Act(client));
        }
        self.drain(now, client);
    }

    fn timer(&mut self, now: Instant, client: u32) {
        if self.is_over {
            return;
        }
        match self.timers[client as usize].fires(now) {
            Fires::Not => {}
            Fires::At(at) => self.engine.schedule(at, NetEvent::Timer(client)),
            Fires::Now => {
                let host = &mut self.clients[client as usize];
                host.swap_buffers(&mut self.buffers);
                host.handle_timeout(now);
                self.drain(now, client);
            }
        }
    }

    /// A packet arrives at the server or at a client.
    fn at_host(&mut self, now: Instant, place: u32, upwards: bool) {
        let (packet, datagram) = self.net.pool.get(place);
        self.recorder.arrived(now, &packet.details(datagram, upwards, now));
        if let Some(mesh) = self.net.low_power() {
            mesh.direction(upwards).delivered += 1;
        }
        let is_for_mote = upwards && !self.motes.are_none();
        match self.roster.is_from_server(packet.client) == upwards {
            false
                if is_for_mote
                    && let Some(node) =
                        self.net.serving_node(packet.client, packet.tag.exchange) =>
            {
                self.at_mote(now, place, packet, node);
            }
            true => {
                self.note_class(packet.client);
                self.at_requester(now, place, packet);
            }
            false => self.at_responder(now, place, packet, upwards),
        }
    }

    fn at_responder(&mut self, now: Instant, place: u32, packet: PooledPacket, upwards: bool) {
        let datagram = self.net.pool.bytes(place, packet.length);
        let client = packet.client;
        // Without that the server need not touch the client.
        if self.has_ends
            && let Some(server) = self.clients[client as usize].server_end()
        {
            let arrived = server.receive(now, datagram, packet.tag);
            self.net.pool.release(place);
            for number in arrived {
                self.delivered(now, client, number);
            }
            self.drain_server(now, client);
            return;
        }
        // The answer takes a place of its own before this one is free.
        self.request.clear();
        self.request.extend_from_slice(datagram);
        if !packet.tag.probe {
            self.delivered(now, client, packet.tag.exchange);
        }
        let from = client_address(client);
        let class = self.roster.class_of(client);
        self.server.serve(class);
        let net = &mut self.net;
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        let mut send = |client, datagram: &[u8], tag| {
            let packet = OutgoingPacket { client, datagram, tag };
            match upwards {
                true => net.server_sends(packet, moment),
                false => net.client_sends(packet, moment),
            }
        };
        if let Some(server) = &mut self.downloads[class] {
            server.answer(now, client, &self.request, |to, bytes| send(to, bytes, packet.tag));
            self.net.pool.release(place);
            return;
        }
        match &mut self.sessions {
            None if self.roster.observes(class) => {
                self.observers.receive(now, from, &self.request, packet.tag, send);
            }
            None => self.server.receive(now, from, &self.request, packet.tag, send),
            Some(sessions) => {
                let packet = OutgoingPacket { client, datagram: &self.request, tag: packet.tag };
                let timeout = sessions.receive(now, packet, &mut self.server, &mut send);
                if let Some(at) = due(timeout, &mut sessions.timer, now) {
                    self.engine.schedule(at, NetEvent::SessionTimer);
                }
            }
        }
        self.net.pool.release(place);
    }

    /// The timer of the server's DTLS sessions.
    fn session_timer(&mut self, now: Instant) {
        let Some(sessions) = &mut self.sessions else { return };
        // Only the timer event that was scheduled last counts: others are left over.
        if self.is_over || sessions.timer != Some(now) {
            return;
        }
        sessions.timer = None;
        sessions.handle_timeout(now);
        let net = &mut self.net;
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        let timeout = sessions.drain(|client, datagram, tag| {
            net.server_sends(OutgoingPacket { client, datagram, tag }, moment);
        });
        if let Some(at) = due(timeout, &mut sessions.timer, now) {
            self.engine.schedule(at, NetEvent::SessionTimer);
        }
    }

    /// A message of a flow arrives at the server.
    fn delivered(&mut self, now: Instant, client: u32, number: u32) {
        if self.has_flows
            && let Some(flow) = self.clients[client as usize].flow()
            && flow.arrives(now, number)
        {
            self.recorder.delivered(now, client);
        }
        self.at_server[client as usize].note(number);
    }

    /// The timer of what the server keeps for a client.
    fn server_timer(&mut self, now: Instant, client: u32) {
        if let Some(server) = self.clients[client as usize].server_end()
            && *server.timer() == Some(now)
        {
            *server.timer() = None;
            server.handle_timeout();
            self.drain_server(now, client);
        }
    }

    /// Sends what the server keeps for a client and has to send to it, and schedules its timer.
    fn drain_server(&mut self, now: Instant, client: u32) {
        let net = &mut self.net;
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        let Some(server) = self.clients[client as usize].server_end() else { return };
        let timeout = server.drain(now, &mut |datagram, tag| {
            net.server_sends(OutgoingPacket { client, datagram, tag }, moment);
        });
        if let Some(at) = due(timeout, server.timer(), now) {
            self.engine.schedule(at, NetEvent::ServerTimer(client));
        }
    }

    /// Something happens at the radio: packets may arrive at clients.
    fn at_radio(&mut self, now: Instant, event: NetEvent) {
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        self.net.at_radio(event, moment);
        while let Some((place, upwards)) = self.crossed(now) {
            let arrives = if upwards { NetEvent::AtServer } else { NetEvent::AtClient };
            self.dispatch(now, arrives(place));
        }
    }

    /// The next packet that has crossed the radio to its host, and whether that is a server.
    fn crossed(&mut self, now: Instant) -> Option<(u32, bool)> {
        let (engine, recorder) = (&mut self.engine, &mut self.recorder);
        self.net.crossed(&mut Moment { now, engine, recorder })
    }

    fn at_requester(&mut self, now: Instant, place: u32, packet: PooledPacket) {
        let datagram = self.net.pool.bytes(place, packet.length);
        if self.is_over {
            self.net.pool.release(place);
            return;
        }
        let host = &mut self.clients[packet.client as usize];
        host.swap_buffers(&mut self.buffers);
        let before = host.ledger().record.payload_bytes;
        let arriving =
            ArrivingPacket { bytes: datagram, tag: packet.tag, is_marked: packet.is_marked };
        let wants_to_act = host.receive(now, arriving, &mut self.recorder);
        self.recorder.goodput(now, host.ledger().record.payload_bytes - before);
        self.net.pool.release(place);
        if wants_to_act {
            self.wants_to_act(now, packet.client);
        }
        self.drain(now, packet.client);
    }

    /// The application of a client has something to do, at once or after its processing time.
    fn wants_to_act(&mut self, now: Instant, client: u32) {
        let class = self.roster.class_of(client);
        let host = &mut self.clients[client as usize];
        if host.is_done() {
            let (undone, done_at) = &mut self.undone_by_class[class];
            *undone -= 1;
            *done_at = now;
            self.undone -= 1;
            if self.undone == 0 {
                self.done_at = now;
            }
        } else if let Some(flow) = host.flow() {
            // What comes by the clock comes by itself.
            if !flow.keeps_time() {
                host.act(now);
            }
        } else if self.timetables[class].is_some() {
            // The next period comes by itself.
            host.continue_transfer(now);
        } else {
            let (delay, rng) = &mut self.processing;
            match delay.draw(rng) {
                0 => host.act(now),
                after => {
                    let at = now + Duration::from_nanos(after);
                    self.engine.schedule(at, NetEvent::Act(client));
                }
            }
        }
    }

    /// Tells the observer whose exchanges are next, if classes are measured one by one.
    #[inline]
    fn note_class(&mut self, client: u32) {
        if self.roster.is_named {
            self.recorder.whose(self.roster.class_of(client));
        }
    }

    /// Sends what a client has to send and schedules its timer.
    fn drain(&mut self, now: Instant, client: u32) {
        self.note_class(client);
        let is_from_server = self.roster.is_from_server(client);
        loop {
            let (net, engine) = (&mut self.net, &mut self.engine);
            let host = &mut self.clients[client as usize];
            let (timeout, wants_to_act) =
                host.drain(now, &mut self.recorder, &mut |recorder, datagram, tag| {
                    let packet = OutgoingPacket { client, datagram, tag };
                    let moment = &mut Moment { now, engine, recorder };
                    match is_from_server {
                        false => net.client_sends(packet, moment),
                        true => net.server_sends(packet, moment),
                    }
                });
            let is_punctual = host.is_punctual();
            if let Some(at) = self.timers[client as usize].want(now, timeout, is_punctual) {
                self.engine.schedule(at, NetEvent::Timer(client));
            }
            if !wants_to_act {
                self.clients[client as usize].swap_buffers(&mut self.buffers);
                return;
            }
            self.wants_to_act(now, client);
        }
    }
}
