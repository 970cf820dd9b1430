//! The servers on the nodes of a low-power network. Each processes one request after another.

use super::roster::Roster;
use crate::host::{Answerer, device_config, endpoint_config};
use crate::random::Streams;
use crate::scenario::Scenario;
use ebbtide_core::cc::{Algorithm, ControlConfig};
use ebbtide_core::time::{Duration, Instant};

/// A node's server.
struct Mote {
    answerer: Answerer,
    /// When it has processed what it has taken.
    busy_until: Instant,
    /// Requests that it has taken and not answered.
    taken: u32,
}

/// The servers of all nodes.
pub(super) struct Motes {
    /// One for each node that serves; empty without a low-power network.
    servers: Vec<Option<Box<Mote>>>,
    /// Requests that wait at a mote while it is at another.
    backlog: u32,
}

/// The answer of a mote to whether it takes a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// It has processed it at this instant.
    Until(Instant),
    /// It has no room for another one.
    Not,
}

impl Motes {
    /// The servers of a scenario on those nodes that serve.
    pub(super) fn new(
        scenario: &Scenario,
        roster: &Roster,
        serves: &[bool],
        streams: &Streams,
    ) -> Self {
        let mut config =
            device_config(endpoint_config(scenario, ControlConfig::new(Algorithm::Default)), 1);
        config.limits.peers = scenario.clients.count.max(1) as usize;
        let server = |(node, serves): (usize, &bool)| {
            serves.then(|| {
                let rng = |what: &str| streams.stream(&format!("server/{node}{what}"));
                let workloads = roster.classes.iter().map(|class| &class.scenario.workload);
                let payloads = workloads.map(|own| own.download().unwrap_or(own.response_payload));
                let answerer = Answerer::new(config.clone(), payloads, rng(""), rng("/session"));
                Box::new(Mote { answerer, busy_until: Instant::ZERO, taken: 0 })
            })
        };
        let backlog = scenario.network.mesh().map_or(0, |mesh| mesh.backlog);
        Self { servers: serves.iter().enumerate().map(server).collect(), backlog }
    }

    /// Whether there are none.
    pub(super) const fn are_none(&self) -> bool {
        self.servers.is_empty()
    }

    /// A request arrives at a node that needs so many nanoseconds for it.
    pub(super) fn take(&mut self, now: Instant, node: u32, nanos: u64) -> Takes {
        let Some(Some(mote)) = self.servers.get_mut(node as usize) else { return Takes::Not };
        if nanos > 0 && mote.taken > self.backlog {
            return Takes::Not;
        }
        mote.taken += 1;
        if nanos == 0 {
            return Takes::Until(now);
        }
        mote.busy_until = mote.busy_until.max(now) + Duration::from_nanos(nanos);
        Takes::Until(mote.busy_until)
    }

    /// A node has processed a request from a client of this class.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        node: u32,
        class: usize,
        client: u32,
        request: &[u8],
        send: impl FnMut(u32, &[u8]),
    ) {
        let Some(Some(mote)) = self.servers.get_mut(node as usize) else { return };
        mote.taken -= 1;
        mote.answerer.serve(class);
        mote.answerer.answer(now, client, request, send);
    }
}
