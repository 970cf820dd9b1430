//! A server's side of the WebSocket handshake (RFC 6455 section 4.2, RFC 8323 section 4).

use super::ws::{Frames, PATH, SUBPROTOCOL};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::machine::TryParse;
use tokio_tungstenite::tungstenite::handshake::server::{Request, create_response, write_response};
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderValue, Response, StatusCode, header};

/// The longest request for a WebSocket.
const MAX_REQUEST: usize = 8 << 10;
/// The length of a key: 16 bytes in base64 (RFC 6455 section 4.1).
const KEY_LEN: usize = 24;

/// Why a WebSocket is refused.
struct UpgradeRefusal {
    status: StatusCode,
    why: String,
}

impl UpgradeRefusal {
    fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut response = Response::new(());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        headers.insert(header::CONTENT_LENGTH, self.why.len().into());
        match self.status {
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(header::ALLOW, HeaderValue::from_static("GET"));
            }
            StatusCode::UPGRADE_REQUIRED => {
                headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
                let version = HeaderValue::from_static("13");
                headers.insert(header::SEC_WEBSOCKET_VERSION, version);
            }
            _ => {}
        }
        let mut bytes = Vec::new();
        // Writing to memory does not fail, and all values are text.
        let _ = write_response(&mut bytes, &response);
        bytes.extend_from_slice(self.why.as_bytes());
        bytes
    }
}

impl From<Error> for UpgradeRefusal {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Protocol(ProtocolError::WrongHttpMethod) => StatusCode::METHOD_NOT_ALLOWED,
            // RFC 6455 section 4.4: the answer names the version that the server speaks.
            Error::Protocol(
                ProtocolError::MissingConnectionUpgradeHeader
                | ProtocolError::MissingUpgradeWebSocketHeader
                | ProtocolError::MissingSecWebSocketVersionHeader,
            ) => StatusCode::UPGRADE_REQUIRED,
            Error::Capacity(_) | Error::AttackAttempt => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }
}

/// Accepts a WebSocket over `stream` if it is for CoAP, and is opened by a page of this server or of `origins` if it is
/// opened by a page.
pub(crate) async fn accept<T: AsyncRead + AsyncWrite + Unpin>(
    mut stream: T,
    origins: &[String],
    max_message_size: u32,
) -> io::Result<Frames<T>> {
    let mut received = Vec::new();
    let checked = loop {
        match Request::try_parse(&received) {
            Ok(Some((length, request))) => {
                break respond(&request, origins).map(|response| (length, response));
            }
            Ok(None) if received.len() >= MAX_REQUEST => {
                let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                break Err(UpgradeRefusal::new(status, "the request is too long"));
            }
            Ok(None) => {
                if stream.read_buf(&mut received).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Err(error) => break Err(error.into()),
        }
    };
    match checked {
        Ok((length, response)) => {
            stream.write_all(&response).await?;
            stream.flush().await?;
            let rest = received.split_off(length);
            Ok(Frames::accepted(stream, rest, max_message_size).await)
        }
        Err(refusal) => {
            stream.write_all(&refusal.to_bytes()).await?;
            stream.shutdown().await?;
            Err(io::Error::new(io::ErrorKind::InvalidData, refusal.why))
        }
    }
}

/// The response that opens the WebSocket.
fn respond(request: &Request, origins: &[String]) -> Result<Vec<u8>, UpgradeRefusal> {
    let mut response = create_response(request)?;
    let headers = request.headers();
    if headers.get(header::SEC_WEBSOCKET_KEY).is_none_or(|key| key.len() != KEY_LEN) {
        let why = "Sec-WebSocket-Key must be 16 bytes in base64 (RFC 6455 section 4.1)";
        return Err(UpgradeRefusal::new(StatusCode::BAD_REQUEST, why));
    }
    if request.uri().path() != PATH {
        let why = "CoAP is at /.well-known/coap (RFC 8323 section 4.1)";
        return Err(UpgradeRefusal::new(StatusCode::NOT_FOUND, why));
    }
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let mut offered =
        offered.filter_map(|value| value.to_str().ok()).flat_map(|names| names.split(','));
    if !offered.any(|name| name.trim() == SUBPROTOCOL) {
        let why = "the subprotocol must be coap (RFC 8323 section 4.1)";
        return Err(UpgradeRefusal::new(StatusCode::BAD_REQUEST, why));
    }
    check_origin(headers, origins)?;
    let name = HeaderValue::from_static(SUBPROTOCOL);
    response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, name);
    let mut bytes = Vec::new();
    write_response(&mut bytes, &response)?;
    Ok(bytes)
}

/// RFC 6455 section 10.2: browsers name the page that opens a WebSocket. Without a check, any page
/// that a user visits could drive the devices in the user's network. Other programs name none.
fn check_origin(headers: &HeaderMap, origins: &[String]) -> Result<(), UpgradeRefusal> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let of_this_server = || {
        let page = origin.split_once("://").map(|(_, host)| host);
        page.zip(host).is_some_and(|(page, host)| page.eq_ignore_ascii_case(host))
    };
    if origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) || of_this_server() {
        return Ok(());
    }
    let why = "pages of this origin may not open a WebSocket (RFC 6455 section 10.2)";
    Err(UpgradeRefusal::new(StatusCode::FORBIDDEN, why))
}
