//! WebSockets: each message is a binary frame (RFC 8323 section 4).

use super::wire::Wire;
use bytes::Bytes;
use ebbtide_core::stream::Input;
use ebbtide_core::wire::Framing;
use futures_util::{Sink, Stream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};

/// The path of CoAP on an HTTP server (RFC 8323 section 4.1).
pub(super) const PATH: &str = "/.well-known/coap";
/// The subprotocol that both sides must name (section 4.1).
pub(super) const SUBPROTOCOL: &str = "coap";

/// A WebSocket.
pub(crate) struct Frames<T> {
    socket: WebSocketStream<T>,
    /// The code of the closing frame, until that has been sent.
    close: Option<CloseCode>,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Frames<T> {
    const fn new(socket: WebSocketStream<T>) -> Self {
        Self { socket, close: Some(CloseCode::Normal) }
    }

    /// A server's, after the handshake. The peer has already sent `rest`.
    pub(super) async fn accepted(stream: T, rest: Vec<u8>, max_message_size: u32) -> Self {
        let config = Some(config(max_message_size));
        Self::new(WebSocketStream::from_partially_read(stream, rest, Role::Server, config).await)
    }

    /// The peer has violated the protocol (RFC 6455 section 7.4.1).
    fn fault(&mut self, code: CloseCode, error: io::Error) -> Poll<io::Result<usize>> {
        self.close = self.close.map(|_| code);
        Poll::Ready(Err(error))
    }
}

/// Bytes that the library reads at once and reserves for every connection. Its default is 128 KiB.
const READ: usize = 4 << 10;

fn config(max_message_size: u32) -> WebSocketConfig {
    // Longer by one than allowed, so that the connection itself detects and reports the error.
    let max = max_message_size as usize + 1;
    WebSocketConfig::default()
        .max_message_size(Some(max))
        .max_frame_size(Some(max))
        .read_buffer_size(READ)
}

/// Opens a WebSocket over `stream`; `authority` is host and port.
pub(crate) async fn connect<T: AsyncRead + AsyncWrite + Unpin>(
    stream: T,
    authority: &str,
    max_message_size: u32,
) -> io::Result<Frames<T>> {
    let mut request = format!("ws://{authority}{PATH}").into_client_request().map_err(to_io)?;
    let name = HeaderValue::from_static(SUBPROTOCOL);
    request.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, name);
    let config = Some(config(max_message_size));
    let connected = tokio_tungstenite::client_async_with_config(request, stream, config).await;
    connected.map(|(socket, _)| Frames::new(socket)).map_err(to_io)
}

fn to_io(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::Http(response) => {
            let status = response.status();
            io::Error::other(format!(
                "the server answered {status} instead of a WebSocket for CoAP"
            ))
        }
        // The peer's bytes are not a valid WebSocket, or exceed a limit.
        error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Wire for Frames<T> {
    const FRAMING: Framing = Framing::WebSocket;

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut Input,
        _expected: usize,
    ) -> Poll<io::Result<usize>> {
        loop {
            let message = match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                None | Some(Ok(Message::Close(_)) | Err(Error::ConnectionClosed)) => {
                    return Poll::Ready(Ok(0));
                }
                Some(Err(error)) => {
                    let code = match &error {
                        Error::Capacity(_) => CloseCode::Size,
                        Error::Utf8(_) => CloseCode::Invalid,
                        _ => CloseCode::Protocol,
                    };
                    return self.fault(code, to_io(error));
                }
                Some(Ok(message)) => message,
            };
            match message {
                Message::Binary(bytes) if !bytes.is_empty() => {
                    if let Some(room) = input.room(bytes.len()).get_mut(..bytes.len()) {
                        room.copy_from_slice(&bytes);
                    }
                    input.filled(bytes.len());
                    return Poll::Ready(Ok(bytes.len()));
                }
                Message::Text(_) => {
                    let wrong = "a text frame; all frames must be binary (RFC 8323 section 4.2)";
                    let error = io::Error::new(io::ErrorKind::InvalidData, wrong);
                    return self.fault(CloseCode::Unsupported, error);
                }
                // The library answers the WebSocket's own Pings.
                _ => {}
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(to_io)?;
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        Pin::new(&mut self.socket).start_send(message).map_err(to_io)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx).map_err(to_io)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(code) = self.close {
            ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(to_io)?;
            self.close = None;
            let frame = CloseFrame { code, reason: "".into() };
            // It fails if the peer has closed first.
            let _ = Pin::new(&mut self.socket).start_send(Message::Close(Some(frame)));
        }
        Pin::new(&mut self.socket).poll_close(cx).map_err(to_io)
    }
}
