//! A request over a session that is open.

use super::drive::Drive;
use super::q_block;
use super::session::Session;
use crate::error::Error;
use crate::message::{Request, Response};

/// Bytes of a body that every peer on a connection takes in one message (RFC 8323 section 5.3.1:
/// 1152 with header and options). A longer one waits for its CSM.
const FITS_WITHOUT_CSM: usize = 512;

/// How much of the bodies is transferred.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The whole ones.
    Whole,
    /// The block that the request names, and the one that the response names.
    OneBlock,
}

impl Extent {
    /// Drives a request in messages of RFC 7252 over a session that is open.
    pub(super) fn drive(self, session: &Session, request: &Request) -> Drive {
        match self {
            Self::Whole => Drive::for_request(session, request),
            Self::OneBlock => Drive::for_one_block(session, request),
        }
    }
}

/// Sends a request, and returns its response.
pub(super) async fn run(
    session: &Session,
    request: &Request,
    extent: Extent,
) -> Result<Response, Error> {
    if let Some(link) = session.link()
        && request.payload.len() > FITS_WITHOUT_CSM
    {
        // The CSM announces the maximum size of its messages and blocks.
        link.established().await;
    }
    if extent == Extent::Whole
        && request.q_block
        && session.socket().is_some()
        && !session.id.is_multicast()
        // What is rare is in a box, or it would make every request's future larger.
        && let Some(response) = Box::pin(q_block::run(session, request)).await?
    {
        return Ok(response);
    }
    extent.drive(session, request).run().await
}
