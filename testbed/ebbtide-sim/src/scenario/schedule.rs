//! `[[network.up.schedule]]`: rates and delays that change, outages among them.

use super::units::{Rate, Time, TimeRange};
use crate::keys::texts;
use serde::{Deserialize, Deserializer, Serialize, de};

/// A change of a link: from when on it has another rate, another delay or both.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Since the start of the run, or of the period.
    pub at: Time,
    /// The rate from then on, 0 for an outage during which packets wait; if it is left out, as before.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "rate_or_zero")]
    pub rate: Option<Rate>,
    /// The delay of packets that leave from then on; if it is left out, as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<TimeRange>,
}

/// A rate, which may be 0 here.
fn rate_or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Rate>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u64),
        Text(String),
    }
    let unknown = |written: &str| {
        de::Error::custom(format!(
            "'{written}' is not a rate such as \"30 kbit/s\", or 0 for an outage"
        ))
    };
    match Written::deserialize(deserializer)? {
        Written::Number(0) => Ok(Some(Rate(0))),
        Written::Number(number) => Err(unknown(&number.to_string())),
        Written::Text(text) => Rate::parse(&text).map(Some).ok_or_else(|| unknown(&text)),
    }
}

texts! {
    Change => "table".to_owned(),
}
