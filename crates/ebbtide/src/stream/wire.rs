//! The interface of transports to the connection's task.

use ebbtide_core::stream::Input;
use ebbtide_core::wire::Framing;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A reliable transport: bytes of a stream, or frames.
pub(crate) trait Wire: Send + Unpin + 'static {
    /// How the ends of messages are marked.
    const FRAMING: Framing;

    /// Reads available bytes into `input`, as many as fit, or one frame; zero bytes mean the end.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut Input,
        expected: usize,
    ) -> Poll<io::Result<usize>>;

    /// Takes bytes to send, or one frame, and returns how many it took.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Sends the bytes that it has taken.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Announces that nothing more will be sent.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// A byte stream: TCP, or TLS over TCP.
pub(crate) struct Bytes<T>(pub(crate) T);

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Wire for Bytes<T> {
    const FRAMING: Framing = Framing::Stream;

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut Input,
        expected: usize,
    ) -> Poll<io::Result<usize>> {
        // The buffer grows with the bytes that have arrived, not with the length that a header
        // announces. It grows in few steps, since many buffers that grow side by side leave holes
        // in the heap that are too small for the next step.
        let expected = expected.min(4 * input.unread().len());
        let mut room = ReadBuf::new(input.room(expected));
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut room))?;
        let len = room.filled().len();
        input.filled(len);
        Poll::Ready(Ok(len))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
