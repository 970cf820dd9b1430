//! Bodies as values in JSON and CBOR, by serde.

use super::response::{ContentFormat, Response};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The error for a body that cannot be decoded as the requested value, or for a value that cannot
/// be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    format: &'static str,
    writing: bool,
    reason: String,
}

impl DataError {
    fn reading(format: &'static str, reason: impl fmt::Display) -> Self {
        Self { format, writing: false, reason: reason.to_string() }
    }

    fn writing(format: &'static str, reason: impl fmt::Display) -> Self {
        Self { format, writing: true, reason: reason.to_string() }
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, writing, reason } = self;
        if *writing {
            write!(f, "the value cannot be written as {format}: {reason}")
        } else {
            write!(f, "the {format} body is not valid: {reason}")
        }
    }
}

impl core::error::Error for DataError {}

impl Response {
    /// Decodes the body as a value in JSON, whatever its Content-Format.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is not such a value.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, DataError> {
        from_json(&self.payload)
    }

    /// Decodes the body as a value in CBOR, whatever its Content-Format.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is not such a value.
    pub fn cbor<T: DeserializeOwned>(&self) -> Result<T, DataError> {
        from_cbor(&self.payload)
    }

    /// Decodes the body as a value in JSON or CBOR, by its Content-Format; JSON if it has none.
    ///
    /// # Errors
    ///
    /// Returns an error if the body is not such a value.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, DataError> {
        match self.content_format() {
            Some(ContentFormat::CBOR) => self.cbor(),
            _ => self.json(),
        }
    }
}

/// Reads a value in JSON (RFC 8259).
///
/// # Errors
///
/// Returns an error if the bytes are not such a value.
pub fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, DataError> {
    serde_json::from_slice(body).map_err(|error| DataError::reading("JSON", error))
}

/// Reads a value in CBOR (RFC 8949).
///
/// # Errors
///
/// Returns an error if the bytes are not such a value.
pub fn from_cbor<T: DeserializeOwned>(body: &[u8]) -> Result<T, DataError> {
    ciborium::from_reader(body).map_err(|error| DataError::reading("CBOR", error))
}

/// Writes a value in JSON (RFC 8259).
///
/// # Errors
///
/// Returns an error if the value cannot be encoded, such as a map whose keys are not strings.
pub fn to_json(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, DataError> {
    serde_json::to_vec(value).map_err(|error| DataError::writing("JSON", error))
}

/// Writes a value in CBOR (RFC 8949).
///
/// # Errors
///
/// Returns an error if the value cannot be encoded.
pub fn to_cbor(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, DataError> {
    let mut body = Vec::new();
    match ciborium::into_writer(value, &mut body) {
        Ok(()) => Ok(body),
        Err(error) => Err(DataError::writing("CBOR", error)),
    }
}
