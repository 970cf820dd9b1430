//! `trace`: a link's rate as it was recorded, from a file.

use super::Scenario;
use super::error::ScenarioError;
use crate::keys::texts;
use crate::net::{Delay, RateStep, Schedule, ScheduleError};
use crate::random::fnv1a_128;
use serde::{Deserialize, Serialize, Serializer};
use std::path::Path;
use std::sync::Arc;

/// Bytes that one line of Mahimahi's format stands for.
const OPPORTUNITY_BYTES: u64 = 1500;
const MILLISECOND: u64 = 1_000_000;
/// The most steps of a trace: a day of 10 ms each, and more.
const MAX_STEPS: usize = 10_000_000;

/// A file with a link's rate over time. It is part of a scenario by its content, not by its name alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Trace {
    file: String,
    /// Read when the scenario is loaded.
    content: Option<Arc<TraceSteps>>,
}

#[derive(Debug, PartialEq, Eq)]
struct TraceSteps {
    schedule: Arc<Schedule>,
    hash: u128,
}

impl From<String> for Trace {
    fn from(text: String) -> Self {
        // What is written for a scenario that was loaded names the content, too.
        let file = text.split_once(" (").map_or(text.as_str(), |(file, _)| file).to_owned();
        Self { file, content: None }
    }
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.content {
            None => serializer.serialize_str(&self.file),
            Some(content) => {
                serializer.collect_str(&format_args!("{} ({:032x})", self.file, content.hash))
            }
        }
    }
}

impl Trace {
    /// The recorded rates; `None` until the file has been read.
    pub fn schedule(&self) -> Option<Arc<Schedule>> {
        self.content.as_ref().map(|content| Arc::clone(&content.schedule))
    }

    fn read(&mut self, folder: &Path, delay: Delay) -> Result<(), String> {
        let bytes = std::fs::read(folder.join(&self.file))
            .map_err(|error| format!("cannot be read: {error}"))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| "is not text".to_owned())?;
        let is_table =
            Path::new(&self.file).extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
        let schedule = if is_table { table(text, delay)? } else { mahimahi(text, delay)? };
        self.content =
            Some(Arc::new(TraceSteps { schedule: Arc::new(schedule), hash: fnv1a_128(&bytes) }));
        Ok(())
    }
}

/// Lines of `seconds,bits_per_second[,delay_ms]`.
fn table(text: &str, delay: Delay) -> Result<Schedule, String> {
    let mut steps = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let is_heading = number == 1 && fields[0].parse::<f64>().is_err();
        if line.trim().is_empty() || is_heading {
            continue;
        }
        let wrong = || {
            format!(
                "line {number}: '{line}' is not seconds,bits_per_second or seconds,bits_per_second,delay_ms"
            )
        };
        let value = |index: usize, scale: f64| {
            let value = fields.get(index)?.parse::<f64>().ok()? * scale;
            // Rounded to a nanosecond or a bit per second; the cast saturates.
            (value.is_finite() && value >= 0.0).then_some(value.round() as u64)
        };
        let (Some(from), Some(rate)) = (value(0, 1e9), value(1, 1.0)) else { return Err(wrong()) };
        let delay = match fields.len() {
            2 => delay,
            3 => Delay::fixed(value(2, 1e6).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        };
        push(&mut steps, RateStep { from, bits_per_second: rate, delay })?;
    }
    // The recording begins with the run.
    if let Some(first) = steps.first_mut() {
        first.from = 0;
    }
    Schedule::new(steps, None).map_err(in_words)
}

/// Lines of milliseconds: at each the link carries 1500 bytes; after the last one it begins anew.
fn mahimahi(text: &str, delay: Delay) -> Result<Schedule, String> {
    let mut steps: Vec<RateStep> = vec![RateStep { from: 0, bits_per_second: 0, delay }];
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
    let mut last = 0;
    while let Some((number, line)) = lines.next() {
        let wrong = || {
            format!("line {number}: '{line}' is not a number of milliseconds, in the order of time")
        };
        let read = |line: &str| line.trim().parse::<u64>().ok().filter(|at| *at < 1 << 40);
        let at = read(line).filter(|at| *at >= last).ok_or_else(wrong)?;
        last = at;
        let mut opportunities = 1;
        while lines.next_if(|(_, line)| read(line) == Some(at)).is_some() {
            opportunities += 1;
        }
        // Within the millisecond that begins there.
        let bits_per_second = opportunities * OPPORTUNITY_BYTES * 8 * 1000;
        let step = RateStep { from: at * MILLISECOND, bits_per_second, delay };
        match steps.last_mut() {
            Some(before) if before.from == step.from => *before = step,
            _ => push(&mut steps, step)?,
        }
        push(&mut steps, RateStep { from: (at + 1) * MILLISECOND, bits_per_second: 0, delay })?;
    }
    // The millisecond of the last line is the last one of the period.
    steps.pop();
    Schedule::new(steps, Some((last + 1) * MILLISECOND)).map_err(in_words)
}

fn push(steps: &mut Vec<RateStep>, step: RateStep) -> Result<(), String> {
    if steps.len() == MAX_STEPS {
        return Err(format!("has more than {MAX_STEPS} steps"));
    }
    steps.push(step);
    Ok(())
}

fn in_words(error: ScheduleError) -> String {
    match error {
        ScheduleError::OutOfOrder | ScheduleError::ShortPeriod => {
            "is empty, or is not in the order of time".to_owned()
        }
        ScheduleError::NeverTransmits => {
            "ends with a rate of 0: nothing would ever leave".to_owned()
        }
    }
}

/// Reads the traces that a scenario names, from the folder of its file.
pub(super) fn read(scenario: &mut Scenario, place: &str) -> Result<(), ScenarioError> {
    let folder = Path::new(place).parent().unwrap_or_else(|| Path::new(""));
    let links = [("up", &mut scenario.network.up), ("down", &mut scenario.network.down)];
    for (name, link) in links {
        let Some(trace) = &mut link.trace else { continue };
        trace.read(folder, link.delay.delay()).map_err(|message| {
            let file = folder.join(&trace.file);
            ScenarioError::file(&format!("network.{name}.trace: {}", file.display()), &message)
        })?;
    }
    Ok(())
}

texts! {
    Trace => "file".to_owned(),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(from_ms: u64, bits_per_second: u64) -> RateStep {
        RateStep { from: from_ms * MILLISECOND, bits_per_second, delay: Delay::fixed(7) }
    }

    #[test]
    fn mahimahis_lines_are_opportunities_of_1500_bytes() {
        let schedule = mahimahi("2\n2\n5\n", Delay::fixed(7)).unwrap();
        let steps = vec![step(0, 0), step(2, 24_000_000), step(3, 0), step(5, 12_000_000)];
        assert_eq!(schedule, Schedule::new(steps, Some(6 * MILLISECOND)).unwrap());
        let schedule = mahimahi("0\n1\n", Delay::fixed(7)).unwrap();
        let steps = vec![step(0, 12_000_000), step(1, 12_000_000)];
        assert_eq!(schedule, Schedule::new(steps, Some(2 * MILLISECOND)).unwrap());
    }

    #[test]
    fn a_table_has_rates_and_may_have_delays() {
        let schedule = table("s,bit/s\n10,1000\n10.5,0\n12,2000,5\n", Delay::fixed(7)).unwrap();
        let last = RateStep { delay: Delay::fixed(5_000_000), ..step(12_000, 2000) };
        let steps = vec![step(0, 1000), step(10_500, 0), last];
        assert_eq!(schedule, Schedule::new(steps, None).unwrap());
    }

    #[test]
    fn an_invalid_trace_names_the_line() {
        for (text, says) in
            [("1\nx\n", "line 2"), ("5\n4\n", "line 2"), ("", "empty"), ("-1\n", "line 1")]
        {
            let error = mahimahi(text, Delay::fixed(7)).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        for (text, says) in [
            ("0,1\n1\n", "line 2"),
            ("0,1\n1,2,3,4\n", "line 2"),
            ("0,1\n1,-2\n", "line 2"),
            ("0,1\n0,2\n", "order"),
            ("0,1\n1,0\n", "a rate of 0"),
            ("", "empty"),
        ] {
            let error = table(text, Delay::fixed(7)).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
