//! The client, in a blocking form and for asyncio.

use crate::attended::{self, Promise};
use crate::message::{How, Response, request};
use crate::queue::{LoopEvent, Queue};
use crate::settings::Settings;
use crate::{errors, runtime};
use ebbtide::{ClientConfig, Error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::future::Future;
use std::sync::{Arc, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

/// A CoAP client.
#[pyclass(frozen)]
pub(crate) struct Client {
    config: ClientConfig,
    /// Whether it has sequence numbers of OSCORE, which a forked process would use a second time.
    has_numbers: bool,
    /// `None` once it is closed. Locked only while the interpreter is attached, so never at a fork.
    current: std::sync::Mutex<Option<Running>>,
}

/// A client in a process.
#[derive(Clone)]
struct Running {
    pid: u32,
    client: ebbtide::Client,
    runtime: Handle,
}

impl Running {
    fn start(config: &ClientConfig) -> PyResult<Self> {
        let (pid, runtime) = (std::process::id(), runtime::handle()?);
        Ok(Self { pid, client: ebbtide::Client::with_config(config.clone()), runtime })
    }
}

/// A request in progress. Cancelling it ends the exchange.
#[pyclass(frozen)]
pub(crate) struct Call(AbortHandle);

#[pymethods]
impl Call {
    fn cancel(&self) {
        self.0.abort();
    }
}

#[pymethods]
impl Client {
    #[new]
    fn new(settings: Settings) -> PyResult<Self> {
        let config = settings.client()?;
        let current = std::sync::Mutex::new(Some(Running::start(&config)?));
        Ok(Self { config, has_numbers: settings.security.has_contexts(), current })
    }

    /// Closes the sockets once the open requests have ended.
    fn close(&self) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Sends a request and waits for the response.
    #[pyo3(signature = (method, uri, payload, how=None))]
    fn request(
        &self,
        py: Python<'_>,
        method: &str,
        uri: &str,
        payload: &[u8],
        how: Option<How>,
    ) -> PyResult<Response> {
        let Running { client, runtime, .. } = self.running()?;
        let request = request(method, uri, payload, how)?;
        let answer = wait(py, &runtime, async move { client.request(request).await })?;
        Ok(Response(answer.map_err(|error| errors::request(&error))?))
    }

    /// Sends a request; `future` receives the response through `queue`.
    #[pyo3(signature = (queue, future, method, uri, payload, how=None))]
    fn submit(
        &self,
        queue: &Queue,
        future: Py<PyAny>,
        method: &str,
        uri: &str,
        payload: &[u8],
        how: Option<How>,
    ) -> PyResult<Call> {
        let Running { client, runtime, .. } = self.running()?;
        let (queue, request) = (queue.clone(), request(method, uri, payload, how)?);
        let task = runtime.spawn(async move {
            let answer = client.request(request).await;
            queue.push(LoopEvent::Answered(future, answer));
        });
        Ok(Call(task.abort_handle()))
    }

    /// Sends a CoAP ping. Returns the round trip in seconds, if the answer gave one.
    fn ping(&self, py: Python<'_>, uri: String) -> PyResult<Option<f64>> {
        let Running { client, runtime, .. } = self.running()?;
        let answer = wait(py, &runtime, async move { round_trip(&client, &uri).await })?;
        answer.map_err(|error| errors::request(&error))
    }

    fn submit_ping(&self, queue: &Queue, future: Py<PyAny>, uri: String) -> PyResult<Call> {
        let (Running { client, runtime, .. }, queue) = (self.running()?, queue.clone());
        let task = runtime.spawn(async move {
            let answer = round_trip(&client, &uri).await;
            queue.push(LoopEvent::Pinged(future, answer));
        });
        Ok(Call(task.abort_handle()))
    }

    /// Observes a resource. The registration is sent when the first state is requested.
    #[pyo3(signature = (method, uri, payload, how=None))]
    fn observe(
        &self,
        method: &str,
        uri: &str,
        payload: &[u8],
        how: Option<How>,
    ) -> PyResult<Observation> {
        let Running { client, runtime, .. } = self.running()?;
        Ok(Observation {
            client,
            runtime,
            state: Arc::new(Mutex::new(State::Unsent(request(method, uri, payload, how)?))),
        })
    }

    /// Exchanges that have not ended.
    fn open_exchanges(&self, py: Python<'_>) -> PyResult<usize> {
        let client = self.running()?.client;
        Ok(py.detach(|| client.snapshot().open_exchanges()))
    }
}

impl Client {
    /// The client in this process.
    fn running(&self) -> PyResult<Running> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = &mut *current else {
            return Err(PyRuntimeError::new_err("the client is closed"));
        };
        if running.pid != std::process::id() {
            if self.has_numbers {
                let text = "oscore: after a fork the same numbers would be used twice: make a client with another context";
                return Err(PyRuntimeError::new_err(text));
            }
            // The parent's thread does not exist here. Its client is left as it is: a lock may have been held when the
            // process forked.
            std::mem::forget(std::mem::replace(running, Running::start(&self.config)?));
        }
        Ok(running.clone())
    }
}

/// Waits for work of the sockets' thread; a signal ends the wait.
fn wait<T: Send + 'static>(
    py: Python<'_>,
    runtime: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> PyResult<T> {
    let mut task = None;
    let begin = |promise: Promise<T>| {
        task = Some(runtime.spawn(async move { promise.keep(work.await) }));
        Ok(())
    };
    let ended = attended::wait(py, begin, |_| Ok(()));
    if ended.is_err()
        && let Some(task) = task
    {
        task.abort();
    }
    ended
}

async fn round_trip(client: &ebbtide::Client, uri: &str) -> Result<Option<f64>, Error> {
    let sample = client.ping(uri).await?;
    Ok(sample.map(|sample| sample.since_first.as_secs_f64()))
}

enum State {
    Unsent(ebbtide::Request),
    Observing(ebbtide::client::Observation),
    Ended,
}

/// An observed resource.
#[pyclass(frozen)]
pub(crate) struct Observation {
    client: ebbtide::Client,
    runtime: Handle,
    state: Arc<Mutex<State>>,
}

#[pymethods]
impl Observation {
    /// Waits for the next state; `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Response>> {
        let next = next(self.client.clone(), self.state.clone());
        let answer = wait(py, &self.runtime, next)?;
        answer.map(|answer| answer.map(Response).map_err(|e| errors::request(&e))).transpose()
    }

    /// `future` receives the next state through `queue`, or `None` at the end.
    fn submit_next(&self, queue: &Queue, future: Py<PyAny>) -> Call {
        let (queue, next) = (queue.clone(), next(self.client.clone(), self.state.clone()));
        let task = self.runtime.spawn(async move {
            let answer = next.await;
            queue.push(LoopEvent::Observed(future, answer));
        });
        Call(task.abort_handle())
    }

    /// Ends the observation. The server learns that from the Reset to its next notification.
    fn close(&self) {
        let state = self.state.clone();
        self.runtime.spawn(async move { *state.lock().await = State::Ended });
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.close();
    }
}

async fn next(
    client: ebbtide::Client,
    state: Arc<Mutex<State>>,
) -> Option<Result<ebbtide::Response, Error>> {
    let mut state = state.lock().await;
    if let State::Unsent(request) = &*state {
        match client.observe_with(request.clone()).await {
            Ok(observation) => *state = State::Observing(observation),
            Err(error) => {
                *state = State::Ended;
                return Some(Err(error));
            }
        }
    }
    let State::Observing(observation) = &mut *state else { return None };
    let next = observation.next().await;
    if next.is_none() {
        *state = State::Ended;
    }
    next
}
