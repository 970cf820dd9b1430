//! The workloads `stream` and `transfer`, in which clients send many messages to one receiver.

use super::units::{Buffer, Time};
use crate::keys::{
    Check, FROM_A_MILLISECOND, KeyEntry, KeyRange, KeyRow, LONGEST, describe_value, keys,
};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::marker::PhantomData;

keys! {
    /// The settings of `stream` and `transfer`. The size of a message is the size of its packet:
    /// `workload.request_payload` plus headers.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub(super) struct FlowWorkload {
        /// The start of each client: a time, or a list of times that the clients take in turn.
        pub start: Each<Time> where ..=LONGEST,
        /// `stream`: the time between two messages that the application offers, whatever their fates;
        /// a list is taken in turn by the clients. Zero: there is always another message to send.
        pub interval: Each<Time>,
        /// `stream`: the duration of the run from its beginning; later events do not count.
        pub duration: Time where FROM_A_MILLISECOND,
        /// The number of messages that may wait at a client. Further messages are rejected with an
        /// error to the application, and counted.
        pub queue: u16 where 1..=4096 => "messages",
        /// The time from which on packets count for the fairness between flows.
        pub fair_from: Time,
        /// `transfer`: the number of bytes that each client, in turn, sends in messages of
        /// `workload.request_payload` bytes.
        pub bytes: Each<Buffer>,
    }
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
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One value for all clients, or several that they take in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each<T>(pub Vec<T>);

impl<T: Copy> Each<T> {
    /// The value of a client; `None` for an empty list, which is rejected.
    pub fn for_client(&self, client: u32) -> Option<T> {
        self.0.get(client as usize % self.0.len().max(1)).copied()
    }
}

impl<T: KeyEntry + Serialize> KeyEntry for Each<T> {
    fn kind() -> String {
        format!("{}, or a list", T::kind())
    }

    fn schema(limits: &KeyRange) -> Value {
        let one = T::schema(limits);
        json!({"anyOf": [one, {"type": "array", "items": one}]})
    }

    fn range(limits: &KeyRange) -> String {
        T::range(limits)
    }

    fn check(&self, key: &str, limits: &KeyRange) -> Check {
        self.0.iter().try_for_each(|value| value.check(key, limits))
    }

    fn describe(&self, key: &str, about: &str, limits: &KeyRange, keys: &mut Vec<KeyRow>) {
        describe_value(self, key, about, limits, keys);
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
