//! A body that is taken as it arrives.

use bytes::Bytes;
use core::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};

/// Chunks that wait for the handler, beside the one that waits for room.
const WAITING: usize = 4;

/// The body of a request as it arrives, for a resource that is [streamed](crate::server::Resource::streamed). Of other
/// resources, and of bodies that fit into one message, it is the whole body at once.
pub struct BodyStream {
    chunks: Arc<Mutex<mpsc::Receiver<Bytes>>>,
    /// How long the next chunk may take.
    patience: Duration,
    ended: bool,
}

/// The end of a stream at which its chunks arrive. The last one is empty: without it the client has given up.
#[derive(Debug)]
pub(super) struct Feed(pub(super) mpsc::Sender<Bytes>);

impl fmt::Debug for BodyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyStream(..)")
    }
}

impl Clone for BodyStream {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), patience: self.patience, ended: self.ended }
    }
}

impl BodyStream {
    /// A stream, and where its chunks arrive. A chunk may take as long as `patience`.
    pub(super) fn new(patience: Duration) -> (Self, Feed) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self { chunks: Arc::new(Mutex::new(receiver)), patience, ended: false }, Feed(sender))
    }

    /// A body that is here.
    pub(super) fn whole(body: Bytes) -> Self {
        let (stream, feed) = Self::new(Duration::MAX);
        // There is room for both.
        let _ = feed.0.try_send(body.clone());
        if !body.is_empty() {
            let _ = feed.0.try_send(Bytes::new());
        }
        stream
    }

    /// The next bytes, at most a block; `None` at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// Returns [`io::ErrorKind::UnexpectedEof`] if the client begins another body instead, and
    /// [`io::ErrorKind::TimedOut`] if nothing comes for [`Resource::max_pause`](crate::server::Resource::max_pause), by
    /// default EXCHANGE_LIFETIME (RFC 7252 section 4.8.2): the client has given up then.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.ended {
            return Ok(None);
        }
        let next = async { self.chunks.lock().await.recv().await };
        match tokio::time::timeout(self.patience, next).await {
            Ok(Some(chunk)) => {
                self.ended = chunk.is_empty();
                Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
            }
            Ok(None) => {
                let why = "the client has given up the body before its end";
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, why))
            }
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no more of the body came")),
        }
    }
}
