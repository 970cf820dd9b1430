//! Progress on standard error, and interruption.

use ebbtide_sim::run::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A progress bar over replications, shown only on a terminal and only if the work takes a while.
pub(crate) struct CampaignBar {
    bar: ProgressBar,
    /// The seconds after which the next line is due if standard error is redirected.
    next_line: AtomicU64,
}

/// The seconds after which the first line is due; each further one after twice the time.
const FIRST_LINE: u64 = 30;

impl CampaignBar {
    /// Creates a bar over `runs` replications. From now on Ctrl-C ends the work after the
    /// replications that have begun; a second Ctrl-C ends the program.
    pub(crate) fn new(runs: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
        // Before the first replication has ended, their duration is not known.
        let style = "{wide_bar} {pos}/{len} runs, {elapsed}, the first ones under way";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        // If there is a handler already, Ctrl-C ends the program as usual.
        let _ = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(1);
            }
            eprintln!("\nfinishing the runs that have begun; Ctrl-C again to stop at once");
        });
        Self { bar, next_line: AtomicU64::new(FIRST_LINE) }
    }

    /// Creates a bar for a number of replications that is not known.
    pub(crate) fn unbounded() -> Self {
        let bar = Self::new(0);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} runs, {elapsed}") {
            bar.bar.unset_length();
            bar.bar.set_style(style);
        }
        bar
    }

    /// Removes the bar. Returns whether the work was interrupted.
    pub(crate) fn finish(&self) -> bool {
        self.bar.finish_and_clear();
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

impl Progress for CampaignBar {
    fn finished(&self, _simulated_s: f64) {
        if self.bar.position() == 0
            && self.bar.length().is_some()
            && let Ok(style) = ProgressStyle::with_template(
                "{wide_bar} {pos}/{len} runs, {elapsed} of about {duration}",
            )
        {
            self.bar.set_style(style);
        }
        self.bar.inc(1);
        let (due, passed) = (self.next_line.load(Ordering::Relaxed), self.bar.elapsed().as_secs());
        if passed >= due
            && !stderr().is_terminal()
            && self.next_line.fetch_max(2 * passed, Ordering::Relaxed) == due
        {
            let of = self.bar.length().map_or_else(String::new, |runs| format!(" of {runs}"));
            eprintln!("{}{of} runs, {passed} s", self.bar.position());
        }
    }

    fn is_cancelled(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}
