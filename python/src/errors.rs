//! Python exceptions for errors.

use ebbtide_sim::record::StoreError;
use ebbtide_sim::run::CampaignError;
use ebbtide_sim::scenario::ScenarioError;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyConnectionError, PyConnectionRefusedError, PyException, PyOSError, PyRuntimeError,
    PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use std::error::Error as _;
use std::io;

create_exception!(ebbtide, EbbtideError, PyException, "An error of Ebbtide.");
create_exception!(ebbtide, RunError, PyRuntimeError, "A replication could not be run.");
create_exception!(
    ebbtide,
    NoAnswer,
    PyTimeoutError,
    "The exchange ended without an answer: after MAX_RETRANSMIT retransmissions, or the time given."
);
create_exception!(
    ebbtide,
    ResetError,
    PyConnectionError,
    "The peer answered the message with a Reset."
);
create_exception!(
    ebbtide,
    ConnectionLost,
    PyConnectionError,
    "A connection ended before the answer, could not be made, or did not take the message."
);
create_exception!(ebbtide, ProtocolError, EbbtideError, "The peer violated a protocol.");
create_exception!(
    ebbtide,
    TooLargeError,
    EbbtideError,
    "A body is longer than the client accepts."
);

/// An invalid argument of the caller.
pub(crate) fn argument(error: &ScenarioError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Results that cannot be written or read.
pub(crate) fn store(error: &StoreError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

pub(crate) fn campaign(error: &CampaignError) -> PyErr {
    match error {
        CampaignError::Store(error) => store(error),
        CampaignError::Run { .. } => RunError::new_err(error.to_string()),
    }
}

/// The reason why a request got no response.
pub(crate) fn request(error: &ebbtide::Error) -> PyErr {
    use ebbtide::ErrorKind;
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Uri | ErrorKind::NoCredentials => PyValueError::new_err(text),
        ErrorKind::Bind | ErrorKind::Resolve => PyOSError::new_err(text),
        ErrorKind::GaveUp | ErrorKind::NoResponse | ErrorKind::TimedOut => NoAnswer::new_err(text),
        ErrorKind::Network if is_refusal(error) => PyConnectionRefusedError::new_err(text),
        ErrorKind::Network => PyConnectionError::new_err(text),
        ErrorKind::NotSent | ErrorKind::Connection | ErrorKind::Tls | ErrorKind::Dtls => {
            ConnectionLost::new_err(text)
        }
        ErrorKind::Reset => ResetError::new_err(text),
        ErrorKind::Protocol => ProtocolError::new_err(text),
        ErrorKind::TooLarge => TooLargeError::new_err(text),
        _ => EbbtideError::new_err(text),
    }
}

/// Whether no program listens at the peer's port.
fn is_refusal(error: &ebbtide::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.kind() == io::ErrorKind::ConnectionRefused)
}
