//! `-v` of a client: prints messages and the measurements of congestion control, a line each, on standard
//! error.

use std::fmt::{self, Display, Formatter};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Prints the library's events from now on.
#[expect(clippy::disallowed_methods, reason = "lines for people say when they were written")]
pub(crate) fn start() {
    let printer = Printer { spans: AtomicU64::new(1), began: Instant::now() };
    // It fails only if it was called before.
    let _ = tracing::subscriber::set_global_default(printer);
}

/// Prints events; spans are only counted.
struct Printer {
    spans: AtomicU64,
    began: Instant,
}

impl Subscriber for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Who asks may see the values of the own queries.
        metadata.target() == "ebbtide::query"
            || *metadata.level() <= Level::DEBUG && metadata.target().starts_with("ebbtide")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    #[expect(clippy::disallowed_methods, reason = "lines for people say when they were written")]
    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        if line.get("message") == "began" {
            // The message that is sent next says so.
            return;
        }
        let seconds = self.began.elapsed().as_secs_f64();
        // If standard error is closed, nothing needs to be printed.
        let _ = writeln!(std::io::stderr().lock(), "{seconds:>8.3}  {line}");
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed).max(1))
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

/// An event's message and fields.
#[derive(Default)]
struct Line {
    fields: Vec<(&'static str, String)>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.push((field.name(), format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.push((field.name(), value.to_owned()));
    }
}

impl Line {
    fn get(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// A field with a text before it; empty if there is no such field.
    fn prefixed(&self, before: &str, name: &str) -> String {
        let value = self.get(name);
        if value.is_empty() { String::new() } else { format!("{before}{value}") }
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (peer, datagram) = (self.get("peer"), self.get("datagram"));
        match self.get("message") {
            "sent" => {
                write!(f, "> {peer}  {datagram}")?;
                let repeated = self.prefixed("retransmission ", "ordinal");
                let repeated = if repeated.ends_with(" 0") { String::new() } else { repeated };
                let timeout = self.prefixed("timeout ", "timeout");
                let separator = if repeated.is_empty() || timeout.is_empty() { "" } else { ", " };
                if !repeated.is_empty() || !timeout.is_empty() {
                    write!(f, "  ({repeated}{separator}{timeout})")?;
                }
                Ok(())
            }
            "probe sent" => write!(f, "> {peer}  {datagram}  (probe)"),
            "received" => write!(f, "< {peer}  {datagram}"),
            "timeout" => write!(f, "! {peer}  timeout, no answer yet"),
            "failed" => write!(f, "! {}", self.get("reason")),
            "learnt" => write!(
                f,
                "= {peer}  learnt{}{}{}{}{}",
                self.prefixed(": round trip ", "rtt"),
                self.prefixed(" of retransmission ", "answered")
                    .trim_end_matches(" of retransmission 0"),
                self.prefixed(", smoothed ", "srtt"),
                self.prefixed(", next timeout about ", "rto"),
                self.prefixed(", state ", "state"),
            ),
            other => {
                write!(f, "* {other}")?;
                let rest = self.fields.iter().filter(|(name, _)| *name != "message");
                rest.into_iter().try_for_each(|(name, value)| write!(f, "  {name} {value}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    fn line(fields: &[(&'static str, &str)]) -> String {
        let fields = fields.iter().map(|&(name, value)| (name, value.to_owned())).collect();
        Line { fields }.to_string()
    }

    #[test]
    fn a_first_transmission_tells_its_timeout_and_a_repeated_one_which_it_is() {
        let sent = [("message", "sent"), ("peer", "p"), ("datagram", "CON GET")];
        let with = |more: &[(&'static str, &str)]| line(&[&sent, more].concat());
        assert_eq!(with(&[]), "> p  CON GET");
        assert_eq!(with(&[("ordinal", "0"), ("timeout", "2s")]), "> p  CON GET  (timeout 2s)");
        assert_eq!(
            with(&[("ordinal", "2"), ("timeout", "8s")]),
            "> p  CON GET  (retransmission 2, timeout 8s)"
        );
    }

    #[test]
    fn a_ping_of_the_control_is_a_message_like_the_others() {
        let sent = [("message", "probe sent"), ("peer", "p"), ("timeout", "0ns")];
        let probe = line(&[&sent[..], &[("datagram", "CON Empty")]].concat());
        assert_eq!(probe, "> p  CON Empty  (probe)");
    }

    #[test]
    fn unknown_values_are_left_out() {
        let learnt = [("message", "learnt"), ("peer", "p"), ("srtt", "5ms"), ("state", "")];
        assert_eq!(line(&learnt), "= p  learnt, smoothed 5ms");
    }
}
