//! A client's sockets: its own, opened when they are needed, or those of its server.

use super::{ClientInner, Responders};
#[cfg(feature = "dtls")]
use crate::error::BindError;
use crate::error::{Cause, Error};
use crate::net::clock::Clock;
use crate::net::driver::Driver;
#[cfg(feature = "dtls")]
use crate::net::dtls::Side;
use crate::net::shared::Shared;
use crate::net::socket::Binding;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The kind of a socket, of which there is at most one each.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum SocketKind {
    V4,
    V6,
    #[cfg_attr(not(feature = "dtls"), expect(dead_code, reason = "no socket speaks DTLS"))]
    DtlsV4,
    #[cfg_attr(not(feature = "dtls"), expect(dead_code, reason = "no socket speaks DTLS"))]
    DtlsV6,
}

impl SocketKind {
    /// A socket that reaches this remote without DTLS.
    pub(super) const fn plain(remote: SocketAddr) -> Self {
        if remote.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// A socket that reaches this remote over DTLS.
    #[cfg(feature = "dtls")]
    pub(super) const fn dtls(remote: SocketAddr) -> Self {
        if remote.is_ipv4() { Self::DtlsV4 } else { Self::DtlsV6 }
    }
}

/// The sockets of a server by which its client sends over UDP. The server decides how long they live.
#[derive(Debug)]
pub(crate) struct ServerSockets {
    pub(crate) v4: Option<Weak<Shared>>,
    pub(crate) v6: Option<Weak<Shared>>,
    /// The number of all sockets of the server, which are numbered from 0.
    pub(crate) count: u32,
}

impl ServerSockets {
    const fn get(&self, kind: SocketKind) -> Option<&Weak<Shared>> {
        match kind {
            SocketKind::V4 => self.v4.as_ref(),
            SocketKind::V6 => self.v6.as_ref(),
            SocketKind::DtlsV4 | SocketKind::DtlsV6 => None,
        }
    }
}

impl ClientInner {
    pub(super) fn place(&self, kind: SocketKind) -> &Mutex<Option<Arc<Shared>>> {
        match kind {
            SocketKind::V4 => &self.v4,
            SocketKind::V6 => &self.v6,
            SocketKind::DtlsV4 => &self.dtls_v4,
            SocketKind::DtlsV6 => &self.dtls_v6,
        }
    }

    /// The socket of a kind, if it is open.
    pub(super) fn opened(&self, kind: SocketKind) -> Option<Arc<Shared>> {
        if let Some(of_server) = self.of_server(kind) {
            return of_server.ok();
        }
        self.place(kind).lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The server's socket of a kind; `None` if the client has one of its own.
    pub(super) fn of_server(&self, kind: SocketKind) -> Option<Result<Arc<Shared>, Error>> {
        let weak = self.responders.as_ref()?.sockets.as_ref()?.get(kind)?;
        let open = weak.upgrade().filter(|shared| !shared.lock().closed);
        Some(open.ok_or_else(|| Cause::Closed.into()))
    }

    /// All sockets of its own that are open.
    pub(super) fn all_sockets(&self) -> impl Iterator<Item = Arc<Shared>> {
        let places = [&self.v4, &self.v6, &self.dtls_v4, &self.dtls_v6];
        let opened = |place: &Mutex<Option<Arc<Shared>>>| {
            place.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        places.into_iter().filter_map(opened)
    }

    /// The socket of a kind, opened if need be, or if the runtime that drove it has ended.
    pub(super) fn socket(&self, kind: SocketKind) -> Result<Arc<Shared>, Error> {
        if let Some(of_server) = self.of_server(kind) {
            return of_server;
        }
        let mut place = self.place(kind).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = place.as_ref().filter(|shared| !shared.lock().closed) {
            return Ok(shared.clone());
        }
        // Of two sockets, a plain one and one for DTLS, the second cannot have the same port: the error says so.
        let is_ipv4 = matches!(kind, SocketKind::V4 | SocketKind::DtlsV4);
        let config = &self.requests.config;
        let local = config.local_address.filter(|local| local.is_ipv4() == is_ipv4);
        let any: IpAddr = match is_ipv4 {
            true => Ipv4Addr::UNSPECIFIED.into(),
            false => Ipv6Addr::UNSPECIFIED.into(),
        };
        let address = local.unwrap_or(SocketAddr::new(any, 0));
        let (service, clock) = match &self.responders {
            None => (None, Clock::start()),
            Some(Responders { datagrams, clock, .. }) => (Some(datagrams.clone()), *clock),
        };
        // What is kept for a session is kept for all sockets together, so each has a number of its own.
        let of_server = self.responders.as_ref().and_then(|responders| responders.sockets.as_ref());
        let number = of_server.map_or(0, |sockets| sockets.count) + kind as u32;
        let opened =
            Shared::serving(address, Binding::Alone, config.socket(), service, clock, number)?;
        #[cfg(feature = "dtls")]
        if matches!(kind, SocketKind::DtlsV4 | SocketKind::DtlsV6) {
            let secured = opened.secure(Side::Client, &config.dtls);
            secured.map_err(|source| BindError::new(address, source))?;
        }
        if matches!(kind, SocketKind::V4 | SocketKind::V6) {
            self.chosen.apply(&opened);
        }
        Driver::spawn(opened.clone());
        *place = Some(opened.clone());
        Ok(opened)
    }
}
