//! Where the hosts are in a low-power network: on its nodes, or in the Internet behind its root.

use crate::medium::low_power::MeshNetwork;
use crate::random::{Streams, uniform};
use crate::scenario::{Activity, ClassView, Cloud, Scenario};

/// The corner of a grid to which the messages of `monitoring` and `events` go.
const SINK: u32 = 0;

/// The hosts of a replication.
#[derive(Debug)]
pub(super) struct Placement {
    /// Hosts from this number on are in the Internet.
    nodes: u32,
    /// The host of each client, and the servers that it asks in turn.
    clients: Vec<(u32, Box<[u32]>)>,
    /// Requests of a client to each of them.
    each: u32,
}

impl Placement {
    /// The places of all clients and their servers. A study chooses motes that answer where it chooses:
    /// those of `baseline` and of the steady clients of `burst` have a route.
    pub(super) fn new(
        scenario: &Scenario,
        classes: &[ClassView],
        network: &MeshNetwork,
        streams: &Streams,
    ) -> Self {
        let (nodes, root) = (network.topology.nodes(), network.topology.root);
        let mut motes: Vec<u32> = (0..nodes).filter(|node| *node != root).collect();
        let workload = &scenario.workload;
        if !scenario.is_cloud() {
            let server = if scenario.network.up.is_missing() { root } else { nodes };
            return Self { nodes, clients: on_motes(classes, nodes, root, server), each: u32::MAX };
        }
        let has_route = |mote: &u32| network.routes.has(*mote);
        let asked: Vec<Box<[u32]>> = match workload.activity() {
            Activity::Cloud(Cloud::Baseline) => {
                motes.retain(has_route);
                vec![motes.into()]
            }
            Activity::Cloud(Cloud::Burst { steady, .. }) => {
                // Who asks whom is drawn, so that no place in the tree is always the busy one.
                let mut rng = streams.stream("workload/targets");
                for last in (1..motes.len()).rev() {
                    motes.swap(last, uniform(&mut rng, 0, last as u64) as usize);
                }
                motes.sort_by_key(|mote| !has_route(mote));
                let with_route = motes.iter().filter(|mote| has_route(mote)).count();
                let clients = scenario.clients.count as usize;
                let steady = (*steady as usize).min(clients);
                let of_burst = motes.iter().cycle().take(clients).skip(steady);
                let steady = motes.iter().take(with_route).cycle().take(steady);
                steady.chain(of_burst).map(|mote| [*mote].into()).collect()
            }
            _ => motes.into_iter().map(|mote| [mote].into()).collect(),
        };
        let each = if asked.len() == 1 { workload.exchanges } else { u32::MAX };
        let clients = (nodes..).zip(asked).collect();
        Self { nodes, clients, each }
    }

    /// The host of a client.
    pub(super) fn client(&self, client: u32) -> u32 {
        self.clients.get(client as usize).map_or(self.nodes, |(host, _)| *host)
    }

    /// The host that a client asks with its exchange of this number.
    pub(super) fn server(&self, client: u32, exchange: u32) -> u32 {
        let Some((_, asked)) = self.clients.get(client as usize) else { return self.nodes };
        let turn = (exchange / self.each.max(1)) as usize;
        asked.get(turn).or(asked.last()).copied().unwrap_or(self.nodes)
    }

    /// The node of a host, if it is on one.
    pub(super) fn node(&self, host: u32) -> Option<u32> {
        (host < self.nodes).then_some(host)
    }

    /// For each node, whether it is a server.
    pub(super) fn serves(&self) -> Vec<bool> {
        let asked = || self.clients.iter().flat_map(|(_, asked)| asked);
        (0..self.nodes).map(|node| asked().any(|host| *host == node)).collect()
    }

    /// The node that each client is on or, if it is in the Internet, its host's number.
    pub(super) fn of_clients(&self) -> Vec<u32> {
        self.clients.iter().map(|(host, _)| *host).collect()
    }
}

/// The clients of classes on the nodes in order, without the one of their server: those of `monitoring` and
/// `events` report to the sink, the others ask `server`.
fn on_motes(classes: &[ClassView], nodes: u32, root: u32, server: u32) -> Vec<(u32, Box<[u32]>)> {
    let reports = |class: &ClassView| class.scenario.workload.is_reporting();
    let is_taken = |node: &u32| match classes.iter().all(reports) {
        true => *node == SINK,
        // A device of any class may be anywhere but at a server.
        false => *node == root || (classes.iter().any(reports) && *node == SINK),
    };
    let free = (0..nodes).filter(|node| !is_taken(node));
    let server_of = |class: &ClassView| if reports(class) { SINK } else { server };
    let servers = classes.iter().flat_map(|class| class.clients().map(move |_| server_of(class)));
    free.zip(servers).map(|(node, server)| (node, [server].into())).collect()
}
