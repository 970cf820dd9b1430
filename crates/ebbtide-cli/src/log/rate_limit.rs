//! A limit on equal lines: a flood of strangers must not fill a disk.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Warnings and errors of one place in the code that are logged within a window.
const LINES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);

/// Lets a few warnings and errors of each place in the code pass, and counts the rest. Other lines were
/// requested, and pass.
#[derive(Debug, Default)]
pub(super) struct RateLimit(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    /// As many as there are places in the code that warn.
    places: Vec<CallSite>,
    suppressed: u64,
}

#[derive(Debug)]
struct CallSite {
    id: Identifier,
    began: Instant,
    lines: u32,
}

impl Lines {
    /// Whether a line of this place may be logged.
    fn admit(&mut self, id: Identifier, now: Instant) -> bool {
        let Some(place) = self.places.iter_mut().find(|place| place.id == id) else {
            self.places.push(CallSite { id, began: now, lines: 1 });
            return true;
        };
        if now.saturating_duration_since(place.began) >= WINDOW {
            (place.began, place.lines) = (now, 0);
        }
        place.lines = place.lines.saturating_add(1);
        let admitted = place.lines <= LINES;
        self.suppressed += u64::from(!admitted);
        admitted
    }
}

impl RateLimit {
    /// The lines that were suppressed so far.
    pub(super) fn suppressed(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).suppressed
    }
}

impl<S: Subscriber> Layer<S> for SharedRateLimit {
    #[expect(clippy::disallowed_methods, reason = "lines for people are limited by their clock")]
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return true;
        }
        let mut lines = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.admit(metadata.callsite(), Instant::now())
    }
}

/// A layer that shares its count with who reports it.
pub(super) struct SharedRateLimit(pub(super) Arc<RateLimit>);

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::callsite::Callsite;
    use tracing::subscriber::Interest;

    struct Site(tracing::Metadata<'static>);

    impl Callsite for Site {
        fn set_interest(&self, _: Interest) {}

        fn metadata(&self) -> &tracing::Metadata<'_> {
            &self.0
        }
    }

    macro_rules! site {
        ($name:ident) => {
            static $name: Site = Site(tracing::metadata! {
                name: "line", target: "t", level: Level::WARN, fields: &[], callsite: &$name,
                kind: tracing::metadata::Kind::EVENT
            });
        };
    }
    site!(FIRST);
    site!(SECOND);

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an instant to count from")]
    fn a_place_logs_ten_lines_in_ten_seconds_whatever_others_log() {
        let (mut lines, now) = (Lines::default(), Instant::now());
        let (first, second) = (Identifier(&FIRST), Identifier(&SECOND));
        let admitted = (0..100).filter(|_| lines.admit(first.clone(), now)).count();
        assert_eq!((admitted, lines.suppressed), (10, 90));
        assert!(lines.admit(second, now));
        assert!(!lines.admit(first.clone(), now + WINDOW - Duration::from_nanos(1)));
        assert!(lines.admit(first, now + WINDOW));
    }
}
