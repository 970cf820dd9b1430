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
    /// Whether the library has a Pong to send. Nothing is read before it has left: the library keeps as many as the
    /// peer asks for and does not take.
    owes_pong: bool,
}

/// Frames without a message that are read in one turn: the peer may send very many.
const EMPTY_FRAMES: usize = 32;

impl<T: AsyncRead + AsyncWrite + Unpin> Frames<T> {
    const fn new(socket: WebSocketStream<T>) -> Self {
        Self { socket, close: Some(CloseCode::Normal), owes_pong: false }
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
        for _ in 0..EMPTY_FRAMES {
            if self.owes_pong {
                ready!(Pin::new(&mut self.socket).poll_flush(cx)).map_err(to_io)?;
                self.owes_pong = false;
            }
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
                Message::Ping(_) => self.owes_pong = true,
                _ => {}
            }
        }
        // Other tasks have their turns.
        let mut others = std::pin::pin!(tokio::task::yield_now());
        if others.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// A frame of a client, masked by zeros.
    fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
        [&[0x80 | opcode, 0x80 | payload.len() as u8, 0, 0, 0, 0], payload].concat()
    }

    async fn read(frames: &mut Frames<tokio::io::DuplexStream>, input: &mut Input) -> usize {
        poll_fn(|cx| frames.poll_read(cx, input, 0)).await.unwrap()
    }

    #[tokio::test]
    async fn a_peer_that_pings_and_takes_no_pong_is_not_read_any_more() {
        let (mut peer, own) = duplex(1024);
        let mut frames = Frames::accepted(own, Vec::new(), 1000).await;
        let reading = tokio::spawn(async move {
            let mut input = Input::default();
            let read = read(&mut frames, &mut input).await;
            input.unread().get(..read).map(<[u8]>::to_vec)
        });
        let pings = frame(9, &[7; 125]).repeat(1000);
        let mut sent = 0;
        let mut send = async |bytes: &[u8]| {
            while let Ok(Ok(some)) = tokio::time::timeout(
                std::time::Duration::from_millis(50),
                peer.write(bytes.get(sent..).unwrap_or_default()),
            )
            .await
                && some > 0
            {
                sent += some;
            }
            sent
        };
        // What is on the way in both directions, and what was read before.
        let taken = send(&pings).await;
        assert!(taken < 2 * 1024 + READ + 1000, "{taken} bytes");
        // When it takes them, it goes on.
        let (mut from, mut to) = tokio::io::split(peer);
        let message = frame(2, b"message");
        let rest = pings.get(taken..).unwrap_or_default().to_vec();
        tokio::spawn(async move {
            to.write_all(&rest).await.unwrap();
            to.write_all(&message).await.unwrap();
        });
        let mut pongs = vec![0; 1000 * 127];
        from.read_exact(&mut pongs).await.unwrap();
        assert_eq!(pongs.get(..3), Some(&[0x8a, 125, 7][..]));
        assert_eq!(reading.await.unwrap().unwrap(), b"message");
    }

    #[tokio::test]
    async fn frames_without_a_message_leave_turns_to_others() {
        let (mut peer, own) = duplex(1 << 20);
        let mut frames = Frames::accepted(own, Vec::new(), 1000).await;
        peer.write_all(&frame(2, b"").repeat(100)).await.unwrap();
        peer.write_all(&frame(2, b"message")).await.unwrap();
        let mut input = Input::default();
        let mut turns = 0;
        poll_fn(|cx| {
            turns += 1;
            frames.poll_read(cx, &mut input, 0)
        })
        .await
        .unwrap();
        assert_eq!((turns, input.unread()), (4, &b"message"[..]));
    }
}
