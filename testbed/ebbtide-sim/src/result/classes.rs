//! The classes of a cell one by one, and what all of them ask of each link.

use super::cell_spec::CellSpec;
use super::wire::wire_lengths;
use crate::judge::Demand;
use crate::net::Direction;
use crate::record::RunRecord;
use crate::scenario::{ClassView, LinkSpec, Scenario};

/// Each class of a cell as a cell of its own.
pub(super) fn parts(spec: &CellSpec) -> Vec<(ClassView, CellSpec)> {
    let part = |class: ClassView| {
        let own = class.control.as_ref();
        let own = own.and_then(|text| class.scenario.control_config(text).ok());
        let controls = own.map_or_else(|| spec.controls.clone(), |own| vec![own]);
        let scenario = Scenario { phase: Vec::new(), ..class.scenario.clone() };
        let part = CellSpec { controls, scenario, ..spec.clone() };
        (class, part)
    };
    spec.scenario.classes().into_iter().map(part).collect()
}

/// A replication as one class saw it.
pub(super) fn own_record(record: &RunRecord, index: usize, class: &ClassView) -> Option<RunRecord> {
    let own = record.totals.classes.get(index)?.clone();
    let mut record = record.clone();
    let clients = class.clients();
    record.clients.retain(|client| clients.contains(&client.client));
    let totals = &mut record.totals;
    (totals.by_retransmissions, totals.rtt) = (own.by_retransmissions, own.rtt);
    (totals.durations, totals.delivery) = (own.durations, own.delivery);
    (totals.done_ns, totals.series) = (own.done_ns, None);
    totals.classes.clear();
    totals.phases.clear();
    if class.scenario.workload.flow().is_none() {
        totals.flows.clear();
    }
    for link in &mut totals.links {
        link.carried = link.carried.get(index).copied().into_iter().collect();
    }
    Some(record)
}

/// The load of one direction of a link in one replication.
struct ClassLoad {
    /// Its place in the scenario; `None` for the bottleneck.
    link: Option<usize>,
    direction: Direction,
    /// Bytes of one message of each exchange of those that pass it.
    bytes: f64,
    /// The time that it needs for them, s.
    seconds: f64,
}

/// The exchanges of a class in one replication.
fn exchanges(class: &ClassView, part: &CellSpec) -> f64 {
    part.scenario.workload.exchanges_of(class.clients())
}

/// Bytes of a request and of its response, mean over the controls that clients take in turn.
fn lengths(part: &CellSpec) -> (f64, f64) {
    let each = part.controls.iter().map(|one| wire_lengths(&part.scenario, one.transport()));
    let (up, down) = each.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let count = part.controls.len().max(1) as f64;
    (up / count, down / count)
}

/// The loads of all links in both directions.
fn loads(spec: &CellSpec, parts: &[(ClassView, CellSpec)]) -> Vec<ClassLoad> {
    let scenario = &spec.scenario;
    let network = &scenario.network;
    let bottleneck =
        [(None, Direction::Up, network.up.clone()), (None, Direction::Down, network.down.clone())];
    let others = scenario.link.iter().enumerate().flat_map(|(index, link)| {
        Direction::BOTH.map(|direction| (Some(index), direction, link.towards(direction)))
    });
    let load = |(link, direction, spec): (Option<usize>, Direction, LinkSpec)| {
        let passes = |class: &ClassView| {
            let route = || class.scenario.route(class.scenario.clients.link.as_deref());
            link.is_none_or(|index| route().contains(&index))
        };
        let own = parts.iter().filter(|(class, _)| passes(class)).map(|(class, part)| {
            let (up, down) = lengths(part);
            exchanges(class, part) * direction.select(up, down)
        });
        let bytes = own.sum::<f64>();
        ClassLoad { link, direction, bytes, seconds: spec.seconds_for(bytes) }
    };
    bottleneck.into_iter().chain(others).map(load).collect()
}

/// The time before which no schedule finishes the last client, s, given that of each class alone.
/// Zero where a class keeps time by itself.
pub(super) fn limit_s(spec: &CellSpec, alone: fn(&CellSpec) -> f64) -> f64 {
    let parts = parts(spec);
    let keeps_time = |part: &CellSpec| part.scenario.workload.keeps_time();
    if spec.scenario.network.mesh().is_some() || parts.iter().any(|(_, part)| keeps_time(part)) {
        return 0.0;
    }
    let windows = parts.iter().map(|(_, part)| {
        let clients = &part.scenario.clients;
        clients.start.0.saturating_add(clients.start_window.0)
    });
    // Each client's time counts from its own start.
    let late = windows.max().unwrap_or(0) as f64 / 1e9;
    let links = loads(spec, &parts).into_iter().map(|load| load.seconds - late);
    links.chain(parts.iter().map(|(_, part)| alone(part))).fold(0.0, f64::max)
}

/// The idle time of a round trip on the links other than the bottleneck, s.
pub(super) fn idle_s(spec: &CellSpec, of: fn((u64, u64)) -> f64) -> f64 {
    let scenario = &spec.scenario;
    let (up, down) = lengths(spec);
    let route = scenario.route(scenario.clients.link.as_deref());
    let shared = route.into_iter().filter_map(|index| scenario.link.get(index)).map(|link| {
        let rate = |direction: Direction| link.towards(direction).rate.0.max(1) as f64;
        up * 8.0 / rate(Direction::Up)
            + down * 8.0 / rate(Direction::Down)
            + 2.0 * of(link.delay.ends())
    });
    let own = scenario.clients.access.map_or(0.0, |access| {
        let transmission = access.rate.map_or(0.0, |rate| (up + down) * 8.0 / rate.0.max(1) as f64);
        transmission + 2.0 * access.delay.0 as f64 / 1e9
    });
    shared.sum::<f64>() + own
}

/// The demand of a scenario with classes, or with links other than the bottleneck, on its tightest
/// link. `alone` gives the demand of one class on the bottleneck.
pub(super) fn demand(spec: &CellSpec, alone: fn(&CellSpec) -> Demand) -> Demand {
    let parts = parts(spec);
    let each: Vec<(f64, Demand, f64)> = parts
        .iter()
        .map(|(class, part)| {
            (exchanges(class, part), alone(part), f64::from(part.scenario.clients.count))
        })
        .collect();
    let total = each.iter().map(|(exchanges, _, _)| exchanges).sum::<f64>().max(1.0);
    let Some((_, first, _)) = each.first() else { return Demand::default() };
    let mut demand = first.clone();
    let weighted = |field: fn(&Demand) -> f64| {
        each.iter().map(|(exchanges, own, _)| exchanges * field(own)).sum::<f64>() / total
    };
    demand.bytes = (weighted(|own| own.bytes.0), weighted(|own| own.bytes.1));
    let all = || each.iter().map(|(_, own, _)| own);
    demand.clients = spec.scenario.clients.count;
    demand.in_turn = all().map(|own| own.in_turn).max().unwrap_or(1);
    demand.nstart = all().map(|own| own.nstart).max().unwrap_or(1);
    demand.start_window_s = all().map(|own| own.start_window_s).fold(0.0, f64::max);
    demand.idle_s = all().map(|own| own.idle_s).fold(0.0, f64::max);
    demand.required = spec.scenario.requirements();
    demand.has_deadline = all().any(|own| own.has_deadline);
    let tightest = loads(spec, &parts).into_iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    if let Some(load) = tightest {
        demand.each_s = load.seconds / total;
        demand.rate_bps = if load.seconds > 0.0 { load.bytes * 8.0 / load.seconds } else { 0.0 };
        (demand.direction, demand.link) = (load.direction, load.link);
        // Drops are counted at the bottleneck, whichever link is the tightest.
        let network = &spec.scenario.network;
        demand.buffer = load.direction.select(network.up.buffer.0, network.down.buffer.0);
    }
    // Of these no link is what limits them.
    let network = &spec.scenario.network;
    let is_slow = network.is_limited_by_radio();
    if is_slow || parts.iter().any(|(_, part)| part.scenario.workload.flow().is_some()) {
        demand.each_s = 0.0;
    }
    // Requests per second of all devices; without a period, a class has no such rate.
    let rates: Option<Vec<f64>> =
        each.iter().map(|(_, own, clients)| own.period_s.map(|period| clients / period)).collect();
    demand.period_s =
        rates.map(|rates| f64::from(demand.clients) / rates.iter().sum::<f64>().max(1e-12));
    demand
}
