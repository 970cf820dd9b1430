//! A whole request over a session that is open.

use super::drive::Drive;
use super::q_block;
use super::session::Session;
use crate::error::Error;
use crate::message::{Request, Response};

/// Bytes of a body that every peer on a connection takes in one message (RFC 8323 section 5.3.1:
/// 1152 with header and options). A longer one waits for its CSM.
const FITS_WITHOUT_CSM: usize = 512;

/// Sends a request, and returns its response with the whole body.
pub(super) async fn run(session: &Session, request: &Request) -> Result<Response, Error> {
    if let Some(link) = session.link()
        && request.payload.len() > FITS_WITHOUT_CSM
    {
        // The CSM announces the maximum size of its messages and blocks.
        link.established().await;
    }
    if request.q_block
        && session.socket().is_some()
        && !session.id.is_multicast()
        // What is rare is in a box, or it would make every request's future larger.
        && let Some(response) = Box::pin(q_block::run(session, request)).await?
    {
        return Ok(response);
    }
    Drive::for_request(session, request).run().await
}
