//! A requirement, and whether a control meets it.

use super::run_figures::RunFigures;
use super::wording::{percent, significant};
use crate::scenario::{Required, RequiredBound, Requirement};
use crate::stats::mean_and_half_width;
use serde::{Deserialize, Serialize};

impl Required {
    /// The heading of its column.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::InTime => "in time",
            Self::Transmissions => "sent",
            Self::Bytes => "bytes",
            Self::LeftToOthers => "left over",
            Self::Power => "power, mW",
        }
    }

    /// Its value in some replications; NaN if there is none.
    fn of(self, run: &RunFigures) -> f64 {
        match self {
            Self::Delivered => run.delivered,
            Self::InTime => 1.0 - run.deadline_missed.unwrap_or(f64::NAN),
            Self::Transmissions => run.transmissions_per_delivered,
            Self::Bytes => run.bytes_per_delivered,
            Self::LeftToOthers => 1.0 - run.occupied,
            Self::Power => run.power_mw.unwrap_or(f64::NAN),
        }
    }

    /// A value of it in words.
    fn text(self, value: f64) -> String {
        match self.bound() {
            _ if !value.is_finite() => "–".to_owned(),
            // A requirement is often near to everything: one digit more than in other sentences.
            RequiredBound::AtLeast if (0.1..0.99).contains(&value) => {
                format!("{:.1} %", 100.0 * value)
            }
            RequiredBound::AtLeast => percent(value),
            RequiredBound::AtMost => significant(value),
        }
    }
}

/// Whether a requirement is met.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// By more than the confidence interval of the figure.
    Yes,
    /// Met, but the bound lies within the interval.
    Barely,
    /// Missed, but the bound lies within the interval.
    Hardly,
    /// Missed by more than the interval.
    No,
}

impl Met {
    /// Whether the figure itself is on the right side of the bound.
    pub const fn is_met(self) -> bool {
        matches!(self, Self::Yes | Self::Barely)
    }
}

/// A requirement beside what a control has come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequirementCheck {
    /// The class for which it is required; empty for all clients.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// The phase for which it is required; empty for the whole run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The requirement.
    pub requirement: Requirement,
    /// The figure over all replications together; NaN if there is none.
    pub found: f64,
    /// Half of its 95 % confidence interval over replications; 0 with one replication.
    pub half: f64,
}

impl RequirementCheck {
    /// Compares the figures of a control with a requirement.
    pub(super) fn new(requirement: Requirement, all: &RunFigures, runs: &[RunFigures]) -> Self {
        let of = |run: &RunFigures| requirement.figure.of(run);
        let each: Vec<f64> = runs.iter().map(of).filter(|value| value.is_finite()).collect();
        let (_, half) = mean_and_half_width(&each);
        let half = if half.is_finite() { half } else { 0.0 };
        let (class, phase) = (String::new(), String::new());
        Self { class, phase, requirement, found: of(all), half }
    }

    /// The distance to the bound: positive on the right side; minus infinity if there is no figure.
    pub fn margin(&self) -> f64 {
        let by = match self.requirement.figure.bound() {
            RequiredBound::AtLeast => self.found - self.requirement.wanted,
            RequiredBound::AtMost => self.requirement.wanted - self.found,
        };
        if by.is_nan() { f64::NEG_INFINITY } else { by }
    }

    /// Whether it is met.
    pub fn met(&self) -> Met {
        let by = self.margin();
        match (by >= 0.0, by.abs() >= self.half) {
            (true, true) => Met::Yes,
            (true, false) => Met::Barely,
            (false, false) => Met::Hardly,
            (false, true) => Met::No,
        }
    }

    /// As many digits of a figure as tell it from the bound that it misses; `None` if the usual ones do.
    #[must_use]
    pub fn near_miss(&self) -> Option<String> {
        let wanted = self.requirement.wanted;
        if self.met().is_met() || !self.found.is_finite() {
            return None;
        }
        let (factor, unit) = match self.requirement.figure.bound() {
            RequiredBound::AtLeast => (100.0, " %"),
            RequiredBound::AtMost => (1.0, ""),
        };
        let digits = |value: f64, count: usize| format!("{:.count$}{unit}", factor * value);
        let differs = |count: &usize| digits(self.found, *count) != digits(wanted, *count);
        let count = (1..=9).find(differs)?;
        (count > 1).then(|| digits(self.found, count))
    }

    /// The figure in words, with half of its interval if the bound lies within that.
    pub fn found_text(&self) -> String {
        let figure = self.requirement.figure;
        let found = self.near_miss().unwrap_or_else(|| figure.text(self.found));
        match (self.met(), figure.bound()) {
            (Met::Yes | Met::No, _) => found,
            (_, RequiredBound::AtLeast) => {
                format!("{found} ± {} points", significant(100.0 * self.half))
            }
            (_, RequiredBound::AtMost) => format!("{found} ± {}", significant(self.half)),
        }
    }

    /// The bound in words, such as "at least 99.90 %".
    pub fn bound_text(&self) -> String {
        let figure = self.requirement.figure;
        let side = match figure.bound() {
            RequiredBound::AtLeast => "at least",
            RequiredBound::AtMost => "at most",
        };
        format!("{side} {}", figure.text(self.requirement.wanted))
    }

    /// The part of the run that it concerns, in words; empty for all of it.
    fn of_part(&self) -> String {
        match (self.class.as_str(), self.phase.as_str()) {
            ("", "") => String::new(),
            ("", phase) => format!(" of phase {phase}"),
            (class, _) => format!(" of class {class}"),
        }
    }

    /// The requirement in words, such as "at least 99.90 % of the exchanges of class alarms within 10 s".
    pub fn text(&self) -> String {
        let part = self.of_part();
        let bound = self.bound_text();
        match self.requirement.figure {
            Required::Delivered => format!("{bound} of the exchanges{part} delivered"),
            Required::InTime => {
                let within = significant(self.requirement.within_s.unwrap_or(f64::NAN));
                format!("{bound} of the exchanges{part} answered within {within} s")
            }
            Required::Transmissions => {
                format!("{bound} transmissions per delivered exchange{part}")
            }
            Required::Bytes => format!("{bound} bytes per delivered exchange{part}"),
            Required::LeftToOthers => format!("{bound} of the link left to others"),
            Required::Power => format!("{bound} mW for the radio of a device"),
        }
    }

    /// The figure of the control, in words that follow its name.
    pub(super) fn found_words(&self) -> String {
        let found = self.found_text();
        let part = self.of_part();
        match self.requirement.figure {
            Required::Delivered => format!("{found} delivered{part}"),
            Required::InTime => format!("{found} in time{part}"),
            Required::Transmissions => format!("{found} transmissions{part}"),
            Required::Bytes => format!("{found} bytes{part}"),
            Required::LeftToOthers => format!("{found} of the link left"),
            Required::Power => format!("{found} mW"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_rounds_to_the_bound_it_misses_has_more_digits() {
        let text = |figure: Required, wanted: f64, found: f64| {
            let requirement = Requirement { figure, wanted, within_s: Some(1.0) };
            let (class, phase) = (String::new(), String::new());
            RequirementCheck { class, phase, requirement, found, half: 0.0 }.found_text()
        };
        assert_eq!(text(Required::InTime, 0.99, 0.9896), "98.96 %");
        assert_eq!(text(Required::InTime, 0.99, 0.98996), "98.996 %");
        assert_eq!(text(Required::InTime, 0.99, 0.97), "97.0 %");
        assert_eq!(text(Required::InTime, 0.99, 0.99), "99.00 %");
        assert_eq!(text(Required::Transmissions, 1.5, 1.502), "1.502");
        assert_eq!(text(Required::Transmissions, 1.5, 1.62), "1.62");
    }
}
