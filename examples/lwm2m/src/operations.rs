//! Read, Write and Execute at a device. To observe is [`Peer::observe`].

use crate::senml::{self, SENML_JSON};
use bytes::Bytes;
use ebbtide::{Error, Peer, Request};

/// Read: one resource, or all of an instance.
///
/// # Errors
///
/// Returns an error if the device is gone, refuses, or sends other than SenML.
pub async fn read(device: &Peer, path: &str) -> Result<Vec<(String, String)>, Error> {
    let request = Request::get(device.uri(path)?)?;
    let is_resource = path.split('/').count() > 3;
    let request = if is_resource { request } else { request.accept(SENML_JSON) };
    let response = device.request(request).await?.error_for_status()?;
    match response.content_format() {
        Some(SENML_JSON) => Ok(senml::read(response.body()).unwrap_or_default()),
        _ => Ok(vec![(path.to_owned(), response.text().into_owned())]),
    }
}

/// Write, in blocks if need be.
///
/// # Errors
///
/// Returns an error if the device is gone or refuses.
pub async fn write(device: &Peer, path: &str, value: impl Into<Bytes>) -> Result<(), Error> {
    device.put(path, value).await?.error_for_status().map(drop).map_err(Error::from)
}

/// Execute.
///
/// # Errors
///
/// Returns an error if the device is gone or refuses.
pub async fn execute(device: &Peer, path: &str) -> Result<(), Error> {
    device.post(path, "").await?.error_for_status().map(drop).map_err(Error::from)
}
