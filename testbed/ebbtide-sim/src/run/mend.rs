//! Remedies for a requirement that no control meets: the keys whose values are searched for one.

use crate::scenario::Scenario;

/// The quantities of a network and its workload that an operator can change, each with the keys that stand for it.
const QUANTITIES: [&[&str]; 4] = [
    &["network.up.rate", "network.down.rate"],
    &["network.up.buffer", "network.down.buffer"],
    &["workload.period"],
    &["clients.count"],
];

impl Scenario {
    /// The keys to search, under their short names if they have some: rate, buffer, period and number of devices, as
    /// far as the scenario has them.
    pub fn mending_keys(&self) -> Vec<String> {
        let stands_for = |own: &[String], keys: &[&str]| {
            own.iter().all(|key| keys.contains(&key.as_str())) && !own.is_empty()
        };
        let key = |keys: &&[&str]| {
            let mut short = self.keys.iter().filter(|(_, own)| stands_for(own, keys));
            match (short.next(), keys) {
                (Some((name, _)), _) => Some(name.clone()),
                // Periods are for requests that go by the clock, and classes have their own counts.
                (None, ["workload.period"]) if self.workload.clocked().is_none() => None,
                (None, ["clients.count"]) if !self.class.is_empty() => {
                    let most = self.class.iter().max_by_key(|class| class.count)?;
                    Some(format!("class.{}.count", most.name))
                }
                (None, keys) => keys.first().map(|key| (*key).to_owned()),
            }
        };
        QUANTITIES.iter().filter_map(key).collect()
    }
}
