//! Progress on standard error, and interruption.

use ebbtide_sim::run::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A progress bar over replications, shown only on a terminal and only if the work takes a while.
pub(crate) struct CampaignBar(ProgressBar);

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
        Self(bar)
    }

    /// Creates a bar for a number of replications that is not known.
    pub(crate) fn unbounded() -> Self {
        let bar = Self::new(0);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} runs, {elapsed}") {
            bar.0.unset_length();
            bar.0.set_style(style);
        }
        bar
    }

    /// Removes the bar. Returns whether the work was interrupted.
    pub(crate) fn finish(&self) -> bool {
        self.0.finish_and_clear();
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

impl Progress for CampaignBar {
    fn finished(&self, _simulated_s: f64) {
        if self.0.position() == 0
            && self.0.length().is_some()
            && let Ok(style) = ProgressStyle::with_template(
                "{wide_bar} {pos}/{len} runs, {elapsed} of about {duration}",
            )
        {
            self.0.set_style(style);
        }
        self.0.inc(1);
    }

    fn is_cancelled(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}
