//! `[[power_cut]]`, `[[cell_outage]]` and `[[device_move]]`: what befalls the devices at an instant.

use super::limits::BOTTLENECK;
use super::units::Time;
use super::{ClassView, Scenario, class};
use crate::keys::{Check, LONGEST, keys, require};
use serde::{Deserialize, Serialize};
use std::ops::{Bound, Range};

/// Shares of devices.
const SHARE: (Bound<f64>, Bound<f64>) = (Bound::Excluded(0.0), Bound::Included(1.0));

keys! {
    /// Devices lose power, and with it all that they know: estimates of the path, exchanges under way, message IDs.
    /// Without power a device neither sends nor receives, and makes no requests that are due.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PowerCut name {
        /// Its name, for `--set power_cut.NAME.KEY=VALUE`.
        pub name: String,
        /// The instant at which power fails.
        pub at: Time where ..=LONGEST,
        /// How long power is away; 0: the devices restart at once.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub duration: Time where ..=LONGEST,
        /// When power is back, devices work again at an instant drawn uniformly from this time.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub return_within: Time where ..=LONGEST,
        /// The share of the devices that it befalls, drawn at random.
        #[serde(default = "all")]
        pub share: f64 where SHARE,
        /// The class of these devices; all classes if it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub class: Option<String>,
        /// Requests that each device makes at once when it works again, in addition to those of the workload.
        #[serde(default)]
        pub requests: u32 where 0..=64 => "requests",
    }
}

keys! {
    /// A cell goes away and comes back: packets whose last bit would cross the link in this time are lost, in both
    /// directions. Packets that wait before it stay.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CellOutage name {
        /// Its name, for `--set cell_outage.NAME.KEY=VALUE`.
        pub name: String,
        /// The instant at which the cell goes away.
        pub at: Time where ..=LONGEST,
        /// The time until it is back.
        pub duration: Time where Time(1)..=LONGEST,
        /// The link: a `[[link]]`, or the bottleneck if it is left out.
        #[serde(default = "bottleneck")]
        pub link: String,
    }
}

keys! {
    /// Devices move to another cell: their packets pass its link from then on. Packets that are on
    /// their way to them over the link of the cell that they have left are lost.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct DeviceMove name {
        /// Its name, for `--set device_move.NAME.KEY=VALUE`.
        pub name: String,
        /// The instant at which devices begin to move.
        pub at: Time where ..=LONGEST,
        /// Each device moves at an instant drawn uniformly from this time; 0: all at once.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub within: Time where ..=LONGEST,
        /// The share of the devices that move, drawn at random.
        #[serde(default = "all")]
        pub share: f64 where SHARE,
        /// The class of these devices; all classes if it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub class: Option<String>,
        /// The `[[link]]` of the cell to which they move; `bottleneck` for none.
        pub to: String,
    }
}

const fn all() -> f64 {
    1.0
}

fn bottleneck() -> String {
    BOTTLENECK.into()
}

impl PowerCut {
    /// Whether it befalls devices of this class.
    pub fn befalls(&self, class: &ClassView) -> bool {
        self.class.as_ref().is_none_or(|name| *name == class.name)
    }
}

impl DeviceMove {
    /// Whether devices of this class move.
    pub fn befalls(&self, class: &ClassView) -> bool {
        self.class.as_ref().is_none_or(|name| *name == class.name)
    }
}

impl Scenario {
    /// The times in which the link of this name carries nothing, ns.
    pub(crate) fn outages_of<'s>(&'s self, link: &'s str) -> impl Iterator<Item = Range<u64>> + 's {
        let own = self.cell_outage.iter().filter(move |outage| outage.link == link);
        own.map(|outage| outage.at.0..outage.at.0.saturating_add(outage.duration.0))
    }

    /// Fails if an instant lies after the last request of these classes, where the workload says when that is.
    pub(super) fn check_instant<'v>(
        at: Time,
        key: &str,
        mut views: impl Iterator<Item = &'v ClassView>,
    ) -> Check {
        let last = views.try_fold(0, |last: u64, view| Some(last.max(last_request_ns(view)?)));
        let message = format!(
            "lies outside the run, whose last request is made after {} at the latest",
            Time(last.unwrap_or(0))
        );
        require(last.is_none_or(|last| at.0 <= last), key, &message)
    }
}

/// The latest instant of a class's last request; `None` where it depends on the answers or on chance.
fn last_request_ns(view: &ClassView) -> Option<u64> {
    let scenario = &view.scenario;
    let workload = &scenario.workload;
    let clocked = workload.clocked()?;
    let spread = clocked.pattern.latest_first_ns(clocked.period, scenario.clients.start_window)?;
    let times = u64::from(workload.exchanges.div_ceil(workload.at_once().max(1))) - 1;
    let periods = clocked.period.0.saturating_mul(times);
    Some(scenario.clients.start.0.saturating_add(spread).saturating_add(periods))
}

/// Checks a reference to a class under `key`.
fn check_class(s: &Scenario, key: &str, class: Option<&str>) -> Check {
    let Some(name) = class else { return Ok(()) };
    let names: Vec<&str> = s.class.iter().map(|class| class.name.as_str()).collect();
    let others = match names.is_empty() {
        true => "without classes leave it out".to_owned(),
        false => format!("there are {}", names.join(", ")),
    };
    let message = format!("there is no [[class]] with the name '{name}'; {others}");
    require(names.contains(&name), key, &message)
}

pub(super) fn check(s: &Scenario) -> Check {
    let views = s.read_classes()?;
    for (index, cut) in s.power_cut.iter().enumerate() {
        class::name("power_cut.name", &cut.name)?;
        let key = |key: &str| format!("power_cut.{}.{key}", cut.name);
        let is_new = s.power_cut[..index].iter().all(|other| other.name != cut.name);
        require(is_new, &key("name"), "is the name of an earlier power cut")?;
        require(
            !s.network.has_radio() && s.security.is_none(),
            &format!("power_cut.{}", cut.name),
            "is for networks without a radio of [network], and without [security]",
        )?;
        check_class(s, &key("class"), cut.class.as_deref())?;
        let own = || views.iter().filter(|view| cut.befalls(view));
        let is_plain = |view: &ClassView| {
            let workload = &view.scenario.workload;
            (workload.clocked().is_some() || workload.is_back_to_back())
                && !workload.is_from_server()
        };
        require(
            own().all(is_plain),
            &key("class"),
            "must name a class whose devices make requests back to back or by the clock: a power cut is not \
             modelled for downloads, flows and traffic from the server",
        )?;
        Scenario::check_instant(cut.at, &key("at"), own())?;
    }
    for (index, outage) in s.cell_outage.iter().enumerate() {
        class::name("cell_outage.name", &outage.name)?;
        let key = |key: &str| format!("cell_outage.{}.{key}", outage.name);
        let is_new = s.cell_outage[..index].iter().all(|other| other.name != outage.name);
        require(is_new, &key("name"), "is the name of an earlier outage")?;
        s.check_place(&key("link"), Some(&outage.link))?;
        require(
            !s.network.has_radio(),
            &format!("cell_outage.{}", outage.name),
            "is for networks without a radio of [network]",
        )?;
        Scenario::check_instant(outage.at, &key("at"), views.iter())?;
    }
    for (index, moved) in s.device_move.iter().enumerate() {
        class::name("device_move.name", &moved.name)?;
        let key = |key: &str| format!("device_move.{}.{key}", moved.name);
        let is_new = s.device_move[..index].iter().all(|other| other.name != moved.name);
        require(is_new, &key("name"), "is the name of an earlier move")?;
        require(
            !s.network.has_radio(),
            &format!("device_move.{}", moved.name),
            "is for networks without a radio of [network]",
        )?;
        s.check_place(&key("to"), Some(&moved.to))?;
        check_class(s, &key("class"), moved.class.as_deref())?;
        let own = views.iter().filter(|view| moved.befalls(view));
        Scenario::check_instant(moved.at, &key("at"), own)?;
    }
    require(s.device_move.len() <= 1000, "device_move", "must be at most 1000")?;
    require(s.power_cut.len() <= 1000, "power_cut", "must be at most 1000")?;
    require(s.cell_outage.len() <= 1000, "cell_outage", "must be at most 1000")
}
