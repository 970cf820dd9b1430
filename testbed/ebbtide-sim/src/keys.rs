//! Keys of scenario files, declared once, at the field that holds the value: meaning, range and unit. Checks, error
//! messages and the reference of keys follow from it.

pub(crate) mod schema;

use crate::units::{Buffer, Rate, Time, TimeRange};
use serde::Serialize;
use serde::de::{DeserializeOwned, IntoDeserializer, value::StrDeserializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds, RangeInclusive};

/// A simulated century. Longer spans are mistakes and would overflow sums.
pub(crate) const LONGEST: Time = Time(3_155_760_000_000_000_000);

/// The times of timers and of clocks.
pub(crate) const FROM_A_MILLISECOND: RangeInclusive<Time> = Time(1_000_000)..=LONGEST;
/// The longest times of hosts and radios that wait.
pub(crate) const MINUTE: Time = Time(60_000_000_000);
/// The rate of the fastest link.
pub(crate) const FASTEST: Rate = Rate(1_000_000_000_000);
/// Distances.
pub(crate) const ABOVE_ZERO: (Bound<f64>, Bound<f64>) = (Bound::Excluded(0.0), Bound::Unbounded);

/// A fault of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The dotted key at fault.
    pub(crate) key: String,
    /// The error and its remedy.
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

/// The outcome of a check.
pub(crate) type Check = Result<(), Fault>;

/// Fails unless a condition holds for a key.
pub(crate) fn require(ok: bool, key: &str, message: &str) -> Check {
    if ok { Ok(()) } else { Err(Fault::new(key, message)) }
}

/// The values that a key accepts.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct KeyRange {
    low: Bound<KeyNumber>,
    high: Bound<KeyNumber>,
    /// The unit of numbers that are written without one.
    unit: &'static str,
}

/// A bound, in the smallest unit of its kind.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd)]
pub(crate) enum KeyNumber {
    Whole(u64),
    Real(f64),
}

impl From<u64> for KeyNumber {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for KeyNumber {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<Time> for KeyNumber {
    fn from(value: Time) -> Self {
        Self::Whole(value.0)
    }
}

impl From<Rate> for KeyNumber {
    fn from(value: Rate) -> Self {
        Self::Whole(value.0)
    }
}

impl KeyRange {
    /// Every value.
    pub(crate) const ANY: Self = Self { low: Bound::Unbounded, high: Bound::Unbounded, unit: "" };

    /// The values of a range; their unit if they are written without one.
    pub(crate) fn new<T: Copy + Into<KeyNumber>>(
        range: &impl RangeBounds<T>,
        unit: &'static str,
    ) -> Self {
        let bound = |bound: Bound<&T>| bound.map(|value| (*value).into());
        Self { low: bound(range.start_bound()), high: bound(range.end_bound()), unit }
    }

    fn contains(&self, number: KeyNumber) -> bool {
        let is_finite = matches!(number, KeyNumber::Whole(_))
            || matches!(number, KeyNumber::Real(value) if value.is_finite());
        *self == Self::ANY || is_finite && (self.low, self.high).contains(&number)
    }

    /// The range in words, such as `from 1 to 64 requests`.
    fn text(&self, write: fn(KeyNumber) -> String) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match (self.low, self.high) {
            (Bound::Included(low), Bound::Included(high)) => {
                format!("from {} to {}{unit}", write(low), write(high))
            }
            (Bound::Included(low), Bound::Excluded(high)) => {
                format!("from {} to below {}{unit}", write(low), write(high))
            }
            (Bound::Excluded(low), Bound::Included(high)) => {
                format!("above {} and at most {}{unit}", write(low), write(high))
            }
            (Bound::Included(low), Bound::Unbounded) => format!("at least {}{unit}", write(low)),
            (Bound::Excluded(low), _) => format!("above {}{unit}", write(low)),
            (Bound::Unbounded, Bound::Included(high)) => format!("at most {}{unit}", write(high)),
            (Bound::Unbounded, _) => String::new(),
        }
    }
}

/// One key of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The dotted key, with `NAME` for an entry of an array of tables.
    pub key: String,
    /// How values are written.
    pub kind: String,
    /// The value of a file without the key.
    pub default: String,
    /// The values that it accepts.
    pub range: String,
    /// Its meaning.
    pub about: String,
    /// The JSON schema of its values.
    pub schema: Value,
}

/// The value at a key of a file, which may be a table of further keys.
pub(crate) trait KeyEntry {
    /// How values are written, for the reference.
    fn kind() -> String
    where
        Self: Sized;

    /// The accepted values in words.
    fn range(_: &KeyRange) -> String
    where
        Self: Sized,
    {
        String::new()
    }

    /// The JSON schema of the values.
    fn schema(limits: &KeyRange) -> Value
    where
        Self: Sized;

    /// The name of an entry of an array of tables.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Fails unless the values lie within their ranges.
    fn check(&self, key: &str, limits: &KeyRange) -> Check;

    /// Adds this key, or those of the table, to the reference.
    fn describe(&self, key: &str, about: &str, limits: &KeyRange, keys: &mut Vec<KeyRow>);
}

/// The dotted key of a table's key.
pub(crate) fn dotted(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// Declares a table: a struct whose fields are its keys. `where RANGE` bounds the values of a key, `=> "UNIT"` names
/// the unit of plain numbers, and `as "NAME"` gives the key's name in files if it is not the field's. A table
/// `named` stands in an array, whose entries differ by their `name`. `=> OVERLAY` declares a second table of the
/// same keys, all optional, whose values take the place of the first one's.
macro_rules! keys {
    ($(#[$meta:meta])* $vis:vis struct $table:ident => $overlay:ident $body:tt) => {
        $crate::keys::keys! { $(#[$meta])* $vis struct $table $body }
        $crate::keys::overlay! { $vis $overlay of $table $body }
    };
    ($(#[$meta:meta])* $vis:vis struct $table:ident $($named:ident)? {$(
        $(#[doc = $doc:literal])*
        $(#[serde $serde:tt])*
        $kvis:vis $key:ident $(as $name:literal)?: $type:ty $(where $range:expr $(=> $unit:literal)?)?
    ),* $(,)?}) => {
        $(#[$meta])*
        $vis struct $table {$(
            $(#[doc = $doc])*
            $(#[serde $serde])*
            $kvis $key: $type,
        )*}

        impl $crate::keys::KeyEntry for $table {
            fn kind() -> String {
                "table".to_owned()
            }

            fn schema(_: &$crate::keys::KeyRange) -> serde_json::Value {
                $crate::keys::schema::word(&Self::kind())
            }

            $(fn name(&self) -> Option<&str> {
                Some(&self.$named)
            })?

            fn check(&self, table: &str, _: &$crate::keys::KeyRange) -> $crate::keys::Check {
                $({
                    let key = $crate::keys::dotted(table, $crate::keys::key_name!($key $($name)?));
                    let limits = $crate::keys::limits!($($range $(=> $unit)?)?);
                    $crate::keys::KeyEntry::check(&self.$key, &key, &limits)?;
                })*
                Ok(())
            }

            fn describe(
                &self,
                table: &str,
                _: &str,
                _: &$crate::keys::KeyRange,
                keys: &mut Vec<$crate::keys::KeyRow>,
            ) {
                $({
                    let key = $crate::keys::dotted(table, $crate::keys::key_name!($key $($name)?));
                    let limits = $crate::keys::limits!($($range $(=> $unit)?)?);
                    let about = concat!($($doc, "\n"),*);
                    $crate::keys::KeyEntry::describe(&self.$key, &key, about, &limits, keys);
                })*
            }
        }
    };
}

macro_rules! overlay {
    ($vis:vis $overlay:ident of $table:ident {$(
        $(#[doc = $doc:literal])*
        $(#[serde $serde:tt])*
        $kvis:vis $key:ident: $type:ty $(where $range:expr $(=> $unit:literal)?)?
    ),* $(,)?}) => {
        /// The keys that differ from those of the table below.
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        $vis struct $overlay {$(
            #[serde(default, skip_serializing_if = "Option::is_none")]
            $kvis $key: Option<$type>,
        )*}

        impl $overlay {
            /// The table below with these keys over its own.
            $vis fn over(&self, below: $table) -> $table {
                $table {$($key: self.$key.clone().unwrap_or(below.$key),)*}
            }

            /// Whether it has this key, or keys of this table.
            $vis fn sets(&self, key: &str) -> bool {
                let key = key.split('.').next().unwrap_or_default();
                [$((stringify!($key), self.$key.is_some()),)*].contains(&(key, true))
            }

            $vis fn is_empty(&self) -> bool {
                *self == Self::default()
            }
        }
    };
}

macro_rules! key_name {
    ($key:ident) => {
        stringify!($key)
    };
    ($key:ident $name:literal) => {
        $name
    };
}

macro_rules! limits {
    () => {
        $crate::keys::KeyRange::ANY
    };
    ($range:expr) => {
        $crate::keys::KeyRange::new(&$range, "")
    };
    ($range:expr => $unit:literal) => {
        $crate::keys::KeyRange::new(&$range, $unit)
    };
}

pub(crate) use {key_name, keys, limits, overlay};

/// Adds a key without a default to the reference.
fn describe_absent<T: KeyEntry>(key: &str, about: &str, limits: &KeyRange, keys: &mut Vec<KeyRow>) {
    let words: Vec<&str> = about.split_whitespace().collect();
    keys.push(KeyRow {
        key: key.to_owned(),
        kind: T::kind(),
        default: String::new(),
        range: T::range(limits),
        about: words.join(" "),
        schema: T::schema(limits),
    });
}

/// Adds a key with this value as its default to the reference.
pub(crate) fn describe_value<T: KeyEntry + Serialize>(
    value: &T,
    key: &str,
    about: &str,
    limits: &KeyRange,
    keys: &mut Vec<KeyRow>,
) {
    describe_absent::<T>(key, about, limits, keys);
    if let Some(own) = keys.last_mut() {
        own.default = written(value);
    }
}

/// A value as a file has it.
fn written(value: &impl Serialize) -> String {
    match serde_json::to_value(value).unwrap_or_default() {
        serde_json::Value::String(text) if text.is_empty() => String::new(),
        serde_json::Value::String(text) => format!("\"{text}\""),
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Values of one number each, or of several.
macro_rules! numbers {
    ($($type:ty, $kind:literal, $write:expr, $schema:expr, $numbers:expr;)*) => {$(
        impl KeyEntry for $type {
            fn kind() -> String {
                $kind.to_owned()
            }

            fn range(limits: &KeyRange) -> String {
                limits.text($write)
            }

            fn schema(limits: &KeyRange) -> Value {
                let schema: fn(&KeyRange) -> Value = $schema;
                schema(limits)
            }

            fn check(&self, key: &str, limits: &KeyRange) -> Check {
                let numbers: fn(&Self) -> Vec<KeyNumber> = $numbers;
                let fits = numbers(self).into_iter().all(|number| limits.contains(number));
                require(fits, key, &format!("must be {}", limits.text($write)))
            }

            fn describe(&self, key: &str, about: &str, limits: &KeyRange, keys: &mut Vec<KeyRow>) {
                describe_value(self, key, about, limits, keys);
            }
        }
    )*};
}

fn plain(number: KeyNumber) -> String {
    match number {
        KeyNumber::Whole(value) => value.to_string(),
        KeyNumber::Real(value) => value.to_string(),
    }
}

fn time(number: KeyNumber) -> String {
    match number {
        KeyNumber::Whole(nanos) if Time(nanos) == LONGEST => "36525 days".to_owned(),
        KeyNumber::Whole(nanos) if Time(nanos) == MINUTE => "60 s".to_owned(),
        KeyNumber::Whole(86_400_000_000_000) => "a day (86400 s)".to_owned(),
        KeyNumber::Whole(nanos) => Time(nanos).to_string(),
        KeyNumber::Real(value) => value.to_string(),
    }
}

fn rate(number: KeyNumber) -> String {
    match number {
        KeyNumber::Whole(bits) => Rate(bits).to_string(),
        KeyNumber::Real(value) => value.to_string(),
    }
}

numbers! {
    u8, "number", plain, schema::integer, |value| vec![KeyNumber::Whole((*value).into())];
    u16, "number", plain, schema::integer, |value| vec![KeyNumber::Whole((*value).into())];
    u32, "number", plain, schema::integer, |value| vec![KeyNumber::Whole((*value).into())];
    u64, "number", plain, schema::integer, |value| vec![KeyNumber::Whole(*value)];
    f64, "number", plain, schema::real, |value| vec![KeyNumber::Real(*value)];
    Time, "time", time, schema::time, |value| vec![KeyNumber::Whole(value.0)];
    Rate, "rate", rate, schema::rate, |value| vec![KeyNumber::Whole(value.0)];
    TimeRange, "range of times", time, schema::time_range, |value| vec![KeyNumber::Whole(value.ends().0), KeyNumber::Whole(value.ends().1)];
    Buffer, "buffer", plain, schema::buffer, |value| value.0.map(KeyNumber::Whole).into_iter().collect();
    [u32; 2], "two numbers", plain, schema::pair, |value| value.map(|one| KeyNumber::Whole(one.into())).to_vec();
}

/// Values without a range: texts and names.
macro_rules! texts {
    ($($type:ty => $kind:expr),* $(,)?) => {$(
        impl $crate::keys::KeyEntry for $type {
            fn kind() -> String {
                $kind
            }

            fn schema(_: &$crate::keys::KeyRange) -> serde_json::Value {
                $crate::keys::schema::word(&Self::kind())
            }

            fn check(&self, _: &str, _: &$crate::keys::KeyRange) -> $crate::keys::Check {
                Ok(())
            }

            fn describe(
                &self,
                key: &str,
                about: &str,
                limits: &$crate::keys::KeyRange,
                keys: &mut Vec<$crate::keys::KeyRow>,
            ) {
                $crate::keys::describe_value(self, key, about, limits, keys);
            }
        }
    )*};
}

pub(crate) use texts;

texts! {
    bool => "true or false".to_owned(),
    String => "text".to_owned(),
}

/// The names of an enum's variants, as its parser lists them.
pub(crate) fn names<T: DeserializeOwned>() -> String {
    let nobody: StrDeserializer<'_, serde::de::value::Error> = "".into_deserializer();
    let error = T::deserialize(nobody).map_or_else(|error| error.to_string(), |_| String::new());
    let names: Vec<String> =
        error.split('`').skip(3).step_by(2).map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

impl<T: KeyEntry> KeyEntry for Option<T> {
    fn range(limits: &KeyRange) -> String {
        T::range(limits)
    }

    fn kind() -> String {
        T::kind()
    }

    fn schema(limits: &KeyRange) -> Value {
        T::schema(limits)
    }

    fn check(&self, key: &str, limits: &KeyRange) -> Check {
        self.as_ref().map_or(Ok(()), |value| value.check(key, limits))
    }

    fn describe(&self, key: &str, about: &str, limits: &KeyRange, keys: &mut Vec<KeyRow>) {
        match self {
            Some(value) => value.describe(key, about, limits, keys),
            None => describe_absent::<Self>(key, about, limits, keys),
        }
    }
}

impl<T: KeyEntry> KeyEntry for Vec<T> {
    fn range(limits: &KeyRange) -> String {
        T::range(limits)
    }

    fn kind() -> String {
        format!("list of {}s", T::kind())
    }

    fn schema(limits: &KeyRange) -> Value {
        json!({"type": "array", "items": T::schema(limits)})
    }

    fn check(&self, key: &str, limits: &KeyRange) -> Check {
        self.iter().try_for_each(|value| match value.name() {
            Some(name) => value.check(&dotted(key, name), limits),
            None => value.check(key, limits),
        })
    }

    fn describe(&self, key: &str, about: &str, limits: &KeyRange, keys: &mut Vec<KeyRow>) {
        match self.first() {
            Some(table) if table.name().is_some() => {
                table.describe(&dotted(key, "NAME"), about, limits, keys);
            }
            _ => describe_absent::<Self>(key, about, limits, keys),
        }
    }
}

impl<T> KeyEntry for BTreeMap<String, T> {
    fn kind() -> String {
        "table".to_owned()
    }

    fn schema(_: &KeyRange) -> Value {
        schema::word(&Self::kind())
    }

    fn check(&self, _: &str, _: &KeyRange) -> Check {
        Ok(())
    }

    fn describe(&self, key: &str, about: &str, _: &KeyRange, keys: &mut Vec<KeyRow>) {
        describe_absent::<Self>(key, about, &KeyRange::ANY, keys);
    }
}
