//! The classes of a replication's devices: which device belongs to which, and what differs between them.

use super::recorder::Transport;
use crate::host::{Device, Model};
use crate::random::Streams;
use crate::scenario::{ClassView, Control, Scenario};
use ebbtide_core::cc::{Algorithm, ControlConfig};

/// The classes, in the order of their devices' numbers.
pub(super) struct Roster {
    pub(super) classes: Vec<ClassView>,
    /// For each class, the controls that its devices take in turn.
    controls: Vec<Vec<Control>>,
    /// The number of controls of the run.
    groups: usize,
    /// Whether the classes have names: they are then measured one by one.
    pub(super) is_named: bool,
}

impl Roster {
    /// The classes of a scenario whose devices are under these controls, unless a class has its own.
    pub(super) fn new(scenario: &Scenario, controls: &[Control]) -> Self {
        let classes = scenario.classes();
        let shared = match controls {
            [] => vec![Control::Udp(ControlConfig::new(Algorithm::Default))],
            controls => controls.to_vec(),
        };
        let of = |class: &ClassView| {
            let own = class.control.as_ref();
            let own = own.and_then(|text| class.scenario.control_config(text).ok());
            own.map_or_else(|| shared.clone(), |own| vec![own])
        };
        let each = classes.iter().map(of).collect();
        let is_named = !scenario.class.is_empty();
        Self { classes, controls: each, groups: shared.len(), is_named }
    }

    /// The class of a client.
    #[inline]
    pub(super) fn of(&self, client: u32) -> usize {
        if self.classes.len() == 1 {
            return 0;
        }
        self.classes.partition_point(|class| class.first <= client).saturating_sub(1)
    }

    /// The transport of a client's messages.
    #[inline]
    pub(super) fn transport(&self, client: u32) -> Transport {
        let controls = &self.controls[self.of(client)];
        controls.get(client as usize % controls.len()).map(Control::transport).unwrap_or_default()
    }

    /// Creates all devices.
    pub(super) fn devices(&self, streams: &Streams) -> Vec<Device> {
        let mut devices = Vec::new();
        for (index, (class, controls)) in self.classes.iter().zip(&self.controls).enumerate() {
            let model = |control: &Control| Model::new(&class.scenario, control.clone());
            let models: Vec<Model> = controls.iter().map(model).collect();
            for number in class.clients() {
                let place = number as usize % models.len();
                let group = if class.control.is_some() { self.groups + index } else { place };
                // At most 255 controls are named on one command line.
                let group = u8::try_from(group).unwrap_or(u8::MAX);
                let device = Device::new((number, group), &models[place], &class.scenario, streams);
                devices.push(device);
            }
        }
        devices
    }
}
