//! One network: the drawn values, as settings of a scenario.

use super::ranges::{Choice, PROPERTIES, Property, Ranges};
use super::sobol::Sobol;
use crate::scenario::units::{Rate, Time};
use crate::scenario::{Override, Scenario, ScenarioError, Source};

/// A network of a map.
#[derive(Clone, Debug)]
pub struct Network {
    /// Its number in the draw, from 0.
    pub number: u32,
    /// The settings that derive it from the map's scenario, in order.
    pub settings: Vec<(String, String)>,
    /// The scenario with these settings.
    pub scenario: Scenario,
    /// The time that the bottleneck link needs for one exchange, s.
    pub exchange_s: f64,
    /// The duration of an exchange on the idle path, s.
    pub idle_s: f64,
    /// The bandwidth-delay product of the bottleneck, with the idle round trip, bytes.
    pub bdp_bytes: f64,
}

impl Network {
    /// The load that the clients offer, divided by the capacity of the bottleneck: one exchange of
    /// each client in the time that an exchange takes on an idle path, link errors and the
    /// timeouts of RFC 7252 included.
    #[must_use]
    pub fn load(&self) -> f64 {
        let carried = 1.0 - self.scenario.average_loss();
        let lost = 1.0 - carried * carried;
        let mut waited = 0.0;
        let (mut chance, mut timeout) = (lost, 2.5);
        for _ in 0..self.scenario.coap.max_retransmit.min(20) {
            waited += chance * timeout;
            chance *= lost;
            timeout *= 2.0;
        }
        f64::from(self.scenario.clients.count) * self.exchange_s / (self.idle_s + waited)
    }

    /// The buffer divided by the bandwidth-delay product; `None` without a limit.
    #[must_use]
    pub fn buffer_bdp(&self) -> Option<f64> {
        self.scenario.network.down.buffer.0.map(|bytes| bytes as f64 / self.bdp_bytes)
    }

    /// Whether each client's share of the capacity is at least one exchange a minute.
    #[must_use]
    pub fn has_a_share(&self) -> bool {
        f64::from(self.scenario.clients.count) * self.exchange_s <= 60.0
    }

    /// The networks of a draw.
    ///
    /// # Errors
    ///
    /// Returns an error if a drawn network is not a valid scenario; the message names the invalid
    /// values.
    pub fn draw(
        source: &Source,
        ranges: &Ranges,
        (seed, count): (u64, u32),
        work: u64,
    ) -> Result<Vec<Self>, ScenarioError> {
        let sobol = Sobol::new(seed);
        (0..count).map(|number| Self::one(source, ranges, &sobol, number, work)).collect()
    }

    fn one(
        source: &Source,
        ranges: &Ranges,
        sobol: &Sobol,
        number: u32,
        work: u64,
    ) -> Result<Self, ScenarioError> {
        let point = sobol.point(number);
        let drawn = |property: Property| {
            let place = PROPERTIES.iter().position(|(own, ..)| *own == property).unwrap_or(0);
            pick(ranges.choices(property), point[place])
        };
        let number_of = |property: Property| match drawn(property) {
            DrawnValue::Number(value) => value,
            DrawnValue::Bdp(_) | DrawnValue::Word(_) => 0,
        };
        let word_of = |property: Property| match drawn(property) {
            DrawnValue::Word(word) => word,
            DrawnValue::Number(_) | DrawnValue::Bdp(_) => String::new(),
        };
        let rate = number_of(Property::Rate).max(1);
        let up_rate = significant(rate.saturating_mul(number_of(Property::Uplink)) / 1000).max(1);
        let round_trip = number_of(Property::RoundTrip);
        let clients = number_of(Property::Clients);
        let most = (work / clients.max(1)).max(1);
        let payload = number_of(Property::Payload);
        let is_upload = match word_of(Property::Direction).as_str() {
            "down" => false,
            "up" => true,
            other => {
                let message = "is not a valid direction: there are down and up";
                return Err(ScenarioError::argument(
                    "--range",
                    &format!("direction={other}"),
                    message,
                ));
            }
        };
        // The bytes on the wire of a message with this payload, or without any: header, marker and
        // path.
        let bytes = 28 + 4 + 6 + payload;
        let buffer = match drawn(Property::Buffer) {
            DrawnValue::Word(word) => word,
            DrawnValue::Number(bytes) => bytes.to_string(),
            // At least one packet, since otherwise nothing could wait.
            DrawnValue::Bdp(thousandths) => {
                let bdp = u128::from(rate) * u128::from(round_trip) / 8_000_000_000;
                let wanted = bdp * u128::from(thousandths) / 1000;
                significant(u64::try_from(wanted).unwrap_or(u64::MAX)).max(bytes + 8).to_string()
            }
        };
        let delay = round_trip / 2000 * 1000;
        // Whole microseconds keep the command readable.
        let half = delay / 200_000 * number_of(Property::Variation) * 1000;
        let delay = if half == 0 {
            Time(delay).to_string()
        } else {
            format!("[{}, {}]", Time(delay.saturating_sub(half)), Time(delay + half))
        };
        let server = match number_of(Property::Server) {
            0 => "0 s".to_owned(),
            longest => format!("[0 s, {}]", Time(longest)),
        };
        let payloads = if is_upload { (payload, 0) } else { (0, payload) };
        let settings: Vec<(String, String)> = [
            ("clients", clients.to_string()),
            ("workload", word_of(Property::Workload)),
            ("exchanges", number_of(Property::Exchanges).min(most).to_string()),
            ("workload.request_payload", payloads.0.to_string()),
            ("workload.response_payload", payloads.1.to_string()),
            ("max_retransmit", number_of(Property::MaxRetransmit).to_string()),
            ("errors", word_of(Property::Errors)),
            ("buffer", buffer),
            ("network.up.rate", Rate(up_rate).to_string()),
            ("network.down.rate", Rate(rate).to_string()),
            ("network.up.delay", delay.clone()),
            ("network.down.delay", delay),
            ("network.up.beyond", "0 s".to_owned()),
            ("network.down.beyond", "0 s".to_owned()),
            ("network.mtu", "1280".to_owned()),
            ("server.processing", server),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .to_vec();
        let overrides: Vec<Override> = settings
            .iter()
            .map(|(key, value)| Override { key: key.clone(), value: value.clone() })
            .collect();
        let scenario = source.scenario(&overrides)?;
        let mean = |(low, high): (u64, u64)| (low + high) as f64 / 2e9;
        let wire =
            |payload: u64, rest: u64| (28 + 4 + rest + payload + u64::from(payload > 0)) as f64;
        let up_s = wire(payloads.0, 6) * 8.0 / up_rate as f64;
        let down_s = wire(payloads.1, 1) * 8.0 / rate as f64;
        let idle_s =
            up_s + down_s + round_trip as f64 / 1e9 + mean(scenario.server.processing.ends());
        let bottleneck = if up_s > down_s { up_rate } else { rate };
        Ok(Self {
            number,
            settings,
            scenario,
            exchange_s: up_s.max(down_s),
            idle_s,
            bdp_bytes: bottleneck as f64 * idle_s / 8.0,
        })
    }
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
    use super::*;
    use crate::scenario::load;

    fn draw(preset: &str, changes: &[&str], count: u32) -> Result<Vec<Network>, ScenarioError> {
        let changes: Vec<String> = changes.iter().map(|text| (*text).to_owned()).collect();
        let source = load("nb-iot").unwrap();
        Network::draw(&source, &Ranges::new(preset, &changes)?, (7, count), 6000)
    }

    #[test]
    fn every_preset_makes_networks_within_its_ranges_and_the_bound_on_work() {
        for preset in Ranges::presets() {
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
