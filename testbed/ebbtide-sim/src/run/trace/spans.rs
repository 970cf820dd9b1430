//! Exchanges and their packets as spans of time, through endpoint and network.

use super::filter::TraceFilter;
use super::perfetto::{Perfetto, Slice, Track, micros};
use crate::net::{Direction, Fate};
use crate::record::{Details, ExchangeRecord, LostAt, Tagged};
use crate::scenario::Transport;
use ebbtide_core::cc::Metrics;
use ebbtide_core::endpoint::Failure;
use ebbtide_core::time::{Duration, Instant, Micros};
use ebbtide_core::wire::Message;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Rows that show exchanges, and rows that show packets.
const EXCHANGES: &str = "exchanges";
const PACKETS: &str = "packets";

/// Writes one timeline per exchange, for <https://ui.perfetto.dev>.
///
/// Each client is a process. Among its tracks `exchanges` has a span for each exchange, from the application's
/// request until its end, which consists of the spans `held` (congestion control or NSTART did not let it leave)
/// and `wait` (for an answer to one transmission, with its `timeout_s`). Among its tracks `packets` each packet
/// has a span, from its sender to its receiver or its loss, which consists of the time in the `queue` of each
/// link, on its `wire` (the serialiser), in its `delay`, at the radio, and `server` or `beyond`: the server's
/// time, and the way between server and bottleneck. Arrows lead from a transmission to its packet; marks show
/// retransmissions, probes, drops, losses and failures; a counter shows the retransmission timeout.
pub struct Spans<W: Write> {
    out: Perfetto<W>,
    only: TraceFilter,
    /// Exchanges that have not ended, by client and number.
    exchanges: BTreeMap<(u32, u32), Vec<SentCopy>>,
    /// Packets under way, oldest first.
    packets: BTreeMap<SpanKey, Vec<PacketSpan>>,
    /// When the last packet so far leaves each link: name, direction, and the client that it is alone.
    left: BTreeMap<(String, Direction, u32), Instant>,
    /// The track of the exchange that ended last, and when.
    last: Option<(Tagged, Track)>,
    arrows: u64,
    /// The ends of arrows whose other end has not been written: the track and the instant.
    ends: BTreeMap<u64, (Track, Instant)>,
    now: Instant,
}

/// A transmission of an exchange.
#[derive(Copy, Clone, Debug)]
struct SentCopy {
    at: Instant,
    tagged: Tagged,
    timeout: Micros,
    /// The arrow to its packet.
    arrow: Option<u64>,
}

/// Client, exchange, ordinal, whether it is a probe, and the direction.
type SpanKey = (u32, u32, u8, bool, Direction);

/// A packet under way.
#[derive(Debug)]
struct PacketSpan {
    sent: Instant,
    /// The end of the last leg.
    reached: Instant,
    arrow: Option<u64>,
    args: Value,
    legs: Vec<(String, Instant, Instant)>,
    has_met_link: bool,
    mark: Option<String>,
}

const fn key(tagged: Tagged, direction: Direction) -> SpanKey {
    (tagged.client, tagged.exchange, tagged.ordinal, tagged.probe, direction)
}

impl PacketSpan {
    fn leg(&mut self, name: String, until: Instant) {
        let until = until.max(self.reached);
        if until > self.reached {
            self.legs.push((name, self.reached, until));
        }
        self.reached = until;
    }

    /// Gives a packet that is dropped at once a span: its arrow and its mark need one.
    fn last_a_microsecond(&mut self) {
        if micros(self.reached) > micros(self.sent) {
            return;
        }
        self.reached = self.sent + Duration::from_micros(1);
        match self.legs.last_mut() {
            Some((_, _, until)) => *until = self.reached,
            None => self.legs.push(("dropped".to_owned(), self.sent, self.reached)),
        }
    }

    /// Before the first link on its way down a packet is at the server, or between server and bottleneck.
    fn meets_first_link(&mut self, now: Instant, direction: Direction) {
        if direction == Direction::Down && !self.has_met_link {
            self.leg("server".to_owned(), now);
        }
        self.has_met_link = true;
    }
}

impl<W: Write> Spans<W> {
    /// Writes to `sink` the exchanges and packets that `only` lets through, each whole.
    pub fn new(sink: W, only: TraceFilter) -> Self {
        Self {
            out: Perfetto::new(sink),
            only,
            exchanges: BTreeMap::new(),
            packets: BTreeMap::new(),
            left: BTreeMap::new(),
            last: None,
            arrows: 0,
            ends: BTreeMap::new(),
            now: Instant::ZERO,
        }
    }

    /// Ends the file. Exchanges and packets that are still under way end there.
    ///
    /// # Errors
    ///
    /// The first error of the sink; nothing was written after it.
    pub fn finish(mut self) -> io::Result<()> {
        for ((client, exchange), sent) in std::mem::take(&mut self.exchanges) {
            let asked = sent.first().map_or(self.now, |sent| sent.at);
            let row = (client, exchange, asked, self.now);
            self.exchange(row, &sent, json!({"outcome": "unfinished"}));
        }
        for (key, packets) in std::mem::take(&mut self.packets) {
            for mut packet in packets {
                packet.leg("waiting".to_owned(), self.now);
                self.packet(key, packet);
            }
        }
        self.out.finish()
    }

    pub(super) fn armed(&mut self, now: Instant, tagged: Tagged, timeout: Micros) {
        self.now = now;
        let sent = SentCopy { at: now, tagged, timeout, arrow: None };
        self.exchanges.entry((tagged.client, tagged.exchange)).or_default().push(sent);
    }

    pub(super) fn sent(&mut self, now: Instant, packet: &Details<'_>) {
        self.now = now;
        let tagged = packet.tagged;
        let mut args = json!({
            "exchange": tagged.exchange, "ordinal": tagged.ordinal, "bytes": packet.datagram.len(),
        });
        if packet.transport == Transport::Udp {
            let message = Message::parse(packet.datagram);
            args["message"] = message.map_or(Value::Null, |message| format!("{message:?}").into());
        }
        let sent = self.exchanges.get_mut(&(tagged.client, tagged.exchange));
        let copy = sent.and_then(|sent| sent.last_mut());
        // A datagram that leaves when its transmission does is that transmission.
        let is_copy =
            |sent: &&mut SentCopy| sent.at == now && sent.tagged == tagged && !tagged.probe;
        let copy = copy.filter(|_| packet.transport == Transport::Udp).filter(is_copy);
        let arrow = copy.map(|sent| {
            self.arrows += 1;
            *sent.arrow.insert(self.arrows)
        });
        let own = PacketSpan {
            sent: now,
            reached: now,
            arrow,
            args,
            legs: Vec::new(),
            has_met_link: false,
            mark: None,
        };
        self.packets.entry(key(tagged, packet.direction)).or_default().push(own);
    }

    /// A packet crossed the air, or did not.
    pub(super) fn crossed(&mut self, now: Instant, medium: &str, packet: &Details<'_>) {
        self.now = now;
        let Some(own) = self.under_way(packet) else { return };
        own.leg(medium.to_owned(), now);
        self.mark(packet, medium);
    }

    /// A packet waits at a link that will report its fate later.
    pub(super) fn joins_queue(&mut self, now: Instant, packet: &Details<'_>) {
        self.now = now;
        if let Some(own) = self.under_way(packet) {
            own.meets_first_link(now, packet.direction);
        }
    }

    /// A packet met a link: when it began to leave, when it had left, and when it arrives follow from its
    /// fate and from the packet before it.
    pub(super) fn at_link(&mut self, now: Instant, link: &str, packet: &Details<'_>) {
        self.now = now;
        let direction = packet.direction;
        let alone = if link == "access" { packet.tagged.client } else { u32::MAX };
        let free = self.left.entry((link.to_owned(), direction, alone)).or_insert(Instant::ZERO);
        let start = now.max(*free);
        *free = packet.left.unwrap_or(*free);
        let Some(own) = self.under_way(packet) else { return };
        own.meets_first_link(now, direction);
        if let Some(left) = packet.left {
            own.leg(format!("{link} queue"), start);
            own.leg(format!("{link} wire"), left);
        } else {
            own.leg(format!("{link} queue"), now);
        }
        if let Fate::Delivered { at } = packet.fate {
            own.leg(format!("{link} delay"), at);
        }
        self.mark(packet, link);
    }

    pub(super) fn arrived(&mut self, now: Instant, packet: &Details<'_>) {
        self.now = now;
        if let Some(mut own) = self.take(packet.tagged, packet.direction) {
            own.leg("beyond".to_owned(), now);
            self.packet(key(packet.tagged, packet.direction), own);
        }
    }

    /// A packet was lost at a node of a low-power network.
    pub(super) fn lost_at(&mut self, now: Instant, tagged: Tagged, at: &LostAt<'_>) {
        self.now = now;
        if let Some(mut own) = self.take(tagged, at.direction) {
            own.leg("mesh".to_owned(), now);
            own.mark = Some(format!("lost: {} at node {}", at.cause, at.node));
            self.packet(key(tagged, at.direction), own);
        }
    }

    pub(super) fn ended(&mut self, row: &ExchangeRecord) {
        self.now = row.ended;
        let sent = self.exchanges.remove(&(row.client, row.exchange)).unwrap_or_default();
        let outcome = if row.answered.is_some() { "answered" } else { "failed" };
        let args = json!({
            "outcome": outcome, "transmissions": row.transmissions, "answered": row.answered,
        });
        self.exchange((row.client, row.exchange, row.asked, row.ended), &sent, args);
    }

    pub(super) fn answered(&mut self, now: Instant, tagged: Tagged, metrics: &Metrics) {
        if !self.only.takes(now, Some(tagged.client)) {
            return;
        }
        for (name, value) in [("rto, s", metrics.rto), ("srtt, s", metrics.srtt)] {
            if let Some(value) = value {
                self.out.counter(tagged.client, name, now, value.as_secs_f64());
            }
        }
    }

    pub(super) fn failed(&mut self, now: Instant, tagged: Tagged, reason: Failure) {
        let is_last = |last: &&(Tagged, Track)| {
            (last.0.client, last.0.exchange) == (tagged.client, tagged.exchange)
        };
        if let Some((_, track)) = self.last.as_ref().filter(is_last) {
            self.out.mark(*track, "failed", now, &json!({"reason": reason.to_string()}));
        }
    }

    /// Writes an exchange: its client, its number, and its ends.
    fn exchange(&mut self, row: (u32, u32, Instant, Instant), sent: &[SentCopy], args: Value) {
        let (client, number, asked, ended) = row;
        self.last = None;
        if !self.only.overlaps(client, asked, ended) {
            return;
        }
        let track = self.out.track(client, EXCHANGES, asked, ended);
        self.last = Some((Tagged { client, exchange: number, ..Tagged::default() }, track));
        let name = format!("exchange {number}");
        self.out.slice(track, &Slice { name: &name, from: asked, to: ended, args });
        // Over TCP the connection's first segments precede the first request.
        let is_copy = |sent: &&SentCopy| !sent.tagged.probe && sent.at >= asked;
        let copies: Vec<&SentCopy> = sent.iter().filter(is_copy).collect();
        let first = copies.first().map_or(ended, |sent| sent.at);
        self.out.slice(track, &Slice { name: "held", from: asked, to: first, args: json!({}) });
        for (index, copy) in copies.iter().enumerate() {
            let next = copies.get(index + 1);
            let args = json!({
                "ordinal": copy.tagged.ordinal, "timeout_s": copy.timeout.as_secs_f64(),
                "expired": next.is_some(),
            });
            let to = next.map_or(ended, |next| next.at);
            self.out.slice(track, &Slice { name: "wait", from: copy.at, to, args });
            if index > 0 {
                let args = json!({"ordinal": copy.tagged.ordinal});
                self.out.mark(track, "retransmission", copy.at, &args);
            }
            // An arrow that leaves when the exchange ends would leave no span.
            if let Some(arrow) = copy.arrow.filter(|_| micros(copy.at) < micros(ended)) {
                match self.ends.remove(&arrow) {
                    Some(landing) => self.out.arrow(arrow, (track, copy.at), landing),
                    None => _ = self.ends.insert(arrow, (track, copy.at)),
                }
            }
        }
        for probe in sent.iter().filter(|sent| sent.tagged.probe) {
            self.out.mark(track, "probe", probe.at, &json!({"ordinal": probe.tagged.ordinal}));
        }
    }

    /// Writes a packet that has arrived or was lost.
    fn packet(&mut self, key: SpanKey, mut packet: PacketSpan) {
        let (client, _, _, is_probe, direction) = key;
        if !self.only.overlaps(client, packet.sent, packet.reached) {
            return;
        }
        packet.last_a_microsecond();
        let (from, to) = (packet.sent, packet.reached);
        let track = self.out.track(client, PACKETS, from, to);
        let name = match (direction, is_probe) {
            (Direction::Up, false) => "to the server",
            (Direction::Down, false) => "to the client",
            (Direction::Up, true) => "probe",
            (Direction::Down, true) => "answer to a probe",
        };
        self.out.slice(track, &Slice { name, from, to, args: packet.args });
        for (name, from, to) in packet.legs {
            self.out.slice(track, &Slice { name: &name, from, to, args: json!({}) });
        }
        if let Some(mark) = packet.mark {
            self.out.mark(track, &mark, to, &json!({}));
        }
        if let Some(arrow) = packet.arrow {
            match self.ends.remove(&arrow) {
                Some(departure) => self.out.arrow(arrow, departure, (track, from)),
                None => _ = self.ends.insert(arrow, (track, from)),
            }
        }
    }

    /// The oldest packet of this description.
    fn under_way(&mut self, packet: &Details<'_>) -> Option<&mut PacketSpan> {
        self.packets.get_mut(&key(packet.tagged, packet.direction))?.first_mut()
    }

    fn take(&mut self, tagged: Tagged, direction: Direction) -> Option<PacketSpan> {
        let key = key(tagged, direction);
        let packets = self.packets.get_mut(&key)?;
        let oldest = packets.remove(0);
        if packets.is_empty() {
            self.packets.remove(&key);
        }
        Some(oldest)
    }

    /// Ends a packet whose fate at a place is not to be delivered.
    fn mark(&mut self, packet: &Details<'_>, place: &str) {
        let what = match packet.fate {
            Fate::Delivered { .. } => return,
            Fate::Dropped => "dropped",
            Fate::Lost { .. } => "lost",
        };
        if let Some(mut own) = self.take(packet.tagged, packet.direction) {
            own.mark = Some(format!("{what}: {place}"));
            self.packet(key(packet.tagged, packet.direction), own);
        }
    }
}
