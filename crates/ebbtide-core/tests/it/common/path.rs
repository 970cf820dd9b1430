//! One control in its shell, and a path on which the test says what is lost and when the answer
//! comes.

use super::{Constant, float, secs};
use ebbtide_core::cc::{
    Admission, Answered, Attempts, Context, ControlConfig, Kind, Load, Metrics, Outcome,
    OutgoingMessage, Sample, Shell, Slot, Transmission,
};
use ebbtide_core::params::Parameters;
use ebbtide_core::time::{Instant, Micros};
use rand_core::Rng;

/// A scope as its control sees it. Exchanges happen one after the other; all draws are the lowest
/// unless said otherwise, so that timeouts are exact.
pub(crate) struct Path {
    pub(crate) shell: Shell,
    pub(crate) config: ControlConfig,
    pub(crate) params: Parameters,
    pub(crate) now: Instant,
    rng: Box<dyn Rng + Send>,
}

impl Path {
    /// The control that `text` names, without knowledge, at 1000 s on the clock.
    pub(crate) fn new(text: &str) -> Self {
        let config = ControlConfig::parse(text).expect("a control");
        Self {
            shell: Shell::new(config.build()),
            config,
            params: Parameters::DEFAULT,
            now: super::at(1000.0),
            rng: Constant::lowest(),
        }
    }

    /// From now on every draw is the highest.
    pub(crate) fn drawing_highest(mut self) -> Self {
        self.rng = Constant::highest();
        self
    }

    /// From now on every draw is the lowest.
    pub(crate) fn drawing_lowest(mut self) -> Self {
        self.rng = Constant::lowest();
        self
    }

    /// With another MAX_RETRANSMIT.
    pub(crate) fn retransmitting(mut self, max: u8) -> Self {
        self.params.max_retransmit = max;
        self
    }

    fn parts(&mut self) -> (&mut Shell, Context<'_>) {
        let cx = Context {
            now: self.now,
            params: &self.params,
            settings: &self.config.settings,
            rng: &mut *self.rng,
        };
        (&mut self.shell, cx)
    }

    /// Nothing happens for so long.
    pub(crate) fn idle(&mut self, seconds: f64) {
        self.now = self.now + secs(seconds);
    }

    fn transmit(&mut self, ordinal: u8, slot: &mut Slot) -> Micros {
        let (shell, mut cx) = self.parts();
        shell.on_transmit(Transmission::new(Kind::Message, ordinal), slot, &mut cx)
    }

    fn close(&mut self, slot: &Slot, outcome: Outcome, retransmissions: u8) {
        let (shell, mut cx) = self.parts();
        shell.close_exchange(slot, outcome, retransmissions, &mut cx);
    }

    /// Transmits until `end` after the original or until it is given up; the timeouts armed.
    fn run(&mut self, end: Micros) -> (Vec<f64>, Slot, Micros, bool) {
        let mut slot = Slot::default();
        self.shell.open_exchange();
        let (begin, mut last, mut series) = (self.now, Micros::ZERO, Vec::new());
        loop {
            let timeout = self.transmit(series.len() as u8, &mut slot);
            series.push(float(timeout));
            if last.saturating_add(timeout) >= end {
                self.now = begin + end;
                return (series, slot, last, true);
            }
            last = last.saturating_add(timeout);
            self.now = begin + last;
            // A probe that is asked for may not leave here: then the message is repeated.
            let effort = Attempts { transmissions: series.len() as u8, ..Attempts::default() };
            let (shell, mut cx) = self.parts();
            if shell.on_expire(effort, &slot, &mut cx).is_none() {
                return (series, slot, last, false);
            }
        }
    }

    fn answer(
        &mut self,
        (series, slot, last): (&[f64], Slot, Micros),
        since_first: Micros,
        answered: Option<Answered>,
    ) {
        let since_last = since_first.saturating_sub(last);
        let sample =
            Sample::new(since_first, since_last, series.len() as u8).with_answered(answered);
        let (shell, mut cx) = self.parts();
        shell.on_feedback(&slot, &sample, &mut cx);
        self.close(&slot, Outcome::Acknowledged, series.len() as u8 - 1);
    }

    /// An exchange whose first answer comes `seconds` after the original left, and does not tell
    /// which transmission it answers. Returns the timeouts armed, in seconds.
    pub(crate) fn answered_after(&mut self, seconds: f64) -> Vec<f64> {
        let (series, slot, last, open) = self.run(secs(seconds));
        assert!(open, "given up before {seconds} s: {series:?}");
        self.answer((&series, slot, last), secs(seconds), None);
        series
    }

    /// As [`Path::answered_after`], but a mark tells that transmission `ordinal` was answered.
    pub(crate) fn marked_answer_after(&mut self, seconds: f64, ordinal: u8) -> Vec<f64> {
        let (series, slot, last, open) = self.run(secs(seconds));
        assert!(open, "given up before {seconds} s: {series:?}");
        let before: f64 = series[..usize::from(ordinal)].iter().sum();
        let answered = Answered { ordinal, since: secs(seconds - before) };
        self.answer((&series, slot, last), secs(seconds), Some(answered));
        series
    }

    /// An exchange without an answer. Returns the timeouts armed, the last being when it is given
    /// up.
    pub(crate) fn unanswered(&mut self) -> Vec<f64> {
        let (series, slot, _, open) = self.run(Micros::MAX);
        assert!(!open);
        self.close(&slot, Outcome::GaveUp, series.len() as u8 - 1);
        series
    }

    /// An exchange of `retransmissions` that gives a sample of `rtt` seconds, whether or not the
    /// timeouts add up to that.
    pub(crate) fn sample(&mut self, rtt: f64, retransmissions: u8) {
        let mut slot = Slot::default();
        self.shell.open_exchange();
        let mut series = Vec::new();
        for ordinal in 0..=retransmissions {
            series.push(float(self.transmit(ordinal, &mut slot)));
        }
        self.answer((&series, slot, Micros::ZERO), secs(rtt), None);
    }

    /// As [`Path::sample`], and the round trip takes its time.
    pub(crate) fn sample_in_time(&mut self, rtt: f64, retransmissions: u8) {
        let mut slot = Slot::default();
        self.shell.open_exchange();
        let series: Vec<f64> =
            (0..=retransmissions).map(|n| float(self.transmit(n, &mut slot))).collect();
        self.idle(rtt);
        self.answer((&series, slot, Micros::ZERO), secs(rtt), None);
    }

    /// What the next original's timeout would be, in seconds.
    pub(crate) fn next_timeout(&mut self) -> f64 {
        let mut slot = Slot::default();
        self.shell.open_exchange();
        let timeout = self.transmit(0, &mut slot);
        self.close(&slot, Outcome::Cancelled, 0);
        float(timeout)
    }

    /// An exchange opens and stays open; its first timeout in seconds.
    pub(crate) fn open_and_leave(&mut self) -> f64 {
        self.shell.open_exchange();
        float(self.transmit(0, &mut Slot::default()))
    }

    /// An exchange that opened long ago is given up while `armed` seconds are in force.
    pub(crate) fn close_overlapping(&mut self, armed: f64) {
        self.shell.open_exchange();
        let slot = Slot { armed: secs(armed), base: secs(armed), tag: 0 };
        self.close(&slot, Outcome::GaveUp, 4);
    }

    /// What the control says to a message.
    pub(crate) fn admit(&mut self, confirmable: bool, load: Load) -> Admission {
        let (shell, mut cx) = self.parts();
        shell.admit(&OutgoingMessage { confirmable, bytes: 20 }, load, &mut cx)
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.shell.metrics()
    }

    pub(crate) fn state(&self) -> &'static str {
        self.shell.metrics().state
    }
}
