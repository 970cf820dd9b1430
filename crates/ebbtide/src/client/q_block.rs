//! The servers that support bodies in Non-confirmable blocks (RFC 9177).

use super::drive::Drive;
use super::session::{ServerEnd, Session};
use crate::error::{Error, ErrorKind};
use crate::message::{Request, Response};
use ebbtide_core::session::client::Transfer;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Block, Code, OptionNumber};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Servers that are remembered; the one that was asked first is forgotten for another.
const MAX_SERVERS: usize = 1024;
/// How long a server's answer counts. After that, another program may have its address.
const MEMORY: Duration = Duration::from_secs(3600);

/// Servers that were probed for the Q-Block options, with their results.
#[derive(Debug, Default)]
pub(super) struct Support {
    servers: Mutex<BTreeMap<ServerEnd, ProbeResult>>,
}

/// The result of probing a server, and the time of the answer.
#[derive(Copy, Clone, Debug)]
struct ProbeResult {
    supports: bool,
    at: Instant,
}

impl Support {
    fn known(&self, now: Instant, server: ServerEnd) -> Option<bool> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let said = servers.get(&server)?;
        (now.saturating_since(said.at) < MEMORY).then_some(said.supports)
    }

    fn learn(&self, now: Instant, server: ServerEnd, supports: bool) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.insert(server, ProbeResult { supports, at: now });
        if servers.len() > MAX_SERVERS
            && let Some(oldest) = servers.iter().min_by_key(|(_, said)| said.at).map(|(to, _)| *to)
        {
            servers.remove(&oldest);
        }
    }

    /// A server refused the options, whatever it said before.
    fn forget(&self, server: ServerEnd) {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).remove(&server);
    }
}

/// Sends a request in such blocks; `None`, and nothing sent, if the server does not understand them.
pub(super) async fn run(session: &Session, request: &Request) -> Result<Option<Response>, Error> {
    if !is_there(session).await? {
        return Ok(None);
    }
    let (requests, peer) = (session.requests(), session.id);
    let params = requests.config.q_block;
    if let Some(socket) = session.socket() {
        let until = socket.lock().endpoint.silent_until(peer, &params);
        if let Some(until) = until {
            // What went before was not answered.
            tokio::time::sleep_until(socket.clock.to_tokio(until)).await;
        }
    }
    let parts = request.parts();
    let mut settings = session.settings(request, &parts);
    settings.q_block = Some(params);
    let transfer = Transfer::new(parts, settings);
    let response = Drive::new(session.clone(), request.reliability, transfer).run().await?;
    if response.code() == Code::BAD_OPTION {
        requests.q_block.forget(session.server());
    }
    Ok(Some(response))
}

/// Whether a server understands the options: a Confirmable request with one of them tells, since it
/// must be refused with 4.02 by a server that does not (RFC 9177 section 4.1). It asks for the first 16
/// bytes of a resource that changes nothing and that most servers have.
async fn is_there(session: &Session) -> Result<bool, Error> {
    let support = &session.requests().q_block;
    if let Some(known) = support.known(session.now(), session.server()) {
        return Ok(known);
    }
    // Block 0 of 16 bytes, and no more than that.
    let probe = Request::get(format!("coap://{}/.well-known/core", session.address))?
        .option(OptionNumber::Q_BLOCK2, &[]);
    let supports = match Drive::for_request(session, &probe).run().await {
        Ok(response) => {
            let ignored = response.is_success()
                && response.options().get(OptionNumber::Q_BLOCK2).is_none()
                && response.body().len() > SMALLEST;
            response.code() != Code::BAD_OPTION && !ignored
        }
        Err(error) if matches!(error.kind(), ErrorKind::Reset | ErrorKind::BadOption) => false,
        Err(error) => return Err(error),
    };
    support.learn(session.now(), session.server(), supports);
    Ok(supports)
}

/// Bytes of the smallest block.
const SMALLEST: usize = match Block::new(0, false, 0) {
    Ok(block) => block.size(),
    Err(_) => 16,
};

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_core::PeerId;
    use std::net::Ipv4Addr;

    fn server(port: u16) -> ServerEnd {
        ServerEnd { id: PeerId::Address((Ipv4Addr::LOCALHOST, port).into()), context: None }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_result_of_a_probe_holds_for_an_hour() {
        let support = Support::default();
        support.learn(at(10), server(1), true);
        assert_eq!(support.known(at(3609), server(1)), Some(true));
        assert_eq!(support.known(at(3610), server(1)), None);
        support.learn(at(3610), server(1), false);
        assert_eq!(support.known(at(3611), server(1)), Some(false));
        support.forget(server(1));
        assert_eq!(support.known(at(3611), server(1)), None);
    }

    #[test]
    fn what_a_proxy_understands_says_nothing_of_the_server_behind_it() {
        let support = Support::default();
        support.learn(at(10), server(1), true);
        let behind = ServerEnd { context: Some(0), ..server(1) };
        assert_eq!(support.known(at(11), behind), None);
    }

    #[test]
    fn the_server_that_was_asked_first_makes_room_for_another() {
        let support = Support::default();
        for port in 0..=MAX_SERVERS as u16 {
            support.learn(at(port.into()), server(port), true);
        }
        assert_eq!(support.servers.lock().unwrap().len(), MAX_SERVERS);
        assert_eq!(support.known(at(1025), server(0)), None);
        assert_eq!(support.known(at(1025), server(1)), Some(true));
    }
}
