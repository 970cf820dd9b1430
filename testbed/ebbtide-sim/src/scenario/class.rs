//! `[[class]]`: devices of several kinds in one network.

use super::limits::{LONGEST_SPAN, MAX_CLIENTS};
use super::request_log::RequestLog;
use super::units::{Buffer, Rate, Time};
use super::workload_kinds::ClassWorkload;
use super::{Activity, Requirements, Scenario, WorkloadKind};
use crate::keys::{Check, FASTEST, Fault, KeyEntry, KeyRange, LONGEST, keys, require, texts};
use serde::{Deserialize, Serialize};
use std::ops::Range;

keys! {
    /// Devices of one kind. Omitted keys have the scenario's values.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Class name {
        /// Its name in results, reports and `--set class.NAME.KEY=VALUE`.
        pub name: String,
        /// The number of its devices.
        pub count: u32 where 1..=MAX_CLIENTS => "devices",
        /// The control of its devices, as `--cc` takes one; that of `--cc` if it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub control: Option<String>,
        /// The instant at which its devices begin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<Time> where ..=LONGEST,
        /// Its devices start at an instant drawn uniformly from this window.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start_window: Option<Time> where ..=LONGEST,
        /// The `[[link]]` at which its devices are; `bottleneck` for none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub link: Option<String>,
        /// The own link of each device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub access: Option<Access>,
        /// The activity of its devices.
        #[serde(default, skip_serializing_if = "ClassWorkload::is_empty")]
        pub(super) workload: ClassWorkload,
        /// The requirements on the service of its devices.
        #[serde(default, skip_serializing_if = "Requirements::is_none")]
        pub require: Requirements,
    }
}

keys! {
    /// A device's own link to the network, the same in both directions.
    #[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Access {
        /// Its rate; without one, packets take no time to transmit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub rate: Option<Rate> where ..=FASTEST,
        /// Its one-way propagation delay.
        #[serde(default)]
        pub delay: Time where ..=LONGEST_SPAN,
        /// The share of packets that it loses, each independently: 0 to 1.
        #[serde(default)]
        pub loss: f64 where 0.0..=1.0,
        /// Bytes that may wait before it in each direction.
        #[serde(default = "unbounded")]
        pub buffer: Buffer,
    }
}

const fn unbounded() -> Buffer {
    Buffer(None)
}

impl Class {
    /// A fault of its workload is the class's if the class has the key.
    fn blamed(&self, fault: Fault) -> Fault {
        match fault.key.strip_prefix("workload.").filter(|own| self.workload.sets(own)) {
            None => fault,
            Some(own) => Fault { key: format!("class.{}.workload.{own}", self.name), ..fault },
        }
    }
}

/// A class with the scenario as it is for its devices.
#[derive(Clone, Debug)]
pub struct ClassView {
    /// Its name; empty in a scenario without classes, which is one class.
    pub name: String,
    /// The number of its first device; the others follow.
    pub first: u32,
    /// Its own control.
    pub control: Option<String>,
    /// The scenario with the class's own `clients` and `workload`, and without classes.
    pub scenario: Scenario,
    /// The keys of `[workload]` that it sets itself.
    own: ClassWorkload,
}

impl ClassView {
    /// Whether it sets this key of `[workload]` itself.
    pub(crate) fn sets(&self, key: &str) -> bool {
        self.own.sets(key)
    }

    /// The numbers of its devices.
    pub const fn clients(&self) -> Range<u32> {
        self.first..self.first.saturating_add(self.scenario.clients.count)
    }
}

impl Scenario {
    /// The classes in the order of their devices' numbers. A scenario without `[[class]]` is one
    /// class without a name.
    pub fn classes(&self) -> Vec<ClassView> {
        // A scenario has been read with its classes.
        self.read_classes().unwrap_or_default()
    }

    /// Reads the classes.
    pub(super) fn read_classes(&self) -> Result<Vec<ClassView>, Fault> {
        if self.class.is_empty() {
            let (name, scenario) = (String::new(), self.clone());
            let own = ClassWorkload::default();
            return Ok(vec![ClassView { name, first: 0, control: None, scenario, own }]);
        }
        let mut first = 0u32;
        let plain = Self { class: Vec::new(), ..self.clone() };
        let view = |class: &Class| {
            let mut scenario = plain.clone();
            let clients = &mut scenario.clients;
            clients.count = class.count;
            clients.start = class.start.unwrap_or(clients.start);
            clients.start_window = class.start_window.unwrap_or(clients.start_window);
            clients.access = class.access.or(clients.access);
            if class.link.is_some() {
                clients.link.clone_from(&class.link);
            }
            let mut keys = class.workload.over(self.workload.keys());
            if keys.kind != WorkloadKind::Log && !class.workload.sets("log") {
                // The scenario's log is for its classes of that kind.
                keys.log = RequestLog::default();
            }
            let in_range = keys.check("workload", &KeyRange::ANY);
            let workload = in_range.and_then(|()| keys.read());
            scenario.require = class.require;
            scenario.workload = workload.map_err(|fault| class.blamed(fault))?;
            let (name, control) = (class.name.clone(), class.control.clone());
            let own = class.workload.clone();
            let view = ClassView { name, first, control, scenario, own };
            first = view.clients().end;
            Ok(view)
        };
        self.class.iter().map(view).collect()
    }
}

pub(super) fn check(s: &Scenario) -> Check {
    check_access(s, "clients", s.clients.access.as_ref())?;
    if s.class.is_empty() {
        return Ok(());
    }
    for (index, class) in s.class.iter().enumerate() {
        name("class.name", &class.name)?;
        let is_new = s.class[..index].iter().all(|other| other.name != class.name);
        let key = format!("class.{}.name", class.name);
        require(is_new, &key, "is the name of an earlier class; each needs one of its own")?;
    }
    let sum: u64 = s.class.iter().map(|class| u64::from(class.count)).sum();
    require(
        sum <= MAX_CLIENTS,
        "class",
        "must have at most 1000000 devices in all classes together",
    )?;
    require(
        s.clients.count == 0 || u64::from(s.clients.count) == sum,
        "clients.count",
        &format!("is the number of devices of all classes, {sum}: leave it out"),
    )?;
    s.class.iter().zip(s.read_classes()?).try_for_each(|(class, view)| one(s, class, &view))
}

/// Checks a name that can stand in a dotted key.
pub(super) fn name(key: &str, name: &str) -> Check {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_name = (1..=40).contains(&name.len()) && name.chars().all(plain);
    let message = format!("'{name}' must be 1 to 40 letters, digits, '-' and '_'");
    require(is_name, key, &message)
}

fn one(s: &Scenario, class: &Class, view: &ClassView) -> Check {
    let key = |key: &str| format!("class.{}.{key}", class.name);
    let workload = &view.scenario.workload;
    require(
        workload.kind() != WorkloadKind::Mixed,
        &key("workload.kind"),
        "must be a workload of one class: instead of mixed, give classes a control each",
    )?;
    require(
        !workload.is_mesh() || s.network.mesh().is_some(),
        &key("workload.kind"),
        "is a workload of low-power networks: the scenario needs [network.mesh]",
    )?;
    require(
        class.workload.mesh.is_none(),
        &key("workload.mesh"),
        "is the same for all classes: write [workload.mesh]",
    )?;
    require(
        !matches!(workload.activity(), Activity::Cloud(_)),
        &key("workload.kind"),
        "is a workload of clients in the Internet, which are no class of devices: use requester = \
         \"server\" for requests to the devices of a class",
    )?;
    super::traffic::check(&view.scenario).map_err(|fault| class.blamed(fault))?;
    check_access(s, &format!("class.{}", class.name), class.access.as_ref())?;
    if let Some(control) = &class.control {
        let found = view.scenario.control_config(control);
        found.map_err(|error| Fault::new(key("control"), error.reason()))?;
    }
    Ok(())
}

/// Checks a device's own link, which stands in the table `place`.
fn check_access(s: &Scenario, place: &str, access: Option<&Access>) -> Check {
    let Some(access) = access else { return Ok(()) };
    let key = |key: &str| format!("{place}.access.{key}");
    let message = "is for networks without a radio of [network], which is the devices' access";
    let is_wired = !s.network.has_radio();
    require(is_wired, &format!("{place}.access"), message)?;
    let least = u64::from(s.network.header) + 4;
    require(
        access.buffer.0.is_none_or(|bytes| bytes >= least),
        &key("buffer"),
        "must hold at least one packet (network.header plus 4 bytes), or be \"infinite\"",
    )
}

texts! {
    ClassWorkload => "table".to_owned(),
}
