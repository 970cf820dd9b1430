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
                (_, ["workload.period"]) if !self.repeats() => None,
                (Some((name, _)), _) => Some(name.clone()),
                // Classes have their own counts.
                (None, ["clients.count"]) if !self.class.is_empty() => {
                    let most = self.class.iter().max_by_key(|class| class.count)?;
                    Some(format!("class.{}.count", most.name))
                }
                (None, keys) => keys.first().map(|key| (*key).to_owned()),
            }
        };
        QUANTITIES.iter().filter_map(key).collect()
    }

    /// Whether devices of some class ask more than once, by the clock and with the scenario's period. Otherwise another
    /// period changes nothing.
    fn repeats(&self) -> bool {
        self.classes().iter().any(|class| {
            let workload = &class.scenario.workload;
            let follows = workload.exchanges > workload.at_once() && workload.log().is_none();
            workload.clocked().is_some() && follows && !class.sets("period")
        })
    }
}
