//! The server, whose handlers are Python functions.

use crate::incoming::Incoming;
use crate::queue::{LoopEvent, Queue};
use crate::runtime;
use crate::security::{self, Keys};
use crate::settings::Settings;
use ebbtide::server::{Call, Resource, Router, StateFile};
use ebbtide::stream::Listen;
use ebbtide::{Code, ServerConfig};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;

/// Notifies observers when a resource changes.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
pub(crate) struct Subject(ebbtide::server::Subject);

#[pymethods]
impl Subject {
    #[new]
    #[pyo3(signature = (confirmable=true))]
    fn new(confirmable: bool) -> Self {
        Self(match confirmable {
            true => ebbtide::server::Subject::new(),
            false => ebbtide::server::Subject::non_confirmable(),
        })
    }

    /// The state changed: every observer receives the current response of the GET handler.
    fn changed(&self, py: Python<'_>) -> PyResult<()> {
        let runtime = runtime::handle()?;
        py.detach(|| {
            let _inside = runtime.enter();
            self.0.changed();
        });
        Ok(())
    }

    /// The number of observers.
    #[getter]
    fn observers(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.observers())
    }
}

/// A route: path, methods, attributes for `/.well-known/core`, and the subject that notifies of
/// changes.
type Route = (String, Vec<String>, Vec<(String, String)>, Option<Subject>);

/// The settings that only a server has, from Python's arguments.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Serving {
    workers: usize,
    /// The file of the state that survives a restart.
    state: Option<PathBuf>,
}

impl Serving {
    fn apply(self, config: ServerConfig) -> ServerConfig {
        let config = config.workers(self.workers);
        match self.state {
            Some(path) => config.state(StateFile::new(path)),
            None => config,
        }
    }
}

/// A CoAP server; it serves until it is closed or dropped.
#[pyclass(frozen)]
pub(crate) struct Server {
    server: Mutex<Option<ebbtide::Server>>,
    addresses: Vec<(String, String, u16)>,
}

#[pymethods]
impl Server {
    /// Serves `routes` at `addresses`, each a scheme, a host and a port.
    #[new]
    #[pyo3(signature = (queue, routes, addresses, settings, serving, keys=None))]
    fn new(
        py: Python<'_>,
        queue: &Queue,
        routes: Vec<Route>,
        addresses: Vec<(String, String, u16)>,
        settings: Settings,
        serving: Serving,
        keys: Option<Keys>,
    ) -> PyResult<Self> {
        let router = routes.into_iter().enumerate().fold(Ok(Router::new()), |router, each| {
            let (index, (path, methods, attributes, subject)) = each;
            let mut resource =
                methods.iter().try_fold(Resource::default(), |resource, method| {
                    handled(resource, method, index, queue.clone())
                })?;
            for (name, value) in attributes {
                resource = resource.attribute(name, value);
            }
            if let Some(subject) = &subject {
                resource = resource.observable(&subject.0);
            }
            // Of two at one path, the later one remains.
            Ok::<_, PyErr>(router?.merge(Router::new().route(&path, resource)))
        })?;
        let mut config = serving.apply(settings.server()?);
        let keys = keys.map(Keys::look_up).transpose()?;
        let tls = settings.security.tls_server()?;
        let raw = settings.security.raw_keys()?;
        let (mut datagrams, mut streams) = (Vec::new(), Vec::new());
        for (scheme, host, port) in addresses {
            let tls_server = || {
                let missing = "bind: coaps+tcp and coaps+ws need certificate and key";
                tls.clone().ok_or_else(|| PyValueError::new_err(missing))
            };
            if scheme == "coap" {
                datagrams.push((host, port));
                continue;
            }
            let mut found = (host.as_str(), port).to_socket_addrs()?;
            let missing = || PyOSError::new_err(format!("'{host}' has no address"));
            let at = found.next().ok_or_else(missing)?;
            streams.push(match scheme.as_str() {
                "coaps" => {
                    let bound = security::bind(at, keys.as_ref(), tls.as_ref(), raw.as_ref())?;
                    config = config.bind_dtls(bound);
                    continue;
                }
                "coap+tcp" => Listen::Tcp(at),
                "coaps+tcp" => Listen::Tls(at, tls_server()?),
                "coap+ws" => Listen::Ws(at),
                "coaps+ws" => Listen::Wss(at, tls_server()?),
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "bind: '{scheme}' is not one of coap, coaps, coap+tcp, coaps+tcp, coap+ws, \
                         coaps+ws"
                    )));
                }
            });
        }
        let runtime = runtime::handle()?;
        let bound = py.detach(|| {
            let _inside = runtime.enter();
            let server = ebbtide::Server::with_config(router, config, datagrams)?;
            streams.into_iter().try_fold(server, ebbtide::Server::listen)
        });
        let server =
            bound.map_err(|error: ebbtide::BindError| PyOSError::new_err(error.to_string()))?;
        let udp = server.local_addrs().into_iter().map(|at| ("coap".to_owned(), at));
        let udp = udp.chain(server.dtls_addrs().into_iter().map(|at| ("coaps".to_owned(), at)));
        let streams = server.listeners().into_iter();
        let streams = streams.map(|(scheme, at)| (scheme.to_string(), at));
        let addresses =
            udp.chain(streams).map(|(scheme, at)| (scheme, at.ip().to_string(), at.port()));
        let addresses = addresses.collect();
        Ok(Self { server: Mutex::new(Some(server)), addresses })
    }

    /// The addresses that are served: scheme, address and port.
    #[getter]
    fn addresses(&self) -> Vec<(String, String, u16)> {
        self.addresses.clone()
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let runtime = runtime::handle()?;
        py.detach(|| {
            let _inside = runtime.enter();
            drop(self.server.lock().unwrap_or_else(PoisonError::into_inner).take());
        });
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Without a runtime there are no sockets to close.
        let Ok(runtime) = runtime::handle() else { return };
        let server = self.server.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        Python::attach(|py| {
            py.detach(|| {
                let _inside = runtime.enter();
                drop(server);
            });
        });
    }
}

/// A resource whose requests with one method are passed to the loop.
fn handled(resource: Resource, method: &str, route: usize, queue: Queue) -> PyResult<Resource> {
    let handler = move |code: Code| {
        move |call: Call<'static>| {
            let (sender, receiver) = oneshot::channel();
            let reply = Mutex::new(Some(sender));
            queue.push(LoopEvent::Request(Incoming { route, method: code, call, reply }));
            async move {
                let gone = || ebbtide::Response::new(Code::INTERNAL_SERVER_ERROR);
                receiver.await.unwrap_or_else(|_| gone())
            }
        }
    };
    Ok(match method {
        "GET" => resource.get(handler(Code::GET)),
        "POST" => resource.post(handler(Code::POST)),
        "PUT" => resource.put(handler(Code::PUT)),
        "DELETE" => resource.delete(handler(Code::DELETE)),
        "FETCH" => resource.fetch(handler(Code::FETCH)),
        "PATCH" => resource.patch(handler(Code::PATCH)),
        "iPATCH" => resource.ipatch(handler(Code::IPATCH)),
        _ => return Err(PyValueError::new_err(format!("method: '{method}' is not known"))),
    })
}
