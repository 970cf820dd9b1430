//! The classes of a replication's devices: which device belongs to which, and what differs between them.

use crate::host::{
    Answerer, ClientSetup, ConstantServer, Model, ObservedHost, device, endpoint_config,
};
use crate::random::{Streams, uniform};
use crate::record::Recorder;
use crate::scenario::Transport;
use crate::scenario::{ClassView, Control, Scenario};
use ebbtide_core::cc::{Algorithm, ControlConfig};

/// When the devices of a class start whose requests do not go by the clock, ns.
pub(super) fn starts(class: &ClassView, streams: &Streams) -> Vec<u64> {
    let scenario = &class.scenario;
    let window = scenario.clients.start_window.0;
    let start = |client: u32| {
        let offset = match window {
            0 => 0,
            _ => uniform(&mut streams.stream(&format!("client/{client}/start")), 0, window),
        };
        scenario.clients.start.0.saturating_add(scenario.start_of(client)).saturating_add(offset)
    };
    class.clients().map(start).collect()
}

/// The classes, in the order of their devices' numbers.
pub(super) struct Roster {
    pub(super) classes: Vec<ClassView>,
    /// For each class, the controls that its devices take in turn.
    controls: Vec<Vec<Control>>,
    /// The number of controls of the run.
    groups: usize,
    /// For each class, whether the server begins the exchanges; empty if it does so for none.
    from_server: Vec<bool>,
    /// The transport of all messages, if they have the same.
    transport: Option<Transport>,
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
        let is_named = !scenario.class.is_empty();
        let is_from_server = |class: &ClassView| class.scenario.workload.is_from_server();
        let from_server: Vec<bool> = match classes.iter().any(is_from_server) {
            true => classes.iter().map(is_from_server).collect(),
            false => Vec::new(),
        };
        let controls: Vec<Vec<Control>> = classes.iter().map(of).collect();
        let mut transports = controls.iter().flatten().map(Control::transport);
        let first = transports.next();
        let transport = first.filter(|first| transports.all(|other| other == *first));
        Self { from_server, transport, controls, groups: shared.len(), is_named, classes }
    }

    /// The class of a client.
    #[inline]
    pub(super) fn class_of(&self, client: u32) -> usize {
        if self.classes.len() == 1 {
            return 0;
        }
        self.classes.partition_point(|class| class.first <= client).saturating_sub(1)
    }

    /// Whether the server begins the exchanges with a client.
    #[inline]
    pub(super) fn is_from_server(&self, client: u32) -> bool {
        !self.from_server.is_empty() && self.from_server[self.class_of(client)]
    }

    /// The transport of a client's messages.
    #[inline]
    pub(super) fn transport(&self, client: u32) -> Transport {
        if let Some(transport) = self.transport {
            return transport;
        }
        let controls = &self.controls[self.class_of(client)];
        controls.get(client as usize % controls.len()).map(Control::transport).unwrap_or_default()
    }

    /// Whether the devices of a class observe a resource of the server.
    pub(super) fn observes(&self, class: usize) -> bool {
        self.classes[class].scenario.workload.is_notifying()
    }

    /// The endpoint of the devices that observe, which have registered with those that notify them.
    pub(super) fn observers<R: Recorder>(
        &self,
        clients: &mut [Box<dyn ObservedHost<R>>],
        streams: &Streams,
    ) -> ConstantServer {
        let which = (0..self.classes.len()).filter(|class| self.observes(*class));
        let all: Vec<u32> = which.flat_map(|class| self.classes[class].clients()).collect();
        let plain = ControlConfig::new(Algorithm::Default);
        // There is a class.
        let mut config = endpoint_config(&self.classes[0].scenario, plain);
        config.limits.peers += all.len();
        config.limits.exchanges += all.len();
        let mut observers = ConstantServer::new(config, None, "observers", streams);
        for client in all {
            if let Some(client) = clients.get_mut(client as usize) {
                client.observe_before(&mut observers);
            }
        }
        observers
    }

    /// For each class that downloads, the server with the body.
    pub(super) fn downloads(&self, streams: &Streams) -> Vec<Option<Answerer>> {
        let server = |class: &ClassView| {
            let scenario = &class.scenario;
            let stream = |what: &str| streams.stream(&format!("download/{}/{what}", class.name));
            scenario.workload.download().map(|body| {
                let plain = ControlConfig::new(Algorithm::Default);
                let config = endpoint_config(scenario, plain);
                Answerer::new(config, [body], stream("server"), stream("session"))
            })
        };
        self.classes.iter().map(server).collect()
    }

    /// Creates all devices.
    pub(super) fn devices<R: Recorder>(&self, streams: &Streams) -> Vec<Box<dyn ObservedHost<R>>> {
        let count = self.classes.iter().map(|class| class.clients().len()).sum();
        let mut devices = Vec::with_capacity(count);
        for (index, (class, controls)) in self.classes.iter().zip(&self.controls).enumerate() {
            let model = |control: &Control| Model::new(&class.scenario, control.clone());
            let models: Vec<Model> = controls.iter().map(model).collect();
            for number in class.clients() {
                let place = number as usize % models.len();
                let group = if class.control.is_some() { self.groups + index } else { place };
                // At most 255 controls are named on one command line.
                let group = u8::try_from(group).unwrap_or(u8::MAX);
                let scenario = &class.scenario;
                let setup = ClientSetup { number, group, scenario, streams };
                devices.push(device(&models[place], setup));
            }
        }
        devices
    }
}
