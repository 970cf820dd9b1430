//! Bodies in Non-confirmable blocks, from the client's side (RFC 9177).

mod asked;
mod body;
mod exchange;
mod support;

pub(super) use support::Support;

use super::{Client, Route};
use crate::error::Error;
use crate::message::{Request, Response};
use ebbtide_core::wire::Code;

/// Sends a request and puts its response together; `None`, and nothing sent, if the server does not
/// understand such blocks.
pub(super) async fn run(
    client: &Client,
    route: &Route,
    request: &Request,
) -> Result<Option<Response>, Error> {
    if !support::is_there(client, route).await? {
        return Ok(None);
    }
    let exchange = exchange::Exchange::new(client, route.remote, request)?;
    let response = exchange.run().await?;
    if response.code == Code::BAD_OPTION {
        client.inner.quick.forget(route.remote);
    }
    Ok(Some(response))
}
