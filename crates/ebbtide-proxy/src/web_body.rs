//! The body of an HTTP server's answer, as it comes.

use crate::open::Counted;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use std::sync::{Mutex, PoisonError};
use tokio::task::AbortHandle;

/// Why there is no answer of a server, or no end of it.
#[derive(Debug)]
pub(crate) struct Broken(pub(crate) &'static str);

/// A body on its connection, which is closed when this is dropped. The server is not read faster
/// than the body is taken.
#[derive(Debug)]
pub(crate) struct WebBody {
    // Only one task has it: the lock is never waited for.
    body: Mutex<Incoming>,
    connection: AbortHandle,
    _place: Counted,
}

impl Drop for WebBody {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl WebBody {
    pub(crate) fn new(body: Incoming, connection: AbortHandle, place: Counted) -> Self {
        Self { body: Mutex::new(body), connection, _place: place }
    }

    /// The length that the server has announced.
    pub(crate) fn length(&mut self) -> Option<u64> {
        self.body.get_mut().unwrap_or_else(PoisonError::into_inner).size_hint().exact()
    }

    /// The next bytes; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(frame) = body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|_| Broken("the answer has no end"))?;
            // Trailers have no counterpart in CoAP.
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
    }

    /// The body, or its beginning of about `most` bytes if it is longer.
    pub(crate) async fn beginning(&mut self, most: usize) -> Result<Beginning, Broken> {
        let mut beginning = BytesMut::new();
        while beginning.len() <= most {
            match self.next().await? {
                Some(bytes) => beginning.extend_from_slice(&bytes),
                None => return Ok(Beginning::Whole(beginning.freeze())),
            }
        }
        Ok(Beginning::GoesOn(beginning.freeze()))
    }
}

/// A body, or its beginning.
pub(crate) enum Beginning {
    Whole(Bytes),
    GoesOn(Bytes),
}
