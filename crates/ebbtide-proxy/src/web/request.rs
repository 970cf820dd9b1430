//! From a CoAP request to an HTTP request.

use super::response::known_tag;
use crate::ask::Ask;
use crate::media::{self, Media};
use crate::options::HOPS;
use crate::shared::RequestProgress;
use crate::system;
use crate::target::TargetScheme;
use bytes::Bytes;
use ebbtide::{Code, OptionNumber, Response};
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::Method;
use hyper::body::Frame;
use hyper::header::{self, HeaderName};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

/// The body of a request to an HTTP server.
pub(super) type RequestBody = UnsyncBoxBody<Bytes, io::Error>;

/// The request for an HTTP server.
///
/// # Errors
///
/// The answer, if HTTP cannot express it.
pub(super) fn of(
    ask: &Ask,
    name: &str,
    progress: &Arc<RequestProgress>,
) -> Result<hyper::Request<RequestBody>, Response> {
    let method = match ask.code {
        Code::GET => Method::GET,
        Code::POST => Method::POST,
        Code::PUT => Method::PUT,
        Code::DELETE => Method::DELETE,
        Code::PATCH => Method::PATCH,
        _ => return Err(Response::error(Code::NOT_IMPLEMENTED, "HTTP has no such method")),
    };
    let target = &ask.target;
    let host = match target.address {
        Some(std::net::IpAddr::V6(address)) => format!("[{address}]"),
        _ => target.host.to_string(),
    };
    let host = match target.scheme {
        scheme if scheme.default_port() == target.port => host,
        _ => format!("{host}:{}", target.port),
    };
    let mut request = hyper::Request::builder()
        .method(method)
        .uri(target.path_with_query())
        .header(header::HOST, host)
        .header(header::CONNECTION, "close")
        .header(header::VIA, via(ask, name));
    let mut set = |name: HeaderName, value: &str| {
        if let Some(fields) = request.headers_mut()
            && let Ok(value) = value.parse()
        {
            fields.append(name, value);
        }
    };
    for opt in ask.forwarded.options.iter() {
        let format = || opt.as_uint().and_then(|format| u16::try_from(format).ok());
        match opt.number {
            OptionNumber::ACCEPT => {
                if let Some(format) = format() {
                    set(header::ACCEPT, &media::of_format(format).content_type);
                }
            }
            OptionNumber::CONTENT_FORMAT => {
                if let Some(format) = format() {
                    let Media { content_type, coding } = media::of_format(format);
                    set(header::CONTENT_TYPE, &content_type);
                    coding.inspect(|coding| set(header::CONTENT_ENCODING, coding));
                }
            }
            OptionNumber::ETAG => {
                // One that stands for a longer ETag cannot be sent back: the whole answer is compared.
                if let Some(tag) = known_tag(opt.value) {
                    set(header::IF_NONE_MATCH, &tag);
                }
            }
            OptionNumber::IF_MATCH if opt.value.is_empty() => set(header::IF_MATCH, "*"),
            OptionNumber::IF_MATCH => {
                let failed = || {
                    Response::error(Code::PRECONDITION_FAILED, "the ETag stands for a longer one")
                };
                set(header::IF_MATCH, &known_tag(opt.value).ok_or_else(failed)?);
            }
            OptionNumber::IF_NONE_MATCH => set(header::IF_NONE_MATCH, "*"),
            // Nothing else of CoAP concerns a server of HTTP. What is critical would have to be understood.
            number if number.is_critical() => {
                let why = format!("{number} has no counterpart in HTTP");
                return Err(Response::error(Code::BAD_OPTION, why));
            }
            _ => {}
        }
    }
    let request = request.body(body(ask, progress));
    request.map_err(|_| Response::error(Code::BAD_REQUEST, "the URI is not one of HTTP"))
}

/// The body. While it arrives, each part of it gives the request its time limit again.
fn body(ask: &Ask, progress: &Arc<RequestProgress>) -> RequestBody {
    let Some(arriving) = ask.arriving.clone() else {
        return Full::new(ask.payload.clone()).map_err(|never| match never {}).boxed_unsync();
    };
    let patience = progress.deadline().saturating_duration_since(system::now());
    let progress = progress.clone();
    let parts = stream::try_unfold(arriving, move |mut arriving| {
        let progress = progress.clone();
        async move {
            let part = arriving.next().await?;
            progress.extend(system::now() + patience);
            Ok(part.map(|bytes| (Frame::data(bytes), arriving)))
        }
    });
    StreamBody::new(parts).boxed_unsync()
}

/// An entry for each hop so far, so that a loop ends that leads over both protocols (RFC 8768).
fn via(ask: &Ask, name: &str) -> String {
    debug_assert!(matches!(ask.target.scheme, TargetScheme::Web(_)), "the target is one of HTTP");
    let hops = HOPS.saturating_sub(ask.forwarded.hop_limit).max(1);
    let mut via = format!("1.1 {name}");
    for _ in 1..hops {
        // Writing to a string cannot fail.
        let _ = write!(via, ", 1.1 coap");
    }
    via
}
