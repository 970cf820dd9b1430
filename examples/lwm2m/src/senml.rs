//! Values in SenML JSON (RFC 8428), the form of several resources at once; one resource is plain text.

use ebbtide::ContentFormat;
use serde::{Deserialize, Serialize};

/// `application/senml+json`.
pub const SENML_JSON: ContentFormat = ContentFormat(110);

/// A value, or the name of those that follow.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    #[serde(rename = "bn", skip_serializing_if = "String::is_empty")]
    base: String,
    #[serde(rename = "n", skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(rename = "v", skip_serializing_if = "Option::is_none")]
    number: Option<f64>,
    #[serde(rename = "vs", skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(rename = "vb", skip_serializing_if = "Option::is_none")]
    boolean: Option<bool>,
}

/// A value to write.
#[derive(Copy, Clone, Debug)]
pub enum Value<'v> {
    /// A number, which is finite.
    Number(f64),
    /// A text.
    Text(&'v str),
}

/// Writes values with their names below `base`.
///
/// # Errors
///
/// Returns an error if a number is not finite.
pub fn write<'v>(
    base: &str,
    values: impl IntoIterator<Item = (String, Value<'v>)>,
) -> serde_json::Result<Vec<u8>> {
    let records = values.into_iter().enumerate().map(|(place, (name, value))| {
        let base = if place == 0 { base.to_owned() } else { String::new() };
        match value {
            Value::Number(number) => {
                Record { base, name, number: Some(number), ..Record::default() }
            }
            Value::Text(text) => {
                Record { base, name, text: Some(text.into()), ..Record::default() }
            }
        }
    });
    serde_json::to_vec(&records.collect::<Vec<_>>())
}

/// Reads a pack: whole names with values as text.
///
/// # Errors
///
/// Returns an error if it is not SenML JSON.
pub fn read(pack: &[u8]) -> serde_json::Result<Vec<(String, String)>> {
    let mut base = String::new();
    let records: Vec<Record> = serde_json::from_slice(pack)?;
    let named = records.into_iter().map(|record| {
        if !record.base.is_empty() {
            base.clone_from(&record.base);
        }
        let number = record.number.map(|number| number.to_string());
        let value = number.or(record.text).or(record.boolean.map(|value| value.to_string()));
        (format!("{base}{}", record.name), value.unwrap_or_default())
    });
    Ok(named.collect())
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn what_was_written_is_read() {
        let values = [("0".into(), Value::Text("Ebbtide")), ("11".into(), Value::Number(0.0))];
        let pack = super::write("/3/0/", values).unwrap();
        assert_eq!(pack, br#"[{"bn":"/3/0/","n":"0","vs":"Ebbtide"},{"n":"11","v":0.0}]"#);
        let read = super::read(&pack).unwrap();
        assert_eq!(read, [("/3/0/0".into(), "Ebbtide".into()), ("/3/0/11".into(), "0".into())]);
        // The examples of RFC 8428 and of other implementations.
        let other = br#"[{"bn":"/5/0/","n":"9","v":2,"t":1},{"n":"1","vb":true},{"n":"2"}]"#;
        let read = super::read(other).unwrap();
        assert_eq!(read[1], ("/5/0/1".into(), "true".into()));
        assert!(super::read(b"{}").is_err());
    }
}
