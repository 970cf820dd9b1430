//! The JSON schemas of values, from their kinds and ranges.

use super::{KeyNumber, KeyRange};
use crate::units::{Buffer, Rate, Time};
use serde_json::{Value, json};
use std::ops::Bound;

impl KeyRange {
    /// The schema of a number within the range.
    fn bounds(&self, mut number: Value) -> Value {
        let json = |bound| match bound {
            KeyNumber::Whole(value) => json!(value),
            KeyNumber::Real(value) => json!(value),
        };
        match self.low {
            Bound::Included(low) => number["minimum"] = json(low),
            Bound::Excluded(low) => number["exclusiveMinimum"] = json(low),
            Bound::Unbounded => {}
        }
        match self.high {
            Bound::Included(high) => number["maximum"] = json(high),
            Bound::Excluded(high) => number["exclusiveMaximum"] = json(high),
            Bound::Unbounded => {}
        }
        number
    }
}

pub(super) fn integer(limits: &KeyRange) -> Value {
    limits.bounds(json!({"type": "integer", "minimum": 0}))
}

pub(super) fn real(limits: &KeyRange) -> Value {
    limits.bounds(json!({"type": "number"}))
}

/// A text with a unit has no bounds in a schema: the meaning of the key names them.
fn quantity(pattern: &str) -> Value {
    json!({"type": "string", "pattern": pattern})
}

pub(super) fn time(_: &KeyRange) -> Value {
    json!({"anyOf": [quantity(&Time::pattern()), {"const": 0}]})
}

pub(super) fn time_range(limits: &KeyRange) -> Value {
    json!({"anyOf": [quantity(&Time::pattern()), two_of(&time(limits))]})
}

pub(super) fn buffer(limits: &KeyRange) -> Value {
    json!({"anyOf": [integer(limits), quantity(&Buffer::pattern()), {"const": "infinite"}]})
}

pub(super) fn rate(_: &KeyRange) -> Value {
    quantity(&Rate::pattern())
}

pub(super) fn pair(limits: &KeyRange) -> Value {
    two_of(&integer(limits))
}

fn two_of(item: &Value) -> Value {
    json!({"type": "array", "items": item, "minItems": 2, "maxItems": 2})
}

/// The schema of values whose kind is a word, or the list of their names.
pub(crate) fn word(kind: &str) -> Value {
    let kind_is = |json_type: &str| json!({"type": json_type});
    match kind {
        "true or false" => kind_is("boolean"),
        "table" => kind_is("object"),
        "table with a kind" => json!({"type": "object", "required": ["kind"]}),
        names if names.starts_with('`') => {
            let names: Vec<&str> = names.split(", ").map(|name| name.trim_matches('`')).collect();
            json!({"enum": names})
        }
        _ => kind_is("string"),
    }
}
