//! Scenarios of low-power networks: who asks whom in them, and the checks of what parses but is impossible.

use super::{Activity, ClassView, Cloud, Mesh, ReportsDue, Scenario, Topology};
use crate::keys::{Check, Fault, require};
use crate::medium::low_power::{
    ElidedAddresses, LARGEST_DATAGRAM, MeshGraph, compressed_header, fragments,
};

impl Scenario {
    /// Whether the clients are in the Internet and ask the motes of a low-power network.
    pub(crate) fn is_cloud(&self) -> bool {
        self.class.is_empty() && matches!(self.workload.activity(), Activity::Cloud(_))
    }

    /// Whether a client in the Internet makes requests until the time is over.
    pub(crate) fn is_steady(&self, client: u32) -> bool {
        match self.workload.activity() {
            Activity::Cloud(Cloud::ManyToMany { .. }) => true,
            Activity::Cloud(Cloud::Burst { steady, .. }) => client < *steady,
            _ => false,
        }
    }

    /// How many motes a client of `baseline` asks in turn: those with a route. 1 in other workloads.
    pub(crate) fn servers_in_turn(&self) -> u32 {
        match (self.workload.activity(), self.network.mesh()) {
            (Activity::Cloud(Cloud::Baseline), Some(mesh)) => {
                let motes = mesh.topology.nodes().saturating_sub(1);
                mesh.routes.map_or(motes, |routes| routes.min(motes))
            }
            _ => 1,
        }
    }

    /// The time between two messages of a node, ns, if its messages go to the sink.
    pub(crate) fn message_period(&self) -> Option<u64> {
        let Activity::Reporting(reporting) = self.workload.activity() else { return None };
        Some(match &reporting.due {
            ReportsDue::Events { background, .. } => background.0,
            ReportsDue::Load(load) => {
                let bits = u64::from(reporting.message) * 8 * u64::from(self.clients.count);
                let period = u128::from(bits) * 1_000_000_000 / u128::from(load.0.max(1));
                // Checked to be below a century.
                u64::try_from(period).unwrap_or(u64::MAX)
            }
        })
    }
}

pub(super) fn check(s: &Scenario) -> Check {
    let Some(mesh) = s.network.mesh() else {
        let message = "is a workload of low-power networks: the scenario needs [network.mesh]";
        return Err(Fault::new("workload.kind", message));
    };
    mesh.check()?;
    workload(s, mesh)?;
    devices(s, mesh)?;
    s.classes().iter().try_for_each(|class| payloads(class, mesh))?;
    MeshGraph::new(mesh, 0.0).check(mesh)
}

/// Checks that there is a mote for each device that is not in the Internet.
fn devices(s: &Scenario, mesh: &Mesh) -> Check {
    if s.is_cloud() {
        return Ok(());
    }
    let classes = s.classes();
    let reports = |class: &ClassView| class.scenario.workload.is_reporting();
    let has_both = classes.iter().any(reports) && !classes.iter().all(reports);
    // The border router has the other workloads' server, or leads to it; the sink has that of reports.
    let servers = if has_both && mesh.topology.root() != 0 { 2 } else { 1 };
    let room = mesh.topology.nodes().saturating_sub(servers);
    let key = if s.class.is_empty() { "clients.count" } else { "class" };
    let many = s.client_count();
    let message = format!(
        "makes {many} devices, and network.mesh.topology has {room} motes for them: a node with a \
         server has no device"
    );
    require(many <= room, key, &message)
}

fn workload(s: &Scenario, mesh: &Mesh) -> Check {
    let keys = s.workload.keys();
    let w = &keys.mesh;
    let key = |key: &str| format!("workload.mesh.{key}");
    let clients = w.steady_clients.saturating_add(w.burst_clients);
    require(
        (1..=100_000).contains(&clients),
        &key("burst_clients"),
        "must make 1 to 100000 clients",
    )?;
    require(
        (16..=1024).contains(&w.fragment) && w.fragment.is_power_of_two(),
        &key("fragment"),
        "must be 16, 32, 64, 128, 256, 512 or 1024 bytes (RFC 7959 section 2.2)",
    )?;
    let is_cloud = s.is_cloud();
    let (up, down) = (&s.network.up, &s.network.down);
    for (name, link, other) in [("up", up, down), ("down", down, up)] {
        let key = format!("network.{name}");
        let message = "is missing: the clients of this workload are in the Internet";
        require(!is_cloud || !link.is_missing(), &key, message)?;
        let message =
            "is missing: the wired side of the border router has two directions, or there is none";
        require(!link.is_missing() || other.is_missing(), &key, message)?;
    }
    let is_grid = matches!(mesh.topology, Topology::Grid { .. });
    for class in s.classes() {
        require(
            is_grid || !class.scenario.workload.is_reporting(),
            "network.mesh.topology",
            "must be a grid for the workloads monitoring and events, whose sink is its corner",
        )?;
    }
    Ok(())
}

/// Checks that every datagram of a class fits a fragment chain and a queue.
fn payloads(class: &ClassView, mesh: &Mesh) -> Check {
    let s = &class.scenario;
    let w = &s.workload;
    // Header 4, token up to 8, path, content format 1, block 4, marker 1.
    let protection = s.security.overhead();
    let request = 4 + 8 + w.path.len() as u32 + 3 + 1 + 4 + 1 + protection;
    let response = 4 + 8 + 2 + protection;
    let (asked, key) = match (w.activity(), w.request_payload) {
        (Activity::Reporting(reporting), _) => (reporting.fragment, "workload.mesh.fragment"),
        (_, 0) => (0, "workload.path"),
        (_, bytes) => (bytes, "workload.request_payload"),
    };
    let beyond = !w.is_reporting() && !s.network.up.is_missing();
    let ends = ElidedAddresses { from_sender: false, to_receiver: false, beyond };
    let header = compressed_header(mesh.lowpan.addresses, ends);
    for (key, overhead, payload) in
        [(key, request, asked), ("workload.response_payload", response, w.response_payload)]
    {
        let key = match key.strip_prefix("workload.") {
            Some(own) if class.sets(own) => format!("class.{}.{key}", class.name),
            _ => key.to_owned(),
        };
        let datagram = payload.saturating_add(overhead);
        let most = LARGEST_DATAGRAM - overhead;
        require(
            datagram <= LARGEST_DATAGRAM,
            &key,
            &format!("is more than a chain of fragments can carry: at most {most} bytes"),
        )?;
        let frames = fragments(mesh.lowpan.addresses, header, datagram).count;
        require(
            frames <= mesh.lowpan.queue,
            &key,
            &format!(
                "makes {frames} fragments, more than the {} frames that a node holds \
                 (network.mesh.lowpan.queue)",
                mesh.lowpan.queue
            ),
        )?;
    }
    Ok(())
}
