//! Nodes that queue, fragment, forward and put together again. The contents of the datagrams are
//! the caller's: here they have a token, a length and two ends.

use super::bytes::{Hop, acknowledgement};
use super::lowpan::{Addresses, ElidedAddresses, Fragments, compressed_header, fragments};
use super::mac::{LowPowerEvent, LowPowerStep, LowPowerTimers, Mac};
use super::reassembly::Reassembly;
use super::record::{Causes, NodeRecord};
use super::{DutyCycle, DutyCycling, Mesh, MeshGraph, PhaseLock, Routes};
use crate::medium::{Energy, FrameOutcome, Indication, MacFrame};
use crate::net::{Direction, LossModel};
use crate::random::Streams;
use ebbtide_core::time::{Duration, Instant};
use std::collections::VecDeque;

/// A datagram under way between two hosts. Hosts with numbers beyond the nodes' are in the
/// Internet, behind the root.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct MeshDatagram {
    /// The caller's identifier.
    pub(crate) token: u32,
    /// Its direction, which is the caller's as well.
    pub(crate) direction: Direction,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Bytes of the CoAP message.
    pub(crate) bytes: u32,
}

#[derive(Copy, Clone, Debug, Default)]
struct HeldDatagram {
    datagram: MeshDatagram,
    /// Hands that it is in: the receiver's and, until its last fragment is done, the sender's.
    holders: u8,
}

/// Why a datagram did not arrive.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Queue,
    Retries,
    Access,
    Reassembly,
    Route,
}

impl Cause {
    /// In words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue full",
            Self::Retries => "lost on the air",
            Self::Access => "channel busy",
            Self::Reassembly => "no room for fragments",
            Self::Route => "no route",
        }
    }
}

/// The fate of a datagram in the network.
#[derive(Copy, Clone, Debug)]
pub(crate) struct EndedDatagram {
    pub(crate) datagram: MeshDatagram,
    /// Where it is, or was lost: its destination, the root on its way to the Internet, or any other.
    pub(crate) node: u32,
    /// Why it was lost; `None` if it has arrived.
    pub(crate) lost: Option<Cause>,
}

#[derive(Clone, Debug)]
struct SendingDatagram {
    packet: u32,
    to: u32,
    /// The datagram_tag of its fragments.
    tag: u32,
    frames: Fragments,
    /// The fragment that is next, or in the MAC's hand.
    index: u32,
    is_in_mac: bool,
    has_arrived: bool,
    /// Whether all of it has arrived.
    is_through: bool,
}

#[derive(Debug)]
struct Node {
    queue: VecDeque<SendingDatagram>,
    /// Frames in it.
    frames: u32,
    next_tag: u32,
    /// Neighbours that get no frame until then.
    spaced: Vec<(u32, Instant)>,
    reassembly: Reassembly,
    overflows: u64,
    peak: u32,
}

impl Node {
    /// Whether there is a queue for a neighbour, or could be one.
    fn takes(&self, neighbour: u32, most: u32) -> bool {
        let is_first = |index: usize| {
            let to = self.queue[index].to;
            self.queue.iter().take(index).all(|before| before.to != to)
        };
        let neighbours = (0..self.queue.len()).filter(|index| is_first(*index)).count();
        self.queue.iter().any(|outgoing| outgoing.to == neighbour) || neighbours < most as usize
    }
}

/// The network.
#[derive(Debug)]
pub(crate) struct MeshNetwork {
    mac: Mac,
    pub(crate) routes: Routes,
    pub(crate) topology: MeshGraph,
    nodes: Vec<Node>,
    addresses: Addresses,
    /// Frames that a node holds.
    most_frames: u32,
    /// Neighbours that it holds frames for at a time.
    most_neighbours: u32,
    /// The wait between two frames for a neighbour, ns.
    spacing: u64,
    /// Whether its frames are acknowledged.
    acknowledged: bool,
    packets: Vec<HeldDatagram>,
    free: Vec<u32>,
    ended: VecDeque<(u32, EndedDatagram)>,
    released: Vec<u32>,
    pub(crate) set_out: u64,
    pub(crate) arrived: u64,
    pub(crate) lost: Causes,
}

impl MeshNetwork {
    /// The network whose paths lose frames by this model, `average_loss` of them on average.
    pub(crate) fn new(mesh: &Mesh, loss: LossModel, average_loss: f64, streams: &Streams) -> Self {
        let topology = MeshGraph::new(mesh, average_loss);
        let lock = match mesh.duty_cycle {
            DutyCycling::Off => None,
            DutyCycling::Contikimac => Some(PhaseLock::Off),
            DutyCycling::ContikimacPhaseLock => Some(PhaseLock::Exact),
            DutyCycling::Contiki => Some(PhaseLock::Contiki),
        };
        let duty = lock.map(|phase_lock| DutyCycle { period: 125_000_000, phase_lock });
        let air = topology.air(mesh, loss, streams);
        let nodes = (0..topology.nodes()).map(|_| Node {
            queue: VecDeque::new(),
            frames: 0,
            next_tag: 0,
            spaced: Vec::new(),
            reassembly: Reassembly::new(mesh.lowpan.reassemblies, mesh.lowpan.reassembly_timeout.0),
            overflows: 0,
            peak: 0,
        });
        Self {
            mac: Mac::new(air, topology.nodes(), mesh.csma, duty, streams),
            routes: Routes::new(&topology, streams).limited(mesh.routes, topology.root, streams),
            nodes: nodes.collect(),
            topology,
            addresses: mesh.lowpan.addresses,
            most_frames: mesh.lowpan.queue,
            most_neighbours: mesh.lowpan.neighbours.unwrap_or(u32::MAX),
            // ContikiMAC sends the frames that are queued for a neighbour in one burst.
            spacing: if duty.is_some() { 0 } else { mesh.csma.spacing.0 },
            acknowledged: mesh.csma.acknowledged || duty.is_some(),
            packets: Vec::new(),
            free: Vec::new(),
            ended: VecDeque::new(),
            released: Vec::new(),
            set_out: 0,
            arrived: 0,
            lost: Causes::default(),
        }
    }

    /// A datagram sets out at a node. [`Self::poll`] says what becomes of it, [`Self::released`] from when on its
    /// token and its bytes are not needed any more.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        node: u32,
        datagram: MeshDatagram,
        timers: &mut LowPowerTimers,
    ) {
        let packet = HeldDatagram { datagram, holders: 1 };
        let place = match self.free.pop() {
            Some(place) => {
                self.packets[place as usize] = packet;
                place
            }
            None => {
                self.packets.push(packet);
                (self.packets.len() - 1) as u32
            }
        };
        self.set_out += 1;
        self.forward(now, node, place, timers);
    }

    /// The next datagram that has arrived or was lost.
    pub(crate) fn poll(&mut self) -> Option<EndedDatagram> {
        let (packet, ended) = self.ended.pop_front()?;
        self.release(packet);
        Some(ended)
    }

    /// The token of the next datagram that no node has any more.
    pub(crate) fn released(&mut self) -> Option<u32> {
        self.released.pop()
    }

    fn release(&mut self, place: u32) {
        let packet = &mut self.packets[place as usize];
        packet.holders -= 1;
        if packet.holders == 0 {
            self.released.push(packet.datagram.token);
            self.free.push(place);
        }
    }

    /// An event of the MAC has come.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        event: LowPowerEvent,
        timers: &mut LowPowerTimers,
    ) {
        self.mac.handle(now, event, timers);
        while let Some(indication) = self.mac.poll() {
            match indication {
                Indication::Arrived(frame) => self.frame_arrived(now, frame, timers),
                Indication::Done(frame, outcome) => self.frame_done(now, frame, outcome, timers),
            }
        }
        // A frame that waits for its repetition is in nobody's way but its own neighbour's.
        self.send_next(now, event.station, timers);
    }

    fn forward(&mut self, now: Instant, at: u32, place: u32, timers: &mut LowPowerTimers) {
        let packet = self.packets[place as usize].datagram;
        let nodes = self.nodes.len() as u32;
        let root = self.topology.root;
        let goal = if packet.to < nodes { packet.to } else { root };
        if goal == at {
            self.arrived += 1;
            self.ended.push_back((place, EndedDatagram { datagram: packet, node: at, lost: None }));
            return;
        }
        if at == root && !self.routes.has(goal) {
            self.give_up(at, place, Cause::Route);
            return;
        }
        let to = self.routes.next_hop(at, goal);
        let ends = ElidedAddresses {
            from_sender: packet.from == at,
            to_receiver: packet.to == to,
            beyond: packet.from >= nodes || packet.to >= nodes,
        };
        let header = compressed_header(self.addresses, ends);
        // Checked to be at most LARGEST_DATAGRAM.
        let frames = fragments(self.addresses, header, packet.bytes);
        let node = &mut self.nodes[at as usize];
        if node.frames + frames.count > self.most_frames || !node.takes(to, self.most_neighbours) {
            node.overflows += 1;
            self.give_up(at, place, Cause::Queue);
            return;
        }
        node.frames += frames.count;
        node.peak = node.peak.max(node.frames);
        node.next_tag = node.next_tag.wrapping_add(1);
        node.queue.push_back(SendingDatagram {
            packet: place,
            to,
            tag: node.next_tag,
            frames,
            index: 0,
            is_in_mac: false,
            has_arrived: false,
            is_through: false,
        });
        self.send_next(now, at, timers);
    }

    fn give_up(&mut self, at: u32, packet: u32, cause: Cause) {
        match cause {
            Cause::Queue => self.lost.queue += 1,
            Cause::Retries => self.lost.retries += 1,
            Cause::Access => self.lost.access += 1,
            Cause::Reassembly => self.lost.reassembly += 1,
            Cause::Route => self.lost.route += 1,
        }
        let datagram = self.packets[packet as usize].datagram;
        self.ended.push_back((packet, EndedDatagram { datagram, node: at, lost: Some(cause) }));
    }

    /// Hands a node's MAC, if it is idle, the first frame of the first datagram none of whose
    /// neighbour's are before it.
    fn send_next(&mut self, now: Instant, at: u32, timers: &mut LowPowerTimers) {
        if !self.mac.is_idle(at) {
            return;
        }
        let Node { queue, spaced, .. } = &mut self.nodes[at as usize];
        spaced.retain(|(_, until)| *until > now);
        let is_head = |index: &usize| {
            let to = queue[*index].to;
            !queue[*index].is_in_mac
                && queue.iter().take(*index).all(|before| before.to != to)
                && spaced.iter().all(|(neighbour, _)| *neighbour != to)
        };
        let Some(index) = (0..queue.len()).find(is_head) else { return };
        let head = &queue[index];
        let is_last = head.index + 1 == head.frames.count;
        let frame = MacFrame {
            from: at,
            to: head.to,
            bytes: head.frames.bytes(head.index),
            token: head.tag,
            more: !is_last || queue.iter().skip(index + 1).any(|next| next.to == head.to),
            confirmed: self.acknowledged,
        };
        queue[index].is_in_mac = true;
        self.mac.send(now, frame, timers);
    }

    /// The datagram that a frame belongs to, at its sender.
    fn outgoing(&mut self, frame: MacFrame) -> Option<&mut SendingDatagram> {
        let queue = &mut self.nodes[frame.from as usize].queue;
        queue.iter_mut().find(|outgoing| outgoing.tag == frame.token)
    }

    fn frame_arrived(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let Some(outgoing) = self.outgoing(frame) else { return };
        outgoing.has_arrived = true;
        let (packet, count) = (outgoing.packet, outgoing.frames.count);
        let receiver = &mut self.nodes[frame.to as usize];
        if receiver.reassembly.arrived(now, frame.from, frame.token, count) {
            if let Some(outgoing) = self.outgoing(frame) {
                outgoing.is_through = true;
            }
            self.packets[packet as usize].holders += 1;
            self.forward(now, frame.to, packet, timers);
        }
    }

    fn frame_done(
        &mut self,
        now: Instant,
        frame: MacFrame,
        outcome: FrameOutcome,
        timers: &mut LowPowerTimers,
    ) {
        let Some(outgoing) = self.outgoing(frame) else { return };
        outgoing.is_in_mac = false;
        outgoing.index += 1;
        let has_arrived = std::mem::take(&mut outgoing.has_arrived);
        let left = outgoing.frames.count - outgoing.index;
        let (packet, is_through) = (outgoing.packet, outgoing.is_through);
        let node = &mut self.nodes[frame.from as usize];
        node.frames -= 1;
        // Without all of its fragments a datagram is of no use to anybody: the rest stays here.
        if !has_arrived || left == 0 {
            node.frames -= left;
            node.queue.retain(|outgoing| outgoing.tag != frame.token);
            if is_through {
                self.release(packet);
            } else {
                self.give_up(
                    frame.from,
                    packet,
                    match outcome {
                        FrameOutcome::ChannelAccessFailure => Cause::Access,
                        _ if has_arrived => Cause::Reassembly,
                        _ => Cause::Retries,
                    },
                );
            }
        }
        self.space(now, frame, timers);
        self.send_next(now, frame.from, timers);
    }

    /// The next frame for the neighbour, if it is queued already, has to wait.
    fn space(&mut self, now: Instant, frame: MacFrame, timers: &mut LowPowerTimers) {
        let node = &mut self.nodes[frame.from as usize];
        if self.spacing > 0 && node.queue.iter().any(|outgoing| outgoing.to == frame.to) {
            let until = now + Duration::from_nanos(self.spacing);
            node.spaced.push((frame.to, until));
            timers.schedule(until, LowPowerStep::Repeat.at_station(frame.from));
        }
    }

    /// The frame that an event of the MAC puts on the air, if it does: sender, receiver,
    /// the frame. `bytes` are those of the datagram with a token.
    pub(crate) fn on_air<'p>(
        &self,
        event: LowPowerEvent,
        bytes: impl FnOnce(u32) -> &'p [u8],
    ) -> Option<(u32, u32, Vec<u8>)> {
        let frame = match event.step {
            LowPowerStep::Begin | LowPowerStep::AckBegin => self.mac.in_hand(event.station)?,
            _ => return None,
        };
        let queue = &self.nodes[frame.from as usize].queue;
        let outgoing = queue.iter().find(|outgoing| outgoing.tag == frame.token)?;
        let packet = self.packets[outgoing.packet as usize].datagram;
        let nodes = self.nodes.len() as u32;
        let first = if packet.from < nodes { packet.from } else { self.topology.root };
        let hop = Hop {
            addresses: self.addresses,
            link: (frame.from, frame.to),
            hosts: (packet.from, packet.to),
            nodes,
            behind: self.routes.hops(first, frame.from),
            tag: frame.token,
            acknowledged: self.acknowledged,
            message: bytes(packet.token),
        };
        Some(match event.step {
            LowPowerStep::Begin => (frame.from, frame.to, hop.frame(outgoing.index)),
            _ => (frame.to, frame.from, acknowledgement(hop.sequence(outgoing.index))),
        })
    }

    /// Every node's measurements at `now`.
    pub(crate) fn records(&self, now: Instant) -> Vec<NodeRecord> {
        let root = self.topology.root;
        let all = self.nodes.iter().zip(&self.topology.places).zip(0..);
        let record = |((node, place), number): ((&Node, &[f64; 2]), u32)| NodeRecord {
            x: place[0],
            y: place[1],
            parent: self.routes.parent(number).unwrap_or(number),
            hops: self.routes.hops(number, root),
            frames: self.mac.counts(number),
            overflows: node.overflows,
            peak_queue: node.peak,
            energy_mj: Energy::CC2420.millijoules(self.mac.radio_time(number, now), now.as_nanos()),
        };
        all.map(record).collect()
    }
}
