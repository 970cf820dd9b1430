//! The emulation against the simulator: one path, two drivers.

use super::{Direction, Emulation, EmulationSummary};
use crate::host::{
    ArrivingPacket, Client, ClientModel, ClientSetup, ConstantServer, Host, ObservedHost,
    OutgoingPacket, Tag, client_address,
};
use crate::random::Streams;
use crate::record::RunRecord;
use crate::run::{Discard, endpoint_config, simulate};
use crate::scenario::{Control, Scenario, Source, load, parse_set};
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::time::{Duration, Instant};

const HEADER: u32 = 28;

fn scenario(settings: &[&str]) -> Scenario {
    named("nb-iot", settings)
}

fn named(name: &str, settings: &[&str]) -> Scenario {
    let parse = |text: &&str| {
        let axis = parse_set(text).unwrap();
        crate::scenario::combinations(&[axis]).remove(0).remove(0)
    };
    load(name).unwrap().scenario(&settings.iter().map(parse).collect::<Vec<_>>()).unwrap()
}

struct Packet {
    client: u32,
    datagram: Vec<u8>,
    tag: Tag,
}

/// The simulator's hosts with the emulation between them, under a virtual clock that is `late` for
/// everything.
struct Hosts {
    emulation: Emulation<Packet>,
    clients: Vec<Client>,
    /// The class of each.
    class_of: Vec<usize>,
    /// When each of them wants to be called.
    timers: Vec<Option<Instant>>,
    server: ConstantServer,
    recorder: Discard,
    late: Duration,
}

impl Hosts {
    fn new(scenario: &Scenario, control: ControlConfig, late: Duration) -> Self {
        let streams = Streams::new(1, 0);
        let classes = scenario.classes();
        let client = |(scenario, number)| {
            let setup = ClientSetup { number, group: 0, scenario, streams: &streams };
            Client::new(setup, ClientModel::new(scenario, control.clone()))
        };
        let payloads = classes.iter().map(|class| class.scenario.workload.response_payload);
        let clients: Vec<Client> = classes
            .iter()
            .flat_map(|class| class.clients().map(|number| (&class.scenario, number)))
            .map(client)
            .collect();
        Self {
            emulation: Emulation::new(scenario, 1).unwrap(),
            timers: vec![None; clients.len()],
            clients,
            class_of: classes
                .iter()
                .zip(0..)
                .flat_map(|(class, index)| class.clients().map(move |_| index))
                .collect(),
            server: ConstantServer::new(
                endpoint_config(scenario, control.clone()),
                payloads,
                "server",
                &streams,
            ),
            recorder: Discard::new(),
            late,
        }
    }

    /// Runs until all clients are done and nothing is under way.
    fn run(&mut self) -> EmulationSummary {
        for client in 0..self.clients.len() {
            self.clients[client].act(Instant::ZERO);
            self.drain(Instant::ZERO, client);
        }
        loop {
            let timers = self.timers.iter().enumerate();
            let timer = timers.filter_map(|(n, timer)| timer.map(|at| (at, n))).min();
            match (self.emulation.poll_timeout(), timer) {
                (None, None) => return self.emulation.summary(Instant::from_nanos(1)),
                (Some(at), timer) if timer.is_none_or(|(first, _)| at <= first) => {
                    self.arrivals(at + self.late);
                }
                (_, Some((at, client))) => {
                    self.timers[client] = None;
                    self.clients[client].handle_timeout(at);
                    self.drain(at, client);
                }
                (Some(_), None) => unreachable!("the guard above takes it"),
            }
        }
    }

    fn arrivals(&mut self, now: Instant) {
        while let Some(delivery) = self.emulation.poll_packet(now) {
            let Packet { client, datagram, tag } = delivery.packet;
            match delivery.direction {
                Direction::Up => {
                    let (emulation, from) = (&mut self.emulation, client_address(client));
                    self.server.serve(self.class_of[client as usize]);
                    self.server.receive(now, from, &datagram, tag, |client, datagram, tag| {
                        let packet = OutgoingPacket { client, datagram, tag };
                        send(emulation, now, Direction::Down, packet);
                    });
                }
                Direction::Down => {
                    let host = &mut self.clients[client as usize];
                    let packet = ArrivingPacket { bytes: &datagram, tag, is_marked: false };
                    if host.receive(now, packet, &mut self.recorder) {
                        host.act(now);
                    }
                    self.drain(now, client as usize);
                }
            }
        }
    }

    fn drain(&mut self, now: Instant, number: usize) {
        let (emulation, client) = (&mut self.emulation, &mut self.clients[number]);
        let (timeout, _) = client.drain(now, &mut self.recorder, &mut |_, datagram, tag| {
            let packet = OutgoingPacket { client: number as u32, datagram, tag };
            send(emulation, now, Direction::Up, packet);
        });
        self.timers[number] = timeout;
    }

    fn flow_times(&self) -> Vec<Duration> {
        self.clients.iter().map(|client| client.exchanges.ledger.record.fct).collect()
    }
}

fn send(
    emulation: &mut Emulation<Packet>,
    now: Instant,
    direction: Direction,
    packet: OutgoingPacket<'_>,
) {
    let OutgoingPacket { client, datagram, tag } = packet;
    let bytes = HEADER + datagram.len() as u32;
    let packet = Packet { client, datagram: datagram.to_vec(), tag };
    emulation.handle_packet(now, direction, client, bytes, packet);
}

fn udp(scenario: &Scenario, name: &str) -> ControlConfig {
    match scenario.control_config(name).unwrap() {
        Control::Udp(config) => config,
        Control::Tcp(_) | Control::QBlock(_) => {
            panic!("{name} is not a congestion control over UDP")
        }
    }
}

fn both(scenario: &Scenario, control: &str) -> (Hosts, EmulationSummary, RunRecord) {
    let control = udp(scenario, control);
    let mut hosts = Hosts::new(scenario, control.clone(), Duration::ZERO);
    let summary = hosts.run();
    (hosts, summary, simulate(scenario, &[control.into()], 1, 0, false).unwrap())
}

#[track_caller]
fn agree(settings: &[&str], control: &str) {
    agree_in(&scenario(settings), &format!("{settings:?} {control}"), control);
}

#[track_caller]
fn agree_in(scenario: &Scenario, what: &str, control: &str) {
    let (hosts, summary, record) = both(scenario, control);
    let simulated: Vec<Duration> = record.clients.iter().map(|client| client.fct).collect();
    assert_eq!(hosts.flow_times(), simulated, "{what}");
    let links = summary.links.iter().zip(&record.totals.links);
    let links: Vec<_> =
        links.flat_map(|(ours, theirs)| [(ours.up, theirs.up), (ours.down, theirs.down)]).collect();
    for (emulated, simulated) in &links {
        // The simulator counts the bytes that passed the serialiser, those of lost packets too.
        let lost = simulated.bytes - emulated.delivered_bytes;
        assert_eq!(lost > 0, simulated.lost_link > 0, "{what}: {lost} bytes lost");
    }
    let mut down = summary.down;
    if !links.is_empty() {
        // The summary counts the packets that reached a device; further links lost others.
        down.delivered = down.sent - down.dropped_queue - down.lost_link;
    }
    let bottleneck = [(summary.up, record.totals.up), (down, record.totals.down)];
    for (emulated, simulated) in bottleneck.into_iter().chain(links) {
        assert_eq!(
            (emulated.sent, emulated.delivered, emulated.dropped_queue, emulated.lost_link),
            (simulated.sent, simulated.delivered, simulated.dropped_queue, simulated.lost_link),
            "{what}"
        );
    }
}

#[test]
fn without_errors_each_client_takes_the_simulated_time_to_the_nanosecond() {
    for control in ["default", "cocoa", "fasor-token"] {
        for buffer in ["buffer=2500", "buffer=infinite"] {
            agree(&["clients=50", buffer], control);
        }
    }
}

#[test]
fn the_same_packets_are_lost_as_in_the_simulator() {
    for errors in ["errors=low", "errors=high"] {
        agree(&["clients=10", errors], "default");
    }
}

/// Three classes: behind two links before the bottleneck, behind one of them, and at the bottleneck.
const ROW: &str = r#"
name = "row"
title = "A row of links"
description = "Three classes of devices."
source = "none"
[network]
header = 28
[network.up]
rate = "16 kbit/s"
delay = "150 ms"
buffer = 2000
[network.down]
rate = "16 kbit/s"
delay = "150 ms"
buffer = 2000
[[link]]
name = "line"
rate = "24 kbit/s"
delay = "20 ms"
buffer = 2000
[[link]]
name = "radio"
to = "line"
rate = "20 kbit/s"
delay = "40 ms"
buffer = 700
loss = 0.05
[[class]]
name = "meters"
count = 20
link = "radio"
[[class]]
name = "panels"
count = 10
link = "line"
[[class]]
name = "wired"
count = 5
[workload]
kind = "continuous"
exchanges = 10
request_payload = 80
response_payload = 20
[run]
reps = 1
seed = 1
"#;

#[test]
fn devices_behind_several_links_take_the_simulated_time_to_the_nanosecond() {
    for queue in
        ["", "[network.up.queue]\nkind = \"fq-codel\"\ntarget = \"100 ms\"\ninterval = \"2 s\"\n"]
    {
        let text = format!("{ROW}{queue}");
        let scenario = Source::new("row.toml", text).scenario(&[]).unwrap();
        for control in ["default", "cocoa"] {
            agree_in(&scenario, &format!("{queue}{control}"), control);
        }
    }
}

#[test]
fn only_the_devices_of_a_class_take_its_link() {
    let scenario = Source::new("row.toml", ROW).scenario(&[]).unwrap();
    let mut emulation: Emulation<()> = Emulation::new(&scenario, 1).unwrap();
    // A meter, a panel, and a wired device, up; then a device beyond all, which is as the last class.
    for device in [0, 20, 30, 1000] {
        emulation.handle_packet(Instant::ZERO, Direction::Up, device, 100, ());
    }
    let end = Instant::from_nanos(60_000_000_000);
    while emulation.poll_packet(end).is_some() {}
    let summary = emulation.summary(end);
    let sent: Vec<_> =
        summary.links.iter().map(|link| (link.name.as_str(), link.up.sent)).collect();
    assert_eq!(sent, [("line", 2), ("radio", 1)]);
    assert_eq!((summary.up.sent, summary.up.delivered), (4, 4));
}

#[test]
fn the_bytes_of_packets_that_a_link_lost_do_not_count_as_delivered() {
    let scenario = Source::new("row.toml", ROW.replace("loss = 0.05", "loss = 0.5"));
    let mut emulation: Emulation<()> = Emulation::new(&scenario.scenario(&[]).unwrap(), 1).unwrap();
    let end = |number: u64| Instant::from_nanos((number + 1) * 1_000_000_000);
    for number in 0..100 {
        emulation.handle_packet(end(number), Direction::Up, 0, 100, ());
        while emulation.poll_packet(end(number)).is_some() {}
    }
    let radio = emulation.summary(end(100)).links[1].up;
    assert_eq!((radio.sent, radio.dropped_queue), (100, 0));
    assert!((20..80).contains(&radio.lost_link), "{}", radio.lost_link);
    assert_eq!(radio.delivered_bytes, 100 * (100 - radio.lost_link));
}

#[test]
fn a_driver_that_is_late_is_told_so_and_does_not_bend_the_link() {
    let scenario = scenario(&["clients=10", "buffer=infinite"]);
    let control = udp(&scenario, "default");
    let mut hosts = Hosts::new(&scenario, control.clone(), Duration::from_millis(2));
    let summary = hosts.run();
    assert!(!summary.is_valid(), "{:?}", summary.lateness);
    // 2 ms twice per round trip, 50 round trips; the link itself loses no time.
    let punctual = simulate(&scenario, &[control.into()], 1, 0, false).unwrap();
    for (late, client) in hosts.flow_times().iter().zip(&punctual.clients) {
        let more = late.as_secs_f64() - client.fct.as_secs_f64();
        assert!((0.0..0.35).contains(&more), "{more} s");
    }
}

#[test]
fn queue_statistics_are_those_of_a_queue_worked_out_by_hand() {
    let scenario = scenario(&["buffer=200", "network.up.delay=0 s", "network.up.beyond=0 s"]);
    let mut emulation: Emulation<u32> = Emulation::new(&scenario, 1).unwrap();
    // 75 bytes at 60 kbit/s take 10 ms: one leaves, two wait 10 and 20 ms, one finds no room.
    for number in 0..4 {
        emulation.handle_packet(Instant::ZERO, Direction::Up, 0, 75, number);
    }
    let end = Instant::from_nanos(30_000_000);
    let mut arrived = Vec::new();
    while let Some(delivery) = emulation.poll_packet(end) {
        arrived.push((delivery.due.as_nanos(), delivery.packet));
    }
    assert_eq!(arrived, [(10_000_000, 0), (20_000_000, 1), (30_000_000, 2)]);
    let up = emulation.summary(end).up;
    assert_eq!((up.sent, up.delivered, up.dropped_queue, up.queue_max), (4, 3, 1, 150));
    // 75 bytes for 10 ms and 75 for 20 ms, over 30 ms.
    assert!((up.queue_mean - 75.0).abs() < 1e-9, "{}", up.queue_mean);
    assert!((up.utilisation - 1.0).abs() < 1e-9);
    assert_eq!(emulation.summary(end).under_way, 0);
}

#[test]
fn an_emulation_that_ends_with_a_full_queue_counts_only_the_waits_until_then() {
    let scenario = scenario(&["buffer=200", "network.up.delay=0 s", "network.up.beyond=0 s"]);
    let mut emulation: Emulation<u32> = Emulation::new(&scenario, 1).unwrap();
    for number in 0..3 {
        emulation.handle_packet(Instant::from_nanos(10_000_000), Direction::Up, 0, 75, number);
    }
    // Two packets of 75 bytes have waited 5 ms, the link has worked as long, of 15 ms.
    let up = emulation.summary(Instant::from_nanos(15_000_000)).up;
    assert!((up.queue_mean - 50.0).abs() < 1e-9, "{}", up.queue_mean);
    assert!((up.utilisation - 1.0 / 3.0).abs() < 1e-9, "{}", up.utilisation);
    // After 10 ms one of them has left the queue.
    let up = emulation.summary(Instant::from_nanos(25_000_000)).up;
    let byte_ms = 75.0 * (10.0 + 15.0);
    assert!((up.queue_mean - byte_ms / 25.0).abs() < 1e-9, "{}", up.queue_mean);
}

#[test]
fn a_flood_into_an_infinite_buffer_is_bounded_and_counted() {
    let mut emulation: Emulation<()> = Emulation::new(&scenario(&["buffer=infinite"]), 1).unwrap();
    for _ in 0..(1 << 20) + 5 {
        emulation.handle_packet(Instant::ZERO, Direction::Up, 0, 100, ());
    }
    let summary = emulation.summary(Instant::from_nanos(1));
    assert_eq!((summary.under_way, summary.refused), (1 << 20, 5));
}
