//! `[require]`: what the network must do for its users. The verdict judges the controls by it.

use super::Scenario;
use crate::keys::{ABOVE_ZERO, keys};
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
        /// The least share of the bottleneck's capacity, in its busier direction, that the clients
        /// must leave to others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub left_to_others: Option<f64> where SHARE,
        /// The highest mean power of a device's radio, mW. For LoRaWAN, NB-IoT and meshes, and for
        /// all devices together.
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

    pub(super) fn value(&self, figure: Required) -> Option<f64> {
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
        self.phase.iter_mut().for_each(|phase| phase.require = Requirements::default());
    }

    /// The requirements of `[require]`; those of classes are in their [views](Self::classes).
    pub fn requirements(&self) -> Vec<Requirement> {
        let deadline_s = self.workload.deadline.0 as f64 / 1e9;
        let of = |figure: Required| {
            let within_s = (figure == Required::InTime).then_some(deadline_s);
            self.require.value(figure).map(|wanted| Requirement { figure, wanted, within_s })
        };
        Required::ALL.into_iter().filter_map(of).collect()
    }
}
