//! The JSON schema of scenario files, with which editors complete and check them.

use super::reference;
use crate::keys::KeyRow;
use serde_json::{Map, Value, json};

/// The JSON schema of scenario files, from the [`reference()`] of their keys.
///
/// The parser alone checks keys against each other, and the ranges of texts with a unit.
///
/// # Errors
///
/// As [`reference()`].
pub fn schema() -> Result<Value, toml::de::Error> {
    let mut root = table();
    for key in reference()? {
        let mut place = &mut root;
        let mut parts = key.key.split('.').peekable();
        while let Some(part) = parts.next() {
            let is_array = parts.next_if_eq(&"NAME").is_some();
            if parts.peek().is_none() && !is_array {
                add(place, part, &key);
                break;
            }
            place = &mut place["properties"][part];
            if place.is_null() {
                *place =
                    if is_array { json!({"type": "array", "items": table()}) } else { table() };
            }
            if is_array {
                place = &mut place["items"];
            }
        }
    }
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root["title"] = json!("A scenario of ebbtide");
    Ok(root)
}

/// A table that has no other keys than those added.
fn table() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

/// Adds a key to the schema of its table.
fn add(table: &mut Value, name: &str, key: &KeyRow) {
    let mut schema = key.schema.as_object().cloned().unwrap_or_else(Map::new);
    let range =
        if key.range.is_empty() { String::new() } else { format!(" Range: {}.", key.range) };
    schema.insert("description".to_owned(), json!(format!("{}{range}", key.about)));
    if key.default == "required" {
        match table["required"].as_array_mut() {
            Some(required) => required.push(json!(name)),
            None => table["required"] = json!([name]),
        }
    } else if let Ok(default) = serde_json::from_str::<Value>(&key.default) {
        schema.insert("default".to_owned(), default);
    }
    table["properties"][name] = Value::Object(schema);
}
