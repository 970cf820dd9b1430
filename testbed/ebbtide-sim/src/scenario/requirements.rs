//! `[require]`: what the network must do for its users. The verdict judges the controls by it.

use super::class::Class;
use super::{ClassView, Scenario};
use crate::keys::{ABOVE_ZERO, Check, Fault, keys, require};
use serde::{Deserialize, Serialize};
use std::ops::Bound;

/// Shares that mean something as a requirement.
const SHARE: (Bound<f64>, Bound<f64>) = (Bound::Excluded(0.0), Bound::Included(1.0));

keys! {
    /// The least and the most that are required of certain figures; nothing for those left out.
    #[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Requirements {
        /// The least share of the exchanges that must be delivered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub delivered: Option<f64> where SHARE,
        /// The least share of the exchanges that must be answered within `workload.deadline`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub in_time: Option<f64> where SHARE,
        /// The most transmissions of the clients for each delivered exchange, as a budget of energy or airtime.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub transmissions: Option<f64> where 1.0..,
        /// The most bytes on the wire, both ways, for each delivered exchange. Not in a mesh.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub bytes: Option<f64> where ABOVE_ZERO,
        /// The least share of the bottleneck's capacity, in its busier direction, that the clients must leave to others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub left_to_others: Option<f64> where SHARE,
        /// The highest mean power of a device's radio, mW. For LoRaWAN and meshes, and for all devices together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub power_mw: Option<f64> where ABOVE_ZERO,
    }
}

/// A figure of which something can be required.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Required {
    /// The share of the exchanges that is delivered.
    Delivered,
    /// The share of the exchanges that is answered within the deadline.
    InTime,
    /// Transmissions per delivered exchange.
    Transmissions,
    /// Bytes per delivered exchange.
    Bytes,
    /// The share of the bottleneck's capacity that the clients leave to others.
    LeftToOthers,
    /// The mean power of a device's radio, mW.
    Power,
}

/// The side of the bound on which a figure must be.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RequiredBound {
    /// The figure must not be smaller.
    AtLeast,
    /// The figure must not be larger.
    AtMost,
}

impl Required {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Delivered,
        Self::InTime,
        Self::Transmissions,
        Self::Bytes,
        Self::LeftToOthers,
        Self::Power,
    ];

    /// Its key in `[require]` and in the JSON document.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::InTime => "in_time",
            Self::Transmissions => "transmissions",
            Self::Bytes => "bytes",
            Self::LeftToOthers => "left_to_others",
            Self::Power => "power_mw",
        }
    }

    /// The side of the bound.
    #[must_use]
    pub const fn bound(self) -> RequiredBound {
        match self {
            Self::Delivered | Self::InTime | Self::LeftToOthers => RequiredBound::AtLeast,
            Self::Transmissions | Self::Bytes | Self::Power => RequiredBound::AtMost,
        }
    }
}

/// A bound for one figure.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// The figure.
    pub figure: Required,
    /// The least or the largest value.
    pub wanted: f64,
    /// The deadline, s, if the figure has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_s: Option<f64>,
}

impl Requirements {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    fn value(&self, figure: Required) -> Option<f64> {
        match figure {
            Required::Delivered => self.delivered,
            Required::InTime => self.in_time,
            Required::Transmissions => self.transmissions,
            Required::Bytes => self.bytes,
            Required::LeftToOthers => self.left_to_others,
            Required::Power => self.power_mw,
        }
    }
}

impl Scenario {
    /// The scenario judges nothing any more; its results are the same.
    pub(crate) fn drop_requirements(&mut self) {
        self.require = Requirements::default();
        self.class.iter_mut().for_each(|class| class.require = Requirements::default());
    }

    /// The requirements of `[require]`; those of classes are in their [views](Self::classes).
    #[must_use]
    pub fn requirements(&self) -> Vec<Requirement> {
        let deadline_s = self.workload.deadline.0 as f64 / 1e9;
        let of = |figure: Required| {
            let within_s = (figure == Required::InTime).then_some(deadline_s);
            self.require.value(figure).map(|wanted| Requirement { figure, wanted, within_s })
        };
        Required::ALL.into_iter().filter_map(of).collect()
    }
}

/// Checks that the requirements can be measured in this network.
pub(super) fn check(s: &Scenario) -> Check {
    let views = s.read_classes()?;
    let key = |figure: Required| format!("require.{}", figure.key());
    if s.require.in_time.is_some()
        && let Some(view) = views.iter().find(|view| view.scenario.workload.deadline.0 == 0)
    {
        let remedy = match view.name.as_str() {
            "" => "set workload.deadline".to_owned(),
            name => format!(
                "class {name} has none: set workload.deadline, or state [class.require] for those that have one"
            ),
        };
        return Err(Fault::new(key(Required::InTime), format!("needs a deadline; {remedy}")));
    }
    measurable(s, &key)?;
    s.class.iter().zip(&views).try_for_each(|(class, view)| of_class(class, view))
}

/// Fails at figures that this network does not have.
fn measurable(s: &Scenario, key: &dyn Fn(Required) -> String) -> Check {
    let (own, n) = (&s.require, &s.network);
    let is_mesh = n.mesh().is_some();
    require(
        own.bytes.is_none() || !is_mesh,
        &key(Required::Bytes),
        "is not measured in a mesh; state transmissions or power_mw",
    )?;
    require(
        own.left_to_others.is_none() || !is_mesh && n.lora().is_none(),
        &key(Required::LeftToOthers),
        "needs a bottleneck, which meshes and LoRaWAN cells do not have",
    )?;
    require(
        own.power_mw.is_none() || is_mesh || n.lora().is_some(),
        &key(Required::Power),
        "is known of LoRaWAN and of meshes only; state transmissions or bytes",
    )
}

fn of_class(class: &Class, view: &ClassView) -> Check {
    let key = |figure: Required| format!("class.{}.require.{}", class.name, figure.key());
    let own = &view.scenario;
    require(
        own.require.in_time.is_none() || own.workload.deadline.0 > 0,
        &key(Required::InTime),
        "needs a deadline; set deadline in [class.workload]",
    )?;
    for figure in [Required::LeftToOthers, Required::Power] {
        require(
            own.require.value(figure).is_none(),
            &key(figure),
            "is a figure of all devices together; state it in [require]",
        )?;
    }
    measurable(own, &key)
}
