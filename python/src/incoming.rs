//! Requests for handlers that are Python functions.

use crate::message::{Options, code_of, dotted};
use bytes::Bytes;
use ebbtide::server::Call;
use ebbtide::{Code, OptionNumber};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// A request that waits for its handler.
#[pyclass(frozen)]
pub(crate) struct Incoming {
    pub(crate) route: usize,
    pub(crate) method: Code,
    pub(crate) call: Call<'static>,
    pub(crate) reply: Mutex<Option<oneshot::Sender<ebbtide::Response>>>,
}

#[pymethods]
impl Incoming {
    /// The index of the server's route.
    #[getter]
    fn route(&self) -> usize {
        self.route
    }

    #[getter]
    fn method(&self) -> &'static str {
        self.method.name().unwrap_or_default()
    }

    /// The client's address and port.
    #[getter]
    fn remote(&self) -> (String, u16) {
        (self.call.remote().ip().to_string(), self.call.remote().port())
    }

    /// The identity that the client has proved to have the key of.
    #[getter]
    fn identity<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let identity = py.detach(|| self.call.identity().map(<[u8]>::to_vec));
        identity.map(|identity| PyBytes::new(py, &identity))
    }

    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.call.payload())
    }

    fn param(&self, name: &str) -> Option<&str> {
        self.call.param(name)
    }

    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> Vec<(u16, Bound<'py, PyBytes>)> {
        let options = self.call.message().options();
        options.map(|option| (option.number.0, PyBytes::new(py, option.value))).collect()
    }

    /// Answers the request; only the first answer counts.
    #[pyo3(signature = (code, payload, options))]
    fn reply(&self, code: &str, payload: &[u8], options: Options) -> PyResult<()> {
        let response = ebbtide::Response::new(code_of(code)?);
        let response = response.payload(Bytes::copy_from_slice(payload));
        let response = options.iter().fold(response, |response, (number, value)| {
            response.option(OptionNumber(*number), value)
        });
        let sender = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // The client may have gone.
            let _ = sender.send(response);
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<Incoming {} from {}>", dotted(self.method), self.call.remote())
    }
}
