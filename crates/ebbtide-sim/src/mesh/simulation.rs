//! One replication in a low-power network.

use super::network::{Ended, Network};
use super::requester::Requester;
use super::wire::Wire;
use super::workload::{Application, Plan, SINK, Step, Trigger, next_event, plans};
use crate::engine::Engine;
use crate::host::{Answerer, Arrivals};
use crate::host::{Ended as Exchange, Tag, device_config};
use crate::host::{endpoint_config, tagged};
use crate::medium::ieee802154;
use crate::net::Delay;
use crate::random::Streams;
use crate::record::{BackgroundPackets, MeshRecord};
use crate::record::{Delivery, Direction, RunRecord, SparseHistogram, Totals};
use crate::record::{LostAt, Recorder, RunError, Tagged, new_histogram, sparse};
use crate::scenario::{Control, Scenario, WorkloadKind};
use ebbtide_core::cc::{Algorithm, ControlConfig};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};
use hdrhistogram::Histogram;
use rand_chacha::ChaCha8Rng;

#[derive(Copy, Clone, Debug)]
enum MeshEvent {
    Mac(ieee802154::LowPowerEvent),
    /// A client begins, or a message of its is due.
    Due(u32),
    /// A client's timer may be due.
    Timer(u32),
    /// A datagram from the Internet arrives at the root.
    AtRoot(u32),
    /// A datagram arrives at its host in the Internet.
    AtCloud(u32),
    /// A host has processed a request.
    Processed(u32),
    /// Something happens that every node reports.
    Happens,
}

impl From<ieee802154::LowPowerEvent> for MeshEvent {
    fn from(event: ieee802154::LowPowerEvent) -> Self {
        Self::Mac(event)
    }
}

/// Deliveries over the wire are in order, or nearly.
const UP_LANE: u32 = 0;
const DOWN_LANE: u32 = 1;
const LANES: u32 = 2;
/// Parts of the time in which completed exchanges are counted.
const PARTS: u64 = 200;

struct Client {
    requester: Requester,
    /// Its requests that arrived.
    arrivals: Arrivals,
    plan: Plan,
}

struct Simulation<'s, R> {
    scenario: &'s Scenario,
    engine: Engine<MeshEvent>,
    network: Network,
    up: Wire,
    down: Wire,
    clients: Vec<Client>,
    /// The client on each host, if there is one.
    client_of: Vec<Option<u32>>,
    servers: Vec<Option<Answerer>>,
    processing: (Delay, ChaCha8Rng),
    happenings: ChaCha8Rng,
    recorder: R,
    undone: usize,
    end: Option<Instant>,
    record: MeshRecord,
    requests: Direction,
    responses: Direction,
    first_timeouts: Histogram<u32>,
    strong: Histogram<u32>,
    weak: Histogram<u32>,
    failed: Vec<Exchange>,
}

/// Runs one replication under an observer.
///
/// # Errors
///
/// Returns an error if the replication does not end; see [`RunError`].
pub(crate) fn simulate<R: Recorder>(
    scenario: &Scenario,
    controls: &[Control],
    seed: u64,
    replication: u32,
    recorder: R,
) -> Result<(RunRecord, R), RunError> {
    // Scenarios refuse the others in a mesh.
    let udp = |control: &Control| match control {
        Control::Udp(config) => Some(config.clone()),
        Control::Tcp(_) | Control::QBlock(_) => None,
    };
    let configs: Vec<ControlConfig> = controls.iter().filter_map(udp).collect();
    let Some(mut simulation) =
        Simulation::new(scenario, &configs, &Streams::new(seed, replication), recorder)
    else {
        return Err(RunError::NeverEnds);
    };
    let now = simulation.run()?;
    Ok(simulation.finish(now, replication))
}

impl<'s, R: Recorder> Simulation<'s, R> {
    fn new(
        scenario: &'s Scenario,
        controls: &[ControlConfig],
        streams: &Streams,
        recorder: R,
    ) -> Option<Self> {
        let mesh = scenario.network.mesh.as_ref()?;
        let w = &scenario.workload;
        let network = Network::new(scenario, mesh, streams);
        let (nodes, root) = (network.topology.nodes(), network.topology.root);
        let fallback = ControlConfig::new(Algorithm::Default);
        let groups = controls.len().max(1);
        let control =
            |client: u32| controls.get(client as usize % groups).unwrap_or(&fallback).clone();
        let window = |client: u32| {
            let config = endpoint_config(scenario, control(client));
            u32::from(config.control.settings.nstart(&config.params))
        };
        let mut engine = Engine::new(LANES);
        let has_route = |mote| network.routes.has(mote);
        let plans = plans(scenario, (nodes, root), has_route, window, streams);
        let hosts = plans.iter().map(|plan| plan.host + 1).max().unwrap_or(0).max(nodes);
        let mut client_of = vec![None; hosts as usize];
        let clients: Vec<Client> = plans
            .into_iter()
            .zip(0..)
            .map(|(plan, number)| {
                client_of[plan.host as usize] = Some(number);
                engine.schedule(plan.start, MeshEvent::Due(number));
                let mut config = endpoint_config(scenario, control(number));
                // One client may ask every mote in turn.
                config.limits.peers = nodes as usize + 1;
                let rng = streams.frugal(&format!("client/{number}"));
                let group = (number as usize % groups) as u8;
                let requester = Requester::new((number, plan.host, group), config, rng);
                Client { requester, plan, arrivals: Arrivals::default() }
            })
            .collect();
        let is_cloud = w.kind.is_cloud();
        let servers = (0..nodes).map(|node| {
            let serves = if is_cloud { node != root } else { node == SINK };
            serves.then(|| {
                let mut config = device_config(endpoint_config(scenario, fallback.clone()), 1);
                config.limits.peers = hosts as usize;
                let rng = |what: &str| streams.stream(&format!("server/{node}{what}"));
                Answerer::new(config, w.response_payload, (rng(""), rng("/session")))
            })
        });
        let mut happenings = streams.stream("workload/events");
        if w.kind == WorkloadKind::Events {
            let at = next_event(Instant::ZERO, &w.mesh, &mut happenings);
            engine.schedule(at, MeshEvent::Happens);
        }
        let is_endless = w.kind != WorkloadKind::Baseline;
        let parts = if is_endless { PARTS as usize } else { 0 };
        let record = MeshRecord { completions: vec![0; parts], ..MeshRecord::default() };
        Some(Self {
            scenario,
            engine,
            up: Wire::new("up", &scenario.network.up, streams),
            down: Wire::new("down", &scenario.network.down, streams),
            undone: clients.len(),
            clients,
            client_of,
            servers: servers.collect(),
            processing: (scenario.server.processing.delay(), streams.stream("server/processing")),
            happenings,
            recorder,
            end: is_endless.then(|| Instant::from_nanos(w.mesh.duration.0)),
            record,
            requests: Direction::default(),
            responses: Direction::default(),
            first_timeouts: new_histogram(),
            strong: new_histogram(),
            weak: new_histogram(),
            failed: Vec::new(),
            network,
        })
    }

    /// Until the time is over or all clients are done.
    fn run(&mut self) -> Result<Instant, RunError> {
        const CENTURY: Instant = Instant::from_nanos(3_155_760_000_000_000_000);
        while let Some((now, event)) = self.engine.pop() {
            if let Some(end) = self.end
                && now > end
            {
                return Ok(end);
            }
            if now > CENTURY {
                return Err(RunError::NeverEnds);
            }
            self.handle(now, event);
            if self.undone == 0 && self.end.is_none() {
                return Ok(now);
            }
        }
        Ok(self.end.unwrap_or_else(|| self.engine.now()))
    }

    fn handle(&mut self, now: Instant, event: MeshEvent) {
        match event {
            MeshEvent::Mac(event) => {
                if self.recorder.wants_frames()
                    && let Some((from, to, bytes)) = self.network.on_air(event)
                {
                    self.recorder.on_air(now, from, to, &bytes);
                }
                self.network.handle(now, event, &mut self.engine);
                self.settle(now);
            }
            MeshEvent::Due(client) => self.due(now, client),
            MeshEvent::Timer(client) => {
                let requester = &mut self.clients[client as usize].requester;
                // Only the timer event that was scheduled last counts: others are left over.
                if requester.timer == Some(now) {
                    requester.timer = None;
                    requester.handle_timeout(now);
                    self.act(now, client);
                }
            }
            MeshEvent::AtRoot(packet) => {
                let root = self.network.topology.root;
                self.network.set_out(now, (root, packet), &mut self.engine);
                self.settle(now);
            }
            MeshEvent::AtCloud(packet) => self.at_client(now, packet),
            MeshEvent::Processed(packet) => self.answer(now, packet),
            MeshEvent::Happens => {
                let w = &self.scenario.workload.mesh;
                for client in 0..self.clients.len() as u32 {
                    let place = &mut self.clients[client as usize];
                    if let Some(source) = place.plan.application.source() {
                        source.due(w.event_message, Trigger::Event);
                    }
                    self.act(now, client);
                }
                let next = next_event(now, w, &mut self.happenings);
                self.engine.schedule(next, MeshEvent::Happens);
            }
        }
    }

    fn due(&mut self, now: Instant, client: u32) {
        let plan = &mut self.clients[client as usize].plan;
        if let (Some((bytes, period)), Some(source)) = (plan.periodic, plan.application.source()) {
            source.due(bytes, Trigger::Period);
            self.engine.schedule(now + period, MeshEvent::Due(client));
        }
        self.act(now, client);
    }

    /// Lets a client take its next steps and sends what its endpoint wants to send.
    fn act(&mut self, now: Instant, client: u32) {
        loop {
            let place = &mut self.clients[client as usize];
            let was_done = place.plan.application.is_done();
            let step = place.plan.application.step(now);
            match step {
                Step::Wait => {
                    if place.plan.application.is_done() && !was_done {
                        self.undone -= 1;
                    }
                    if self.drain(now, client) {
                        continue;
                    }
                    return;
                }
                Step::Ask(host) => {
                    let value = self.scenario.workload.path.as_bytes();
                    let path = [Opt { number: OptionNumber::URI_PATH, value }];
                    let content = Content { code: Code::GET, options: &path, payload: &[] };
                    ask(now, &mut self.clients[client as usize], host, &content);
                }
                Step::Put(host, outgoing) => outgoing.options.with_slice(None, |options| {
                    let (code, payload) = (outgoing.code, &outgoing.payload[..]);
                    let content = Content { code, options, payload };
                    ask(now, &mut self.clients[client as usize], host, &content);
                }),
            }
        }
    }

    /// Sends what a client has to send and schedules its timer. Whether exchanges failed.
    fn drain(&mut self, now: Instant, client: u32) -> bool {
        let mut failed = std::mem::take(&mut self.failed);
        let place = &mut self.clients[client as usize];
        let host = place.requester.host();
        let mut sent = Vec::new();
        let (network, timeouts) = (&mut self.network, &mut self.first_timeouts);
        let timeout = place.requester.drain(
            now,
            &mut self.recorder,
            |_, to, datagram, (tag, timeout)| {
                if tag.ordinal == 0 {
                    timeouts.saturating_record(timeout.get().into());
                }
                sent.push(network.packet(host, to, tag, datagram));
            },
            &mut failed,
        );
        if let Some(at) = timeout
            && place.requester.timer.is_none_or(|scheduled| at < scheduled || scheduled < now)
        {
            place.requester.timer = Some(at.max(now));
            self.engine.schedule(at, MeshEvent::Timer(client));
        }
        let any = !failed.is_empty();
        for ended in failed.drain(..) {
            place.plan.application.ended(now, ended, None);
        }
        self.failed = failed;
        self.requests.sent += sent.len() as u64;
        for packet in sent {
            self.departs(now, host, packet);
        }
        any
    }

    /// A datagram leaves a host: over the air, or over the wire first.
    fn departs(&mut self, now: Instant, host: u32, packet: u32) {
        if host < self.network.topology.nodes() {
            self.network.set_out(now, (host, packet), &mut self.engine);
            self.settle(now);
            return;
        }
        self.over_the_wire(now, packet, true);
    }

    fn over_the_wire(&mut self, now: Instant, packet: u32, upwards: bool) {
        let length = self.network.get(packet).bytes.len() as u32 + self.scenario.network.header;
        let wire = if upwards { &mut self.up } else { &mut self.down };
        match wire.send(now, length) {
            Some(at) => {
                let (lane, event) = match upwards {
                    true => (UP_LANE, MeshEvent::AtRoot(packet)),
                    false => (DOWN_LANE, MeshEvent::AtCloud(packet)),
                };
                self.engine.schedule_in(Engine::<MeshEvent>::lane(lane), at, event);
            }
            None => {
                let root = self.network.topology.root;
                self.tell_lost(now, (root, packet), "wire's buffer full");
                let direction = if upwards { &mut self.requests } else { &mut self.responses };
                direction.dropped_queue += 1;
                self.network.release(packet);
            }
        }
    }

    /// Tells the recorder that a datagram was lost at a node.
    fn tell_lost(&mut self, now: Instant, (node, packet): (u32, u32), cause: &str) {
        if let Some((tagged, is_request)) = self.belongs(packet) {
            self.recorder.lost_at(now, tagged, &LostAt { node, upwards: is_request, cause });
        }
    }

    /// The exchange that a datagram belongs to, and whether it is a request.
    fn belongs(&self, packet: u32) -> Option<(Tagged, bool)> {
        let packet = self.network.get(packet);
        let client = |host: u32| self.client_of[host as usize];
        let (number, is_request) = match client(packet.from) {
            Some(number) => (number, true),
            None => (client(packet.to)?, false),
        };
        Some((tagged(number, packet.tag), is_request))
    }

    /// Whatever has become of datagrams in the network.
    fn settle(&mut self, now: Instant) {
        while let Some(ended) = self.network.poll() {
            match ended {
                Ended::Arrived(node, packet) => self.arrived(now, node, packet),
                Ended::Lost(node, packet, cause) => {
                    self.tell_lost(now, (node, packet), cause.name());
                    let lost = self.network.get(packet);
                    let hosts = [lost.from, lost.to];
                    let is_request =
                        self.client_of[lost.from as usize].is_some() && lost.from != SINK;
                    let direction =
                        if is_request { &mut self.requests } else { &mut self.responses };
                    match cause {
                        super::network::Cause::Queue => direction.dropped_queue += 1,
                        _ => direction.lost_link += 1,
                    }
                    for host in hosts {
                        if let Some(client) = self.client_of[host as usize]
                            && let Some(source) =
                                self.clients[client as usize].plan.application.source()
                        {
                            source.last_loss = Some(cause);
                        }
                    }
                    self.network.release(packet);
                }
            }
        }
    }

    fn arrived(&mut self, now: Instant, node: u32, packet: u32) {
        let datagram = self.network.get(packet);
        let to = datagram.to;
        if to != node {
            // The root, on the way to the Internet.
            self.over_the_wire(now, packet, false);
        } else if self.servers[to as usize].is_some() {
            self.requests.delivered += 1;
            self.at_server(now, packet);
        } else {
            self.at_client(now, packet);
        }
    }

    /// A host takes one request after another; with no room for one more it is lost.
    fn at_server(&mut self, now: Instant, packet: u32) {
        let backlog = self.scenario.network.mesh.as_ref().map_or(0, |mesh| mesh.backlog);
        let node = self.network.get(packet).to;
        if let Some((tagged, _)) = self.belongs(packet) {
            self.recorder.reached(now, tagged, true);
            if let Some(client) = self.clients.get_mut(tagged.client as usize) {
                client.arrivals.note(tagged.exchange);
            }
        }
        let Some(server) = &mut self.servers[node as usize] else { return };
        let (delay, rng) = &mut self.processing;
        let takes = delay.draw(rng);
        if takes == 0 {
            server.taken += 1;
            self.answer(now, packet);
        } else if server.taken > backlog {
            self.record.lost.host += 1;
            self.tell_lost(now, (node, packet), "host busy");
            self.network.release(packet);
        } else {
            server.taken += 1;
            server.busy_until = server.busy_until.max(now) + Duration::from_nanos(takes);
            self.engine.schedule(server.busy_until, MeshEvent::Processed(packet));
        }
    }

    fn answer(&mut self, now: Instant, packet: u32) {
        let request = self.network.get(packet);
        let (from, node, tag) = (request.from, request.to, request.tag);
        let bytes = request.bytes.clone();
        self.network.release(packet);
        let Some(server) = &mut self.servers[node as usize] else { return };
        server.taken -= 1;
        let network = &mut self.network;
        let mut sent = Vec::new();
        server.answer(now, (from, &bytes), |to, datagram| {
            sent.push(network.packet(node, to, tag, datagram));
        });
        self.responses.sent += sent.len() as u64;
        for packet in sent {
            self.departs(now, node, packet);
        }
    }

    fn at_client(&mut self, now: Instant, packet: u32) {
        if let Some((tagged, is_request)) = self.belongs(packet) {
            self.recorder.reached(now, tagged, is_request);
        }
        let response = self.network.get(packet);
        let (from, to, tag): (u32, u32, Tag) = (response.from, response.to, response.tag);
        self.responses.delivered += 1;
        if let Some(client) = self.client_of[to as usize] {
            let place = &mut self.clients[client as usize];
            let before = place.requester.exchanges.record.payload_bytes;
            let got = (from, &response.bytes[..], tag);
            if let Some((ended, response)) = place.requester.receive(now, got, &mut self.recorder) {
                self.recorder.goodput(now, place.requester.exchanges.record.payload_bytes - before);
                place.plan.application.ended(now, ended, response);
                if ended.answered {
                    self.completed(now, ended);
                }
            }
            self.network.release(packet);
            self.act(now, client);
        } else {
            self.network.release(packet);
        }
    }

    fn completed(&mut self, now: Instant, ended: Exchange) {
        let round_trips =
            if ended.retransmissions == 0 { &mut self.strong } else { &mut self.weak };
        round_trips.saturating_record(ended.round_trip.get().into());
        let duration = self.scenario.workload.mesh.duration.0.max(1);
        let part = now.as_nanos().saturating_mul(PARTS) / duration;
        let last = self.record.completions.len().saturating_sub(1);
        if let Some(count) = self.record.completions.get_mut((part as usize).min(last)) {
            *count += 1;
        }
    }

    fn finish(mut self, now: Instant, replication: u32) -> (RunRecord, R) {
        let mut by_retransmissions: Vec<u64> = Vec::new();
        for client in &mut self.clients {
            client.requester.finish();
            client.requester.exchanges.record.arrived = client.arrivals.count();
            let counts = &client.requester.exchanges.by_retransmissions;
            if counts.len() > by_retransmissions.len() {
                by_retransmissions.resize(counts.len(), 0);
            }
            for (sum, count) in by_retransmissions.iter_mut().zip(counts) {
                *sum += u64::from(*count);
            }
        }
        let mut mesh = self.record;
        mesh.nodes = self.network.records(now);
        mesh.datagrams = self.network.set_out;
        mesh.arrived = self.network.arrived;
        mesh.lost = super::Causes { host: mesh.lost.host, ..self.network.lost };
        mesh.first_timeouts = sparse(&self.first_timeouts);
        mesh.strong_rtt = sparse(&self.strong);
        mesh.weak_rtt = sparse(&self.weak);
        mesh.measured_ns = now.as_nanos();
        for client in &mut self.clients {
            let messages = match &client.plan.application {
                Application::Source(source) => source.messages,
                Application::Requests(_) => super::Messages::default(),
            };
            mesh.messages.push(messages);
            mesh.client_nodes.push(client.plan.host);
        }
        let record = RunRecord {
            replication,
            clients: self.clients.iter().map(|client| client.requester.exchanges.record).collect(),
            totals: Totals {
                by_retransmissions,
                up: self.requests,
                down: self.responses,
                rtt: SparseHistogram::default(),
                durations: SparseHistogram::default(),
                done_ns: now.as_nanos(),
                sim_ns: now.as_nanos(),
                events: self.engine.handled(),
                series: None,
                flows: Vec::new(),
                security: None,
                classes: Vec::new(),
                links: Vec::new(),
                lora: None,
                cross: Vec::new(),
                mesh: Some(mesh),
                wifi: None,
                background: Vec::new(),
                background_packets: BackgroundPackets::default(),
                // Of a mesh the packets are counted, and elsewhere the energy.
                delivery: Delivery {
                    transmissions: self.requests.sent,
                    replies: self.responses.sent,
                    ..Delivery::default()
                },
            },
            wall_s: 0.0,
        };
        (record, self.recorder)
    }
}

/// A client asks a host.
fn ask(now: Instant, client: &mut Client, host: u32, content: &Content<'_>) {
    if let Err(refused) = client.requester.ask(now, host, content) {
        client.plan.application.ended(now, refused, None);
    }
}
