//! Strata: parts of a draw, each with ranges and a budget of its own.
//!
//! One budget for all networks leaves out the large ones, because a network of 100,000 devices costs
//! more than a thousand networks of ten. So the preset `fleets` draws networks by their number of
//! devices, and each stratum has its own budget. All other presets are a single stratum.

use super::ranges::{FLEETS, Property, Ranges};
use ebbtide_sim::scenario::ScenarioError;

/// The default maximum of clients times exchanges of one network in a preset without strata.
pub const WORK: u64 = 6000;

/// A part of the draw.
#[derive(Clone, Debug)]
pub struct Stratum {
    /// Its name: the number of devices, or the preset.
    pub name: String,
    /// The ranges from which its networks are drawn.
    pub ranges: Ranges,
    /// The maximum of clients times exchanges of one of its networks.
    pub work: u64,
    /// Its weight in the sequence of networks.
    weight: u32,
}

/// One stratum of `fleets`.
struct Fleet {
    clients: (u64, u64),
    /// Networks of fifty. Small networks are cheap, and chance differs more between them.
    weight: u32,
    /// The maximum of clients times exchanges: what a control that sends each request twenty times
    /// simulates in a few seconds.
    work: u64,
    rate: &'static str,
    exchanges: &'static str,
}

/// The rates grow with the number of devices, so that each stratum has idle and overloaded networks.
const STRATA: [Fleet; 6] = [
    Fleet {
        clients: (1, 3),
        weight: 8,
        work: 120,
        rate: "200 bit/s..200 kbit/s",
        exchanges: "10..40",
    },
    Fleet {
        clients: (4, 30),
        weight: 12,
        work: 1200,
        rate: "500 bit/s..200 kbit/s",
        exchanges: "10..40",
    },
    Fleet {
        clients: (31, 300),
        weight: 12,
        work: 4500,
        rate: "2 kbit/s..500 kbit/s",
        exchanges: "5..30",
    },
    Fleet {
        clients: (301, 3000),
        weight: 11,
        work: 12_000,
        rate: "5 kbit/s..2 Mbit/s",
        exchanges: "3..12",
    },
    Fleet {
        clients: (3001, 30_000),
        weight: 5,
        work: 60_000,
        rate: "20 kbit/s..10 Mbit/s",
        exchanges: "2..8",
    },
    Fleet {
        clients: (30_001, 100_000),
        weight: 2,
        work: 200_000,
        rate: "30 kbit/s..30 Mbit/s",
        exchanges: "1..4",
    },
];

/// The strata of a draw.
///
/// # Errors
///
/// Returns an error if two ranges contradict each other, or a range and the budget; the message
/// names both and the remedy.
pub(super) fn strata(
    preset: &str,
    ranges: &Ranges,
    work: Option<u64>,
) -> Result<Vec<Stratum>, ScenarioError> {
    let strata = if preset == FLEETS {
        if let Some(work) = work {
            let message = format!(
                "contradicts --preset {FLEETS}, in which each stratum has its own budget; leave out \
                 --work, or choose another preset"
            );
            return Err(ScenarioError::argument("--work", &work.to_string(), &message));
        }
        fleets(ranges)?
    } else {
        let (name, ranges) = (preset.to_owned(), ranges.clone());
        vec![Stratum { name, ranges, work: work.unwrap_or(WORK), weight: 1 }]
    };
    strata.iter().try_for_each(|stratum| fits(preset, stratum))?;
    Ok(strata)
}

fn fleets(ranges: &Ranges) -> Result<Vec<Stratum>, ScenarioError> {
    let asked = ranges.ends(Property::Clients);
    let stratum = |fleet: &Fleet| {
        let (low, high) = (fleet.clients.0.max(asked.0), fleet.clients.1.min(asked.1));
        if low > high {
            return None;
        }
        let mut own = ranges.with_range(Property::Clients, &format!("{low}..{high}"));
        for (property, range) in
            [(Property::Rate, fleet.rate), (Property::Exchanges, fleet.exchanges)]
        {
            if !ranges.is_changed(property) {
                own = own.and_then(|own| own.with_range(property, range));
            }
        }
        let name = if low == high {
            thousands(low)
        } else {
            format!("{} to {}", thousands(low), thousands(high))
        };
        Some(own.map(|ranges| Stratum { name, ranges, work: fleet.work, weight: fleet.weight }))
    };
    let strata: Vec<Stratum> = STRATA.iter().filter_map(stratum).collect::<Result<_, _>>()?;
    if strata.is_empty() || asked.1 > STRATA[STRATA.len() - 1].clients.1 {
        let message = format!(
            "contradicts --preset {FLEETS}, whose strata have 1 to 100000 devices; take a range \
             within them, or --preset all with a larger --work"
        );
        let range = format!("clients={}..{}", asked.0, asked.1);
        return Err(ScenarioError::argument("--range", &range, &message));
    }
    Ok(strata)
}

/// Refuses a stratum whose smallest network exceeds its budget: the number of exchanges would be cut
/// below the range without a word.
fn fits(preset: &str, stratum: &Stratum) -> Result<(), ScenarioError> {
    let (clients, exchanges) =
        (stratum.ranges.ends(Property::Clients), stratum.ranges.ends(Property::Exchanges));
    let least = clients.0.saturating_mul(exchanges.0);
    if least <= stratum.work {
        return Ok(());
    }
    let remedy = match preset {
        FLEETS => "--preset all with a larger --work admits them".to_owned(),
        _ => format!("--work {} admits them all", clients.1.saturating_mul(exchanges.1)),
    };
    let message = format!(
        "contradicts exchanges={}..{}: the smallest of these networks has {least} exchanges in all, \
         and the budget of a network is {}; choose fewer, or {remedy}",
        exchanges.0, exchanges.1, stratum.work,
    );
    let range = format!("clients={}..{}", clients.0, clients.1);
    Err(ScenarioError::argument("--range", &range, &message))
}

/// The stratum of each of the first networks. Each stratum comes once before any comes twice; then
/// each follows its weight. A longer sequence begins with a shorter one.
///
/// # Errors
///
/// Returns an error if there are fewer networks than strata.
pub(super) fn sequence(strata: &[Stratum], networks: u32) -> Result<Vec<usize>, ScenarioError> {
    if (networks as usize) < strata.len() {
        let message = format!(
            "leaves strata empty: there are {}; draw at least as many networks, or take fewer \
             strata with --range clients=LOW..HIGH",
            strata.len()
        );
        return Err(ScenarioError::argument("--networks", &networks.to_string(), &message));
    }
    let sum: u64 = strata.iter().map(|one| u64::from(one.weight)).sum();
    let mut drawn = vec![0u64; strata.len()];
    let next = |number: u64| {
        // What the weights entitle a stratum to, minus what it has, in parts of `sum`.
        let due = |place: usize| {
            let entitled = u64::from(strata[place].weight) * (number + 1);
            (drawn[place] == 0, entitled as i64 - (drawn[place] * sum) as i64)
        };
        // The first of the equal ones.
        let place = (0..strata.len()).rev().max_by_key(|place| due(*place)).unwrap_or(0);
        drawn[place] += 1;
        place
    };
    Ok((0..u64::from(networks)).map(next).collect())
}

/// A number with commas between its thousands.
fn thousands(value: u64) -> String {
    match value / 1000 {
        0 => value.to_string(),
        more => format!("{},{:03}", thousands(more), value % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strata_of(changes: &[&str]) -> Result<Vec<Stratum>, ScenarioError> {
        let changes: Vec<String> = changes.iter().map(|text| (*text).to_owned()).collect();
        strata(FLEETS, &Ranges::new(FLEETS, &changes)?, None)
    }

    #[test]
    fn no_stratum_is_empty_and_the_rest_follow_the_weights() {
        let strata = strata_of(&[]).unwrap();
        for networks in 6..200 {
            let sequence = sequence(&strata, networks).unwrap();
            assert!((0..6).all(|place| sequence.contains(&place)), "{networks}: {sequence:?}");
        }
        let sequence = sequence(&strata, 1000).unwrap();
        let counts: Vec<usize> =
            (0..6).map(|place| sequence.iter().filter(|own| **own == place).count()).collect();
        assert_eq!(counts, [160, 240, 240, 220, 100, 40]);
    }

    #[test]
    fn a_range_of_clients_selects_strata_and_narrows_the_outer_ones() {
        let names: Vec<String> =
            strata_of(&["clients=100..5000"]).unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["100 to 300", "301 to 3,000", "3,001 to 5,000"]);
    }

    #[test]
    fn contradictions_name_both_keys_and_the_remedy() {
        let refusal = |changes: &[&str]| strata_of(changes).unwrap_err().to_string();
        let text = refusal(&["clients=50000", "exchanges=50..60"]);
        assert!(text.contains("clients=50000..50000: contradicts exchanges=50..60"), "{text}");
        assert!(text.contains("--work"), "{text}");
        let text = refusal(&["clients=200000..300000"]);
        assert!(text.contains("contradicts --preset fleets") && text.contains("--preset all"));
        let all = Ranges::new("all", &["clients=1000..10000".to_owned()]).unwrap();
        let text = strata("all", &all, None).unwrap_err().to_string();
        assert!(text.contains("contradicts exchanges=10..40"), "{text}");
        assert!(text.contains("--work 400000 admits them all"), "{text}");
        let fleets = Ranges::new(FLEETS, &[]).unwrap();
        let text = strata(FLEETS, &fleets, Some(9)).unwrap_err().to_string();
        assert!(text.contains("--work") && text.contains("--preset fleets"), "{text}");
        let text = sequence(&strata_of(&[]).unwrap(), 5).unwrap_err().to_string();
        assert!(text.contains("--networks") && text.contains("--range clients"), "{text}");
    }
}
