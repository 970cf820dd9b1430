//! `drops`: packets that a link drops on purpose, in the notation of scenario files.

use super::Scenario;
use super::units::Time;
use crate::keys::{Check, LONGEST, require, texts};
use crate::net::TargetedLoss;
use ebbtide_core::time::Instant;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Dropped packets, written `"1"`, `"2 of client 0 after 20 s"`, `"1 skipping 40"`: the number of
/// consecutive packets, the client (any client if omitted), the earliest time, and the number of
/// packets that pass first.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub struct Drops(pub TargetedLoss);

/// The notation in a file; a bare number is a count.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Count(u32),
}

impl TryFrom<Written> for Drops {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Count(count) => Ok(Self(TargetedLoss { count, ..TargetedLoss::default() })),
            Written::Text(text) => parse(&text).ok_or_else(|| {
                format!(
                    "'{text}' is not a number of packets such as \"1\", \"2 of client 0 after 20 s\" \
                     or \"1 of client 2 after 5 s skipping 40\""
                )
            }),
        }
    }
}

/// The words in their order, each of which except the first may be omitted.
fn parse(text: &str) -> Option<Drops> {
    let (text, skip) = split(text, " skipping ");
    let (text, after) = split(text, " after ");
    let (count, client) = split(text, " of client ");
    let number = |text: &str| text.trim().parse::<u32>().ok();
    Some(Drops(TargetedLoss {
        count: number(count)?,
        client: client.map(|client| number(client).ok_or(())).transpose().ok()?,
        after: match after {
            None => Instant::ZERO,
            Some(after) => Instant::from_nanos(Time::parse(after.trim())?.0),
        },
        skip: skip.map_or(Some(0), number)?,
    }))
}

fn split<'t>(text: &'t str, word: &str) -> (&'t str, Option<&'t str>) {
    text.split_once(word).map_or((text, None), |(before, after)| (before, Some(after)))
}

impl From<Drops> for String {
    fn from(drops: Drops) -> Self {
        drops.to_string()
    }
}

impl fmt::Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TargetedLoss { count, client, after, skip } = self.0;
        write!(f, "{count}")?;
        if let Some(client) = client {
            write!(f, " of client {client}")?;
        }
        if after > Instant::ZERO {
            write!(f, " after {}", Time(after.as_nanos()))?;
        }
        if skip > 0 {
            write!(f, " skipping {skip}")?;
        }
        Ok(())
    }
}

pub(super) fn check(s: &Scenario, name: &str, drops: &[Drops]) -> Check {
    let key = format!("network.{name}.drops");
    // Senders of background traffic are counted like clients.
    let senders = s.client_count().saturating_add(s.network.background.flows);
    for Drops(aim) in drops {
        require(aim.count >= 1, &key, "must drop 1 packet at least, or be left out")?;
        require(
            aim.client.is_none_or(|client| client < senders),
            &key,
            &format!("names a client that does not exist: there are 0 to {}", senders.max(1) - 1),
        )?;
        require(aim.after.as_nanos() <= LONGEST.0, &key, "must begin within 36525 days")?;
    }
    require(drops.len() <= 1000, &key, "must be at most 1000 entries")
}

texts! {
    Drops => "text".to_owned(),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_drops_are_read_back() {
        let aim = |count, client, seconds: u64, skip| TargetedLoss {
            count,
            client,
            after: Instant::from_nanos(seconds * 1_000_000_000),
            skip,
        };
        for (text, expected) in [
            ("1", aim(1, None, 0, 0)),
            ("2 of client 7", aim(2, Some(7), 0, 0)),
            ("3 after 20 s", aim(3, None, 20, 0)),
            ("1 of client 0 after 1 min skipping 40", aim(1, Some(0), 60, 40)),
        ] {
            assert_eq!(parse(text), Some(Drops(expected)), "{text}");
            assert_eq!(Drops(expected).to_string(), text);
        }
        for text in ["", "some", "1 of client", "1 of client x", "1 after soon", "1 skipping", "-1"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
