//! Checks low-power networks that parse but are impossible.

use super::limits::{Check, LONGEST, range};
use super::mesh_topology;
use super::{ClassView, Mesh, Scenario, Topology, WorkloadKind};
use crate::lowpan::{ElidedAddresses, LARGEST_DATAGRAM, compressed_header, fragments};

/// The maximum number of nodes, since routes and paths are kept for every pair.
const MAX_NODES: u32 = 1000;

pub(super) fn check(s: &Scenario) -> Check {
    let Some(mesh) = &s.network.mesh else {
        let message = "is a workload of low-power networks: the scenario needs [network.mesh]";
        return Err(("workload.kind".to_owned(), message.to_owned()));
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
    let reports = |class: &ClassView| class.scenario.workload.kind.is_mesh();
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
    range(many <= room, key, &message)
}

fn topology(mesh: &Mesh) -> Check {
    match &mesh.topology {
        Topology::Grid { n, spacing } => {
            let key = "network.mesh.topology.n";
            range(*n > 0, key, "is 0: the grid needs at least 2 nodes in a row")?;
            range((2..=31).contains(n), key, "must be from 2 to 31 nodes in a row")?;
            let spaced = spacing.is_finite() && *spacing > 0.0;
            range(spaced, "network.mesh.topology.spacing", "must be above 0 m")
        }
        Topology::Places { motes, root } => {
            let key = "network.mesh.topology.motes";
            range(!motes.is_empty(), key, "is empty: at least one mote is needed to answer")?;
            range(motes.len() < MAX_NODES as usize, key, "must be at most 999 nodes")?;
            let bad = motes.iter().position(|at| at.iter().any(|x| !x.is_finite()));
            range(
                root.iter().all(|x| x.is_finite()),
                "network.mesh.topology.root",
                "must be two numbers",
            )?;
            match bad {
                None => Ok(()),
                Some(node) => Err((key.to_owned(), format!("node {} has no place", node + 1))),
            }
        }
    }
}

fn radio(mesh: &Mesh) -> Check {
    let r = &mesh.radio;
    let key = |key: &str| format!("network.mesh.radio.{key}");
    range(r.reliable.is_finite() && r.reliable > 0.0, &key("reliable"), "must be above 0 m")?;
    range(
        r.reach.is_finite() && r.reach > r.reliable,
        &key("reach"),
        "must be above network.mesh.radio.reliable",
    )?;
    range(
        r.interference.is_finite() && r.interference >= r.reach,
        &key("interference"),
        "must be at least network.mesh.radio.reach: what is received is heard",
    )?;
    let capture = r.capture.is_none_or(|ratio| (1.0..=1000.0).contains(&ratio));
    range(capture, &key("capture"), "must be a ratio of distances from 1 to 1000")?;
    let c = &mesh.csma;
    let exponents = c.min_be <= c.max_be && c.max_be <= 8;
    range(exponents, "network.mesh.csma.min_be", "must be at most max_be, and that at most 8")?;
    range(c.max_backoffs <= 5, "network.mesh.csma.max_backoffs", "must be from 0 to 5")?;
    let wait = c.retry_interval.0 <= 60_000_000_000;
    range(wait, "network.mesh.csma.retry_interval", "must be at most 60 s")?;
    let spacing = c.spacing.0 <= 60_000_000_000;
    range(spacing, "network.mesh.csma.spacing", "must be at most 60 s")?;
    range(c.max_retries <= 7, "network.mesh.csma.max_retries", "must be from 0 to 7")
}

fn buffers(mesh: &Mesh) -> Check {
    let key = |key: &str| format!("network.mesh.lowpan.{key}");
    let l = &mesh.lowpan;
    range((1..=10_000).contains(&l.queue), &key("queue"), "must be from 1 to 10000 frames")?;
    let neighbours = l.neighbours.is_none_or(|most| (1..=10_000).contains(&most));
    range(neighbours, &key("neighbours"), "must be from 1 to 10000")?;
    let reassemblies = (1..=1000).contains(&l.reassemblies);
    range(reassemblies, &key("reassemblies"), "must be from 1 to 1000")?;
    // RFC 4944 section 5.3: at most 60 s.
    let timeout = (1_000_000..=60_000_000_000).contains(&l.reassembly_timeout.0);
    range(timeout, &key("reassembly_timeout"), "must be from 1 ms to 60 s")?;
    let motes = mesh.topology.nodes() - 1;
    range(
        mesh.routes.is_none_or(|routes| (1..=motes).contains(&routes)),
        "network.mesh.routes",
        &format!("must be from 1 to {motes}, the number of motes; without it, all have a route"),
    )?;
    range(mesh.backlog <= 10_000, "network.mesh.backlog", "must be from 0 to 10000 requests")
}

fn workload(s: &Scenario, mesh: &Mesh) -> Check {
    let w = &s.workload.mesh;
    let key = |key: &str| format!("workload.mesh.{key}");
    let span = |time: super::units::Time| (1_000_000..=LONGEST.0).contains(&time.0);
    for (name, time) in [
        ("duration", w.duration),
        ("event_interval", w.event_interval),
        ("background", w.background),
    ] {
        range(span(time), &key(name), "must be from 1 ms to 36525 days")?;
    }
    let spread = w.event_spread.is_none_or(|share| (0.0..=1.0).contains(&share));
    range(spread, &key("event_spread"), "must be a share from 0 to 1")?;
    let in_time = s.workload.kind != WorkloadKind::Burst || w.burst_at < w.duration;
    range(in_time, &key("burst_at"), "must be before workload.mesh.duration")?;
    let clients = w.steady_clients.saturating_add(w.burst_clients);
    range(
        (1..=100_000).contains(&clients),
        &key("burst_clients"),
        "must make 1 to 100000 clients",
    )?;
    range(
        (16..=1024).contains(&w.fragment) && w.fragment.is_power_of_two(),
        &key("fragment"),
        "must be 16, 32, 64, 128, 256, 512 or 1024 bytes (RFC 7959 section 2.2)",
    )?;
    for (name, bytes) in [("message", w.message), ("event_message", w.event_message)] {
        range((1..=1_000_000).contains(&bytes), &key(name), "must be from 1 to 1000000 bytes")?;
    }
    let is_cloud = s.is_cloud();
    let (up, down) = (&s.network.up, &s.network.down);
    for (name, link, other) in [("up", up, down), ("down", down, up)] {
        let key = format!("network.{name}");
        let message = "is missing: the clients of this workload are in the Internet";
        range(!is_cloud || !link.is_missing(), &key, message)?;
        let message =
            "is missing: the wired side of the border router has two directions, or there is none";
        range(!link.is_missing() || other.is_missing(), &key, message)?;
    }
    let is_grid = matches!(mesh.topology, Topology::Grid { .. });
    for class in s.classes() {
        let kind = class.scenario.workload.kind;
        range(
            is_grid || kind.is_cloud() || !kind.is_mesh(),
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
    let reports = matches!(w.kind, WorkloadKind::Monitoring | WorkloadKind::Events);
    let (asked, key) = match (reports, w.request_payload) {
        (true, _) => (w.mesh.fragment, "workload.mesh.fragment"),
        (false, 0) => (0, "workload.path"),
        (false, bytes) => (bytes, "workload.request_payload"),
    };
    let beyond = !reports && !s.network.up.is_missing();
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
        range(
            datagram <= LARGEST_DATAGRAM,
            &key,
            &format!("is more than a chain of fragments can carry: at most {most} bytes"),
        )?;
        let frames = fragments(mesh.lowpan.addresses, header, datagram).count;
        range(
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
