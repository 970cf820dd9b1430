//! Security contexts of OSCORE, from Python's arguments.

use ebbtide::oscore::{Algorithm, OscoreContext, OscoreContexts};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// One context, as `ebbtide.OscoreContext` has it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Parameters {
    secret: Vec<u8>,
    sender_id: Vec<u8>,
    recipient_id: Vec<u8>,
    salt: Vec<u8>,
    id_context: Option<Vec<u8>>,
    algorithm: String,
    /// Host and port.
    server: Option<(String, Option<u16>)>,
    name: Option<String>,
    state: Option<PathBuf>,
    renewed: bool,
}

impl Parameters {
    fn context(&self) -> Result<OscoreContext, String> {
        let mut context = OscoreContext::new(&self.secret, &self.sender_id, &self.recipient_id)
            .salt(&self.salt)
            .algorithm(algorithm(&self.algorithm)?);
        if let Some(id_context) = &self.id_context {
            context = context.id_context(id_context);
        }
        if let Some((host, port)) = &self.server {
            context = context.server(host, *port);
        }
        if let Some(name) = &self.name {
            context = context.name(name);
        }
        if let Some(state) = &self.state {
            context = context.state_file(state);
        }
        Ok(if self.renewed { context.renewed() } else { context })
    }
}

fn algorithm(name: &str) -> Result<Algorithm, String> {
    let found = Algorithm::ALL.into_iter().find(|known| known.name() == name);
    let known = Algorithm::ALL.map(Algorithm::name).join(" and ");
    found.ok_or_else(|| format!("algorithm: takes {known}, not '{name}'"))
}

/// The contexts, with an error that names the one that is wrong.
pub(crate) fn contexts(given: &[Parameters]) -> PyResult<OscoreContexts> {
    let wrong = |index: usize, error: &dyn std::fmt::Display| {
        PyValueError::new_err(format!("oscore[{index}]: {error}"))
    };
    let contexts = given
        .iter()
        .enumerate()
        .map(|(index, parameters)| parameters.context().map_err(|error| wrong(index, &error)));
    let contexts = contexts.collect::<PyResult<Vec<_>>>()?;
    OscoreContexts::new(contexts).map_err(|error| wrong(error.index(), &error))
}
