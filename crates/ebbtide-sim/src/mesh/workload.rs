//! The workloads of the clients of a low-power network.

use super::network::Cause;
use crate::host::{Ended, digits};
use crate::random::{Streams, exponential, uniform};
use crate::record::Messages;
use crate::scenario::{MeshWorkload, Scenario, WorkloadKind};
use ebbtide_core::session::client::{
    Loss, Outgoing, RequestParts, RequestTag, Step as Doing, Transfer, TransferSettings,
};
use ebbtide_core::session::{BlockSizes, Options, Response};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, OptionNumber};
use rand_chacha::ChaCha8Rng;

/// A client's next step.
#[derive(Debug)]
pub(super) enum Step {
    /// Ask this host.
    Ask(u32),
    /// Send this host a block of a message.
    Put(u32, Outgoing),
    /// Nothing until something ends or is due.
    Wait,
}

/// The application of a client.
#[derive(Debug)]
pub(super) enum Application {
    Requests(Requests),
    Source(Box<Source>),
}

/// Asks hosts in turn, a number of times each, with as many requests open as NSTART allows.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    /// The hosts still to be asked, the current one last.
    targets: Vec<u32>,
    each: u32,
    left: u32,
    open: u32,
    window: u32,
}

/// Why a message is due.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// Its period is over.
    Period,
    /// Something happened that every node reports.
    Event,
}

/// Sends messages, block by block; one that is due while the last is in transfer is lost.
#[derive(Debug)]
pub(super) struct Source {
    sink: u32,
    path: String,
    settings: TransferSettings,
    rng: ChaCha8Rng,
    /// The message in transfer, if there is one.
    transfer: Option<Transfer>,
    /// Why that message was due.
    trigger: Trigger,
    /// The message of the transfer that is under way.
    open: Option<u32>,
    pub(super) messages: Messages,
    /// The cause of the loss of the message's last datagram.
    pub(super) last_loss: Option<Cause>,
}

impl Requests {
    fn new(mut targets: Vec<u32>, each: u32, window: u32) -> Self {
        targets.reverse();
        Self { targets, each, left: each, open: 0, window }
    }

    fn step(&mut self) -> Step {
        if self.left == 0 && self.open == 0 {
            self.targets.pop();
            self.left = self.each;
        }
        match self.targets.last() {
            Some(target) if self.left > 0 && self.open < self.window => {
                // Those that go on until the time is over have u32::MAX requests to make.
                self.left -= u32::from(self.each < u32::MAX);
                self.open += 1;
                Step::Ask(*target)
            }
            _ => Step::Wait,
        }
    }
}

impl Source {
    /// A message of `bytes` is due.
    pub(super) fn due(&mut self, bytes: u32, trigger: Trigger) {
        let is_event = u64::from(trigger == Trigger::Event);
        self.messages.offered += 1;
        self.messages.events += is_event;
        if self.transfer.is_some() {
            self.messages.busy += 1;
            self.messages.events_lost += is_event;
        } else {
            self.transfer = Some(Transfer::new(self.message(bytes), self.settings.clone()));
            self.trigger = trigger;
            self.last_loss = None;
        }
    }

    /// A message of `bytes`, which differs from the one before: the sink would otherwise take its first
    /// block for a late copy.
    fn message(&self, bytes: u32) -> RequestParts {
        let mut options = Options::new();
        options.push(OptionNumber::URI_PATH, self.path.as_bytes());
        options.push(OptionNumber::CONTENT_FORMAT, &[]);
        let mut payload = digits(bytes);
        for (place, byte) in payload.iter_mut().zip(self.messages.offered.to_be_bytes()) {
            *place = byte;
        }
        RequestParts { code: Code::PUT, options, payload: payload.into(), block_size: None }
    }

    fn step(&mut self, now: Instant) -> Step {
        while let Some(transfer) = &mut self.transfer {
            match transfer.poll(now, &mut self.rng) {
                Doing::Send(outgoing) => {
                    self.open = Some(outgoing.id);
                    return Step::Put(self.sink, outgoing);
                }
                // One block is under way at a time: none is left that could be cancelled.
                Doing::Cancel(_) => {}
                Doing::Wait(_) => break,
                Doing::Done(result) => {
                    self.transfer = None;
                    match result {
                        Ok(response) if response.is_success() => self.messages.delivered += 1,
                        Ok(_) | Err(_) => self.give_up(),
                    }
                }
            }
        }
        Step::Wait
    }

    fn give_up(&mut self) {
        self.messages.given_up += 1;
        self.messages.events_lost += u64::from(self.trigger == Trigger::Event);
        match self.last_loss {
            Some(Cause::Queue) => self.messages.given_up_queue += 1,
            Some(Cause::Route) | None => {}
            Some(_) => self.messages.given_up_retries += 1,
        }
    }

    fn ended(&mut self, now: Instant, ended: Ended, response: Option<Response>) {
        self.messages.early += u64::from(ended.early);
        let (Some(transfer), Some(id)) = (&mut self.transfer, self.open.take()) else { return };
        match response {
            Some(response) => transfer.handle_response(now, id, response),
            None => transfer.handle_loss(now, id, Loss::Unanswered),
        }
    }
}

impl Application {
    /// The next step. Call it until it returns a wait.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        match self {
            Self::Requests(requests) => requests.step(),
            Self::Source(source) => source.step(now),
        }
    }

    /// An exchange has ended, or could not begin.
    pub(super) fn ended(&mut self, now: Instant, ended: Ended, response: Option<Response>) {
        match self {
            Self::Requests(requests) => requests.open -= 1,
            Self::Source(source) => source.ended(now, ended, response),
        }
    }

    /// Whether nothing is left to do, ever.
    pub(super) const fn is_done(&self) -> bool {
        match self {
            Self::Requests(requests) => requests.targets.is_empty(),
            Self::Source(_) => false,
        }
    }

    pub(super) fn source(&mut self) -> Option<&mut Source> {
        match self {
            Self::Source(source) => Some(source),
            Self::Requests(_) => None,
        }
    }
}

/// A client: the host that it is on, when it begins, and its application.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) host: u32,
    pub(super) start: Instant,
    pub(super) application: Application,
    /// Bytes of its periodic messages and the time between them.
    pub(super) periodic: Option<(u32, Duration)>,
}

/// The clients of a scenario. Hosts from `nodes` on are in the Internet. A study chooses motes that
/// answer where it chooses: those of the baseline and of the burst's steady clients have a route.
pub(super) fn plans(
    scenario: &Scenario,
    (nodes, root): (u32, u32),
    has_route: impl Fn(u32) -> bool,
    windows: impl Fn(u32) -> u32,
    streams: &Streams,
) -> Vec<Plan> {
    let w = &scenario.workload;
    let mesh = &w.mesh;
    let mut motes: Vec<u32> = (0..nodes).filter(|node| *node != root).collect();
    let cloud = |client: u32, targets: Vec<u32>, each: u32, start: Instant| Plan {
        host: nodes + client,
        start,
        application: Application::Requests(Requests::new(targets, each, windows(client))),
        periodic: None,
    };
    match w.kind {
        WorkloadKind::Baseline => {
            motes.retain(|mote| has_route(*mote));
            vec![cloud(0, motes, w.exchanges, Instant::ZERO)]
        }
        WorkloadKind::ManyToMany => {
            let each = motes.iter().zip(0..);
            each.map(|(mote, client)| cloud(client, vec![*mote], u32::MAX, Instant::ZERO)).collect()
        }
        WorkloadKind::Burst => {
            // Who asks whom is drawn, so that no place in the tree is always the busy one.
            let mut rng = streams.stream("workload/targets");
            for last in (1..motes.len()).rev() {
                motes.swap(last, uniform(&mut rng, 0, last as u64) as usize);
            }
            motes.sort_by_key(|mote| !has_route(*mote));
            let burst = Instant::from_nanos(mesh.burst_at.0);
            let clients = mesh.steady_clients + mesh.burst_clients;
            let with_route = motes.iter().filter(|mote| has_route(**mote)).count();
            let steady = motes.iter().take(with_route).cycle().zip(0..mesh.steady_clients);
            let of_burst = motes.iter().cycle().zip(0..clients).skip(mesh.steady_clients as usize);
            steady
                .map(|(mote, client)| cloud(client, vec![*mote], u32::MAX, Instant::ZERO))
                .chain(
                    of_burst.map(|(mote, client)| cloud(client, vec![*mote], w.exchanges, burst)),
                )
                .collect()
        }
        _ => {
            let sources = nodes - 1;
            let period = match w.kind {
                WorkloadKind::Monitoring => {
                    let bits = u64::from(mesh.message) * 8 * u64::from(sources);
                    u128::from(bits) * 1_000_000_000 / u128::from(mesh.load.0)
                }
                _ => u128::from(mesh.background.0),
            };
            // Checked to be below a century.
            let period = u64::try_from(period).unwrap_or(u64::MAX);
            (0..nodes)
                .filter(|node| *node != SINK)
                .map(|node| source(node, scenario, period, streams))
                .collect()
        }
    }
}

/// The corner of a grid to which all messages go.
pub(super) const SINK: u32 = 0;

fn source(node: u32, scenario: &Scenario, period: u64, streams: &Streams) -> Plan {
    let w = &scenario.workload;
    let mut rng = streams.stream(&format!("source/{node}"));
    // Checked to be a power of two from 16 to 1024.
    let settings = TransferSettings {
        // One message at a time, of a length that the sink knows.
        request_tag: RequestTag::Never,
        size1: false,
        ..TransferSettings::new(BlockSizes::of_datagrams(w.mesh.fragment as usize), usize::MAX)
    };
    Plan {
        host: node,
        start: Instant::from_nanos(uniform(&mut rng, 0, period)),
        application: Application::Source(Box::new(Source {
            sink: SINK,
            path: w.path.clone(),
            settings,
            rng,
            transfer: None,
            trigger: Trigger::Period,
            open: None,
            messages: Messages::default(),
            last_loss: None,
        })),
        periodic: Some((w.mesh.message, Duration::from_nanos(period))),
    }
}

/// When the next event comes that all nodes report.
pub(super) fn next_event(now: Instant, w: &MeshWorkload, rng: &mut ChaCha8Rng) -> Instant {
    let mean = w.event_interval.0;
    let interval = match w.event_spread {
        None => exponential(rng, mean),
        Some(share) => {
            // Checked to be from 0 to 1.
            let most = ((mean as f64 * share) as u64).min(mean);
            uniform(rng, mean - most, mean.saturating_add(most))
        }
    };
    now + Duration::from_nanos(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_between_events_are_as_far_from_the_mean_as_allowed() {
        let mean = MeshWorkload::default().event_interval.0;
        let mut rng = Streams::new(1, 0).stream("events");
        for spread in [0.0, 0.5, 1.0] {
            let w = MeshWorkload { event_spread: Some(spread), ..MeshWorkload::default() };
            let far = (mean as f64 * spread) as u64;
            let intervals: Vec<u64> =
                (0..1000).map(|_| next_event(Instant::ZERO, &w, &mut rng).as_nanos()).collect();
            assert!(intervals.iter().all(|at| (mean - far..=mean + far).contains(at)), "{spread}");
            let sum: u64 = intervals.iter().sum();
            assert!((sum / 1000).abs_diff(mean) <= far / 10, "{spread}");
        }
    }
}
