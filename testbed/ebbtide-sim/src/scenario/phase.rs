//! `[[phase]]`: stretches of a run that are judged apart.

use super::units::Time;
use super::{Required, Requirement, Requirements, Scenario, class};
use crate::keys::{Check, LONGEST, keys, require};
use serde::{Deserialize, Serialize};

keys! {
    /// A stretch of the run, until the next phase begins. It has the exchanges that were asked for in it, whenever
    /// they end, and is judged by itself.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PhaseTable name {
        /// Its name, in results and reports.
        pub name: String,
        /// The instant at which it begins.
        #[serde(default)]
        pub from: Time where ..=LONGEST,
        /// The requirements on its exchanges.
        #[serde(default, skip_serializing_if = "Requirements::is_none")]
        pub require: Requirements,
    }
}

impl Scenario {
    /// The requirements of a phase.
    pub(crate) fn requirements_of_phase(&self, phase: &PhaseTable) -> Vec<Requirement> {
        Self { require: phase.require, ..self.clone() }.requirements()
    }
}

pub(super) fn check(s: &Scenario) -> Check {
    if s.phase.is_empty() {
        return Ok(());
    }
    require(s.phase.len() <= 100, "phase", "must be at most 100")?;
    let views = s.read_classes()?;
    require(
        views.iter().all(|view| {
            let workload = &view.scenario.workload;
            workload.ends().is_none() && workload.flow().is_none()
        }),
        "phase",
        "is for requests back to back or by the clock and for downloads, not for flows and workloads with a duration",
    )?;
    for (index, phase) in s.phase.iter().enumerate() {
        class::name("phase.name", &phase.name)?;
        let key = |key: &str| format!("phase.{}.{key}", phase.name);
        let before = &s.phase[..index];
        let is_new = before.iter().all(|other| other.name != phase.name);
        require(is_new, &key("name"), "is the name of an earlier phase")?;
        let is_later = before.last().is_none_or(|last| last.from < phase.from);
        require(is_later, &key("from"), "must be after the beginning of the phase before")?;
        Scenario::check_instant(phase.from, &key("from"), views.iter())?;
        for figure in [Required::Bytes, Required::LeftToOthers, Required::Power] {
            require(
                phase.require.value(figure).is_none(),
                &key(&format!("require.{}", figure.key())),
                "is a figure of the whole run; state it in [require]",
            )?;
        }
        let has_deadline = views.iter().all(|view| view.scenario.workload.deadline.0 > 0);
        require(
            phase.require.in_time.is_none() || has_deadline,
            &key("require.in_time"),
            "needs a deadline; set workload.deadline",
        )?;
    }
    Ok(())
}
