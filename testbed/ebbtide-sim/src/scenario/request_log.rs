//! `workload.log`: requests as they were recorded, from a file.

use super::Scenario;
use super::error::ScenarioError;
use super::units::Time;
use crate::keys::{LONGEST, texts};
use crate::random::fnv1a_128;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The most requests of a log.
const MAX_REQUESTS: usize = 10_000_000;

/// A file with the instants of each device's requests. It is part of a scenario by its content, not by its name alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct RequestLog {
    file: String,
    /// Read when the scenario is loaded.
    content: Option<Arc<LoggedRequests>>,
}

/// The requests of a log.
#[derive(Debug, PartialEq, Eq)]
struct LoggedRequests {
    /// For each device, in the order in which they appear, its instants in order, ns after the first one of all.
    devices: Vec<Vec<u64>>,
    hash: u128,
}

impl From<String> for RequestLog {
    fn from(text: String) -> Self {
        // What is written for a scenario that was loaded names the content, too.
        let is_hash = |text: &str| text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let named = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        let file = named.filter(|(_, hash)| is_hash(hash)).map(|(file, _)| file.to_owned());
        Self { file: file.unwrap_or(text), content: None }
    }
}

impl Serialize for RequestLog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.content {
            None => serializer.serialize_str(&self.file),
            Some(content) => {
                serializer.collect_str(&format_args!("{} ({:032x})", self.file, content.hash))
            }
        }
    }
}

impl RequestLog {
    /// Whether no file is named.
    pub const fn is_none(&self) -> bool {
        self.file.is_empty()
    }

    /// The instants of a client's requests, ns after the first request of all: those of the device with its number in
    /// the log, or of one before it where there are more clients than devices.
    pub fn instants(&self, client: u32) -> &[u64] {
        let devices = self.content.as_ref().map_or(&[][..], |content| &content.devices);
        let place = client as usize % devices.len().max(1);
        devices.get(place).map_or(&[], Vec::as_slice)
    }

    /// The devices in the log; 0 until it has been read.
    pub fn devices(&self) -> usize {
        self.content.as_ref().map_or(0, |content| content.devices.len())
    }

    /// Requests of a device on average, rounded up; `None` until the log has been read.
    pub(super) fn mean_requests(&self) -> Option<u32> {
        let content = self.content.as_ref()?;
        let all: usize = content.devices.iter().map(Vec::len).sum();
        u32::try_from(all.div_ceil(content.devices.len())).ok()
    }

    /// The mean time between two requests of a device; `None` until the log has been read.
    pub(super) fn mean_interval(&self) -> Option<Time> {
        let content = self.content.as_ref()?;
        let span = content.devices.iter().filter_map(|own| own.last()).max()?;
        Some(Time((span / u64::from(self.mean_requests()?)).max(1_000_000)))
    }

    fn read(&mut self, folder: &Path) -> Result<(), String> {
        let bytes = std::fs::read(folder.join(&self.file))
            .map_err(|error| format!("cannot be read: {error}"))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| "is not text".to_owned())?;
        let content = LoggedRequests { devices: parse(text)?, hash: fnv1a_128(&bytes) };
        self.content = Some(Arc::new(content));
        Ok(())
    }
}

/// Lines of `seconds,device`, in any order.
fn parse(text: &str) -> Result<Vec<Vec<u64>>, String> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut devices: Vec<Vec<u64>> = Vec::new();
    let mut requests = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let (at, device) = line.split_once(',').unwrap_or((line, ""));
        let (at, device) = (at.trim(), device.trim());
        let is_heading = number == 1 && at.parse::<f64>().is_err();
        if line.trim().is_empty() || is_heading {
            continue;
        }
        let wrong = || format!("line {number}: '{line}' is not seconds,device");
        let seconds = at.parse::<f64>().map_err(|_| wrong())?;
        if !(0.0..=LONGEST.0 as f64 / 1e9).contains(&seconds)
            || device.is_empty()
            || device.contains(',')
        {
            return Err(wrong());
        }
        requests += 1;
        if requests > MAX_REQUESTS {
            return Err(format!("has more than {MAX_REQUESTS} requests"));
        }
        let next = devices.len();
        let own = *numbers.entry(device).or_insert(next);
        if own == next {
            devices.push(Vec::new());
        }
        // Rounded to a nanosecond.
        devices[own].push((seconds * 1e9).round() as u64);
    }
    let first = devices.iter().flatten().min().copied();
    let first = first.ok_or("has no requests: lines of seconds,device are needed")?;
    for own in &mut devices {
        own.sort_unstable();
        own.iter_mut().for_each(|at| *at -= first);
    }
    Ok(devices)
}

/// Reads the logs that a scenario names, from the folder of its file.
pub(super) fn read(scenario: &mut Scenario, place: &str) -> Result<(), ScenarioError> {
    let folder = Path::new(place).parent().unwrap_or_else(|| Path::new(""));
    let read = |key: String, log: &mut RequestLog| {
        log.read(folder).map_err(|message| {
            let file = folder.join(&log.file);
            ScenarioError::file(&format!("{key}: {}", file.display()), &message)
        })
    };
    let mut keys = scenario.workload.keys();
    if !keys.log.is_none() {
        read("workload.log".to_owned(), &mut keys.log)?;
        let workload = keys.read();
        scenario.workload =
            workload.map_err(|fault| ScenarioError::file(&fault.key, &fault.message))?;
    }
    for class in &mut scenario.class {
        if let Some(log) = &mut class.workload.log {
            read(format!("class.{}.workload.log", class.name), log)?;
        }
    }
    for view in scenario.classes() {
        let devices = view.scenario.workload.log().map_or(0, RequestLog::devices);
        if devices > view.scenario.clients.count as usize {
            let key = match view.name.as_str() {
                "" => "clients.count".to_owned(),
                name => format!("class.{name}.count"),
            };
            let message = format!("must be at least {devices}: the log has so many devices");
            return Err(ScenarioError::file(&key, &message));
        }
    }
    Ok(())
}

texts! {
    RequestLog => "file".to_owned(),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_first_request_and_devices_as_they_appear() {
        let text = "time,device\n1700000010.5,b\n1700000010,a\n\n1700000012, b\n";
        assert_eq!(parse(text).unwrap(), [vec![500_000_000, 2_000_000_000], vec![0]]);
    }

    #[test]
    fn only_a_hash_in_brackets_is_no_part_of_the_name_of_a_file() {
        for name in ["requests.csv", "requests (1).csv", "requests (1)", "a (b) (c).csv"] {
            let content = LoggedRequests { devices: vec![vec![0]], hash: 0xab };
            let loaded = RequestLog { file: name.to_owned(), content: Some(Arc::new(content)) };
            let written = serde_json::to_value(&loaded).unwrap();
            assert_eq!(written, format!("{name} ({:032x})", 0xab));
            for text in [name, written.as_str().unwrap()] {
                assert_eq!(RequestLog::from(text.to_owned()).file, name, "{text}");
            }
        }
    }

    #[test]
    fn a_wrong_log_names_the_line() {
        for (text, says) in [
            ("0,a\n1\n", "line 2: '1'"),
            ("0,a\nx,a\n", "line 2"),
            ("-1,a\n", "line 1"),
            ("0,a\n1,a,b\n", "line 2"),
            ("0,a\ninf,a\n", "line 2"),
            ("NaN,a\n", "line 1"),
            ("", "no requests"),
            ("seconds,device\n", "no requests"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
