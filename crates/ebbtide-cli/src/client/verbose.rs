//! `-v`: what goes over the wire and what is learnt from it, a line each, on standard error.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Shows the library's events from now on.
pub(crate) fn start() {
    // It fails only if it was called before.
    let _ = tracing::subscriber::set_global_default(Printer { spans: AtomicU64::new(1) });
}

/// Prints events; spans are only counted.
struct Printer {
    spans: AtomicU64,
}

impl Subscriber for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.target().starts_with("ebbtide")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        // Standard error may be closed: then nobody reads it.
        let _ = writeln!(std::io::stderr().lock(), "{}{}", line.message, line.fields);
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed).max(1))
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            "datagram" => write!(self.fields, "  {value:?}"),
            name => write!(self.fields, "  {name} {value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.fields, "  {} {value}", field.name());
    }
}
