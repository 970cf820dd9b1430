//! The network of a replication: both directions of the bottleneck and the packets under way.

use super::cross::Sources;
use super::event::{DOWN_LANE, Moment, NetEvent, ROUTER_LANE, UP_LANE};
use super::pool::Pool;
use super::radio::Radio;
use super::roster::Roster;
use super::topology::{BOTTLENECK, DirectedLink, OWN, SideLinks};
use crate::engine::Engine;
use crate::host::{self, OutgoingPacket, Tag, tagged};
use crate::net::{Bottleneck, Delay, Fate, LossModel};
use crate::net::{Direction, queue};
use crate::random::Streams;
use crate::record::{BackgroundPackets, Delivery, DirectionCounts, LinkRecord};
use crate::record::{Details, Recorder, RunError};
use crate::scenario::{BOTTLENECK as BOTTLENECK_NAME, LinkPath, Transport};
use crate::scenario::{NetworkKind, Scenario};
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// The network with what is under way in it.
pub(super) struct Net {
    pub(super) pool: Pool,
    pub(super) up: Bottleneck<ChaCha8Rng>,
    pub(super) down: Bottleneck<ChaCha8Rng>,
    /// The links other than the bottleneck, if there are any.
    pub(super) topology: Option<Box<SideLinks>>,
    pub(super) cross: Sources,
    /// The number of the first sender of cross traffic; they follow all others.
    pub(super) first_cross: u32,
    pub(super) radio: Option<Radio>,
    /// Whether the radio is a low-power network.
    pub(super) has_mesh: bool,
    /// Whether it is on the servers' side of the bottleneck.
    pub(super) is_behind: bool,
    /// How many of the clients are CoAP's; TCP in the background counts on from there.
    clients: u32,
    /// How many of both are at the radio, the first ones.
    stations: u32,
    beyond_up: (Delay, ChaCha8Rng),
    beyond_down: (Delay, ChaCha8Rng),
    header: u32,
    mtu: u32,
    roster: Arc<Roster>,
    pub(super) server_processing: (Delay, ChaCha8Rng),
    pub(super) error: Option<RunError>,
    /// The network cost of the clients of each class.
    pub(super) deliveries: Vec<Delivery>,
    /// The packets of TCP in the background at the bottleneck.
    pub(super) background: BackgroundPackets,
}

impl Net {
    pub(super) fn new(
        scenario: &Scenario,
        roster: &Arc<Roster>,
        cross: Sources,
        streams: &Streams,
    ) -> Self {
        let network = &scenario.network;
        // In a low-power network the paths of its radio lose frames, and not the wired side.
        let loss = match network.kind {
            NetworkKind::Mesh(_) => LossModel::None,
            _ => scenario.loss_model(),
        };
        let mut up = LinkPath::up(network, loss, streams);
        let mut down = LinkPath::down(network, loss, streams);
        for path in [&mut up, &mut down] {
            path.link.add_outages(scenario.outages_of(BOTTLENECK_NAME));
        }
        let clients = scenario.clients.count;
        let is_behind = scenario.is_cloud();
        let stations = match network.has_radio() && !is_behind {
            true => clients + network.background.stations(),
            false => 0,
        };
        Self {
            pool: Pool::default(),
            up: up.link,
            down: down.link,
            topology: SideLinks::new(scenario, &roster.classes, streams),
            radio: Radio::new(scenario, &roster.classes, stations, streams),
            has_mesh: network.mesh().is_some(),
            is_behind,
            cross,
            first_cross: clients + network.background.flows,
            clients,
            stations,
            beyond_up: up.beyond,
            beyond_down: down.beyond,
            header: network.header,
            mtu: network.mtu,
            roster: Arc::clone(roster),
            server_processing: (
                scenario.server.processing.delay(),
                streams.stream("server/processing"),
            ),
            error: None,
            deliveries: vec![Delivery::default(); roster.classes.len()],
            background: BackgroundPackets::default(),
        }
    }

    /// Returns the transport of a client's messages.
    #[inline]
    fn transport(&self, client: u32) -> Transport {
        if client >= self.clients {
            return Transport::Tcp;
        }
        self.roster.transport(client)
    }

    #[inline]
    const fn bytes_of(&self, transport: Transport, length: u32) -> u32 {
        match transport {
            Transport::Udp => self.header + length,
            Transport::Tcp => host::wire_length(self.header, length),
        }
    }

    /// The length of a packet on the wire.
    #[inline]
    pub(super) fn wire_length(&mut self, transport: Transport, length: u32) -> u32 {
        let bytes = self.bytes_of(transport, length);
        if bytes > self.mtu {
            self.error = Some(RunError::PacketTooLong { bytes, mtu: self.mtu });
        }
        bytes
    }

    /// A client's packet goes on the air or, without a radio, onto the link to the server.
    #[inline]
    pub(super) fn client_sends<R: Recorder>(
        &mut self,
        packet: OutgoingPacket<'_>,
        moment: &mut Moment<'_, R>,
    ) {
        let client = packet.client;
        let details = self.details(packet, Direction::Up, moment.now);
        moment.recorder.client_sent(moment.now, &details);
        let place = self.take(packet, details.transport, !self.roster.is_from_server(client));
        if client < self.stations {
            self.enter_radio(place, Direction::Up, moment);
        } else {
            let link = self.next(client, None, Direction::Up).unwrap_or(BOTTLENECK);
            self.onto_link(place, DirectedLink { link, direction: Direction::Up }, moment);
        }
    }

    /// The description of a packet that is sent, and leaves at this instant, for observers.
    fn details<'p>(
        &self,
        packet: OutgoingPacket<'p>,
        direction: Direction,
        at: Instant,
    ) -> Details<'p> {
        let OutgoingPacket { client, datagram, tag } = packet;
        let (transport, tagged) = (self.transport(client), tagged(client, tag));
        let fate = Fate::Delivered { at };
        Details { direction, transport, tagged, datagram, queued: 0, fate, left: None }
    }

    /// Takes a packet from the host that begins the exchanges, or from the other one. Returns its place.
    #[inline]
    fn take(
        &mut self,
        packet: OutgoingPacket<'_>,
        transport: Transport,
        is_requester: bool,
    ) -> u32 {
        let OutgoingPacket { client, datagram, tag } = packet;
        if client < self.clients {
            let bytes = u64::from(self.bytes_of(transport, datagram.len() as u32));
            self.count_sent(client, bytes, is_requester);
        }
        self.pool.put(client, transport, datagram, tag)
    }

    /// Counts a packet of a client or for it, sent by the host that begins the exchanges or by the other one.
    #[inline]
    fn count_sent(&mut self, client: u32, bytes: u64, is_requester: bool) {
        let delivery = &mut self.deliveries[self.roster.class_of(client)];
        *(if is_requester { &mut delivery.transmissions } else { &mut delivery.replies }) += 1;
        delivery.bytes += bytes;
    }

    /// The link that follows this one for a packet of this client, or of this sender of other
    /// traffic; `None` after the last.
    #[inline(always)]
    pub(super) fn next(&self, client: u32, link: Option<u16>, direction: Direction) -> Option<u16> {
        let Some(topology) = &self.topology else {
            return link.is_none().then_some(BOTTLENECK);
        };
        let is_client = client < self.clients;
        let class =
            if is_client { self.roster.class_of(client) } else { self.roster.classes.len() };
        topology.next(client, class, link, direction)
    }

    /// Whether a packet that would arrive at its device misses it: the device is in another cell. It is then gone.
    pub(super) fn misses(&mut self, place: u32) -> bool {
        let Some(topology) = &mut self.topology else { return false };
        let misses = topology.misses(place, self.pool.packet(place).client);
        if misses {
            self.pool.release(place);
        }
        misses
    }

    /// The counts of the bottleneck towards the devices.
    pub(super) fn down_counts(&self) -> DirectionCounts {
        let missed = self.topology.as_ref().map_or(0, |topology| topology.missed(BOTTLENECK));
        DirectionCounts::from(self.down.counts()).without(missed)
    }

    /// The counts of the links other than the bottleneck.
    pub(super) fn link_records(&self) -> Vec<LinkRecord> {
        self.topology.as_ref().map(|topology| topology.records()).unwrap_or_default()
    }

    /// One direction of a link that several devices share.
    #[inline(always)]
    fn link(&mut self, side: DirectedLink) -> &mut Bottleneck<ChaCha8Rng> {
        let DirectedLink { link, direction } = side;
        let other = match &mut self.topology {
            Some(topology) if link != BOTTLENECK => topology.link(link, direction),
            _ => None,
        };
        match other {
            Some(link) => link,
            None if direction == Direction::Up => &mut self.up,
            None => &mut self.down,
        }
    }

    /// When the packet that a link has just taken leaves its serialiser.
    fn free_at(&mut self, place: u32, side: DirectedLink) -> Option<Instant> {
        if side.link != OWN {
            return Some(self.link(side).free_at());
        }
        let client = self.pool.packet(place).client;
        Some(self.topology.as_mut()?.own(client, side.direction)?.free_at())
    }

    /// A packet goes onto a link in its direction.
    #[inline(always)]
    pub(super) fn onto_link<R: Recorder>(
        &mut self,
        place: u32,
        side: DirectedLink,
        moment: &mut Moment<'_, R>,
    ) {
        let now = moment.now;
        let packet = self.pool.packet(place);
        let bytes = self.wire_length(packet.transport, packet.length.into());
        if side.link == OWN {
            return self.onto_own_link(place, side, bytes, moment);
        }
        let shared = self.link(side);
        let queued = shared.queued_bytes(now);
        let waiting = queue::QueuedPacket {
            id: place,
            client: packet.client,
            bytes,
            queued_at: now,
            is_marked: false,
        };
        match shared.send(now, waiting) {
            Some(fate) => self.decided(place, side, queued, fate, moment),
            None => {
                if moment.recorder.wants_details() {
                    let (packet, datagram) = self.pool.get(place);
                    let details = packet.details(datagram, side.direction, now);
                    moment.recorder.joins_queue(now, &details);
                }
                self.handle_fates(side, moment);
            }
        }
    }

    /// A packet goes onto the link of its own device alone.
    #[inline(never)]
    fn onto_own_link<R: Recorder>(
        &mut self,
        place: u32,
        side: DirectedLink,
        bytes: u32,
        moment: &mut Moment<'_, R>,
    ) {
        let now = moment.now;
        let packet = self.pool.packet(place);
        let own = self.topology.as_mut().and_then(|all| all.own(packet.client, side.direction));
        let (queued, fate) = own.map_or((0, Fate::Delivered { at: now }), |own| {
            (own.queued_bytes(now), own.send(now, bytes))
        });
        self.decided(place, side, queued, fate, moment);
    }

    /// A link may be free for what waits.
    pub(super) fn link_free<R: Recorder>(
        &mut self,
        side: DirectedLink,
        moment: &mut Moment<'_, R>,
    ) {
        self.link(side).handle_timeout(moment.now);
        self.handle_fates(side, moment);
    }

    /// Handles the fates that a queue discipline has decided.
    fn handle_fates<R: Recorder>(&mut self, side: DirectedLink, moment: &mut Moment<'_, R>) {
        loop {
            let shared = self.link(side);
            let queued = shared.queued_bytes(moment.now);
            let Some((queue::QueuedPacket { id: place, is_marked, .. }, fate)) = shared.poll_fate()
            else {
                if let Some(at) = shared.poll_timeout() {
                    let DirectedLink { link, direction } = side;
                    moment.engine.schedule(at, NetEvent::LinkFree { link, direction });
                }
                return;
            };
            if is_marked {
                self.pool.mark(place);
            }
            self.decided(place, side, queued, fate, moment);
        }
    }

    /// Schedules the arrival of a packet whose fate at a link is known, or frees its place.
    #[inline(always)]
    fn decided<R: Recorder>(
        &mut self,
        place: u32,
        side: DirectedLink,
        queued: u64,
        fate: Fate,
        moment: &mut Moment<'_, R>,
    ) {
        let DirectedLink { link, direction } = side;
        let now = moment.now;
        let left = match fate {
            Fate::Dropped => None,
            _ if !moment.recorder.wants_departures() => None,
            _ => self.free_at(place, side),
        };
        let (packet, datagram) = self.pool.get(place);
        let details = Details { queued, fate, left, ..packet.details(datagram, direction, now) };
        if link == BOTTLENECK {
            moment.recorder.at_link(now, &details);
        } else if let Some(topology) = &self.topology {
            moment.recorder.at_other_link(now, topology.name(link), &details);
        }
        let client = packet.client;
        if client >= self.first_cross {
            // It leaves behind the link.
            self.cross.decided((client - self.first_cross) as usize, fate);
            return self.pool.release(place);
        }
        if client >= self.clients && link == BOTTLENECK {
            self.background.sent += 1;
            self.background.dropped_queue += u64::from(fate == Fate::Dropped);
        }
        if client < self.clients && fate != Fate::Dropped {
            let bytes = u64::from(self.bytes_of(packet.transport, packet.length.into()));
            let class = self.roster.class_of(client);
            match &mut self.topology {
                Some(topology) if link != BOTTLENECK => {
                    topology.carries(link, class, bytes, direction);
                }
                _ if direction == Direction::Up => self.deliveries[class].carried_up += bytes,
                _ => self.deliveries[class].carried_down += bytes,
            }
        }
        let Fate::Delivered { at } = fate else { return self.pool.release(place) };
        if direction == Direction::Down
            && let Some(topology) = &mut self.topology
        {
            topology.leaves(place, link);
        }
        if let Some(link) = self.next(client, Some(link), direction) {
            moment.engine.schedule(at, NetEvent::AtLink { place, link, direction });
        } else if direction == Direction::Up {
            let (delay, rng) = &mut self.beyond_up;
            let at = at + Duration::from_nanos(delay.draw(rng));
            let is_behind = self.is_behind;
            let event = if is_behind { NetEvent::AtAccessPoint } else { NetEvent::AtServer };
            moment.engine.schedule_in(Engine::<NetEvent>::lane(UP_LANE), at, event(place));
        } else {
            let at = if self.is_behind { at + self.beyond_down() } else { at };
            let is_station = client < self.stations;
            let event =
                if is_station { NetEvent::AtAccessPoint(place) } else { NetEvent::AtClient(place) };
            moment.engine.schedule_in(Engine::<NetEvent>::lane(DOWN_LANE), at, event);
        }
    }

    /// A source of cross traffic is due.
    pub(super) fn cross_sends<R: Recorder>(&mut self, index: u16, moment: &mut Moment<'_, R>) {
        let Some(packet) = self.cross.turn(moment.now, index, moment.engine) else { return };
        let side = packet.side;
        let tag = Tag { exchange: index.into(), ..Tag::default() };
        let sender = self.first_cross + u32::from(index);
        let place = self.pool.put(sender, Transport::Udp, packet.payload, tag);
        self.onto_link(place, side, moment);
    }

    /// Draws the delay between the server and the router.
    #[inline]
    fn beyond_down(&mut self) -> Duration {
        let (delay, rng) = &mut self.beyond_down;
        Duration::from_nanos(delay.draw(rng))
    }

    /// The server's packet sets out for the router.
    #[inline]
    pub(super) fn server_sends<R: Recorder>(
        &mut self,
        packet: OutgoingPacket<'_>,
        moment: &mut Moment<'_, R>,
    ) {
        let OutgoingPacket { client, tag, .. } = packet;
        let now = moment.now;
        let transport = self.transport(client);
        let on_node = self.has_mesh && self.serving_node(client, tag.exchange).is_some();
        let processing = match transport {
            // A node has taken its time.
            Transport::Udp if on_node => 0,
            // Its own requests are ready.
            Transport::Udp if client < self.clients && self.roster.is_from_server(client) => 0,
            Transport::Udp => self.server_processing.0.draw(&mut self.server_processing.1),
            // A host that speaks TCP takes its time before it answers, not before it acknowledges.
            Transport::Tcp => 0,
        };
        let details = self.details(packet, Direction::Down, now + Duration::from_nanos(processing));
        moment.recorder.server_sent(now, &details);
        let place = self.take(packet, transport, self.roster.is_from_server(client));
        if on_node {
            return self.enter_radio(place, Direction::Down, moment);
        }
        let at = now + Duration::from_nanos(processing) + self.beyond_down();
        moment.engine.schedule_in(
            Engine::<NetEvent>::lane(ROUTER_LANE),
            at,
            NetEvent::AtDownLink(place),
        );
    }
}
