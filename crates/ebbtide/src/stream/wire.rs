//! Transports as the connection's task wants them.

use ebbtide_core::stream::Input;
use ebbtide_core::wire::Framing;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A reliable transport: bytes of a stream, or frames.
pub(crate) trait Wire: Send + Unpin + 'static {
    /// How its messages are told apart.
    const FRAMING: Framing;

    /// Reads what is there into `input`, as much as fits, or one frame; zero bytes are the end.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut Input,
        expected: usize,
    ) -> Poll<io::Result<usize>>;

    /// Takes bytes to send, or one frame, and says how many it took.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Sends what it has taken.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Says that nothing more will be sent.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// A byte stream: TCP, or TLS over it.
pub(crate) struct Bytes<T>(pub(crate) T);

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Wire for Bytes<T> {
    const FRAMING: Framing = Framing::Stream;

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut Input,
        expected: usize,
    ) -> Poll<io::Result<usize>> {
        // Room grows with what has come, not with what a header promises.
        let expected = expected.min(2 * input.unread().len());
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
