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
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};

/// The path of CoAP on an HTTP server (RFC 8323 section 4.1).
const PATH: &str = "/.well-known/coap";
/// The subprotocol that both sides must name (section 4.1).
const SUBPROTOCOL: &str = "coap";

/// A WebSocket.
pub(crate) struct Frames<T>(WebSocketStream<T>);

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
    connected.map(|(socket, _)| Frames(socket)).map_err(to_io)
}

/// Accepts a WebSocket over `stream` if it is for CoAP.
pub(crate) async fn accept<T: AsyncRead + AsyncWrite + Unpin>(
    stream: T,
    max_message_size: u32,
) -> io::Result<Frames<T>> {
    let config = Some(config(max_message_size));
    let accepted = tokio_tungstenite::accept_hdr_async_with_config(stream, check, config).await;
    accepted.map(Frames).map_err(to_io)
}

#[expect(clippy::result_large_err, reason = "the library's callback is of this type")]
fn check(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let refuse = |status, why: &str| {
        let mut refusal = ErrorResponse::new(Some(why.to_owned()));
        *refusal.status_mut() = status;
        Err(refusal)
    };
    if request.uri().path() != PATH {
        return refuse(
            StatusCode::NOT_FOUND,
            "CoAP is at /.well-known/coap (RFC 8323 section 4.1)",
        );
    }
    let offered = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let mut offered =
        offered.filter_map(|value| value.to_str().ok()).flat_map(|names| names.split(','));
    if !offered.any(|name| name.trim() == SUBPROTOCOL) {
        return refuse(
            StatusCode::BAD_REQUEST,
            "the subprotocol must be coap (RFC 8323 section 4.1)",
        );
    }
    let name = HeaderValue::from_static(SUBPROTOCOL);
    response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, name);
    Ok(response)
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
            let message = match ready!(Pin::new(&mut self.0).poll_next(cx)) {
                None | Some(Ok(Message::Close(_)) | Err(Error::ConnectionClosed)) => {
                    return Poll::Ready(Ok(0));
                }
                Some(Err(error)) => return Poll::Ready(Err(to_io(error))),
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
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, wrong)));
                }
                // The library answers the WebSocket's own Pings.
                _ => {}
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.0).poll_ready(cx)).map_err(to_io)?;
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        Pin::new(&mut self.0).start_send(message).map_err(to_io)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx).map_err(to_io)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx).map_err(to_io)
    }
}
