//! Binds the sockets for datagrams, each with the thread that drives it.

use super::inner::Service;
use super::worker::Worker;
use crate::config::AllSettings;
use crate::error::BindError;
#[cfg(feature = "dtls")]
use crate::net::dtls::{Side, config::DtlsBind};
use crate::net::shared::{Serve, Shared};
use crate::net::socket::{Binding, Socket};
#[cfg(feature = "dtls")]
use crate::net::workers::Workers;
use socket2::Type;
use std::iter::repeat_with;
use std::net::SocketAddr;
use std::sync::Arc;

/// Connection IDs have a byte for the worker.
const MAX_WORKERS: usize = 256;

/// A bound socket. Without a worker it is driven by the runtime in which the server was bound.
pub(super) struct BoundSocket {
    pub(super) shared: Arc<Shared>,
    pub(super) worker: Option<Worker>,
}

/// Binds the sockets of a server one after the other, which gives them their numbers.
pub(super) struct Binder<'s> {
    service: &'s Service,
    settings: &'s AllSettings,
    pub(super) bound: Vec<BoundSocket>,
}

impl<'s> Binder<'s> {
    pub(super) const fn new(service: &'s Service, settings: &'s AllSettings) -> Self {
        Self { service, settings, bound: Vec::new() }
    }

    /// Binds an address for each worker, or takes the sockets that were handed over. Returns the new sockets.
    pub(super) fn bind(&mut self, mut address: SocketAddr) -> Result<Vec<Arc<Shared>>, BindError> {
        let failed = |source| BindError::new(address, source);
        let settings = self.settings;
        let handed_over = settings.handed_over.take(Type::DGRAM, address).map_err(failed)?;
        let workers = settings.workers.clamp(1, MAX_WORKERS);
        let bindings: Vec<_> = match (handed_over.is_empty(), workers) {
            (false, _) => handed_over.into_iter().map(Binding::HandedOver).collect(),
            (true, 1) => vec![Binding::Alone],
            (true, _) => {
                if settings.network.is_none() && cfg!(feature = "udp") {
                    // The workers share the address with each other, and not with another process, which would get a
                    // part of the answers to them.
                    drop(Socket::bind_with(address, &settings.socket)?);
                }
                repeat_with(|| Binding::AmongWorkers).take(workers).collect()
            }
        };
        let (is_divided, mut added) = (bindings.len() > 1, Vec::new());
        for binding in bindings {
            let number = self.bound.len() as u32;
            let worker = is_divided.then(|| Worker::start(number)).transpose();
            let worker = worker.map_err(|source| BindError::new(address, source))?;
            let entered = worker.as_ref().map(Worker::enter);
            let serve = Some(Arc::new(self.service.clone()) as Arc<dyn Serve>);
            let (config, clock) = (settings.socket(), self.service.clock());
            let shared = Shared::serving(address, binding, config, serve, clock, number)?;
            // With port 0, further workers use the port that the first one was given.
            address = shared.local_addr();
            drop(entered);
            added.push(shared.clone());
            self.bound.push(BoundSocket { shared, worker });
        }
        Ok(added)
    }

    /// Binds an address for DTLS.
    #[cfg(feature = "dtls")]
    pub(super) fn bind_dtls(&mut self, bind: &DtlsBind) -> Result<(), BindError> {
        let sockets = self.bind(bind.address)?;
        for (own, shared) in sockets.iter().enumerate() {
            let mut dtls = self.settings.dtls.clone();
            if sockets.len() > 1 {
                let position = dtls.server.cid_prefix.len();
                let sockets = sockets.iter().map(Arc::downgrade).collect();
                dtls.server.cid_prefix.push(own as u8);
                // Nobody else sets it.
                let _ = shared.workers.set(Workers { sockets, position, own });
            }
            let secured = shared.secure(Side::Server(bind.clone()), &dtls);
            secured.map_err(|source| BindError::new(bind.address, source))?;
        }
        Ok(())
    }
}
