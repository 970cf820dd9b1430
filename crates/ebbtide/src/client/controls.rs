//! Controls that an application chooses for single peers, also before there is a socket for them.

use super::ClientInner;
use super::sockets::SocketKind;
use crate::error::{Cause, Error};
use crate::net::shared::Shared;
use ebbtide_core::cc::ControlConfig;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Addresses whose control is remembered until there is a socket. An endpoint has room for as many different controls,
/// so all of them find room in a new one.
const MAX_CHOSEN: usize = 256;

/// Controls for addresses to which no socket is open yet.
#[derive(Debug, Default)]
pub(super) struct Chosen(Mutex<BTreeMap<SocketAddr, ControlConfig>>);

impl Chosen {
    /// Remembers a control. Returns it if there is no room.
    fn remember(&self, remote: SocketAddr, control: ControlConfig) -> Result<(), ControlConfig> {
        let mut chosen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if chosen.len() >= MAX_CHOSEN && !chosen.contains_key(&remote) {
            return Err(control);
        }
        chosen.insert(remote, control);
        Ok(())
    }

    /// Hands the controls of its address family to a new socket.
    pub(super) fn apply(&self, shared: &Shared) {
        let is_ipv4 = shared.local_addr().is_ipv4();
        let mut chosen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        chosen.retain(|remote, control| {
            if remote.is_ipv4() != is_ipv4 {
                return true;
            }
            // A new endpoint has room for all of them.
            let _ = shared.with(|state, now| {
                state.endpoint.set_control(now, (*remote).into(), control.clone())
            });
            false
        });
    }
}

impl ClientInner {
    /// Sets the control for a peer: at the sockets that are open, and otherwise as soon as they are.
    pub(super) fn set_control(
        &self,
        remote: SocketAddr,
        control: ControlConfig,
    ) -> Result<(), Error> {
        if let Some(shared) = self.socket_or_remember(remote, &control)? {
            shared
                .with(|state, now| state.endpoint.set_control(now, remote.into(), control.clone()))
                .map_err(Cause::Send)?;
        }
        #[cfg(feature = "dtls")]
        super::dtls::set_control(self, remote, control)?;
        Ok(())
    }

    /// The socket for a plain peer. Without one the control is remembered, and if there is no room for that, a socket
    /// is opened.
    fn socket_or_remember(
        &self,
        remote: SocketAddr,
        control: &ControlConfig,
    ) -> Result<Option<Arc<Shared>>, Error> {
        let kind = SocketKind::plain(remote);
        if let Some(of_server) = self.of_server(kind) {
            return of_server.map(Some);
        }
        // Held until the control is remembered, so that a socket that is opened meanwhile finds it.
        let place = self.place(kind).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = place.as_ref().filter(|shared| !shared.lock().closed) {
            return Ok(Some(shared.clone()));
        }
        if self.chosen.remember(remote, control.clone()).is_ok() {
            return Ok(None);
        }
        drop(place);
        Ok(Some(self.socket(kind)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Call, Router, Server, get};
    use crate::{Client, Response};

    #[tokio::test]
    async fn a_control_that_is_chosen_before_the_first_request_is_that_of_the_peer() {
        let router = Router::new().route("/", get(|_: &Call<'_>| Response::content("x")));
        let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
        let at = server.local_addrs()[0];
        tokio::spawn(server.run());
        for chosen in [false, true] {
            let client = Client::new();
            if chosen {
                // RFC 7252's own control measures nothing.
                client.set_control(at, ControlConfig::parse("default").unwrap()).unwrap();
                assert_eq!(client.snapshot().sockets, 0, "no socket is opened for it");
            }
            client.get(format!("coap://{at}/")).await.unwrap();
            let metrics = client.metrics(at).expect("the peer has state");
            assert_eq!(metrics.srtt.is_none(), chosen, "{metrics:?}");
        }
    }

    #[tokio::test]
    async fn more_controls_than_are_remembered_open_a_socket_and_none_is_lost() {
        let client = Client::new();
        let control = ControlConfig::parse("default").unwrap();
        let peer = |n: u16| SocketAddr::from(([192, 0, 2, 1], 1000 + n));
        for n in 0..=MAX_CHOSEN as u16 {
            assert_eq!(client.snapshot().sockets, 0, "{n}");
            client.set_control(peer(n), control.clone()).unwrap();
        }
        assert_eq!(client.snapshot().sockets, 1);
        for n in 0..=MAX_CHOSEN as u16 {
            assert!(client.metrics(peer(n)).is_some(), "{n}");
        }
    }
}
