//! Checks values that parse but are impossible. Each error names its key and the valid range.

use super::limits::MAX_CLIENTS;
use super::network::NetworkKeys;
use super::workload_kinds::WorkloadKeys;
use super::{Errors, Scenario};
use crate::keys::{Check, Fault, KeyEntry, KeyRange, LONGEST, require};

/// A scenario as its file has it.
pub(super) type ScenarioFile = Scenario<NetworkKeys, WorkloadKeys>;

impl ScenarioFile {
    /// Reads the tables; fails where keys contradict each other or are impossible.
    pub(super) fn read(self) -> Result<Scenario, Fault> {
        let ranges =
            |(key, _, entry): (&str, &str, &dyn KeyEntry)| entry.check(key, &KeyRange::ANY);
        self.entries().into_iter().try_for_each(ranges)?;
        let scenario = Scenario {
            network: self.network.read()?,
            workload: self.workload.read()?,
            name: self.name,
            title: self.title,
            description: self.description,
            source: self.source,
            keys: self.keys,
            clients: self.clients,
            class: self.class,
            link: self.link,
            cross: self.cross,
            power_cut: self.power_cut,
            cell_outage: self.cell_outage,
            device_move: self.device_move,
            phase: self.phase,
            server: self.server,
            security: self.security,
            require: self.require,
            coap: self.coap,
            control: self.control,
            errors: self.errors,
            run: self.run,
            custom: self.custom,
        };
        check(&scenario)?;
        Ok(scenario)
    }

    /// The entries of the file: key, meaning, and value or table.
    pub(super) fn entries(&self) -> [(&str, &str, &dyn KeyEntry); 22] {
        [
            ("name", "Name of the scenario; part of the identity of results.", &self.name),
            ("title", "Headline of the report.", &self.title),
            (
                "description",
                "The network and the purpose, for the report and lists.",
                &self.description,
            ),
            ("source", "The origin of its numbers, for the report and lists.", &self.source),
            ("keys", "Short names for `--set`: each stands for a list of dotted keys.", &self.keys),
            ("network", "", &self.network),
            ("clients", "", &self.clients),
            ("class", "", &self.class),
            ("link", "", &self.link),
            ("cross", "", &self.cross),
            ("power_cut", "", &self.power_cut),
            ("cell_outage", "", &self.cell_outage),
            ("device_move", "", &self.device_move),
            ("phase", "", &self.phase),
            ("server", "", &self.server),
            ("security", "", &self.security),
            ("workload", "", &self.workload),
            ("require", "", &self.require),
            ("coap", "", &self.coap),
            (
                "control",
                "A table of settings for each control, as `--cc NAME:KEY=VALUE` takes them.",
                &self.control,
            ),
            ("errors", "A table with a kind for each profile of link errors.", &self.errors),
            ("run", "", &self.run),
        ]
    }
}

fn check(s: &Scenario) -> Check {
    require(!s.name.is_empty(), "name", "must not be empty")?;
    s.read_classes()?;
    if s.network.mesh().is_some() || s.workload.is_mesh() {
        super::low_power::check(s)?;
    }
    let n = s.client_count();
    let has_some = !s.class.is_empty() || (1..=MAX_CLIENTS).contains(&n.into());
    require(has_some, "clients.count", "must be from 1 to 1000000")?;
    network(s)?;
    let (mtu, background) = (s.network.mtu, &s.network.background);
    if let Some(wifi) = s.network.wifi() {
        wifi.check(s.clients.count.saturating_add(background.stations()), mtu)?;
    }
    if let Some(lora) = s.network.lora() {
        lora.check(mtu, background.flows)?;
    }
    if let Some(cell) = s.network.nb_iot() {
        cell.check(background.flows)?;
    }
    super::background::check(s)?;
    super::traffic::check(s)?;
    super::security::check(s)?;
    super::class::check(s)?;
    super::link::check(s)?;
    super::cross::check(s)?;
    super::requirement_checks::check(s)?;
    super::events::check(s)?;
    super::phase::check(s)?;
    for (name, errors) in &s.errors {
        check_errors(name, errors)?;
    }
    for name in s.control.keys() {
        s.parse_control(name)
            .map_err(|error| Fault::new(format!("control.{name}"), error.reason()))?;
    }
    Ok(())
}

fn network(s: &Scenario) -> Check {
    let n = &s.network;
    // A packet holds at least the four bytes of the CoAP header.
    require(
        n.mtu > n.header + 4 && n.mtu <= 65_535,
        "network.mtu",
        "must be above network.header plus the 4 bytes of a CoAP header, and at most 65535",
    )?;
    for (name, link) in [("up", &n.up), ("down", &n.down)] {
        if s.network.mesh().is_none() || !link.is_missing() {
            require(!link.is_missing(), &format!("network.{name}"), "is missing")?;
        }
        super::drops::check(s, name, &link.drops)?;
        super::queue::check(name, link.queue)?;
        super::link_schedule::check(name, link)?;
        let key = |key: &str| format!("network.{name}.{key}");
        if let Some(bytes) = link.buffer.0 {
            require(
                bytes >= u64::from(n.header) + 4,
                &key("buffer"),
                "must hold at least one packet (network.header plus 4 bytes), or be \"infinite\"",
            )?;
        }
    }
    if n.errors != "none" && !s.errors.contains_key(&n.errors) {
        let known: Vec<&str> =
            std::iter::once("none").chain(s.errors.keys().map(String::as_str)).collect();
        let message = format!("there is no [errors.{}]; there are {}", n.errors, known.join(", "));
        return Err(Fault::new("network.errors", message));
    }
    Ok(())
}

fn check_errors(name: &str, errors: &Errors) -> Check {
    let key = |key: &str| format!("errors.{name}.{key}");
    let share = |value: f64| (0.0..=1.0).contains(&value);
    let (good, bad, average) = match *errors {
        Errors::Independent { average } => {
            return require(share(average), &key("average"), "must be from 0 to 1");
        }
        Errors::PerPacket { good, bad, average, mean_bad_packets } => {
            require(
                (1.0..=1e9).contains(&mean_bad_packets),
                &key("mean_bad_packets"),
                "must be from 1 to 1000000000",
            )?;
            (good, bad, average)
        }
        Errors::TimeDriven { good, bad, average, mean_bad } => {
            let stay = (1..=LONGEST.0).contains(&mean_bad.0);
            require(stay, &key("mean_bad"), "must be above zero and at most 36525 days")?;
            (good, bad, average)
        }
    };
    require(share(good), &key("good"), "must be from 0 to 1")?;
    require(share(bad) && good < bad, &key("bad"), "must be above good and at most 1")?;
    let between = good < average && average < bad;
    require(between, &key("average"), "must lie between good and bad")?;
    if let Errors::PerPacket { mean_bad_packets, .. } = *errors {
        let share = (average - good) / (bad - good);
        let most = mean_bad_packets * (1.0 - share) / share;
        require(
            most >= 1.0,
            &key("mean_bad_packets"),
            "is too short for this average: the good state would last less than a packet",
        )?;
    }
    Ok(())
}
