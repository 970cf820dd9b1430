//! `[[class]]`: devices of several kinds in one network.

use super::limits::{Check, LONGEST, MAX_CLIENTS, range};
use super::units::{Buffer, Rate, Time};
use super::{FlowWorkload, Reliability, Requester, Scenario, Workload, WorkloadKind, traffic};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Devices of one kind. Omitted keys have the scenario's values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its name in results, reports and `--set class.NAME.KEY=VALUE`.
    pub name: String,
    /// The number of its devices.
    pub count: u32,
    /// The control of its devices, as `--cc` takes one; that of `--cc` if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// Its devices start at an instant drawn uniformly from this window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_window: Option<Time>,
    /// The `[[link]]` at which its devices are; `bottleneck` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The own link of each device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// The activity of its devices.
    #[serde(default, skip_serializing_if = "ClassWorkload::is_empty")]
    pub workload: ClassWorkload,
}

/// A device's own link to the network, the same in both directions.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Its rate; without one, packets take no time to transmit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Its one-way propagation delay.
    #[serde(default)]
    pub delay: Time,
    /// The share of packets that it loses, each independently: 0 to 1.
    #[serde(default)]
    pub loss: f64,
    /// Bytes that may wait before it in each direction.
    #[serde(default = "unbounded")]
    pub buffer: Buffer,
}

const fn unbounded() -> Buffer {
    Buffer(None)
}

/// Declares the keys of `[workload]` that a class can have of its own.
macro_rules! class_workload {
    ($($(#[$doc:meta])* $key:ident: $type:ty,)*) => {
        /// The keys of `[workload]` that differ from the scenario's.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct ClassWorkload {
            $($(#[$doc])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $key: Option<$type>,)*
        }

        impl ClassWorkload {
            /// The workload of the class.
            fn over(&self, scenario: &Workload) -> Workload {
                Workload {
                    $($key: self.$key.clone().unwrap_or_else(|| scenario.$key.clone()),)*
                    mesh: scenario.mesh.clone(),
                }
            }

            /// Whether the class sets this key itself.
            fn sets(&self, key: &str) -> bool {
                let key = key.split('.').next().unwrap_or_default();
                [$((stringify!($key), self.$key.is_some()),)*].contains(&(key, true))
            }
        }
    };
}

class_workload! {
    /// The times at which requests are made.
    kind: WorkloadKind,
    /// Requests per device.
    exchanges: u32,
    /// `random`: requests in a batch.
    batch: [u32; 2],
    /// `periodic`: the time between two requests of a device.
    period: Time,
    /// `periodic`: how much later than its time a request is made at most.
    jitter: Time,
    /// `synchronised`: the time over which the first requests are spread.
    spread: Time,
    /// `bursts`: requests at once.
    burst: u32,
    /// Whether messages are acknowledged and retransmitted.
    reliability: Reliability,
    /// The side that sends the requests.
    requester: Requester,
    /// The time after a request within which a response is useful.
    deadline: Time,
    /// The requested path.
    path: String,
    /// Bytes of payload in a response.
    response_payload: u32,
    /// Bytes of payload in a request.
    request_payload: u32,
    /// The settings of `stream` and `transfer`, all of them.
    flow: FlowWorkload,
}

impl ClassWorkload {
    fn is_empty(&self) -> bool {
        *self == Self::default()
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
    pub(super) fn sets(&self, key: &str) -> bool {
        self.own.sets(key)
    }

    /// The numbers of its devices.
    #[must_use]
    pub const fn clients(&self) -> Range<u32> {
        self.first..self.first.saturating_add(self.scenario.clients.count)
    }
}

impl Scenario {
    /// The classes in the order of their devices' numbers. A scenario without `[[class]]` is one
    /// class without a name.
    #[must_use]
    pub fn classes(&self) -> Vec<ClassView> {
        if self.class.is_empty() {
            let (name, scenario) = (String::new(), self.clone());
            let own = ClassWorkload::default();
            return vec![ClassView { name, first: 0, control: None, scenario, own }];
        }
        let mut first = 0u32;
        let plain = Self { class: Vec::new(), ..self.clone() };
        let view = |class: &Class| {
            let mut scenario = plain.clone();
            let clients = &mut scenario.clients;
            clients.count = class.count;
            clients.start_window = class.start_window.unwrap_or(clients.start_window);
            clients.access = class.access.or(clients.access);
            if class.link.is_some() {
                clients.link.clone_from(&class.link);
            }
            scenario.workload = class.workload.over(&self.workload);
            let (name, control) = (class.name.clone(), class.control.clone());
            let own = class.workload.clone();
            let view = ClassView { name, first, control, scenario, own };
            first = view.clients().end;
            view
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
        range(is_new, &key, "is the name of an earlier class; each needs one of its own")?;
    }
    let sum: u64 = s.class.iter().map(|class| u64::from(class.count)).sum();
    range(
        sum <= u64::from(MAX_CLIENTS),
        "class",
        "must have at most 1000000 devices in all classes together",
    )?;
    range(
        s.clients.count == 0 || u64::from(s.clients.count) == sum,
        "clients.count",
        &format!("is the number of devices of all classes, {sum}: leave it out"),
    )?;
    s.class.iter().zip(s.classes()).try_for_each(|(class, view)| one(s, class, &view))
}

/// Checks a name that can stand in a dotted key.
pub(super) fn name(key: &str, name: &str) -> Check {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_name = (1..=40).contains(&name.len()) && name.chars().all(plain);
    let message = format!("'{name}' must be 1 to 40 letters, digits, '-' and '_'");
    range(is_name, key, &message)
}

fn one(s: &Scenario, class: &Class, view: &ClassView) -> Check {
    let key = |key: &str| format!("class.{}.{key}", class.name);
    range(
        (1..=MAX_CLIENTS).contains(&class.count),
        &key("count"),
        "must be from 1 to 1000000: a class without devices has no traffic",
    )?;
    let window = class.start_window.unwrap_or_default();
    range(window <= LONGEST, &key("start_window"), "must be at most 36525 days")?;
    let kind = view.scenario.workload.kind;
    range(
        kind != WorkloadKind::Mixed,
        &key("workload.kind"),
        "must be a workload of one class: instead of mixed, give classes a control each",
    )?;
    range(
        !kind.is_mesh() || s.network.mesh.is_some(),
        &key("workload.kind"),
        "is a workload of low-power networks: the scenario needs [network.mesh]",
    )?;
    range(
        !kind.is_cloud(),
        &key("workload.kind"),
        "is a workload of clients in the Internet, which are no class of devices: use requester = \
         \"server\" for requests to the devices of a class",
    )?;
    // What is wrong is the class's if the class says it.
    let whose = |(wrong, message): (String, String)| {
        let own = wrong.strip_prefix("workload.").filter(|own| class.workload.sets(own));
        (own.map_or(wrong.clone(), |own| key(&format!("workload.{own}"))), message)
    };
    traffic::workload(&view.scenario).map_err(whose)?;
    super::flow::check(&view.scenario).map_err(whose)?;
    super::traffic::check(&view.scenario).map_err(whose)?;
    check_access(s, &format!("class.{}", class.name), class.access.as_ref())?;
    if let Some(control) = &class.control {
        let found = view.scenario.control_config(control);
        found.map_err(|error| (key("control"), error.reason().to_owned()))?;
    }
    Ok(())
}

/// Checks a device's own link, which stands in the table `place`.
fn check_access(s: &Scenario, place: &str, access: Option<&Access>) -> Check {
    let Some(access) = access else { return Ok(()) };
    let key = |key: &str| format!("{place}.access.{key}");
    let message = "is for networks without a radio of [network], which is the devices' access";
    let is_wired = !s.network.has_radio();
    range(is_wired, &format!("{place}.access"), message)?;
    let rate = access.rate.is_none_or(|rate| rate.0 <= 1_000_000_000_000);
    range(rate, &key("rate"), "must be from 1 bit/s to 1000 Gbit/s")?;
    range(access.delay <= LONGEST, &key("delay"), "must be at most 36525 days")?;
    range((0.0..=1.0).contains(&access.loss), &key("loss"), "must be from 0 to 1")?;
    let least = u64::from(s.network.header) + 4;
    range(
        access.buffer.0.is_none_or(|bytes| bytes >= least),
        &key("buffer"),
        "must hold at least one packet (network.header plus 4 bytes), or be \"infinite\"",
    )
}
