//! Requests from Python arguments, and responses as Python objects.

use bytes::Bytes;
use ebbtide::{Code, ContentFormat, OptionNumber, Request};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::time::Duration;

/// The options of a message: number and value.
pub(crate) type Options = Vec<(u16, Vec<u8>)>;

/// A response: what a client receives.
#[pyclass(frozen, module = "ebbtide")]
pub(crate) struct Response(pub(crate) ebbtide::Response);

#[pymethods]
impl Response {
    #[new]
    #[pyo3(signature = (code, payload=Vec::new(), options=Vec::new()))]
    fn new(code: &str, payload: Vec<u8>, options: Options) -> PyResult<Self> {
        let mut response = ebbtide::Response::new(code_of(code)?).payload(payload);
        for (number, value) in &options {
            response = response.option(OptionNumber(*number), value);
        }
        Ok(Self(response))
    }

    /// The arguments that make an equal one, for `pickle` and `copy`.
    fn __getnewargs__<'py>(
        &self,
        py: Python<'py>,
    ) -> (String, Bound<'py, PyBytes>, Vec<(u16, Bound<'py, PyBytes>)>) {
        (self.code(), self.payload(py), self.options(py))
    }

    #[getter]
    fn code(&self) -> String {
        dotted(self.0.code())
    }

    #[getter]
    fn is_success(&self) -> bool {
        self.0.is_success()
    }

    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.body())
    }

    #[getter]
    fn text(&self) -> String {
        self.0.text().into_owned()
    }

    #[getter]
    fn content_format(&self) -> Option<u16> {
        self.0.content_format().map(|format| format.0)
    }

    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> Vec<(u16, Bound<'py, PyBytes>)> {
        let options = self.0.options().iter();
        options.map(|option| (option.number.0, PyBytes::new(py, option.value))).collect()
    }

    fn json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (PyBytes::new(py, self.0.body()),))
    }

    fn __repr__(&self) -> String {
        let name = self.0.code().name().unwrap_or_default();
        format!("<Response {} {name}, {} bytes>", dotted(self.0.code()), self.0.body().len())
    }
}

/// A code in its usual notation, such as `2.05`.
pub(crate) fn dotted(code: Code) -> String {
    format!("{}.{:02}", code.class(), code.detail())
}

/// Parses a code such as `2.05`.
pub(crate) fn code_of(text: &str) -> PyResult<Code> {
    let parsed = text.split_once('.').and_then(|(class, detail)| {
        let (class, detail): (u8, u8) = (class.parse().ok()?, detail.parse().ok()?);
        (class < 8 && detail < 32).then(|| Code::new(class, detail))
    });
    parsed.ok_or_else(|| PyValueError::new_err(format!("code: '{text}' is not one such as 2.05")))
}

/// The number of a Content-Format, given as a name or a number.
pub(crate) fn format_of(text: &str) -> PyResult<ContentFormat> {
    ContentFormat::parse(text).ok_or_else(|| {
        let known: Vec<&str> = ContentFormat::names().take(12).collect();
        PyValueError::new_err(format!(
            "format: '{text}' is not known; give a number, or one such as {}",
            known.join(", ")
        ))
    })
}

/// The properties of a request other than method, URI and payload.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct How {
    options: Options,
    format: Option<String>,
    accept: Option<String>,
    confirmable: bool,
    timeout: Option<f64>,
    block_size: Option<usize>,
    q_block: bool,
}

/// Builds a request from Python arguments.
pub(crate) fn request(
    method: &str,
    uri: &str,
    payload: &[u8],
    how: Option<How>,
) -> PyResult<Request> {
    let code = match method {
        "GET" => Code::GET,
        "POST" => Code::POST,
        "PUT" => Code::PUT,
        "DELETE" => Code::DELETE,
        "FETCH" => Code::FETCH,
        "PATCH" => Code::PATCH,
        "iPATCH" => Code::IPATCH,
        _ => {
            return Err(PyValueError::new_err(format!(
                "method: '{method}' is not one of GET, POST, PUT, DELETE, FETCH, PATCH, iPATCH"
            )));
        }
    };
    let request = Request::new(code, uri);
    let mut request = request.map_err(|error| PyValueError::new_err(error.to_string()))?;
    if !payload.is_empty() {
        request = request.payload(Bytes::copy_from_slice(payload));
    }
    let Some(how) = how else { return Ok(request) };
    for (number, value) in &how.options {
        request = request.option(OptionNumber(*number), value);
    }
    if let Some(format) = &how.format {
        request = request.format(format_of(format)?);
    }
    if let Some(format) = &how.accept {
        request = request.accept(format_of(format)?);
    }
    if !how.confirmable {
        request = request.non_confirmable();
    }
    if let Some(seconds) = how.timeout {
        let span = Duration::try_from_secs_f64(seconds).map_err(|error| {
            PyValueError::new_err(format!("timeout: {seconds} s is not possible: {error}"))
        })?;
        request = request.timeout(span);
    }
    if let Some(bytes) = how.block_size {
        request = request.block_size(bytes);
    }
    Ok(if how.q_block { request.q_block() } else { request })
}
