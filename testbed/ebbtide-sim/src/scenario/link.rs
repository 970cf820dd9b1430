//! `[[link]]`: links between the devices and the bottleneck, in a row or a tree.

use crate::keys::{Check, FASTEST, Fault, LONGEST, keys, require};
use crate::net::Direction;

use super::limits::{BOTTLENECK, LONGEST_SPAN};
use super::nearest::did_you_mean;
use super::units::{Buffer, Rate, Time, TimeRange};
use super::{Change, LinkSpec, QueueSpec, Scenario, link_schedule, queue};
use serde::{Deserialize, Serialize};

keys! {
    /// A link that packets pass on their way to the bottleneck and back, the same in both directions
    /// apart from `down_rate`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct LinkTable name {
        /// Its name, by which classes and other links refer to it.
        pub name: String,
        /// The link that follows it on the way to the server.
        #[serde(default = "bottleneck")]
        pub to: String,
        /// Its rate.
        pub rate: Rate where ..=FASTEST,
        /// Its rate towards the devices, if that is another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub down_rate: Option<Rate> where ..=FASTEST,
        /// Its one-way propagation delay, after the rate. If a range is given, the delay is drawn for
        /// each packet.
        #[serde(default)]
        pub delay: TimeRange where ..=LONGEST_SPAN,
        /// Bytes that may wait before it in each direction, without the packet in transmission.
        pub buffer: Buffer,
        /// The share of packets that it loses, each independently: 0 to 1.
        #[serde(default)]
        pub loss: f64 where 0.0..=1.0,
        /// Its queue discipline in both directions; without it, one queue with tail drop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub queue: Option<QueueSpec>,
        /// The changes of its rates and its delay over time, in both directions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub schedule: Vec<Change>,
        /// The time after which the schedule begins anew; 0: never.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub schedule_period: Time where ..=LONGEST,
    }
}

fn bottleneck() -> String {
    BOTTLENECK.into()
}

impl LinkTable {
    /// One direction.
    pub fn towards(&self, direction: Direction) -> LinkSpec {
        LinkSpec {
            rate: direction.select(self.rate, self.down_rate.unwrap_or(self.rate)),
            delay: self.delay,
            buffer: self.buffer,
            queue: self.queue,
            schedule: self.schedule.clone(),
            schedule_period: self.schedule_period,
            ..LinkSpec::default()
        }
    }
}

impl Scenario {
    /// The links that packets pass from a place to the bottleneck, without the latter, as indices
    /// into `link`, the one nearest to the devices first. A place is a link's name or `None` for
    /// the bottleneck. Ends at a circle or at an unknown name, which are refused.
    pub fn route(&self, from: Option<&str>) -> Vec<usize> {
        let mut route = Vec::new();
        let mut place = from;
        while let Some(index) = self.link.iter().position(|link| Some(link.name.as_str()) == place)
            && !route.contains(&index)
        {
            route.push(index);
            place = Some(&self.link[index].to);
        }
        route
    }

    /// Checks a reference to a link under `key`.
    pub(super) fn check_place(&self, key: &str, place: Option<&str>) -> Check {
        let Some(place) = place.filter(|place| *place != BOTTLENECK) else { return Ok(()) };
        let names: Vec<&str> =
            self.link.iter().map(|link| link.name.as_str()).chain([BOTTLENECK]).collect();
        let message = format!(
            "there is no [[link]] with the name '{place}'; there are {}{}",
            names.join(", "),
            did_you_mean(place, names.iter().copied())
        );
        require(names.contains(&place), key, &message)
    }
}

/// Checks links that parse but are impossible, and the topology that they form.
pub(super) fn check(s: &Scenario) -> Check {
    s.check_place("clients.link", s.clients.link.as_deref())?;
    s.check_place("network.background.link", s.network.background.link.as_deref())?;
    for class in &s.class {
        s.check_place(&format!("class.{}.link", class.name), class.link.as_deref())?;
    }
    if s.link.is_empty() {
        return Ok(());
    }
    let n = &s.network;
    let message = "is for networks without [network.wifi], [network.lora] and [network.nb_iot]";
    let has_cell = n.wifi().is_some() || n.lora().is_some() || n.nb_iot().is_some();
    require(!has_cell, "link", message)?;
    let message =
        "needs the wired side of the border router, [network.up] and [network.down], to lead to";
    require(n.mesh().is_none() || !n.up.is_missing(), "link", message)?;
    require(s.link.len() <= 1000, "link", "must be at most 1000 links")?;
    for (index, link) in s.link.iter().enumerate() {
        super::class::name("link.name", &link.name)?;
        let key = |key: &str| format!("link.{}.{key}", link.name);
        let is_new = s.link[..index].iter().all(|other| other.name != link.name);
        let is_new = is_new && link.name != BOTTLENECK;
        let message = "is the name of another link, or of network.up and network.down (bottleneck)";
        require(is_new, &key("name"), message)?;
        s.check_place(&key("to"), Some(&link.to))?;
        one(s, link, &key)?;
    }
    for link in &s.link {
        circle(s, &link.name)?;
    }
    let views = s.classes();
    let flows = Some(&s.network.background).filter(|background| background.flows > 0);
    let places = views.iter().map(|view| view.scenario.clients.link.as_deref());
    let places = places.chain(flows.map(|background| background.link.as_deref()));
    let cells = s.device_move.iter().map(|moved| Some(moved.to.as_str()));
    let places = places.chain(cells);
    let used: Vec<usize> = places.flat_map(|place| s.route(place)).collect();
    for (index, link) in s.link.iter().enumerate() {
        let message = "nothing is attached to this link or behind it: name it as `link` of a class or \
                       of [clients], or as `to` of a [[device_move]], or remove it";
        require(used.contains(&index), &format!("link.{}", link.name), message)?;
    }
    Ok(())
}

/// Follows the links from one of them to the bottleneck.
fn circle(s: &Scenario, from: &str) -> Check {
    let names: Vec<&str> =
        s.route(Some(from)).into_iter().map(|index| s.link[index].name.as_str()).collect();
    let last = s.link.iter().find(|link| Some(&link.name.as_str()) == names.last());
    let ends = last.is_none_or(|link| link.to == BOTTLENECK);
    let next = last.map_or("", |link| link.to.as_str());
    let message = format!(
        "leads in a circle: {} and again {next}; one of them must lead to '{BOTTLENECK}'",
        names.join(", ")
    );
    require(ends, &format!("link.{from}.to"), &message)
}

fn one(s: &Scenario, link: &LinkTable, key: &dyn Fn(&str) -> String) -> Check {
    let least = u64::from(s.network.header) + 4;
    require(
        link.buffer.0.is_none_or(|bytes| bytes >= least),
        &key("buffer"),
        "must hold at least one packet (network.header plus 4 bytes), or be \"infinite\"",
    )?;
    // The checks of the bottleneck, under this link's name.
    let own = |fault: Fault| {
        let key = fault.key.replacen("network.up", &format!("link.{}", link.name), 1);
        Fault { key, ..fault }
    };
    let spec = link.towards(Direction::Up);
    queue::check("up", spec.queue).map_err(own)?;
    link_schedule::check("up", &spec).map_err(own)
}
