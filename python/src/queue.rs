//! Events of the sockets' thread for an asyncio loop.
//!
//! The loop watches a descriptor. When it becomes readable, the loop takes all events at once: it
//! is woken once for everything that ended meanwhile, and the sockets' thread never waits for the
//! interpreter.

use crate::errors;
use crate::incoming::Incoming;
use crate::message::Response;
use pyo3::prelude::*;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

/// An event for the asyncio loop.
pub(crate) enum LoopEvent {
    /// The response for an asyncio future.
    Answered(Py<PyAny>, Result<ebbtide::Response, ebbtide::Error>),
    /// The next state of an observed resource; `None` at the end of the observation.
    Observed(Py<PyAny>, Option<Result<ebbtide::Response, ebbtide::Error>>),
    /// Round trip of a ping, s.
    Pinged(Py<PyAny>, Result<Option<f64>, ebbtide::Error>),
    /// A request for a handler.
    Request(Incoming),
}

struct Inner {
    happened: Mutex<Vec<LoopEvent>>,
    writer: UnixStream,
    reader: UnixStream,
}

/// The queue of one asyncio loop.
#[pyclass(frozen)]
#[derive(Clone)]
pub(crate) struct Queue(Arc<Inner>);

impl Queue {
    /// Adds an event, and wakes the loop if it has not been woken already.
    pub(crate) fn push(&self, what: LoopEvent) {
        let mut happened = self.0.happened.lock().unwrap_or_else(PoisonError::into_inner);
        happened.push(what);
        if happened.len() == 1 {
            // A full pipe wakes the loop as well.
            let _ = (&self.0.writer).write(&[1]);
        }
    }
}

#[pymethods]
impl Queue {
    #[new]
    fn new() -> PyResult<Self> {
        let (writer, reader) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        reader.set_nonblocking(true)?;
        Ok(Self(Arc::new(Inner { happened: Mutex::default(), writer, reader })))
    }

    fn fileno(&self) -> i32 {
        self.0.reader.as_raw_fd()
    }

    /// Resolves the futures of everything that ended, and returns the requests that arrived.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<Incoming>> {
        let _ = (&self.0.reader).read(&mut [0; 64]);
        let all = {
            let mut happened = self.0.happened.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *happened)
        };
        let mut asked = Vec::new();
        for one in all {
            match one {
                LoopEvent::Request(incoming) => asked.push(incoming),
                LoopEvent::Answered(future, answer) => settle(py, &future, response(py, answer))?,
                LoopEvent::Observed(future, None) => {
                    settle(py, &future, Ok(py.None()))?;
                }
                LoopEvent::Observed(future, Some(answer)) => {
                    settle(py, &future, response(py, answer))?;
                }
                LoopEvent::Pinged(future, round_trip) => {
                    let value = match round_trip {
                        Ok(span) => span.into_pyobject(py).map(Bound::unbind).map_err(Into::into),
                        Err(error) => Err(errors::request(&error)),
                    };
                    settle(py, &future, value)?;
                }
            }
        }
        Ok(asked)
    }
}

fn response(
    py: Python<'_>,
    answer: Result<ebbtide::Response, ebbtide::Error>,
) -> PyResult<Py<PyAny>> {
    let response = answer.map_err(|error| errors::request(&error))?;
    Ok(Py::new(py, Response(response))?.into_any())
}

fn settle(py: Python<'_>, future: &Py<PyAny>, value: PyResult<Py<PyAny>>) -> PyResult<()> {
    if future.call_method0(py, "done")?.is_truthy(py)? {
        return Ok(());
    }
    match value {
        Ok(value) => future.call_method1(py, "set_result", (value,))?,
        Err(error) => future.call_method1(py, "set_exception", (error,))?,
    };
    Ok(())
}
