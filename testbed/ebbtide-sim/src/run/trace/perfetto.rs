//! Events in the JSON format that ui.perfetto.dev and chrome://tracing open: slices on tracks, marks, arrows.
//!
//! Times are whole microseconds, the unit of the format: rounded down at both ends of a slice, so that slices
//! that nest still nest.

use ebbtide_core::time::Instant;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A row of a client that shows slices which do not overlap.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Track {
    client: u32,
    number: u32,
}

/// The tracks of one kind of a client: each with its number and the instant up to which it is taken.
type Rows = Vec<(u32, u64)>;

/// A slice of a track: its name, its ends, and its arguments.
pub(super) struct Slice<'n> {
    pub(super) name: &'n str,
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) args: Value,
}

/// A writer of events.
pub(super) struct Perfetto<W: Write> {
    sink: W,
    rows: BTreeMap<(u32, &'static str), Rows>,
    /// Tracks so far: each number is used once, whosever it is.
    tracks: u32,
    is_empty: bool,
    error: Option<io::Error>,
}

pub(super) const fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1000
}

impl<W: Write> Perfetto<W> {
    pub(super) fn new(sink: W) -> Self {
        Self { sink, rows: BTreeMap::new(), tracks: 0, is_empty: true, error: None }
    }

    /// A track of this kind of a client that is free from `from` to `to`: the first, or a new one. Slices are
    /// placed in the order in which they end.
    pub(super) fn track(
        &mut self,
        client: u32,
        kind: &'static str,
        from: Instant,
        to: Instant,
    ) -> Track {
        let (from, to) = (micros(from), micros(to));
        let has_process = self.rows.range((client, "")..=(client, "~")).next().is_some();
        let rows = self.rows.entry((client, kind)).or_default();
        if let Some((number, taken)) = rows.iter_mut().find(|(_, taken)| *taken <= from) {
            *taken = to;
            return Track { client, number: *number };
        }
        self.tracks += 1;
        rows.push((self.tracks, to));
        let rows_before = rows.len() - 1;
        let name = match rows.len() {
            1 => kind.to_owned(),
            count => format!("{kind} {count}"),
        };
        let track = Track { client, number: self.tracks };
        if !has_process {
            self.metadata("process_name", track, json!({"name": format!("client {client}")}));
        }
        self.metadata("thread_name", track, json!({"name": name}));
        // Exchanges above packets.
        let index = rows_before + if kind == "exchanges" { 0 } else { 1000 };
        self.metadata("thread_sort_index", track, json!({"sort_index": index}));
        track
    }

    /// A slice that lasts a microsecond at least.
    pub(super) fn slice(&mut self, track: Track, slice: &Slice<'_>) {
        let (from, to) = (micros(slice.from), micros(slice.to));
        if to > from {
            self.event(
                "X",
                track,
                slice.from,
                json!({"name": slice.name, "dur": to - from, "args": slice.args}),
            );
        }
    }

    /// A mark at an instant.
    pub(super) fn mark(&mut self, track: Track, name: &str, at: Instant, args: &Value) {
        self.event("i", track, at, json!({"name": name, "s": "t", "args": args}));
    }

    /// An arrow between the slices that cover its ends.
    pub(super) fn arrow(&mut self, number: u64, from: (Track, Instant), to: (Track, Instant)) {
        let end = |end: Value| {
            let mut all = json!({"name": "copy", "cat": "copy", "id": number});
            if let (Value::Object(all), Value::Object(end)) = (&mut all, end) {
                all.extend(end);
            }
            all
        };
        self.event("s", from.0, from.1, end(json!({})));
        self.event("f", to.0, to.1, end(json!({"bp": "e"})));
    }

    /// A value of a client from an instant on.
    pub(super) fn counter(&mut self, client: u32, name: &str, at: Instant, value: f64) {
        let track = Track { client, number: 0 };
        self.event("C", track, at, json!({"name": name, "args": {name: value}}));
    }

    fn metadata(&mut self, what: &str, track: Track, args: Value) {
        self.event("M", track, Instant::ZERO, json!({"name": what, "args": args}));
    }

    fn event(&mut self, phase: &str, track: Track, at: Instant, rest: Value) {
        if self.error.is_some() {
            return;
        }
        let mut object = Map::new();
        object.insert("ph".into(), phase.into());
        // Number 0 is that of the idle process.
        object.insert("pid".into(), (u64::from(track.client) + 1).into());
        object.insert("tid".into(), track.number.into());
        object.insert("ts".into(), micros(at).into());
        if let Value::Object(rest) = rest {
            object.extend(rest);
        }
        let before =
            if self.is_empty { "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" } else { ",\n" };
        self.is_empty = false;
        if let Err(error) = write!(self.sink, "{before}{}", Value::Object(object)) {
            self.error = Some(error);
        }
    }

    /// Ends the file, with the first error of the sink.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let rest = if self.is_empty { "{\"traceEvents\":[]}" } else { "\n]}" };
        writeln!(self.sink, "{rest}")?;
        self.sink.flush()
    }
}
