//! Everything that happens in one replication, as JSON lines and as a capture.

mod filter;
mod perfetto;
mod spans;

pub use filter::TraceFilter;
pub use spans::Spans;

use crate::host::{Segment, client_address, server_address};
use crate::net::Fate;
use crate::record::{Capture, Details, ExchangeRecord, LostAt, Recorder, Tagged};
use crate::scenario::Transport;
use ebbtide_core::cc::{Metrics, Sample};
use ebbtide_core::endpoint::Failure;
use ebbtide_core::time::{Duration, Instant, Micros};
use ebbtide_core::wire::Message;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;

const AT_CLIENTS: u32 = 0;
const AT_SERVER: u32 = 1;

/// An observer that writes what it sees: one JSON object per line with `t` (seconds), `event`,
/// `client`, `exchange`, `ordinal`, and what belongs to the event.
///
/// | event | when | with |
/// |---|---|---|
/// | `sent` | a client transmits | `timeout_s` armed, `why` |
/// | `wifi`, `lora`, `nb-iot`, `mesh` | a packet leaves the cell or the low-power network, if there is one | `direction`, `bytes`, `queued_packets` behind it, `fate`: `delivered`, `dropped` by a full queue, `lost` after all retries or, in LoRaWAN, on the air |
/// | `link` | a packet is handed to the bottleneck or, with the name of the `link`, to another one | `direction`, `bytes` of the CoAP message, `queued_bytes` before it, `fate`, `until` when it is on its way or was lost |
/// | `arrived` | at the server or at a client | `at`, `message` |
/// | `answered` | first response to an exchange | `sample`, and the control's `srtt_s`, `rto_s`, `state`, ... after it |
/// | `failed` | an exchange ends without | `reason` |
/// | `lost` | a datagram is lost in a low-power network | `node` that lost it, `direction`, `cause` |
///
/// In a low-power network `link` is the wired side of its border router, and a capture has one
/// interface, [`AIR`](crate::record::AIR): the frames of IEEE 802.15.4 as they begin to be on the
/// air, acknowledgements and repetitions included, whether or not they are received.
///
/// Over TCP `sent` is a segment that arms the retransmission timer, `bytes` are those of the IPv4
/// packet, and `segment` has its flags and numbers in place of the `message`; `exchange` and
/// `ordinal` are those of the last message in it.
pub struct Trace<T: Write, C: Write> {
    lines: Option<T>,
    spans: Option<Spans<T>>,
    captures: Vec<Tap<C>>,
    only: TraceFilter,
    /// Packets that have not left yet, in the order in which they will: the capture is in the order of time.
    leaving: BTreeMap<(u64, u64), Leaving>,
    /// How many of them there were.
    numbered: u64,
    error: Option<io::Error>,
}

/// A packet that a host sends later, when it is ready.
struct Leaving {
    place: u32,
    ends: (SocketAddr, SocketAddr),
    transport: Transport,
    bytes: Vec<u8>,
}

/// A capture, and the one place (by its number in [`PLACES`](crate::record::PLACES)) that it is of;
/// `None`: all of them.
pub struct Tap<C: Write> {
    /// The place.
    pub place: Option<u32>,
    /// Where it goes.
    pub capture: Capture<C>,
}

impl<T: Write, C: Write> Trace<T, C> {
    /// Writes JSON lines to `lines` and packets to `captures`, where there are such, of what `only`
    /// lets through.
    pub fn new(lines: Option<T>, captures: Vec<Tap<C>>, only: TraceFilter) -> Self {
        let leaving = BTreeMap::new();
        Self { lines, spans: None, captures, only, leaving, numbered: 0, error: None }
    }

    /// Writes a timeline of each exchange to `sink` as well, as [`Spans`] describes it.
    pub fn with_spans(mut self, sink: T) -> Self {
        self.spans = Some(Spans::new(sink, self.only));
        self
    }

    /// Ends the trace.
    ///
    /// # Errors
    ///
    /// The first error of a sink; nothing was written after it.
    pub fn finish(mut self) -> io::Result<()> {
        self.leave_until(Instant::from_nanos(u64::MAX));
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some(mut lines) = self.lines {
            lines.flush()?;
        }
        if let Some(spans) = self.spans {
            spans.finish()?;
        }
        for tap in self.captures {
            tap.capture.into_inner().flush()?;
        }
        Ok(())
    }

    fn line(&mut self, now: Instant, event: &str, tagged: Tagged, rest: Value) {
        if self.error.is_some() || !self.only.takes(now, Some(tagged.client)) {
            return;
        }
        let Some(lines) = &mut self.lines else { return };
        let mut object = Map::new();
        object.insert("t".into(), seconds(now.as_nanos()));
        object.insert("event".into(), event.into());
        object.insert("client".into(), tagged.client.into());
        object.insert("exchange".into(), tagged.exchange.into());
        object.insert("ordinal".into(), tagged.ordinal.into());
        if tagged.probe {
            object.insert("probe".into(), true.into());
        }
        if let Value::Object(rest) = rest {
            object.extend(rest);
        }
        if let Err(error) = writeln!(lines, "{}", Value::Object(object)) {
            self.error = Some(error);
        }
    }

    /// A packet is at a place now or, if it is a response that takes the server some time, later.
    fn packet(&mut self, now: Instant, at: Instant, place: u32, packet: &Details<'_>) {
        self.leave_until(now);
        if self.captures.is_empty() || !self.only.takes(at, Some(packet.tagged.client)) {
            return;
        }
        let (client, server) = (client_address(packet.tagged.client), server_address());
        let ends = packet.direction.select((client, server), (server, client));
        let bytes = packet.datagram.to_vec();
        let own = Leaving { place, ends, transport: packet.transport, bytes };
        if at <= now {
            return self.write(now, &own);
        }
        self.numbered += 1;
        self.leaving.insert((at.as_nanos(), self.numbered), own);
    }

    /// Writes the packets that have left by now.
    fn leave_until(&mut self, now: Instant) {
        while let Some(first) = self.leaving.first_entry()
            && first.key().0 <= now.as_nanos()
        {
            let ((at, _), packet) = first.remove_entry();
            self.write(Instant::from_nanos(at), &packet);
        }
    }

    fn write(&mut self, now: Instant, packet: &Leaving) {
        if self.error.is_some() {
            return;
        }
        for tap in &mut self.captures {
            if tap.capture.is_of_frames() || tap.place.is_some_and(|own| own != packet.place) {
                continue;
            }
            // A capture of one place has one interface.
            let place = if tap.place.is_some() { 0 } else { packet.place };
            let (at, (from, to)) = (now.as_nanos(), packet.ends);
            let written = match packet.transport {
                Transport::Udp => tap.capture.datagram(place, at, from, to, &packet.bytes),
                Transport::Tcp => {
                    tap.capture.packet(place, Duration::from_nanos(at), &packet.bytes)
                }
            };
            if let Err(error) = written {
                self.error = Some(error);
            }
        }
    }
}

/// The segment in an IPv4 packet, in words.
fn segment(packet: &[u8]) -> String {
    Segment::parse(packet).unwrap_or_default().to_string()
}

/// Seconds with all nine decimals, exactly.
fn seconds(ns: u64) -> Value {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    text.parse().map_or(Value::Null, Value::Number)
}

fn span(span: Micros) -> Value {
    seconds(span.as_nanos())
}

/// The fate of a packet at a link, and its other properties there.
fn fate_at_link(packet: &Details<'_>) -> Value {
    let (fate, at) = match packet.fate {
        Fate::Delivered { at } => ("delivered", Some(at)),
        Fate::Dropped => ("dropped", None),
        Fate::Lost { left } => ("lost", Some(left)),
    };
    let direction = packet.direction.name();
    let mut rest = json!({
        "direction": direction, "bytes": packet.datagram.len(),
        "queued_bytes": packet.queued, "fate": fate,
        "until": at.map(|at| seconds(at.as_nanos())),
    });
    if packet.transport == Transport::Tcp {
        rest["segment"] = segment(packet.datagram).into();
    }
    rest
}

impl<T: Write, C: Write> Recorder for Trace<T, C> {
    fn wants_details(&self) -> bool {
        self.lines.is_some() || self.spans.is_some()
    }

    fn wants_frames(&self) -> bool {
        !self.captures.is_empty()
    }

    fn on_air(&mut self, now: Instant, _from: u32, _to: u32, frame: &[u8]) {
        if self.error.is_some() || !self.only.takes(now, None) {
            return;
        }
        for tap in &mut self.captures {
            let at = Duration::from_nanos(now.as_nanos());
            if let Err(error) = tap.capture.packet(0, at, frame) {
                self.error = Some(error);
            }
        }
    }

    fn lost_at(&mut self, now: Instant, tagged: Tagged, at: &LostAt<'_>) {
        if let Some(spans) = &mut self.spans {
            spans.lost_at(now, tagged, at);
        }
        let direction = at.direction.name();
        let rest = json!({"node": at.node, "direction": direction, "cause": at.cause});
        self.line(now, "lost", tagged, rest);
    }

    fn armed(&mut self, now: Instant, tagged: Tagged, timeout: Micros) {
        if let Some(spans) = &mut self.spans {
            spans.armed(now, tagged, timeout);
        }
        let why = match tagged.ordinal {
            _ if tagged.probe => "a probe before the message is repeated",
            0 => "original",
            _ => "the timeout before expired",
        };
        self.line(now, "sent", tagged, json!({"timeout_s": span(timeout), "why": why}));
    }

    fn client_sent(&mut self, now: Instant, packet: &Details<'_>) {
        if let Some(spans) = &mut self.spans {
            spans.sent(now, packet);
        }
        self.packet(now, now, AT_CLIENTS, packet);
    }

    fn crossed(&mut self, now: Instant, medium: &str, packet: &Details<'_>) {
        if let Some(spans) = &mut self.spans {
            spans.crossed(now, medium, packet);
        }
        let fate = match packet.fate {
            Fate::Delivered { .. } => "delivered",
            Fate::Dropped => "dropped",
            Fate::Lost { .. } => "lost",
        };
        let direction = packet.direction.name();
        let rest = json!({
            "direction": direction, "bytes": packet.datagram.len(),
            "queued_packets": packet.queued, "fate": fate,
        });
        self.line(now, medium, packet.tagged, rest);
    }

    fn joins_queue(&mut self, now: Instant, packet: &Details<'_>) {
        if let Some(spans) = &mut self.spans {
            spans.joins_queue(now, packet);
        }
    }

    fn at_link(&mut self, now: Instant, packet: &Details<'_>) {
        if let Some(spans) = &mut self.spans {
            spans.at_link(now, "bottleneck", packet);
        }
        let rest = fate_at_link(packet);
        self.line(now, "link", packet.tagged, rest);
    }

    fn at_other_link(&mut self, now: Instant, link: &str, packet: &Details<'_>) {
        if let Some(spans) = &mut self.spans {
            spans.at_link(now, link, packet);
        }
        let mut rest = fate_at_link(packet);
        rest["link"] = link.into();
        self.line(now, "link", packet.tagged, rest);
    }

    fn server_sent(&mut self, now: Instant, packet: &Details<'_>) {
        if let Some(spans) = &mut self.spans {
            spans.sent(now, packet);
        }
        // It leaves when the server is ready.
        let leaves = match packet.fate {
            Fate::Delivered { at } => at,
            Fate::Dropped | Fate::Lost { .. } => now,
        };
        self.packet(now, leaves, AT_SERVER, packet);
    }

    fn arrived(&mut self, now: Instant, packet: &Details<'_>) {
        if let Some(spans) = &mut self.spans {
            spans.arrived(now, packet);
        }
        self.packet(now, now, packet.direction.select(AT_SERVER, AT_CLIENTS), packet);
        if self.lines.is_some() {
            let at = packet.direction.select("server", "client");
            let rest = match packet.transport {
                Transport::Udp => {
                    let message = Message::parse(packet.datagram);
                    let message = message.map(|message| format!("{message:?}"));
                    json!({"at": at, "message": message.unwrap_or_else(|error| error.to_string())})
                }
                Transport::Tcp => json!({"at": at, "segment": segment(packet.datagram)}),
            };
            self.line(now, "arrived", packet.tagged, rest);
        }
    }

    fn answered(
        &mut self,
        now: Instant,
        tagged: Tagged,
        sample: Option<Sample>,
        metrics: &Metrics,
    ) {
        if let Some(spans) = &mut self.spans {
            spans.answered(now, tagged, metrics);
        }
        let sample = sample.map(|sample| {
            json!({
                "since_first_s": span(sample.since_first),
                "since_last_s": span(sample.since_last),
                "transmissions": sample.transmissions,
                "answered": sample.answered.map(|answered| {
                    json!({"ordinal": answered.ordinal, "since_s": span(answered.since)})
                }),
            })
        });
        let rest = json!({
            "sample": sample,
            "srtt_s": metrics.srtt.map(span), "rttvar_s": metrics.rttvar.map(span),
            "rto_s": metrics.rto.map(span), "second_s": metrics.second.map(span),
            "interval_s": metrics.interval.map(span), "state": metrics.state,
        });
        self.line(now, "answered", tagged, rest);
    }

    fn ended(&mut self, exchange: &ExchangeRecord) {
        if let Some(spans) = &mut self.spans {
            spans.ended(exchange);
        }
    }

    fn failed(&mut self, now: Instant, tagged: Tagged, reason: Failure) {
        if let Some(spans) = &mut self.spans {
            spans.failed(now, tagged, reason);
        }
        self.line(now, "failed", tagged, json!({"reason": reason.to_string()}));
    }
}
