//! Metrics of the command, besides those of the library: the build, the process, the log, reloads, certificates.

use super::super::serve_reload::Reloads;
use crate::client::tls;
use crate::log::LeftOut;
use ebbtide::metrics::Meter;
use ebbtide_proxy::{CellStatus, Gateway};
use std::fmt::{self, Display, Write as _};
use std::fs;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Everything that a scrape shows.
#[derive(Clone)]
pub(crate) struct Exports {
    meter: Meter,
    left_out: LeftOut,
    reloads: Arc<Reloads>,
    tls: Option<Arc<tls::Served>>,
    gateway: Option<Gateway>,
    /// In seconds since 1970.
    started: u64,
}

impl Exports {
    #[expect(clippy::disallowed_methods, reason = "people compare the start with their clocks")]
    pub(crate) fn new(
        meter: Meter,
        left_out: LeftOut,
        reloads: Arc<Reloads>,
        tls: Option<Arc<tls::Served>>,
    ) -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { meter, left_out, reloads, tls, gateway: None, started }
    }

    /// Shows the cells of a gateway as well.
    pub(crate) fn gateway(mut self, gateway: Gateway) -> Self {
        self.gateway = Some(gateway);
        self
    }

    /// Whether the server accepts requests.
    pub(super) fn is_ready(&self) -> bool {
        self.meter.is_ready()
    }

    pub(super) fn text(&self) -> String {
        let mut text = self.meter.snapshot().to_string();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let (version, commit) = build(crate::VERSION);
        family(
            out,
            "ebbtide_build_info",
            "gauge",
            "The version, and the commit that it was built from.",
        )?;
        writeln!(out, "ebbtide_build_info{{version=\"{version}\",commit=\"{commit}\"}} 1")?;
        family(
            out,
            "ebbtide_log_lines_dropped_total",
            "counter",
            "Lines of the log that were left out.",
        )?;
        for (reason, count) in
            [("unread", self.left_out.unread()), ("repeated", self.left_out.repeated())]
        {
            writeln!(out, "ebbtide_log_lines_dropped_total{{reason=\"{reason}\"}} {count}")?;
        }
        family(
            out,
            "ebbtide_reloads_total",
            "counter",
            "Signals to read keys and certificates again.",
        )?;
        for (outcome, count) in [("done", self.reloads.done()), ("failed", self.reloads.failed())] {
            writeln!(out, "ebbtide_reloads_total{{outcome=\"{outcome}\"}} {count}")?;
        }
        if let Some(expiry) = self.tls.as_ref().and_then(|tls| tls.not_after()) {
            let name = "ebbtide_certificate_expiry_timestamp_seconds";
            single(
                out,
                name,
                "gauge",
                "When the certificate ends, in seconds since 1970.",
                expiry,
            )?;
        }
        if let Some(gateway) = &self.gateway {
            write_cells(out, &gateway.cells())?;
        }
        self.write_process(out)
    }

    /// The metrics of processes that all programs for Prometheus have. Those that the system does
    /// not tell are left out.
    fn write_process(&self, out: &mut String) -> fmt::Result {
        let name = "process_start_time_seconds";
        single(out, name, "gauge", "Start of the process, in seconds since 1970.", self.started)?;
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        for (name, help, key) in [
            ("process_resident_memory_bytes", "Memory in use.", "VmRSS:"),
            ("process_virtual_memory_bytes", "Address space in use.", "VmSize:"),
        ] {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let kilobytes =
                line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            if let Some(kilobytes) = kilobytes {
                single(out, name, "gauge", help, kilobytes * 1024)?;
            }
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // One of them is the folder itself.
            let open = open.count().saturating_sub(1);
            single(out, "process_open_fds", "gauge", "Open descriptors.", open)?;
        }
        #[cfg(target_os = "linux")]
        {
            use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
            if let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE) {
                single(out, "process_max_fds", "gauge", "Descriptors that may be open.", soft)?;
            }
            if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
                let seconds = |time: nix::sys::time::TimeVal| {
                    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
                };
                let sum = seconds(usage.user_time()) + seconds(usage.system_time());
                single(out, "process_cpu_seconds_total", "counter", "Time of the processor.", sum)?;
            }
        }
        Ok(())
    }
}

/// Cells beyond these have no metrics of their own.
const MAX_CELLS: usize = 256;

fn write_cells(out: &mut String, cells: &[CellStatus]) -> fmt::Result {
    let cells = cells.get(..MAX_CELLS).unwrap_or(cells);
    family(out, "ebbtide_cell_requests", "gauge", "Requests to a cell, by state.")?;
    for CellStatus { name, in_flight, waiting, .. } in cells {
        for (state, count) in [("in-flight", in_flight), ("waiting", waiting)] {
            writeln!(out, "ebbtide_cell_requests{{cell=\"{name}\",state=\"{state}\"}} {count}")?;
        }
    }
    family(out, "ebbtide_cell_budget", "gauge", "Requests that may be in flight to a cell.")?;
    for CellStatus { name, budget, .. } in cells {
        writeln!(out, "ebbtide_cell_budget{{cell=\"{name}\"}} {budget}")?;
    }
    let name = "ebbtide_cell_round_trip_seconds";
    family(out, name, "gauge", "Mean round trip of a cell.")?;
    for CellStatus { name: cell, mean_round_trip, .. } in cells {
        if let Some(mean) = mean_round_trip {
            writeln!(out, "{name}{{cell=\"{cell}\"}} {}", mean.as_secs_f64())?;
        }
    }
    Ok(())
}

/// The version and the commit in a text such as `0.1.0 (1a2b3c4 2026-11-26)`.
fn build(version: &str) -> (&str, &str) {
    let (version, rest) = version.split_once(" (").unwrap_or((version, ""));
    let commit = rest.split([' ', ')']).next().unwrap_or_default();
    let is_commit = commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    (version, if is_commit { commit } else { "unknown" })
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn single(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    value: impl Display,
) -> fmt::Result {
    family(out, name, kind, help)?;
    writeln!(out, "{name} {value}")
}

#[cfg(test)]
mod tests {
    use super::build;

    #[test]
    fn the_commit_is_part_of_the_version_of_a_package() {
        assert_eq!(build("0.1.0 (1a2b3c4 2026-11-26)"), ("0.1.0", "1a2b3c4"));
        assert_eq!(build("0.1.0 (1a2b3c4d)"), ("0.1.0", "1a2b3c4d"));
        assert_eq!(build("0.1.0 (built from source)"), ("0.1.0", "unknown"));
        assert_eq!(build("0.1.0"), ("0.1.0", "unknown"));
    }
}
