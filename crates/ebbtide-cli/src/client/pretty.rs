//! Payloads as people read them.

use ebbtide::{ContentFormat, Response};

/// The payload readable: JSON and CBOR indented, the rest as it is.
pub(crate) fn readable(response: &Response) -> Vec<u8> {
    let body = response.body();
    match response.content_format() {
        Some(ContentFormat::JSON | ContentFormat(110)) => {
            json(body).unwrap_or_else(|| body.to_vec())
        }
        _ => body.to_vec(),
    }
}

fn json(body: &[u8]) -> Option<Vec<u8>> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    serde_json::to_vec_pretty(&value).ok()
}
