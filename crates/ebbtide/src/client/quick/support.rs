//! Who understands the blocks of RFC 9177.

use super::super::transfer::ask_with;
use super::super::{Client, Route};
use crate::error::Error;
use crate::message::Request;
use ebbtide_core::endpoint::Failure;
use ebbtide_core::wire::{Block, Code, OptionNumber};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// Servers that are remembered; beyond that all are asked anew.
const MAX_SERVERS: usize = 1024;

/// What servers said when they were asked.
#[derive(Debug, Default)]
pub(in crate::client) struct Support {
    servers: Mutex<HashMap<SocketAddr, bool>>,
}

impl Support {
    fn known(&self, remote: SocketAddr) -> Option<bool> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).get(&remote).copied()
    }

    fn learn(&self, remote: SocketAddr, supports: bool) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.len() >= MAX_SERVERS {
            servers.clear();
        }
        servers.insert(remote, supports);
    }
}

/// Whether a server understands the options: a Confirmable request with one of them tells, since it
/// must be refused with 4.02 by who does not (RFC 9177 section 4.1). It asks for the first 16 bytes
/// of a resource that changes nothing and that most servers have.
pub(super) async fn is_there(client: &Client, route: &Route) -> Result<bool, Error> {
    let support = &client.inner.quick;
    if let Some(known) = support.known(route.remote) {
        return Ok(known);
    }
    let probe = Request::get(format!("coap://{}/.well-known/core", route.remote))?;
    // Block 0 of 16 bytes, and no more than that.
    let answered = ask_with(client, route, &probe, (OptionNumber::Q_BLOCK2, 0)).await;
    let supports = match answered {
        Ok(response) => {
            let ignored = response.is_success()
                && response.options.get(OptionNumber::Q_BLOCK2).is_none()
                && response.payload.len() > SMALLEST;
            response.code != Code::BAD_OPTION && !ignored
        }
        Err(Error::Reset { .. } | Error::Failed { reason: Failure::BadOption, .. }) => false,
        Err(error) => return Err(error),
    };
    support.learn(route.remote, supports);
    Ok(supports)
}

/// Bytes of the smallest block.
const SMALLEST: usize = match Block::new(0, false, 0) {
    Ok(block) => block.size(),
    Err(_) => 16,
};
