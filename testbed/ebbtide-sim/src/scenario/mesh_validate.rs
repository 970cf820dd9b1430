//! Checks low-power networks that parse but are impossible.

use super::mesh_topology;
use super::{Activity, ClassView, Mesh, Scenario, Topology};
use crate::keys::{Check, Fault, require};
use crate::lowpan::{ElidedAddresses, LARGEST_DATAGRAM, compressed_header, fragments};

/// The maximum number of nodes, since routes and paths are kept for every pair.
const MAX_NODES: u32 = 1000;

pub(super) fn check(s: &Scenario) -> Check {
    let Some(mesh) = s.network.mesh() else {
        let message = "is a workload of low-power networks: the scenario needs [network.mesh]";
        return Err(Fault::new("workload.kind", message));
    };
    topology(mesh)?;
    radio(mesh)?;
    buffers(mesh)?;
    workload(s, mesh)?;
    devices(s, mesh)?;
    s.classes().iter().try_for_each(|class| payloads(class, mesh))?;
    mesh_topology::check(s)
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

fn topology(mesh: &Mesh) -> Check {
    match &mesh.topology {
        Topology::Grid { n, spacing } => {
            let key = "network.mesh.topology.n";
            require(*n > 0, key, "is 0: the grid needs at least 2 nodes in a row")?;
            require((2..=31).contains(n), key, "must be from 2 to 31 nodes in a row")?;
            let spaced = spacing.is_finite() && *spacing > 0.0;
            require(spaced, "network.mesh.topology.spacing", "must be above 0 m")
        }
        Topology::Places { motes, root } => {
            let key = "network.mesh.topology.motes";
            require(!motes.is_empty(), key, "is empty: at least one mote is needed to answer")?;
            require(motes.len() < MAX_NODES as usize, key, "must be at most 999 nodes")?;
            let bad = motes.iter().position(|at| at.iter().any(|x| !x.is_finite()));
            require(
                root.iter().all(|x| x.is_finite()),
                "network.mesh.topology.root",
                "must be two numbers",
            )?;
            match bad {
                None => Ok(()),
                Some(node) => Err(Fault::new(key, format!("node {} has no place", node + 1))),
            }
        }
    }
}

fn radio(mesh: &Mesh) -> Check {
    let r = &mesh.radio;
    let key = |key: &str| format!("network.mesh.radio.{key}");
    require(r.reach > r.reliable, &key("reach"), "must be above network.mesh.radio.reliable")?;
    require(
        r.interference >= r.reach,
        &key("interference"),
        "must be at least network.mesh.radio.reach: what is received is heard",
    )?;
    let c = &mesh.csma;
    require(
        c.min_be <= c.max_be,
        "network.mesh.csma.min_be",
        "must be at most max_be, and that at most 8",
    )
}

fn buffers(mesh: &Mesh) -> Check {
    let motes = mesh.topology.nodes() - 1;
    require(
        mesh.routes.is_none_or(|routes| (1..=motes).contains(&routes)),
        "network.mesh.routes",
        &format!("must be from 1 to {motes}, the number of motes; without it, all have a route"),
    )
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
    let request = 4 + 8 + w.path.len() as u32 + 3 + 1 + 4 + 1;
    let response = 4 + 8 + 2;
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
