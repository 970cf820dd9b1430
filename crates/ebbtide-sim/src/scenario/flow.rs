//! The workloads `stream` and `transfer`, in which clients send many messages to one receiver.

use super::limits::{Check, LONGEST, range};
use super::units::{Buffer, Time};
use super::{Scenario, WorkloadKind};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// The settings of `stream` and `transfer`. The size of a message is the size of its packet:
/// `workload.request_payload` plus headers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowWorkload {
    /// The start of each client: a time, or a list of times that the clients take in turn.
    pub start: Each<Time>,
    /// `stream`: the time between two messages that the application offers, whatever their fates;
    /// a list is taken in turn by the clients. Zero: there is always another message to send.
    pub interval: Each<Time>,
    /// `stream`: the duration of the run from its beginning; later events do not count.
    pub duration: Time,
    /// The number of messages that may wait at a client. Further messages are rejected with an
    /// error to the application, and counted.
    pub queue: u16,
    /// The time from which on packets count for the fairness between flows.
    pub fair_from: Time,
    /// `transfer`: the number of bytes that each client, in turn, sends in messages of
    /// `workload.request_payload` bytes.
    pub bytes: Each<Buffer>,
}

impl Default for FlowWorkload {
    fn default() -> Self {
        Self {
            start: Each(vec![Time(0)]),
            interval: Each(vec![Time(500_000_000)]),
            duration: Time(50_000_000_000),
            queue: 64,
            fair_from: Time(10_000_000_000),
            bytes: Each(vec![Buffer(Some(100_000))]),
        }
    }
}

impl FlowWorkload {
    /// Whether all values are the defaults.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Scenario {
    /// The start of a client, ns after the start of the run, without the random offset.
    pub(crate) fn start_of(&self, client: u32) -> u64 {
        let workload = &self.workload;
        match workload.kind {
            kind if kind.is_flow() => workload.flow.start.of(client).map_or(0, |start| start.0),
            WorkloadKind::Burst if !self.is_steady(client) => workload.mesh.burst_at.0,
            _ => 0,
        }
    }

    /// The time at which the run ends, whatever is under way then.
    pub(crate) fn ends(&self) -> Option<Time> {
        match self.workload.kind {
            WorkloadKind::Stream => Some(self.workload.flow.duration),
            WorkloadKind::Baseline => None,
            kind => kind.is_mesh().then_some(self.workload.mesh.duration),
        }
    }

    /// The number of messages of a client of `transfer`; zero in other workloads.
    #[must_use]
    pub fn messages_of(&self, client: u32) -> u32 {
        let workload = &self.workload;
        if workload.kind != WorkloadKind::Transfer {
            return 0;
        }
        let bytes = workload.flow.bytes.of(client).and_then(|bytes| bytes.0).unwrap_or(0);
        let messages = bytes.div_ceil(u64::from(workload.request_payload.max(1)));
        u32::try_from(messages).unwrap_or(u32::MAX)
    }
}

/// One value for all clients, or several that they take in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each<T>(pub Vec<T>);

impl<T: Copy> Each<T> {
    /// The value of a client; `None` for an empty list, which is rejected.
    #[must_use]
    pub fn of(&self, client: u32) -> Option<T> {
        self.0.get(client as usize % self.0.len().max(1)).copied()
    }
}

impl<T: Serialize> Serialize for Each<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Each<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = Each<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value, or a list of those that the clients take in turn")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Each<T>, E> {
                let one = T::deserialize(de::value::StrDeserializer::new(text))?;
                Ok(Each(vec![one]))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Each<T>, E> {
                let one = T::deserialize(de::value::I64Deserializer::new(number))?;
                Ok(Each(vec![one]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Each<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = seq.next_element()? {
                    all.push(one);
                }
                Ok(Each(all))
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// The maximum number of messages of one run, since the fate of each is kept.
const MAX_MESSAGES: u64 = 10_000_000;

/// Checks flows that parse but are impossible.
pub(super) fn check(s: &Scenario) -> Check {
    let flow = &s.workload.flow;
    if !s.workload.kind.is_flow() {
        return Ok(());
    }
    range(
        s.workload.request_payload > 0,
        "workload.request_payload",
        "must be 1 byte at least for the workloads stream and transfer, such as 67",
    )?;
    let early = |time: &Time| *time <= LONGEST;
    let starts = !flow.start.0.is_empty() && flow.start.0.iter().all(early);
    range(starts, "workload.flow.start", "must be one time at least, each at most 36525 days")?;
    range(
        (1..=4096).contains(&flow.queue),
        "workload.flow.queue",
        "must be from 1 to 4096 messages",
    )?;
    match s.workload.kind {
        WorkloadKind::Stream => stream(s),
        _ => transfer(s),
    }
}

fn stream(s: &Scenario) -> Check {
    let flow = &s.workload.flow;
    let key = "workload.flow.duration";
    let spans = (1_000_000..=LONGEST.0).contains(&flow.duration.0);
    range(spans, key, "must be from 1 ms to 36525 days")?;
    let key = "workload.flow.interval";
    let steps = |time: &Time| time.0 == 0 || time.0 >= 1_000_000;
    let some = !flow.interval.0.is_empty() && flow.interval.0.iter().all(steps);
    range(some, key, "must be 1 ms at least, or 0 where there is always one more message")?;
    let shortest = flow.interval.0.iter().filter(|time| time.0 > 0).min();
    let most = shortest.map_or(0, |time| flow.duration.0 / time.0);
    range(most <= MAX_MESSAGES, key, "offers more than 10000000 messages in workload.flow.duration")
}

fn transfer(s: &Scenario) -> Check {
    let key = "workload.flow.bytes";
    let all = &s.workload.flow.bytes.0;
    let finite = !all.is_empty() && all.iter().all(|bytes| bytes.0.is_some_and(|n| n > 0));
    range(finite, key, "must be a number of bytes, 1 at least, or a list of numbers")?;
    let sum: u64 = (0..s.clients.count).map(|client| u64::from(s.messages_of(client))).sum();
    range(
        sum <= MAX_MESSAGES,
        key,
        "takes more than 10000000 messages of workload.request_payload bytes",
    )
}
