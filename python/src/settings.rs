//! Settings of clients and servers.

use crate::security::Security;
use ebbtide::{ClientConfig, ServerConfig};
use ebbtide_core::cc::ControlConfig;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;

/// Messages to one peer that may wait for congestion control: in Python many requests are started
/// with one line, and wait their turn.
const WAITING: u16 = 16_384;

/// Settings of a client or server, from Python's arguments.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    control: Option<String>,
    nstart: Option<u16>,
    busy_poll: f64,
    pub(crate) security: Security,
}

impl Settings {
    /// The settings of a client.
    pub(crate) fn client(&self) -> PyResult<ClientConfig> {
        let mut config = ClientConfig::new()
            .dtls(self.security.dtls()?)
            .trust(self.security.trust()?)
            .identity(self.security.identity()?)
            .limits(|limits| limits.queue_per_peer(WAITING));
        let busy_poll = self.busy_poll()?;
        config = config.research(|research| research.busy_poll(busy_poll));
        if let Some(contexts) = self.security.oscore()? {
            config = config.oscore(contexts);
        }
        if let Some(control) = self.control()? {
            config = config.control(control);
        }
        Ok(match self.nstart {
            Some(nstart) => config.nstart(nstart),
            None => config,
        })
    }

    /// The settings of a server, which may ask its clients as well.
    pub(crate) fn server(&self) -> PyResult<ServerConfig> {
        let mut config = ServerConfig::new()
            .dtls(self.security.dtls()?)
            .limits(|limits| limits.queue_per_peer(WAITING));
        let busy_poll = self.busy_poll()?;
        config = config.research(|research| research.busy_poll(busy_poll));
        if let Some(contexts) = self.security.oscore()? {
            config = config.oscore(contexts).oscore_required(self.security.oscore_required());
        }
        if let Some(control) = self.control()? {
            config = config.control(control);
        }
        Ok(match self.nstart {
            Some(nstart) => config.nstart(nstart),
            None => config,
        })
    }

    fn busy_poll(&self) -> PyResult<Duration> {
        Duration::try_from_secs_f64(self.busy_poll)
            .map_err(|error| PyValueError::new_err(format!("busy_poll: {error}")))
    }

    fn control(&self) -> PyResult<Option<ControlConfig>> {
        let Some(text) = &self.control else { return Ok(None) };
        let wrong =
            |error: &dyn std::fmt::Display| PyValueError::new_err(format!("control: {error}"));
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut control = ControlConfig::parse(name).map_err(|error| wrong(&error))?;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            control.set(key, value).map_err(|error| wrong(&error))?;
        }
        Ok(Some(control))
    }
}
