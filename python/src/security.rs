//! Certificates for TLS and DTLS, pre-shared and raw public keys for DTLS, and contexts of OSCORE.

use crate::oscore::{self, Parameters};
use ebbtide::dtls::{
    Certificates, Credentials, DtlsBind, DtlsConfig, Psk, RawKey, TrustedKeys, trusted_keys,
};
use ebbtide::oscore::OscoreContexts;
use ebbtide::stream::{Identity, TlsServer, Trust};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Security settings, from Python's arguments.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Security {
    ca: Option<Vec<u8>>,
    insecure: bool,
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
    /// A private key whose public key is shown without a certificate.
    raw_key: Option<Vec<u8>>,
    /// The raw public keys that are trusted, as text.
    peer_keys: Option<String>,
    /// A client's identity and key.
    credentials: Option<(Vec<u8>, Vec<u8>)>,
    /// The length of connection IDs: no length disables them.
    cid: Cid,
    /// The contexts of OSCORE; with none at all, nothing is protected by it.
    oscore: Option<Vec<Parameters>>,
    /// Whether a server refuses what OSCORE does not protect.
    oscore_required: bool,
}

/// How an endpoint uses connection IDs (RFC 9146).
#[derive(FromPyObject)]
enum Cid {
    Used(bool),
    Length(u8),
}

fn wrong(error: &dyn std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl Security {
    /// The contexts of OSCORE, if there are any.
    pub(crate) fn oscore(&self) -> PyResult<Option<OscoreContexts>> {
        self.oscore.as_deref().map(oscore::contexts).transpose()
    }

    /// Whether there are contexts of OSCORE.
    pub(crate) const fn has_contexts(&self) -> bool {
        self.oscore.is_some()
    }

    /// Whether a server refuses what OSCORE does not protect.
    pub(crate) const fn oscore_required(&self) -> bool {
        self.oscore_required
    }

    /// The authorities whose servers a client accepts.
    pub(crate) fn trust(&self) -> PyResult<Trust> {
        match self.insecure {
            true => Ok(Trust::dangerously_anyone()),
            false => Ok(self.authorities()?.unwrap_or_default()),
        }
    }

    /// The settings of DTLS, of a client or a server.
    pub(crate) fn dtls(&self) -> PyResult<DtlsConfig> {
        let identity = self.identity()?;
        let mut dtls = DtlsConfig::default();
        match &self.credentials {
            Some((identity, key)) => {
                dtls.credentials = Some(Credentials::new(identity.as_slice(), psk(key)?));
            }
            None if self.peer_keys.is_some() => {
                let (own, trusted) = (self.raw_key()?, self.trusted_keys()?);
                dtls.certificates =
                    Some(Certificates::raw_keys(trusted.unwrap_or_default(), own.as_ref()));
            }
            // A key that DTLS cannot use is still one for TLS.
            None => dtls.certificates = Certificates::new(&self.trust()?, identity.as_ref()).ok(),
        }
        let length = match self.cid {
            Cid::Used(true) => None,
            Cid::Used(false) => Some(None),
            Cid::Length(bytes @ 0..=8) => Some(Some(bytes)),
            Cid::Length(bytes) => {
                let text = format!("cid: takes True, False, or from 0 to 8 bytes, not {bytes}");
                return Err(PyValueError::new_err(text));
            }
        };
        if let Some(length) = length {
            dtls.client.cid_length = length;
            dtls.server.cid_length = length;
        }
        Ok(dtls)
    }

    /// Our own raw key, if one is given.
    fn raw_key(&self) -> PyResult<Option<RawKey>> {
        let own = self.raw_key.as_ref().map(|pem| RawKey::from_pem(pem)).transpose();
        own.map_err(|error| PyValueError::new_err(format!("raw_key: {error}")))
    }

    /// The raw public keys that are trusted, if they are given.
    fn trusted_keys(&self) -> PyResult<Option<TrustedKeys>> {
        let trusted = self.peer_keys.as_ref().map(|text| trusted_keys(text)).transpose();
        trusted.map_err(|error| PyValueError::new_err(format!("peer_keys: {error}")))
    }

    /// A server's raw key and those of its clients, if there is one.
    pub(crate) fn raw_keys(&self) -> PyResult<Option<RawKeys>> {
        let Some(own) = self.raw_key()? else {
            return match &self.peer_keys {
                None => Ok(None),
                Some(_) => Err(PyValueError::new_err(
                    "peer_keys: raw_key, the server's own key, belongs to it",
                )),
            };
        };
        Ok(Some(RawKeys { own, clients: self.trusted_keys()? }))
    }

    /// The authorities, if they are given.
    fn authorities(&self) -> PyResult<Option<Trust>> {
        let authorities = self.ca.as_ref().map(|pem| Trust::authorities(pem)).transpose();
        authorities.map_err(|error| wrong(&error))
    }

    /// A server's side of TLS, if a certificate is given. Authorities are those of its clients.
    pub(crate) fn tls_server(&self) -> PyResult<Option<TlsServer>> {
        let Some(identity) = self.identity()? else { return Ok(None) };
        let server = TlsServer::new(identity);
        let Some(authorities) = self.authorities()? else { return Ok(Some(server)) };
        let server = server.require_client_certificates(&authorities);
        server.map(Some).map_err(|error| wrong(&error))
    }

    /// The certificate, if one is given.
    pub(crate) fn identity(&self) -> PyResult<Option<Identity>> {
        match (&self.certificate, &self.key) {
            (None, None) => Ok(None),
            (Some(chain), key) => {
                let identity = Identity::from_pem(chain, key.as_ref().unwrap_or(chain));
                identity.map(Some).map_err(|error| wrong(&error))
            }
            (None, Some(_)) => Err(PyValueError::new_err("key: a certificate belongs to it")),
        }
    }
}

fn psk(key: &[u8]) -> PyResult<Psk> {
    Psk::new(key).map_err(|error| PyValueError::new_err(format!("psk: {error}")))
}

/// The keys of a server's clients: a table, or a function from an identity to a key.
#[derive(FromPyObject)]
pub(crate) enum Keys {
    Table(BTreeMap<Vec<u8>, Vec<u8>>),
    Function(Py<PyAny>),
}

/// Looks up the key of an identity.
type LookUp = Arc<dyn Fn(&[u8]) -> Option<Psk> + Send + Sync>;

impl Keys {
    /// The function that the sockets call.
    ///
    /// They are locked meanwhile, and a function in Python waits for the interpreter. A thread that
    /// holds the interpreter must therefore never wait for a socket: whatever may lock one detaches
    /// first.
    pub(crate) fn look_up(self) -> PyResult<LookUp> {
        match self {
            Self::Table(table) => {
                let table = table.into_iter().map(|(identity, key)| Ok((identity, psk(&key)?)));
                let table = table.collect::<PyResult<BTreeMap<Vec<u8>, Psk>>>()?;
                Ok(Arc::new(move |identity| table.get(identity).cloned()))
            }
            // Its exceptions are handled in Python.
            Self::Function(function) => Ok(Arc::new(move |identity| {
                Python::attach(|py| {
                    let key = function.call1(py, (identity,)).ok()?;
                    Psk::new(&key.extract::<Option<Vec<u8>>>(py).ok()??).ok()
                })
            })),
        }
    }
}

/// A server's raw key, and those of its clients if it requires one.
pub(crate) struct RawKeys {
    own: RawKey,
    clients: Option<TrustedKeys>,
}

/// A socket for `coaps`, with the keys of its clients, its certificate or raw key, or both.
pub(crate) fn bind(
    address: SocketAddr,
    keys: Option<&LookUp>,
    tls: Option<&TlsServer>,
    raw: Option<&RawKeys>,
) -> PyResult<DtlsBind> {
    let bound = keys.cloned().map(|keys| DtlsBind::new(address, move |identity| keys(identity)));
    if let Some(RawKeys { own, clients }) = raw {
        return Ok(match bound {
            Some(bound) => bound.and_raw_key(own, clients.clone()),
            None => DtlsBind::with_raw_key(address, own, clients.clone()),
        });
    }
    // With keys, a certificate that only TLS can show does no harm.
    let tls = tls.filter(|tls| keys.is_none() || tls.is_for_dtls());
    let bound = match (bound, tls) {
        (Some(bound), None) => return Ok(bound),
        (Some(bound), Some(tls)) => bound.and_certificates(tls),
        (None, Some(tls)) => DtlsBind::with_certificates(address, tls),
        (None, None) => {
            let missing =
                "bind: coaps needs psk, the clients' keys, raw_key, or certificate and key";
            return Err(PyValueError::new_err(missing));
        }
    };
    bound.map_err(|error| wrong(&error))
}
