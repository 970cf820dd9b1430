//! Prometheus' text format, version 0.0.4.

use super::{Family, Kind, Sample, Snapshot, Value};
use core::fmt::{self, Display, Formatter};
use ebbtide_core::endpoint::Histogram;

impl Display for Snapshot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.families().iter().try_for_each(|family| family.fmt(f))
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        writeln!(f, "# HELP {} {}\n# TYPE {} {kind}", self.name, self.help, self.name)?;
        for Sample { labels, value } in &self.samples {
            let label = |(name, value): &(&str, String)| format!("{name}=\"{}\"", escape(value));
            let label = labels.iter().map(label).collect::<Vec<_>>().join(",");
            match value {
                Value::Number(number) => {
                    let label = if label.is_empty() { label } else { format!("{{{label}}}") };
                    writeln!(f, "{}{label} {number}", self.name)?;
                }
                Value::Spans(spans) => histogram(f, self.name, &label, spans)?,
            }
        }
        Ok(())
    }
}

fn histogram(f: &mut Formatter<'_>, name: &str, label: &str, spans: &Histogram) -> fmt::Result {
    let seconds = |micros: u64| micros as f64 / 1e6;
    let separator = if label.is_empty() { "" } else { "," };
    for (bound, count) in spans.cumulative() {
        let bound = seconds(bound);
        writeln!(f, "{name}_bucket{{{label}{separator}le=\"{bound}\"}} {count}")?;
    }
    let count = spans.count();
    writeln!(f, "{name}_bucket{{{label}{separator}le=\"+Inf\"}} {count}")?;
    writeln!(f, "{name}_sum{{{label}}} {}", seconds(spans.sum_micros()))?;
    writeln!(f, "{name}_count{{{label}}} {count}")
}

/// A label's value, escaped for use within quotes.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_core::time::Micros;

    #[test]
    fn a_family_is_written_as_prometheus_reads_it() {
        let mut spans = Histogram::default();
        spans.record(Micros::from_millis(3));
        let family = Family {
            name: "x_seconds",
            kind: Kind::Histogram,
            help: "Spans.",
            samples: vec![Sample {
                labels: vec![("control", "a\"b".into())],
                value: Value::Spans(spans),
            }],
        };
        let text = family.to_string();
        assert!(
            text.starts_with("# HELP x_seconds Spans.\n# TYPE x_seconds histogram\n"),
            "{text}"
        );
        for line in [
            "x_seconds_bucket{control=\"a\\\"b\",le=\"0.002\"} 0",
            "x_seconds_bucket{control=\"a\\\"b\",le=\"0.005\"} 1",
            "x_seconds_bucket{control=\"a\\\"b\",le=\"+Inf\"} 1",
            "x_seconds_sum{control=\"a\\\"b\"} 0.003",
            "x_seconds_count{control=\"a\\\"b\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }

    #[test]
    fn names_end_with_their_unit_and_counters_with_total() {
        for family in Snapshot::default().families() {
            assert!(family.name.starts_with("ebbtide_"), "{}", family.name);
            assert_eq!(family.kind == Kind::Counter, family.name.ends_with("_total"));
            assert_eq!(family.kind == Kind::Histogram, family.name.ends_with("_seconds"));
            assert!(family.help.ends_with('.'), "{}", family.help);
        }
    }
}
