//! The properties of a topic, and their form in CBOR (draft-ietf-core-coap-pubsub-21 section 2.2.1 and 4).

use crate::web_link;
use ciborium::Value;
use ebbtide::ContentFormat;
use std::collections::BTreeMap;

/// `application/core-pubsub+cbor`: the number that the draft asks for.
pub(super) const FORMAT: ContentFormat = ContentFormat(606);
/// The resource type of topic-data.
pub(super) const DATA_TYPE: &str = "core.ps.data";
/// The seconds between two Confirmable notifications, if observer-check does not say it (RFC 7641 section 4.5).
const OBSERVER_CHECK: u32 = 24 * 3600;
/// The longest text, in bytes.
const MAX_TEXT: usize = 1024;
/// The tag of a time in seconds since 1970 (RFC 8949 section 3.4.2).
const EPOCH: u64 = 1;

/// The keys (section 4) in their order, and what stands behind them.
const NAMES: [(&str, &str); 9] = [
    ("topic-name", "a text of 1 to 1024 bytes"),
    ("topic-data", "a text of up to 1024 bytes"),
    ("resource-type", "the text core.ps.data"),
    ("topic-content-format", "a number up to 65535"),
    ("topic-type", "a text of up to 1024 bytes"),
    ("expiration-date", "seconds since 1970 with tag 1"),
    ("max-subscribers", "a number up to 4294967295"),
    ("observer-check", "a number from 1 to 4294967295"),
    ("initialize", "a byte string"),
];
const NAME: u8 = 0;
const DATA: u8 = 1;
const TYPE: u8 = 2;
const CONTENT_FORMAT: u8 = 3;
const TOPIC_TYPE: u8 = 4;
const EXPIRATION: u8 = 5;
const MAX_SUBSCRIBERS: u8 = 6;
const CHECK: u8 = 7;
const INITIALIZE: u8 = 8;

/// Some or all properties of a topic, by their keys. Each value has the type of its key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Properties(BTreeMap<u8, Value>);

/// The data of a topic before the first publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InitialData {
    pub(super) format: ContentFormat,
    pub(super) payload: Vec<u8>,
}

/// Reads one item that is all there is.
fn item(mut bytes: &[u8]) -> Result<Value, String> {
    let value = ciborium::from_reader(&mut bytes).map_err(|_| "it is not valid CBOR".to_owned())?;
    if bytes.is_empty() { Ok(value) } else { Err("there are bytes behind the CBOR".to_owned()) }
}

fn number(value: &Value) -> Option<u64> {
    u64::try_from(value.as_integer()?).ok()
}

/// The seconds of a time; fractions are left out.
fn seconds(value: &Value) -> Option<u64> {
    match value {
        Value::Tag(EPOCH, inner) => match &**inner {
            Value::Float(seconds) => (*seconds >= 0.0).then_some(*seconds as u64),
            integer => number(integer),
        },
        _ => None,
    }
}

fn is_valid(key: u8, value: &Value) -> bool {
    let within = |limit: u32| number(value).filter(|number| *number <= limit.into());
    let text = value.as_text().filter(|text| text.len() <= MAX_TEXT);
    match key {
        NAME => text.is_some_and(|text| !text.is_empty()),
        DATA | TOPIC_TYPE => text.is_some(),
        TYPE => value.as_text() == Some(DATA_TYPE),
        CONTENT_FORMAT => within(u16::MAX.into()).is_some(),
        EXPIRATION => seconds(value).is_some(),
        MAX_SUBSCRIBERS => within(u32::MAX).is_some(),
        CHECK => within(u32::MAX).is_some_and(|number| number > 0),
        INITIALIZE => value.is_bytes(),
        _ => false,
    }
}

/// The keys that a FETCH asks for.
///
/// # Errors
///
/// The reason for the client.
pub(super) fn keys(payload: &[u8]) -> Result<Vec<u8>, String> {
    let wrong = || "name the properties by an array of their keys, as in [1, 3]".to_owned();
    let Value::Array(keys) = item(payload)? else { return Err(wrong()) };
    let key = |value: &Value| number(value).map(|key| u8::try_from(key).unwrap_or(u8::MAX));
    keys.iter().map(key).collect::<Option<_>>().ok_or_else(wrong)
}

impl Properties {
    /// Reads a map of properties.
    ///
    /// # Errors
    ///
    /// The reason for the client.
    pub(super) fn read(payload: &[u8]) -> Result<Self, String> {
        let Value::Map(entries) = item(payload)? else {
            return Err("it is not a map of properties".to_owned());
        };
        let mut properties = BTreeMap::new();
        for (key, value) in entries {
            let known = number(&key).and_then(|key| u8::try_from(key).ok());
            let named = known.and_then(|key| Some((key, NAMES.get(usize::from(key))?)));
            let Some((key, (name, form))) = named else {
                return Err("a key is not that of a property, which are 0 to 8".to_owned());
            };
            if !is_valid(key, &value) {
                return Err(format!("{name} is {form}"));
            }
            if properties.insert(key, value).is_some() {
                return Err(format!("{name} is there twice"));
            }
        }
        Ok(Self(properties))
    }

    /// Checks the properties of a new topic, and takes out the data that it begins with. Without a URI its data has
    /// this path.
    ///
    /// # Errors
    ///
    /// The reason for the client.
    pub(super) fn begin(&mut self, path: String, unix: u64) -> Result<Option<InitialData>, String> {
        if self.name().is_empty() {
            return Err("topic-name is missing".to_owned());
        }
        // There is one, and clients leave it out although they must not.
        self.0.entry(TYPE).or_insert(Value::from(DATA_TYPE));
        self.check_expiration(unix)?;
        let elsewhere = self.text(DATA).map(web_link::is_limited_reference);
        if elsewhere == Some(false) || self.has_data_here() {
            return Err("leave topic-data to the broker, or name a URI elsewhere".to_owned());
        }
        let initial = self.0.remove(&INITIALIZE).and_then(|value| value.into_bytes().ok());
        if initial.is_some() && elsewhere.is_some() {
            return Err("initialize needs topic-data that is here".to_owned());
        }
        self.0.entry(DATA).or_insert(Value::Text(path));
        match (initial, self.format()) {
            (Some(payload), Some(format)) => Ok(Some(InitialData { format, payload })),
            (Some(_), None) => Err("initialize needs topic-content-format".to_owned()),
            (None, _) => Ok(None),
        }
    }

    /// The properties after an update.
    ///
    /// # Errors
    ///
    /// The reason for the client.
    pub(super) fn updated(&self, by: Self, how: Update, unix: u64) -> Result<Self, String> {
        by.check_expiration(unix)?;
        if by.0.contains_key(&INITIALIZE) {
            return Err("initialize is for a new topic".to_owned());
        }
        let is_fixed = |key: u8| matches!(key, NAME | DATA | TYPE);
        let other =
            by.0.iter().find(|(key, value)| is_fixed(**key) && self.0.get(key) != Some(value));
        if let Some((name, _)) = other.and_then(|(key, _)| NAMES.get(usize::from(*key))) {
            return Err(format!("{name} cannot be changed"));
        }
        let kept = self.0.iter().filter(|(key, _)| how == Update::Some || is_fixed(**key));
        let mut updated: BTreeMap<_, _> = kept.map(|(key, value)| (*key, value.clone())).collect();
        updated.extend(by.0);
        Ok(Self(updated))
    }

    fn check_expiration(&self, unix: u64) -> Result<(), String> {
        match self.expires() {
            Some(expires) if expires <= unix => Err("expiration-date has passed".to_owned()),
            _ => Ok(()),
        }
    }

    /// Whether it has every property of a filter with the same value.
    pub(super) fn fits(&self, filter: &Self) -> bool {
        filter.0.iter().all(|(key, value)| self.0.get(key) == Some(value))
    }

    /// Those with these keys.
    pub(super) fn part(&self, keys: &[u8]) -> Self {
        let named = self.0.iter().filter(|(key, _)| keys.contains(key));
        Self(named.map(|(key, value)| (*key, value.clone())).collect())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let entries = self.0.iter().map(|(key, value)| (Value::from(*key), value.clone()));
        let mut out = Vec::new();
        let written = ciborium::into_writer(&Value::Map(entries.collect()), &mut out);
        debug_assert!(written.is_ok(), "a vector takes all bytes");
        out
    }

    fn text(&self, key: u8) -> Option<&str> {
        self.0.get(&key)?.as_text()
    }

    fn number(&self, key: u8) -> Option<u32> {
        self.0.get(&key).and_then(number).and_then(|number| u32::try_from(number).ok())
    }

    pub(super) fn name(&self) -> &str {
        self.text(NAME).unwrap_or_default()
    }

    /// The URI of the data, or its path on this server.
    pub(super) fn data(&self) -> &str {
        self.text(DATA).unwrap_or_default()
    }

    /// Whether the data is on this server.
    pub(super) fn has_data_here(&self) -> bool {
        self.data().starts_with('/')
    }

    /// The format of all publications, if there is one.
    pub(super) fn format(&self) -> Option<ContentFormat> {
        let format = self.number(CONTENT_FORMAT)?;
        u16::try_from(format).ok().map(ContentFormat)
    }

    /// When the topic ends, in seconds since 1970.
    pub(super) fn expires(&self) -> Option<u64> {
        self.0.get(&EXPIRATION).and_then(seconds)
    }

    pub(super) fn max_subscribers(&self) -> usize {
        self.number(MAX_SUBSCRIBERS).map_or(usize::MAX, |most| most as usize)
    }

    /// Seconds.
    pub(super) fn observer_check(&self) -> u32 {
        self.number(CHECK).unwrap_or(OBSERVER_CHECK)
    }
}

/// How an update treats the properties that it does not name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// They end, apart from those that cannot change (section 2.5.3).
    All,
    /// They stay (section 2.5.4).
    Some,
}
