//! The log of a server: lines on standard error, by a thread of their own. When their reader stalls, they are
//! dropped and counted, and the server goes on.

mod rate_limit;

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use rate_limit::{RateLimit, SharedRateLimit};
use std::env;
use std::io::stderr;
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};

/// Lines that wait for the reader of standard error; later ones are dropped.
const LINES: usize = 4096;
/// How often the server reports lines that were left out.
const EVERY: Duration = Duration::from_secs(60);
/// The variable with levels and filters.
const VARIABLE: &str = "RUST_LOG";

/// The log
#[derive(Args, Debug, Clone)]
pub(crate) struct LogArgs {
    /// Also log messages, timeouts and congestion control's measurements: RUST_LOG=ebbtide=debug. Without
    /// this and RUST_LOG, only warnings and errors are logged
    #[arg(short, long)]
    verbose: bool,
    /// Format of the log on standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum LogFormat {
    /// Lines for people
    Text,
    /// A JSON object a line
    Json,
}

/// The running log. Dropping it writes what waits, for a second at most.
pub(crate) struct Log {
    _writer: WorkerGuard,
    left_out: LeftOut,
}

/// Counts the lines that were not written.
#[derive(Clone)]
pub(crate) struct LeftOut {
    dropped: ErrorCounter,
    limit: Arc<RateLimit>,
}

impl LeftOut {
    /// Lines that found no reader in time.
    pub(crate) fn unread(&self) -> u64 {
        self.dropped.dropped_lines() as u64
    }

    /// Lines that repeated others.
    pub(crate) fn repeated(&self) -> u64 {
        self.limit.suppressed()
    }
}

impl LogArgs {
    /// Begins to log.
    ///
    /// # Errors
    ///
    /// Returns an error if `RUST_LOG` is not valid.
    pub(crate) fn start(&self) -> Result<Log, Failure> {
        let targets = self.targets(env::var(VARIABLE).ok().as_deref())?;
        let (writer, guard) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(LINES)
            .thread_name("log")
            .finish(stderr());
        let (dropped, limit) = (writer.error_counter(), Arc::new(RateLimit::default()));
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
        let lines = match self.log {
            LogFormat::Text => lines.boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        let all = tracing_subscriber::registry()
            .with(targets)
            .with(SharedRateLimit(limit.clone()))
            .with(lines);
        // It fails only if it was called before.
        let _ = tracing::subscriber::set_global_default(all);
        Ok(Log { _writer: guard, left_out: LeftOut { dropped, limit } })
    }

    /// Levels by target: those of the variable, or warnings and errors; with `-v` those of a debugger.
    fn targets(&self, variable: Option<&str>) -> Result<Targets, Failure> {
        let targets = match variable.filter(|text| !text.trim().is_empty()) {
            Some(text) => text.parse::<Targets>().map_err(|error| {
                Failure::usage(format_args!(
                    "{VARIABLE}={text}: {error}; it takes levels, such as warn or warn,ebbtide::message=debug"
                ))
            })?,
            None => Targets::new().with_default(Level::WARN),
        };
        Ok(if self.verbose { targets.with_target("ebbtide", Level::DEBUG) } else { targets })
    }
}

impl Log {
    /// The lines that were not written.
    pub(crate) fn left_out(&self) -> LeftOut {
        self.left_out.clone()
    }

    /// Reports once a minute how many lines were left out, if any. Must be called within a tokio runtime.
    pub(crate) fn report_gaps(&self) {
        let left_out = self.left_out();
        tokio::spawn(async move {
            let mut before = (0, 0);
            loop {
                tokio::time::sleep(EVERY).await;
                let now = (left_out.unread(), left_out.repeated());
                if now != before {
                    let (unread, repeated) = (now.0 - before.0, now.1 - before.1);
                    tracing::warn!(target: "ebbtide::log", unread, repeated, "lines were left out in the last minute");
                }
                before = now;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(verbose: bool, variable: Option<&str>) -> Result<Targets, Failure> {
        LogArgs { verbose, log: LogFormat::Text }.targets(variable)
    }

    #[test]
    fn warnings_are_logged_by_default_and_messages_on_request() {
        let logs = |targets: &Targets, target, level| targets.would_enable(target, &level);
        for variable in [None, Some(""), Some(" ")] {
            let quiet = targets(false, variable).unwrap();
            assert!(logs(&quiet, "ebbtide::limits", Level::WARN));
            assert!(!logs(&quiet, "ebbtide::message", Level::INFO));
        }
        let verbose = targets(true, None).unwrap();
        assert!(logs(&verbose, "ebbtide::message", Level::DEBUG));
        assert!(!logs(&verbose, "rustls", Level::DEBUG));
        // The values of queries may be secrets.
        assert!(!logs(&verbose, "ebbtide::query", Level::TRACE));
        let chosen = targets(false, Some("error,ebbtide::query=trace")).unwrap();
        assert!(logs(&chosen, "ebbtide::query", Level::TRACE));
        assert!(!logs(&chosen, "ebbtide::limits", Level::WARN));
    }

    #[test]
    fn a_wrong_filter_is_named_with_the_variable() {
        let error = format!("{:?}", targets(false, Some("ebbtide=loud")).unwrap_err());
        assert!(
            error.contains("RUST_LOG=ebbtide=loud") && error.contains("such as warn"),
            "{error}"
        );
    }
}
