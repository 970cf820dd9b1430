//! The draw: from ranges to networks.

use super::network::DrawnNetwork;
use super::ranges::{Choice, PATH, PROPERTIES, Property, Ranges};
use super::sobol::{Point, Sobol};
use super::strata::{Stratum, sequence};
use ebbtide_core::params::Parameters;
use ebbtide_sim::scenario::units::{Rate, Time};
use ebbtide_sim::scenario::{Override, ScenarioError, Source, load};

/// A workload of maps: all clients begin at once, with fresh state, and have a few requests each.
const POWER_CUT: &str = "power-cut";

/// Requests of a client after a power cut, at most.
const AFTER_POWER_CUT: u64 = 3;

/// A workload of maps: clients that have learnt the idle path one by one act at once, as after an outage.
const OUTAGE: &str = "outage";

/// A workload of maps: a few alarms beside many meters, in a scenario of this name.
const ALARMS: &str = "alarms";

/// Devices for each alarm.
const DEVICES_PER_ALARM: u64 = 50;

/// The longest ACK_TIMEOUT of a scenario.
const LONGEST_ACK_TIMEOUT: Time = Time(Parameters::LONGEST_SPAN.as_nanos());

/// ACK_TIMEOUT of RFC 7252 section 4.8, ns.
const ACK_TIMEOUT: u64 = 2_000_000_000;

/// The seed and the size of a draw. Equal draws give equal networks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The seed of the sequence.
    pub seed: u64,
    /// The number of networks.
    pub networks: u32,
}

impl DrawnNetwork {
    /// The networks of a draw in one stratum.
    ///
    /// # Errors
    ///
    /// Returns an error if a drawn network is not a valid scenario; the message names the invalid
    /// values.
    pub fn draw(
        source: &Source,
        ranges: &Ranges,
        drawing: Draw,
        work: u64,
    ) -> Result<Vec<Self>, ScenarioError> {
        draw(source, &super::strata::strata("all", ranges, Some(work))?, drawing)
    }
}

/// The networks of a draw.
pub(super) fn draw(
    source: &Source,
    strata: &[Stratum],
    drawing: Draw,
) -> Result<Vec<DrawnNetwork>, ScenarioError> {
    let sobol: Vec<Sobol> =
        (0..strata.len()).map(|place| Sobol::new(drawing.seed, place)).collect();
    let alarms = load(ALARMS)?.with_controls(source.custom.clone());
    let mut drawn = vec![0; strata.len()];
    let network = |(number, place): (u32, usize)| {
        let point = sobol[place].point(drawn[place]);
        drawn[place] += 1;
        let network = Drawn { stratum: &strata[place], point }.network(source, &alarms)?;
        Ok(DrawnNetwork { number, stratum: place, ..network })
    };
    (0..drawing.networks).zip(sequence(strata, drawing.networks)?).map(network).collect()
}

/// One point of a stratum.
struct Drawn<'s> {
    stratum: &'s Stratum,
    point: Point,
}

impl Drawn<'_> {
    fn value(&self, property: Property) -> DrawnValue {
        let place = PROPERTIES.iter().position(|(own, ..)| *own == property).unwrap_or(0);
        pick(self.stratum.ranges.choices(property), self.point[place])
    }

    fn number(&self, property: Property) -> u64 {
        match self.value(property) {
            DrawnValue::Number(value) => value,
            DrawnValue::Bdp(_) | DrawnValue::Word(_) => 0,
        }
    }

    fn word(&self, property: Property) -> String {
        match self.value(property) {
            DrawnValue::Word(word) => word,
            DrawnValue::Number(_) | DrawnValue::Bdp(_) => String::new(),
        }
    }

    /// The network, as the first one of the first stratum.
    fn network(&self, source: &Source, alarms: &Source) -> Result<DrawnNetwork, ScenarioError> {
        // One device alone cannot be of two classes.
        let has_classes =
            self.word(Property::Workload) == ALARMS && self.number(Property::Clients) > 1;
        let source = if has_classes { alarms } else { source };
        let rate = self.number(Property::Rate).max(1);
        let up_rate = significant(rate.saturating_mul(self.number(Property::Uplink)) / 1000).max(1);
        let round_trip = self.number(Property::RoundTrip);
        let payload = self.number(Property::Payload);
        let payloads = match self.word(Property::Direction).as_str() {
            "down" => (0, payload),
            "up" => (payload, 0),
            other => {
                let message = "is not a valid direction: there are down and up";
                return Err(refuse(&format!("direction={other}"), message));
            }
        };
        let delay = round_trip / 2000 * 1000;
        // Whole microseconds keep the command readable.
        let half = delay / 200_000 * self.number(Property::Variation) * 1000;
        let delays = if half == 0 {
            Time(delay).to_string()
        } else {
            format!("[{}, {}]", Time(delay.saturating_sub(half)), Time(delay + half))
        };
        let longest = self.number(Property::Server);
        let server = match longest {
            0 => "0 s".to_owned(),
            longest => format!("[0 s, {}]", Time(longest)),
        };
        let wire =
            |payload: u64, rest: u64| (28 + 4 + rest + payload + u64::from(payload > 0)) as f64;
        let up_s = wire(payloads.0, 6) * 8.0 / up_rate as f64;
        let down_s = wire(payloads.1, 1) * 8.0 / rate as f64;
        // The time of an exchange on the idle path if every delay is the longest, ns.
        let slowest = 2 * (delay + half) + longest + ((up_s + down_s) * 1e9) as u64;
        let texts: Vec<(&str, String)> = [
            self.load(),
            vec![
                ("workload.request_payload", payloads.0.to_string()),
                ("workload.response_payload", payloads.1.to_string()),
                ("max_retransmit", self.number(Property::MaxRetransmit).to_string()),
                ("errors", self.word(Property::Errors)),
                ("buffer", self.buffer(rate, round_trip, payload)),
                ("network.up.rate", Rate(up_rate).to_string()),
                ("network.down.rate", Rate(rate).to_string()),
                ("network.up.delay", delays.clone()),
                ("network.down.delay", delays),
                ("network.up.beyond", "0 s".to_owned()),
                ("network.down.beyond", "0 s".to_owned()),
                ("network.mtu", "1280".to_owned()),
                ("server.processing", server),
            ],
            self.ack_timeout(slowest)?,
        ]
        .concat();
        let settings: Vec<(String, String)> =
            texts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let overrides: Vec<Override> = settings
            .iter()
            .map(|(key, value)| Override { key: key.clone(), value: value.clone() })
            .collect();
        let scenario = source.scenario(&overrides)?;
        let mean = |(low, high): (u64, u64)| (low + high) as f64 / 2e9;
        let idle_s =
            up_s + down_s + round_trip as f64 / 1e9 + mean(scenario.server.processing.ends());
        let bottleneck = if up_s > down_s { up_rate } else { rate };
        Ok(DrawnNetwork {
            number: 0,
            stratum: 0,
            source: source.clone(),
            settings,
            scenario,
            exchange_s: up_s.max(down_s),
            is_up: up_s > down_s,
            idle_s,
            bdp_bytes: bottleneck as f64 * idle_s / 8.0,
        })
    }

    /// The settings of clients and requests.
    fn load(&self) -> Vec<(&'static str, String)> {
        let clients = self.number(Property::Clients);
        let most = (self.stratum.work / clients.max(1)).max(1);
        let exchanges = self.number(Property::Exchanges).min(most);
        let word = self.word(Property::Workload);
        let (kind, exchanges) = match word.as_str() {
            POWER_CUT => ("continuous", exchanges.min(AFTER_POWER_CUT)),
            // What was learnt before the outage, and at least one request after it.
            OUTAGE => ("synchronised", exchanges.max(2)),
            ALARMS => ("synchronised", exchanges),
            kind => (kind, exchanges),
        };
        let mut settings = if word == ALARMS && clients > 1 {
            let alarms = (clients / DEVICES_PER_ALARM).max(1);
            vec![("meters", (clients - alarms).to_string()), ("alarms", alarms.to_string())]
        } else {
            vec![("clients", clients.to_string()), ("workload", kind.to_owned())]
        };
        settings.push(("exchanges", exchanges.to_string()));
        let is_together = matches!(word.as_str(), POWER_CUT | OUTAGE | ALARMS | "synchronised");
        let window = Some(self.number(Property::Window)).filter(|time| *time > 0 && is_together);
        settings.extend(window.map(|time| ("clients.start_window", Time(time).to_string())));
        if !matches!(kind, "continuous" | "random") {
            // A window that is longer than the period would be another workload.
            let period = self.number(Property::Period).max(window.unwrap_or(0));
            settings.push(("workload.period", Time(period).to_string()));
            if word == OUTAGE {
                settings.push(("workload.spread", Time(period).to_string()));
            }
        }
        settings
    }

    /// The bytes that may wait before each link.
    fn buffer(&self, rate: u64, round_trip: u64, payload: u64) -> String {
        match self.value(Property::Buffer) {
            DrawnValue::Word(word) => word,
            DrawnValue::Number(bytes) => bytes.to_string(),
            // At least one packet with its header, marker and path, since otherwise nothing could wait.
            DrawnValue::Bdp(thousandths) => {
                let bdp = u128::from(rate) * u128::from(round_trip) / 8_000_000_000;
                let wanted = bdp * u128::from(thousandths) / 1000;
                let least = 28 + 4 + 6 + payload + 8;
                significant(u64::try_from(wanted).unwrap_or(u64::MAX)).max(least).to_string()
            }
        }
    }

    /// The setting of ACK_TIMEOUT, if it is not RFC 7252's. One that fits the path is a quarter
    /// longer than the slowest exchange on an idle path.
    fn ack_timeout(&self, slowest: u64) -> Result<Vec<(&'static str, String)>, ScenarioError> {
        let wanted = match self.value(Property::AckTimeout) {
            DrawnValue::Word(word) if word == PATH => {
                significant(slowest.saturating_mul(5) / 4).max(ACK_TIMEOUT)
            }
            _ => self.number(Property::AckTimeout),
        };
        if wanted > LONGEST_ACK_TIMEOUT.0 {
            let message = format!(
                "contradicts ack-timeout=path: a timeout that fits a path of {} is longer than                  {LONGEST_ACK_TIMEOUT}; draw shorter round trips, or an ack-timeout of its own",
                Time(slowest)
            );
            let mut ranges = self.stratum.ranges.written();
            let range = ranges.find(|(name, _)| *name == "round-trip").map_or("", |own| own.1);
            return Err(refuse(&format!("round-trip={range}"), &message));
        }
        Ok(match wanted {
            ACK_TIMEOUT => Vec::new(),
            other => vec![("coap.ack_timeout", Time(other).to_string())],
        })
    }
}

fn refuse(range: &str, message: &str) -> ScenarioError {
    ScenarioError::argument("--range", range, message)
}

/// A value that was drawn.
enum DrawnValue {
    Number(u64),
    Bdp(u64),
    Word(String),
}

/// The choice that a coordinate selects, and the value within its range.
fn pick(choices: &[Choice], coordinate: u32) -> DrawnValue {
    let scaled = u64::from(coordinate) * choices.len() as u64;
    let (index, rest) = ((scaled >> 32) as usize, scaled as u32);
    match choices.get(index) {
        Some(Choice::Number { low, high }) => DrawnValue::Number(between(*low, *high, rest)),
        Some(Choice::Bdp { low, high }) => DrawnValue::Bdp(between(*low, *high, rest)),
        Some(Choice::Word(word)) => DrawnValue::Word(word.clone()),
        None => DrawnValue::Number(0),
    }
}

/// A value whose logarithm is uniformly distributed: each bit halves the logarithm's interval.
/// Only square roots are needed, which are the same on every machine.
fn between(low: u64, high: u64, coordinate: u32) -> u64 {
    let (mut least, mut most) = (low as f64, high as f64);
    for bit in (0..32).rev() {
        let middle = (least * most).sqrt();
        if (coordinate >> bit) & 1 == 1 {
            least = middle;
        } else {
            most = middle;
        }
    }
    significant(least.round() as u64).clamp(low, high)
}

/// Rounds to three digits, which keeps the command readable.
fn significant(value: u64) -> u64 {
    let mut unit = 1;
    while value / unit >= 1000 {
        unit *= 10;
    }
    (value + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::draw as draw_in;
    use super::*;
    use crate::ranges::FLEETS;

    fn draw(
        preset: &str,
        changes: &[&str],
        count: u32,
    ) -> Result<Vec<DrawnNetwork>, ScenarioError> {
        let changes: Vec<String> = changes.iter().map(|text| (*text).to_owned()).collect();
        let source = load("nb-iot").unwrap();
        DrawnNetwork::draw(
            &source,
            &Ranges::new(preset, &changes)?,
            Draw { seed: 7, networks: count },
            6000,
        )
    }

    #[test]
    fn fleets_have_every_workload_from_one_device_to_a_hundred_thousand() {
        let source = load(crate::scenario_of(FLEETS)).unwrap();
        let ranges = Ranges::new(FLEETS, &[]).unwrap();
        let strata = super::super::strata::strata(FLEETS, &ranges, None).unwrap();
        let networks = draw_in(&source, &strata, Draw { seed: 5, networks: 600 }).unwrap();
        let count = |network: &DrawnNetwork| network.scenario.clients.count;
        for network in &networks {
            let work = u64::from(count(network)) * u64::from(network.scenario.workload.exchanges);
            assert!(work <= strata[network.stratum].work, "{:?}", network.settings);
            let ends = strata[network.stratum].ranges.ends(Property::Clients);
            assert!((ends.0..=ends.1).contains(&count(network).into()), "{:?}", network.settings);
        }
        assert!(networks.iter().any(|one| count(one) == 1));
        assert!(networks.iter().any(|one| count(one) > 80_000));
        for (kind, least) in
            [("Continuous", 150), ("Random", 75), ("Synchronised", 225), ("Periodic", 75)]
        {
            let is_kind =
                |one: &&DrawnNetwork| format!("{:?}", one.scenario.workload.kind()) == kind;
            let of_kind = networks.iter().filter(is_kind).count();
            assert!((least..least + 50).contains(&of_kind), "{kind}: {of_kind}");
        }
        let with_old_state = networks
            .iter()
            .filter(|one| one.settings.iter().any(|(key, _)| key == "workload.spread"))
            .count();
        let with_classes = networks.iter().filter(|one| !one.scenario.class.is_empty()).count();
        assert!(with_old_state > 70 && with_classes > 50, "{with_old_state} {with_classes}");
        let long = networks.iter().filter(|one| one.idle_s > 10.0).count();
        let fitting =
            networks.iter().filter(|one| one.scenario.coap.ack_timeout.0 > 10_000_000_000).count();
        assert!(fitting > 40 && long - fitting > 40, "{fitting} of {long}");
        for stratum in 0..6 {
            let own = || networks.iter().filter(|one| one.stratum == stratum);
            let overloaded = own().filter(|one| one.load() >= 1.0).count();
            assert!(overloaded > 0 && overloaded < own().count(), "{stratum}: {overloaded}");
        }
    }

    #[test]
    fn an_ack_timeout_that_no_scenario_allows_is_refused_with_both_keys() {
        let changes = ["round-trip=22 h", "ack-timeout=path"];
        let text = draw("all", &changes, 1).unwrap_err().to_string();
        assert!(text.contains("round-trip=22 h: contradicts ack-timeout=path"), "{text}");
        assert!(text.contains("draw shorter round trips, or an ack-timeout"), "{text}");
    }

    #[test]
    fn every_preset_makes_networks_within_its_ranges_and_the_bound_on_work() {
        for preset in Ranges::presets().filter(|preset| *preset != FLEETS) {
            for network in draw(preset, &[], 64).unwrap() {
                let s = &network.scenario;
                assert!(s.clients.count * s.workload.exchanges <= 6000, "{network:?}");
                assert!(network.load() > 0.0 && network.idle_s > network.exchange_s);
            }
        }
        let all = draw("all", &[], 64).unwrap();
        assert!(all.iter().all(|n| (2_000..=1_000_000).contains(&n.scenario.network.down.rate.0)));
        let slow = all.iter().filter(|n| n.scenario.network.down.rate.0 < 44_721).count();
        assert!((28..=36).contains(&slow), "logarithms are drawn evenly: {slow}");
    }

    #[test]
    fn a_longer_draw_begins_with_a_shorter_one() {
        let (few, many) = (draw("all", &[], 8).unwrap(), draw("all", &[], 16).unwrap());
        assert!(few.iter().zip(&many).all(|(a, b)| a.settings == b.settings));
    }

    #[test]
    fn a_buffer_in_multiples_of_the_path_holds_at_least_a_packet() {
        let networks = draw("all", &["buffer=0.5..16 bdp", "rate=2 kbit/s"], 32).unwrap();
        for network in networks {
            assert!(network.scenario.network.down.buffer.0.unwrap() >= 46, "{network:?}");
        }
    }

    #[test]
    fn values_that_no_scenario_allows_are_refused_by_name() {
        let refusal = |change: &str| draw("all", &[change], 4).unwrap_err().to_string();
        for (change, expected) in [
            ("errors=awful", "errors=awful"),
            ("workload=lazy", "workload=lazy"),
            ("buffer=10", "buffer=10"),
            ("payload=5000", "5000"),
            ("direction=sideways", "direction=sideways: is not a valid direction"),
        ] {
            assert!(refusal(change).contains(expected), "{}", refusal(change));
        }
    }
}
