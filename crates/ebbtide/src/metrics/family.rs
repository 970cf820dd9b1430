//! All metrics with their names, in the form that exporters need.

use super::Snapshot;
use ebbtide_core::endpoint::{ControlCounters, Histogram};
use ebbtide_core::wire::Code;

/// The type of a metric.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A value that only grows, from 0 at the start.
    Counter,
    /// A value that may rise and fall.
    Gauge,
    /// A distribution of values.
    Histogram,
}

/// A metric: a name and its values.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Family {
    /// The name, with the unit at its end.
    pub name: &'static str,
    /// The type.
    pub kind: Kind,
    /// A sentence that describes the metric.
    pub help: &'static str,
    /// Its values, one for each combination of its labels' values.
    pub samples: Vec<Sample>,
}

/// A value of a metric.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sample {
    /// The labels and their values, if the metric has any.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// The value of a sample: a number or a distribution.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// The value of a counter or a gauge.
    Number(u64),
    /// A distribution of time spans.
    Spans(Histogram),
}

impl Family {
    pub(super) fn number(kind: Kind, name: &'static str, help: &'static str, value: u64) -> Self {
        let samples = vec![Sample { labels: Vec::new(), value: Value::Number(value) }];
        Self { name, kind, help, samples }
    }

    pub(super) fn labelled<L: Into<String>>(
        kind: Kind,
        name: &'static str,
        label: &'static str,
        help: &'static str,
        values: impl IntoIterator<Item = (L, Value)>,
    ) -> Self {
        let sample =
            |(name, value): (L, Value)| Sample { labels: vec![(label, name.into())], value };
        Self { name, kind, help, samples: values.into_iter().map(sample).collect() }
    }
}

impl Snapshot {
    /// All metrics. Their names, labels and units are part of the interface; see
    /// `docs/metrics.md`.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        use Kind::{Counter, Gauge};
        let counters = &self.counters;
        let count = |name, help, value| Family::number(Counter, name, help, value);
        let gauge = |name, help, value: usize| Family::number(Gauge, name, help, value as u64);
        let mut families = vec![
            count("ebbtide_datagrams_received_total", "Datagrams that arrived.", counters.received),
            count("ebbtide_datagrams_sent_total", "Datagrams sent.", counters.sent),
            count(
                "ebbtide_congestion_experienced_total",
                "Answers with the ECN mark Congestion Experienced.",
                counters.congestion_experienced,
            ),
            count(
                "ebbtide_kernel_drops_total",
                "Datagrams that the kernel dropped because they were not received in time.",
                self.kernel_drops,
            ),
            self.requests(),
            Family {
                name: "ebbtide_request_seconds",
                kind: Kind::Histogram,
                help: "Time from the arrival of a request to the answer of its handler.",
                samples: vec![Sample {
                    labels: Vec::new(),
                    value: Value::Spans(self.answered.spans),
                }],
            },
            count("ebbtide_state_errors_total", "Failures to store the state.", self.state_errors),
            Family::labelled(
                Counter,
                "ebbtide_malformed_total",
                "reason",
                "Datagrams that were not CoAP messages.",
                self.malformed.iter().map(|(reason, n)| (reason, Value::Number(n))),
            ),
            Family::labelled(
                Counter,
                "ebbtide_ignored_total",
                "reason",
                "Messages that did not concern the application.",
                numbers([
                    ("ping", counters.pings),
                    ("duplicate", counters.duplicates),
                    ("unknown-answer", counters.unknown_answers),
                    ("wrong-token", counters.wrong_tokens),
                    ("bad-option", counters.bad_options),
                ]),
            ),
            Family::labelled(
                Counter,
                "ebbtide_dropped_total",
                "reason",
                "Messages dropped because a queue or a table was full.",
                numbers([
                    ("queue-full", counters.queue_full),
                    ("outbox-full", counters.outbox_full),
                    ("refused", counters.refused),
                    ("unstored", counters.unstored),
                    ("event", self.dropped_events),
                    ("peer-evicted", counters.peers_evicted_early),
                ]),
            ),
            Family::labelled(
                Counter,
                "ebbtide_turned_away_total",
                "reason",
                "Requests, uploads and observers that a server turned away to protect others.",
                numbers([
                    ("upload-evicted", self.refusals.uploads_evicted),
                    ("observer-refused", self.refusals.observers_refused),
                    ("observer-vanished", self.refusals.observers_vanished),
                    ("challenged", self.refusals.challenged),
                    ("too-many-requests", self.refusals.too_many_requests),
                    ("overloaded", self.refusals.overloaded),
                    ("handler-panicked", self.refusals.handler_panics),
                ]),
            ),
            self.refused_family(),
            count(
                "ebbtide_id_waits_total",
                "Messages that had to wait for a free message ID.",
                counters.id_waits,
            ),
        ];
        families.extend(self.control_families());
        families.extend(self.connection_families());
        families.extend(self.dtls.families());
        families.extend([
            Family::labelled(
                Gauge,
                "ebbtide_exchanges",
                "state",
                "Exchanges of our own that have not ended.",
                numbers([
                    ("queued", self.exchanges.queued),
                    ("open", self.exchanges.open),
                    ("waiting", self.exchanges.waiting),
                    ("observing", self.exchanges.observing),
                ]),
            ),
            gauge(
                "ebbtide_outbox_datagrams",
                "Datagrams that wait for the socket.",
                self.outbox.datagrams,
            ),
            gauge("ebbtide_outbox_bytes", "Bytes that wait for the socket.", self.outbox.bytes),
            gauge("ebbtide_peers", "Peers with congestion control state.", self.peers),
            gauge(
                "ebbtide_remembered_messages",
                "Messages remembered for deduplication.",
                self.remembered,
            ),
            gauge("ebbtide_observers", "Observers registered here.", self.observers),
            gauge(
                "ebbtide_working",
                "Requests in progress at handlers, once for each 16 KiB.",
                self.load.working,
            ),
            gauge("ebbtide_block_bytes", "Bytes of bodies in parts.", self.load.block_bytes),
            Family::labelled(
                Gauge,
                "ebbtide_block_transfers",
                "direction",
                "Bodies in parts.",
                numbers([
                    ("upload", self.load.uploads as u64),
                    ("download", self.load.downloads as u64),
                ]),
            ),
        ]);
        families
    }

    /// The family with two labels.
    fn refused_family(&self) -> Family {
        let sample = |(reason, from, count): (&'static str, &'static str, u64)| Sample {
            labels: vec![("reason", reason.to_owned()), ("from", from.to_owned())],
            value: Value::Number(count),
        };
        Family {
            name: "ebbtide_refused_total",
            kind: Kind::Counter,
            help: "Datagrams, requests and connections that a server refused, by class of address.",
            samples: self.refused.iter().map(sample).collect(),
        }
    }

    /// The families of RFC 8323's connections.
    fn connection_families(&self) -> [Family; 4] {
        let connections = &self.connections;
        [
            Family::number(
                Kind::Gauge,
                "ebbtide_connections",
                "Connections that are open.",
                connections.open as u64,
            ),
            Family::number(
                Kind::Counter,
                "ebbtide_connections_established_total",
                "Connections that were established.",
                connections.connections,
            ),
            Family::labelled(
                Kind::Counter,
                "ebbtide_connections_refused_total",
                "reason",
                "Connections that were not established.",
                numbers([
                    ("address", connections.refused_of_address),
                    ("full", connections.refused_when_full),
                    ("descriptors", connections.refused_without_descriptors),
                    ("handshake", connections.handshakes_failed),
                ]),
            ),
            Family::labelled(
                Kind::Counter,
                "ebbtide_connections_ended_total",
                "reason",
                "Connections that have ended.",
                numbers([
                    ("released", connections.released),
                    ("closed-by-peer", connections.closed_by_peer),
                    ("lost", connections.lost),
                    ("aborted-by-peer", connections.aborted_by_peer),
                    ("no-csm", connections.no_csm),
                    ("too-long", connections.too_long),
                    ("malformed", connections.malformed),
                    ("slow", connections.slow),
                    ("made-room", connections.made_room),
                    ("held-too-much", connections.held_too_much),
                ]),
            ),
        ]
    }

    /// The answers by method and code.
    fn requests(&self) -> Family {
        let sample = |(method, code, count): &(&str, Code, u64)| Sample {
            labels: vec![("method", (*method).to_owned()), ("code", code.to_string())],
            value: Value::Number(*count),
        };
        // A series that begins with its first answer would hide that answer from a rate.
        let first = ("GET", Code::CONTENT, 0);
        let is_there = self
            .answered
            .by_code
            .iter()
            .any(|(method, code, _)| (*method, *code) == (first.0, first.1));
        let first = (!is_there).then_some(first);
        Family {
            name: "ebbtide_requests_total",
            kind: Kind::Counter,
            help: "Requests by method and code of the answer.",
            samples: first.iter().chain(&self.answered.by_code).map(sample).collect(),
        }
    }

    /// The families with the label `control`.
    fn control_families(&self) -> [Family; 7] {
        let by_control = |name, kind, help, of: fn(&ControlCounters) -> Value| {
            let values = self.controls.iter().map(|(control, c)| (control.to_string(), of(c)));
            Family::labelled(kind, name, "control", help, values)
        };
        let count = |name, help, of| by_control(name, Kind::Counter, help, of);
        let spans = |name, help, of| by_control(name, Kind::Histogram, help, of);
        [
            count("ebbtide_messages_total", "Confirmable messages sent, each counted once.", |c| {
                Value::Number(c.messages)
            }),
            count(
                "ebbtide_retransmissions_total",
                "Retransmissions of Confirmable messages.",
                |c| Value::Number(c.retransmissions),
            ),
            count(
                "ebbtide_unnecessary_retransmissions_total",
                "Retransmissions of messages that were answered, as far as marks show.",
                |c| Value::Number(c.unnecessary),
            ),
            count("ebbtide_timeouts_total", "Expired retransmission timeouts.", |c| {
                Value::Number(c.timeouts)
            }),
            count("ebbtide_gave_up_total", "Exchanges given up unanswered.", |c| {
                Value::Number(c.gave_up)
            }),
            spans("ebbtide_rtt_seconds", "Unambiguous round trips.", |c| Value::Spans(c.rtt)),
            spans(
                "ebbtide_rto_seconds",
                "Timeouts armed for the first transmission of a message.",
                |c| Value::Spans(c.rto),
            ),
        ]
    }
}

pub(super) fn numbers<const N: usize>(
    values: [(&'static str, u64); N],
) -> [(&'static str, Value); N] {
    values.map(|(name, value)| (name, Value::Number(value)))
}
