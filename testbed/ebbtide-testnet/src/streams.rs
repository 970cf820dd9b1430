//! The connections as applications see them.

use crate::fabric::Fabric;
use crate::segment::EndId;
use ebbtide::network::{ByteStream, StreamListener};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// An end of a connection.
#[derive(Debug)]
pub(crate) struct TestStream {
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) end: EndId,
}

impl TestStream {
    /// Whether the connection that it opens is open.
    pub(crate) fn poll_open(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        self.fabric.change(|state, _| state.connections.poll_open(cx, self.end))
    }
}

impl AsyncRead for TestStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.fabric
            .change(|state, _| state.connections.poll_read(cx, &mut state.links, self.end, buffer))
    }
}

impl AsyncWrite for TestStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.fabric.change(|state, now| {
            state.connections.poll_write(cx, now, &mut state.links, self.end, bytes)
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.fabric.change(|state, now| {
            state.connections.shut_down(now, &mut state.links, self.end);
        });
        Poll::Ready(Ok(()))
    }
}

impl Drop for TestStream {
    fn drop(&mut self) {
        self.fabric.change(|state, now| state.connections.close(now, &mut state.links, self.end));
    }
}

/// An address at which connections are accepted.
#[derive(Debug)]
pub(crate) struct TestListener {
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) address: SocketAddr,
}

impl StreamListener for TestListener {
    fn local_addr(&self) -> SocketAddr {
        self.address
    }

    fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(Box<dyn ByteStream>, SocketAddr)>> {
        let accepted =
            self.fabric.change(|state, _| state.connections.poll_accept(cx, self.address));
        accepted.map(|(end, from)| {
            let stream: Box<dyn ByteStream> =
                Box::new(TestStream { fabric: self.fabric.clone(), end });
            Ok((stream, from))
        })
    }
}

impl Drop for TestListener {
    fn drop(&mut self) {
        self.fabric.change(|state, now| {
            state.connections.unlisten(now, &mut state.links, self.address);
        });
    }
}
