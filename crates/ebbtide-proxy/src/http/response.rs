//! From a CoAP response to an HTTP response (RFC 8075 section 7).

use super::request::{PREFIX, Refused};
use crate::backend::Backends;
use crate::blocks::BodyRest;
use crate::media;
use crate::target::{NamedBy, Target, escape};
use bytes::Bytes;
use ebbtide::{Code, OptionNumber, Response, Uri};
use futures_util::stream::{self, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::StatusCode;
use hyper::body::Frame;
use hyper::header::{self, HeaderName, HeaderValue};
use std::io;

/// The body of an answer.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) fn whole(bytes: impl Into<Bytes>) -> AnswerBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that goes on for as long as the client reads it. If it cannot be completed, the connection is closed
/// without its end.
pub(super) fn going_on(beginning: Bytes, rest: BodyRest) -> AnswerBody {
    let beginning = stream::once(async { Ok(Frame::data(beginning)) });
    let rest = stream::try_unfold(rest, |mut rest| async move {
        Ok(rest.next().await?.map(|block| (Frame::data(block), rest)))
    });
    StreamBody::new(beginning.chain(rest)).boxed_unsync()
}

/// The status for a response code (RFC 8075 section 7, table 2). An empty success is a 204.
fn status(code: Code, is_empty: bool) -> StatusCode {
    match code {
        Code::CREATED => StatusCode::CREATED,
        Code::VALID => StatusCode::NOT_MODIFIED,
        Code::DELETED | Code::CHANGED if is_empty => StatusCode::NO_CONTENT,
        code if code.class() == 2 => StatusCode::OK,
        // 4.01 does not mean the authentication of HTTP (note 4).
        Code::UNAUTHORIZED | Code::FORBIDDEN => StatusCode::FORBIDDEN,
        Code::NOT_FOUND => StatusCode::NOT_FOUND,
        Code::NOT_ACCEPTABLE => StatusCode::NOT_ACCEPTABLE,
        Code::PRECONDITION_FAILED => StatusCode::PRECONDITION_FAILED,
        Code::REQUEST_ENTITY_TOO_LARGE => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UNSUPPORTED_CONTENT_FORMAT => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::UNPROCESSABLE_ENTITY => StatusCode::UNPROCESSABLE_ENTITY,
        Code::TOO_MANY_REQUESTS => StatusCode::TOO_MANY_REQUESTS,
        // A 405 names the methods that are allowed, which CoAP does not say (note 7); 4.02 likewise is the client's.
        code if code.class() == 4 => StatusCode::BAD_REQUEST,
        Code::NOT_IMPLEMENTED => StatusCode::NOT_IMPLEMENTED,
        Code::BAD_GATEWAY => StatusCode::BAD_GATEWAY,
        Code::SERVICE_UNAVAILABLE => StatusCode::SERVICE_UNAVAILABLE,
        Code::GATEWAY_TIMEOUT => StatusCode::GATEWAY_TIMEOUT,
        Code::PROXYING_NOT_SUPPORTED => StatusCode::BAD_GATEWAY,
        // RFC 8768 section 6.
        Code::HOP_LIMIT_REACHED => StatusCode::LOOP_DETECTED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The answer for a response to a request for this target.
pub(super) fn of(
    backends: &Backends,
    asked: &Target,
    response: &Response,
) -> hyper::Response<AnswerBody> {
    let status = status(response.code(), response.body().is_empty());
    let mut answer = hyper::Response::new(whole(response.body().clone()));
    *answer.status_mut() = status;
    let mut set = |name: HeaderName, text: &str| {
        if let Ok(value) = HeaderValue::from_str(text) {
            answer.headers_mut().insert(name, value);
        }
    };
    let options = response.options();
    let format = options
        .get_uint(OptionNumber::CONTENT_FORMAT)
        .and_then(|format| u16::try_from(format).ok());
    match format {
        Some(format) => {
            let media = media::of_format(format);
            set(header::CONTENT_TYPE, &media.content_type);
            if let Some(coding) = &media.coding {
                set(header::CONTENT_ENCODING, coding);
            }
        }
        // The diagnostic of an error is text in UTF-8 (RFC 7252 section 5.5.2).
        None if !response.is_success() && !response.body().is_empty() => {
            set(header::CONTENT_TYPE, "text/plain; charset=utf-8");
        }
        None => {}
    }
    // A browser must not guess a type that runs scripts.
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    if let Some(etag) = options.get(OptionNumber::ETAG) {
        let digits: String = etag.value.iter().map(|byte| format!("{byte:02x}")).collect();
        set(header::ETAG, &format!("\"{digits}\""));
    }
    let age = options.get_uint(OptionNumber::MAX_AGE);
    match response.code() {
        Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS => {
            // RFC 7252 section 5.9.3.4, RFC 8516 section 4.
            set(header::RETRY_AFTER, &age.unwrap_or(60).to_string());
        }
        // Without Max-Age it is 60 s (RFC 7252 section 5.10.5).
        Code::CONTENT | Code::VALID => {
            set(header::CACHE_CONTROL, &format!("max-age={}", age.unwrap_or(60)));
        }
        _ => set(header::CACHE_CONTROL, "no-store"),
    }
    if response.code() == Code::CREATED
        && let Some(created) =
            asked.uri().parse::<Uri>().ok().and_then(|uri| uri.location(response))
    {
        set(header::LOCATION, &location(backends, asked, &created));
    }
    answer
}

/// The URI by which this gateway's clients reach a resource.
fn location(backends: &Backends, asked: &Target, created: &Uri) -> String {
    let target = Target::of_uri(created);
    let own = backends.own_path(&target).filter(|_| asked.named_by == NamedBy::Operator);
    let Some(own) = own else { return format!("{PREFIX}{created}") };
    let mut text = String::new();
    for segment in own {
        text.push('/');
        escape(&segment, &mut text);
    }
    match target.query.as_slice() {
        [] => text,
        query => text + "?" + &query.join("&"),
    }
}

/// The answer to a request that is not forwarded.
pub(super) fn of_refused(refused: &Refused) -> hyper::Response<AnswerBody> {
    let mut answer = hyper::Response::new(whole(format!("{}\n", refused.why)));
    *answer.status_mut() = refused.status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, text);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(uri: &str, response: &Response) -> hyper::Response<AnswerBody> {
        of(&Backends::default(), &Target::parse(uri).unwrap(), response)
    }

    fn field(answer: &hyper::Response<AnswerBody>, name: HeaderName) -> Option<&str> {
        answer.headers().get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn codes_become_the_statuses_of_rfc_8075() {
        for (code, body, status) in [
            (Code::CREATED, "", 201),
            (Code::DELETED, "", 204),
            (Code::DELETED, "gone", 200),
            (Code::VALID, "", 304),
            (Code::CHANGED, "", 204),
            (Code::CHANGED, "new", 200),
            (Code::CONTENT, "", 200),
            (Code::BAD_REQUEST, "", 400),
            (Code::UNAUTHORIZED, "", 403),
            (Code::BAD_OPTION, "", 400),
            (Code::FORBIDDEN, "", 403),
            (Code::NOT_FOUND, "", 404),
            (Code::METHOD_NOT_ALLOWED, "", 400),
            (Code::NOT_ACCEPTABLE, "", 406),
            (Code::PRECONDITION_FAILED, "", 412),
            (Code::REQUEST_ENTITY_TOO_LARGE, "", 413),
            (Code::UNSUPPORTED_CONTENT_FORMAT, "", 415),
            (Code::TOO_MANY_REQUESTS, "", 429),
            (Code::INTERNAL_SERVER_ERROR, "", 500),
            (Code::NOT_IMPLEMENTED, "", 501),
            (Code::BAD_GATEWAY, "", 502),
            (Code::SERVICE_UNAVAILABLE, "", 503),
            (Code::GATEWAY_TIMEOUT, "", 504),
            (Code::PROXYING_NOT_SUPPORTED, "", 502),
            (Code::HOP_LIMIT_REACHED, "", 508),
        ] {
            let answer = answer("coap://a/", &Response::new(code).payload(body));
            assert_eq!(answer.status().as_u16(), status, "{code}");
        }
    }

    #[test]
    fn options_become_fields() {
        let response = Response::content("{}")
            .format(ebbtide::ContentFormat::JSON)
            .etag(&[1, 0xab])
            .max_age(7);
        let answered = answer("coap://a/", &response);
        assert_eq!(field(&answered, header::CONTENT_TYPE), Some("application/json"));
        assert_eq!(field(&answered, header::ETAG), Some("\"01ab\""));
        assert_eq!(field(&answered, header::CACHE_CONTROL), Some("max-age=7"));
        let busy = answer("coap://a/", &Response::new(Code::SERVICE_UNAVAILABLE).max_age(9));
        assert_eq!(field(&busy, header::RETRY_AFTER), Some("9"));
        let created = Response::new(Code::CREATED)
            .option(OptionNumber::LOCATION_PATH, b"new")
            .option(OptionNumber::LOCATION_PATH, b"1");
        let created = answer("coap://a/things", &created);
        assert_eq!(field(&created, header::LOCATION), Some("/hc/coap://a/new/1"));
    }
}
