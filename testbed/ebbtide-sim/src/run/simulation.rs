//! One replication: clients, network and servers under one virtual clock.

mod finish;
mod hosts;
mod low_power;
mod power;
mod read_ahead;
mod run_end;
mod server_side;

use super::background::Flows;
use super::client_timer::Fires;
use super::cross::Sources;
use super::event::{LANES, Moment, NetEvent};
use super::happenings::Happenings;
use super::moves::Moves;
use super::network::Net;
use super::over_time::TimeRecorder;
use super::pool::PooledPacket;
use super::power::Power;
use super::roster::Roster;
use super::series::SeriesRecorder;
use super::topology::{BOTTLENECK, DirectedLink};
use crate::engine::Engine;
use crate::host::{ArrivingPacket, OutgoingPacket};
use crate::net::Direction;
use crate::random::Streams;
use crate::record::{Discard, Recorder, RunError, sparse};
use crate::record::{ExchangeRecord, OverTime, RunRecord, TimeGrid};
use crate::scenario::{Control, Scenario};
use ebbtide_core::time::{Duration, Instant};
use hosts::{ClientHosts, ServerHosts};
use run_end::RunEnd;
use std::sync::Arc;

/// How long packets may still arrive after the end of a run with an end.
const SETTLE: Duration = Duration::from_secs(10);

/// The controls of a run: usually one; in a mixed run the clients take turns.
pub type Controls = Vec<Control>;

struct Simulation<R: Recorder> {
    engine: Engine<NetEvent>,
    net: Net,
    clients: ClientHosts<R>,
    servers: ServerHosts,
    roster: Arc<Roster>,
    background: Flows,
    happenings: Happenings,
    /// The power of the devices, if it is cut.
    power: Option<Box<Power>>,
    /// The moves of the devices between cells.
    moves: Moves,
    end: RunEnd,
    recorder: R,
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
    let keep = Keep { series: with_series, ..Keep::default() };
    Ok(simulate_keeping(scenario, controls, seed, replication, &keep)?.record)
}

/// Data to keep of a replication in addition to the measurements that every one takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Keep {
    /// Time series for the page.
    pub(super) series: bool,
    /// A row for each exchange.
    pub(super) exchanges: bool,
    /// A series, step by step.
    pub(super) over_time: Option<TimeGrid>,
}

/// A replication with what was to be kept of it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) record: RunRecord,
    /// Its exchanges in the order in which they ended; none unless they are kept.
    pub(super) exchanges: Vec<ExchangeRecord>,
    pub(super) over_time: Option<OverTime>,
}

/// Runs one replication.
pub(super) fn simulate_keeping(
    scenario: &Scenario,
    controls: &[Control],
    seed: u64,
    replication: u32,
    keep: &Keep,
) -> Result<Kept, RunError> {
    let plain = Discard::keeping(keep.exchanges).for_scenario(scenario);
    let series = keep.series.then(SeriesRecorder::new);
    let over_time = keep.over_time.as_ref().map(TimeRecorder::new);
    if series.is_none() && over_time.is_none() {
        // Most replications are like this, and ask no observer whether it is there.
        let (record, plain) = simulate_with(scenario, controls, seed, replication, plain)?;
        return Ok(Kept::new(record, plain));
    }
    let observers = (plain, (series, over_time));
    let (record, observers) = simulate_with(scenario, controls, seed, replication, observers)?;
    let (plain, (series, over_time)) = observers;
    let mut kept = Kept::new(record, plain);
    kept.record.totals.series = series.map(|series| series.into_series(replication));
    kept.over_time = over_time.map(TimeRecorder::finish);
    Ok(kept)
}

impl Kept {
    /// A replication with what every one measures.
    fn new(record: RunRecord, plain: Discard) -> Self {
        let record = with_distributions(record, &plain);
        Self { record, exchanges: plain.exchanges(), over_time: None }
    }
}

/// The record with the distributions that were measured next to it.
fn with_distributions(mut record: RunRecord, measured: &Discard) -> RunRecord {
    record.totals.rtt = sparse(measured.round_trips());
    record.totals.durations = sparse(measured.durations());
    record.totals.delivery.after = measured.after().sparse();
    if let (Some(mesh), Some(times)) = (&mut record.totals.mesh, measured.low_power()) {
        times.write(mesh);
    }
    if let Some(phases) = measured.phases() {
        record.totals.phases = phases.records();
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
        let mut clients = ClientHosts::new(scenario, &roster, &streams, &mut engine);
        let happenings = Happenings::new(&roster.classes, &streams, &mut engine);
        let power = Power::new(scenario, &roster.classes, &streams, &mut engine);
        let moves = Moves::new(scenario, &roster.classes, &streams, &mut engine);
        let cross = Sources::new(scenario, &streams, &mut engine);
        let background = Flows::new(scenario, &streams, &mut engine);
        let mut net = Net::new(scenario, &roster, cross, &streams);
        let servers = ServerHosts::new(scenario, &roster, &mut net, &mut clients.hosts, &streams);
        let end = RunEnd::new(&roster);
        Self {
            engine,
            net,
            clients,
            servers,
            roster,
            background,
            happenings,
            power,
            moves,
            end,
            recorder,
        }
    }

    fn run(&mut self) -> Result<(), RunError> {
        const CENTURY: Instant = Instant::from_nanos(3_155_760_000_000_000_000);
        while let Some((now, event)) = self.engine.pop() {
            if let Some(until) = self.end.until
                && now >= until
            {
                // The clients are gone; what they sent may still arrive, except in a low-power network, whose
                // energy is measured until the end.
                self.end.is_over = true;
                if self.net.has_mesh || now >= until + SETTLE {
                    break;
                }
            }
            if self.end.is_over || self.end.undone == 0 {
                self.background.end();
                self.net.cross.is_over = true;
            }
            while self.recorder.next_sample() <= now {
                let at = self.recorder.next_sample();
                let (up, down) = (self.net.up.queued_bytes(at), self.net.down.queued_bytes(at));
                self.recorder.sample_queues(at, up, down);
            }
            self.dispatch(now, event);
            if self.net.has_mesh {
                self.settle(now);
                if self.end.undone == 0 && self.end.until.is_none() {
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
        self.read_ahead(event);
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        if self.background.handle(event, &mut self.net, moment) {
            return;
        }
        match event {
            NetEvent::Act(client) => self.act(now, client),
            NetEvent::Timer(client) => self.timer(now, client),
            NetEvent::ServerTimer(client) => self.server_timer(now, client),
            NetEvent::AtServer(packet) => self.at_host(now, packet, Direction::Up),
            NetEvent::AtDownLink(place) => {
                let side = DirectedLink { link: BOTTLENECK, direction: Direction::Down };
                self.net.onto_link(place, side, moment);
            }
            NetEvent::AtLink { place, link, direction } => {
                self.net.onto_link(place, DirectedLink { link, direction }, moment);
            }
            NetEvent::AtAccessPoint(packet) => {
                let behind = self.net.is_behind;
                let direction = if behind { Direction::Up } else { Direction::Down };
                self.net.enter_radio(packet, direction, moment);
            }
            NetEvent::AtClient(packet) => self.at_host(now, packet, Direction::Down),
            NetEvent::LinkFree { link, direction } => {
                self.net.link_free(DirectedLink { link, direction }, moment);
            }
            NetEvent::Cross(index) => self.net.cross_sends(index, moment),
            NetEvent::SessionTimer => self.session_timer(now),
            NetEvent::Wifi { .. }
            | NetEvent::Lora { .. }
            | NetEvent::NbIot { .. }
            | NetEvent::LowPower { .. } => {
                self.at_radio(now, event);
            }
            NetEvent::Processed(packet) => self.processed(now, packet),
            NetEvent::Happens(class) => self.report_event(now, class),
            NetEvent::PowerFails(cut) => self.power_fails(now, cut),
            NetEvent::PowerReturns { client, cut } => self.power_returns(now, client, cut),
            NetEvent::MoveBegins(number) => {
                for (client, at) in self.moves.begins(number) {
                    self.engine.schedule(at, NetEvent::Moves { client, number });
                }
            }
            NetEvent::Moves { client, number } => {
                if let Some(topology) = &mut self.net.topology {
                    topology.moves(client, number);
                }
            }
        }
    }

    fn act(&mut self, now: Instant, client: u32) {
        if self.end.is_over {
            return;
        }
        if self.power.as_ref().is_some_and(|power| power.is_off(client)) {
            return self.misses(now, client);
        }
        let before = self.clients.hosts[client as usize].ledger().record.failed;
        self.clients.hosts[client as usize].swap_buffers(&mut self.clients.buffers);
        self.clients.hosts[client as usize].act(now);
        let refused = self.clients.hosts[client as usize].ledger().record.failed - before;
        if refused > 0 {
            self.note_class(client);
            self.recorder.refused(now, refused);
        }
        if let Some(timetable) = &mut self.clients.timetables[self.roster.class_of(client)]
            && self.clients.hosts[client as usize].agenda().has_more()
            && let Some(next) = timetable.next(now, client)
        {
            self.engine.schedule(next, NetEvent::Act(client));
        }
        if self.clients.has_flows
            && let Some(next) =
                self.clients.hosts[client as usize].flow().and_then(|flow| flow.next(now))
        {
            self.engine.schedule(next, NetEvent::Act(client));
        }
        self.drain(now, client);
    }

    fn timer(&mut self, now: Instant, client: u32) {
        if self.end.is_over {
            return;
        }
        match self.clients.timers[client as usize].fires(now) {
            Fires::Not => {}
            Fires::At(at) => self.engine.schedule(at, NetEvent::Timer(client)),
            Fires::Now => {
                let host = &mut self.clients.hosts[client as usize];
                host.swap_buffers(&mut self.clients.buffers);
                host.handle_timeout(now);
                self.drain(now, client);
            }
        }
    }

    /// A packet arrives at the server or at a client.
    fn at_host(&mut self, now: Instant, place: u32, direction: Direction) {
        if direction == Direction::Down && self.net.misses(place) {
            return;
        }
        let (packet, datagram) = self.net.pool.get(place);
        self.recorder.arrived(now, &packet.details(datagram, direction, now));
        if let Some(mesh) = self.net.low_power() {
            mesh.counts(direction).delivered += 1;
        }
        let is_for_mote = direction == Direction::Up && !self.servers.motes.are_none();
        let requester = match self.roster.is_from_server(packet.client) {
            true => Direction::Up,
            false => Direction::Down,
        };
        match requester == direction {
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
            false => self.at_responder(now, place, packet, direction),
        }
    }

    /// Something happens at the radio: packets may arrive at clients.
    fn at_radio(&mut self, now: Instant, event: NetEvent) {
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        self.net.at_radio(event, moment);
        while let Some((place, direction)) = self.crossed(now) {
            let arrives = direction.select(NetEvent::AtServer(place), NetEvent::AtClient(place));
            self.dispatch(now, arrives);
        }
    }

    /// The next packet that has crossed the radio to its host, and its direction.
    fn crossed(&mut self, now: Instant) -> Option<(u32, Direction)> {
        let (engine, recorder) = (&mut self.engine, &mut self.recorder);
        self.net.crossed(&mut Moment { now, engine, recorder })
    }

    fn at_requester(&mut self, now: Instant, place: u32, packet: PooledPacket) {
        let datagram = self.net.pool.bytes(place, packet.length);
        let power = self.power.as_ref();
        let is_deaf = power.is_some_and(|power| power.is_deaf(packet.client, packet.tag.exchange));
        if self.end.is_over || is_deaf {
            self.net.pool.release(place);
            return;
        }
        let host = &mut self.clients.hosts[packet.client as usize];
        host.swap_buffers(&mut self.clients.buffers);
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
        let host = &mut self.clients.hosts[client as usize];
        if host.is_done() {
            self.end.note_done(now, class);
        } else if let Some(flow) = host.flow() {
            // A message that is due by the clock needs no event here.
            if !flow.keeps_time() {
                host.act(now);
            }
        } else if self.clients.timetables[class].is_some() {
            // The next period has an event of its own.
            host.continue_transfer(now);
        } else {
            let (delay, rng) = &mut self.clients.processing;
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
            let host = &mut self.clients.hosts[client as usize];
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
            if let Some(at) = self.clients.timers[client as usize].want(now, timeout, is_punctual) {
                self.engine.schedule(at, NetEvent::Timer(client));
            }
            if !wants_to_act {
                self.clients.hosts[client as usize].swap_buffers(&mut self.clients.buffers);
                return;
            }
            self.wants_to_act(now, client);
        }
    }
}
