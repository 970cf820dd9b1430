//! From an HTTP response to a CoAP response (RFC 7252 section 10.1, and RFC 8075 section 7 the other way round).

use crate::ask::Ask;
use crate::media;
use crate::outcome::ForwardOutcome;
use bytes::Bytes;
use ebbtide::{Code, ContentFormat, OptionNumber, Response};
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::response::Parts;

/// The longest ETag that is taken over as it is; one byte less than CoAP allows, so that it differs
/// from those that stand for longer ones.
const DIRECT: usize = 7;

/// The answer for a server's response.
pub(super) fn of(ask: &Ask, head: &Parts, body: Bytes) -> ForwardOutcome {
    let Some(code) = code(ask.code, head.status) else {
        let to = field(&head.headers, header::LOCATION).unwrap_or("elsewhere");
        let why = format!("the server answers {}, and refers to {to}", head.status.as_u16());
        return ForwardOutcome::Refusal(Response::error(Code::BAD_GATEWAY, why));
    };
    let mut answer = Response::new(code);
    if code.class() == 2 {
        let coding = list(&head.headers, header::CONTENT_ENCODING);
        let coding = coding.as_deref();
        let media = field(&head.headers, header::CONTENT_TYPE);
        let format = media.and_then(|media| media::to_format(media, coding));
        match format {
            Some(format) if !body.is_empty() => answer = answer.format(ContentFormat(format)),
            None if coding.is_some() => {
                let why = "the server's content coding has no number";
                return ForwardOutcome::Refusal(Response::error(Code::BAD_GATEWAY, why));
            }
            // A type without a number: the client sees the payload, and no format.
            _ => {}
        }
        let tag = || field(&head.headers, header::ETAG).map(etag);
        let tag = match code {
            Code::CONTENT => tag(),
            Code::VALID => only_version(ask).or_else(tag),
            _ => None,
        };
        if let Some(tag) = tag {
            answer = answer.etag(&tag);
        }
        if code == Code::CREATED {
            answer = created(answer, &head.headers);
        }
        if code != Code::VALID {
            answer = answer.payload(body);
        }
    } else {
        answer = answer.payload(diagnostic(&head.headers, body));
    }
    ForwardOutcome::Answer(match max_age(code, &head.headers) {
        Some(seconds) => answer.max_age(seconds),
        None => answer,
    })
}

/// The code of a response to a request with this method; `None` for a status that CoAP cannot express.
fn code(method: Code, status: StatusCode) -> Option<Code> {
    Some(match status.as_u16() {
        201 => Code::CREATED,
        200..300 => match method {
            Code::GET => Code::CONTENT,
            Code::DELETE => Code::DELETED,
            _ => Code::CHANGED,
        },
        304 => Code::VALID,
        401 => Code::UNAUTHORIZED,
        403 => Code::FORBIDDEN,
        404 | 410 => Code::NOT_FOUND,
        405 => Code::METHOD_NOT_ALLOWED,
        406 => Code::NOT_ACCEPTABLE,
        409 => Code::CONFLICT,
        412 => Code::PRECONDITION_FAILED,
        413 => Code::REQUEST_ENTITY_TOO_LARGE,
        415 => Code::UNSUPPORTED_CONTENT_FORMAT,
        422 => Code::UNPROCESSABLE_ENTITY,
        429 => Code::TOO_MANY_REQUESTS,
        400..500 => Code::BAD_REQUEST,
        501 => Code::NOT_IMPLEMENTED,
        502 => Code::BAD_GATEWAY,
        503 => Code::SERVICE_UNAVAILABLE,
        504 => Code::GATEWAY_TIMEOUT,
        508 => Code::HOP_LIMIT_REACHED,
        500..600 => Code::INTERNAL_SERVER_ERROR,
        _ => return None,
    })
}

fn field(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The text of a field that is a list: several lines count as one (RFC 9110 section 5.3).
fn list(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let lines = headers.get_all(name).iter();
    let lines: Vec<_> = lines.map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// The version that a 304 confirms, if the request named one alone. The server may have left it out, or written it as a
/// weak one: If-None-Match compares without regard to that (RFC 9110 section 13.1.2).
fn only_version(ask: &Ask) -> Option<Vec<u8>> {
    let options = ask.forwarded.options.iter();
    let mut sent =
        options.filter(|opt| opt.number == OptionNumber::ETAG && known_tag(opt.value).is_some());
    let only = sent.next()?.value.to_vec();
    sent.next().is_none().then_some(only)
}

/// How long an answer is fresh (RFC 9111 section 4.2.1). Without a statement it is not stored here: the 60 s of CoAP's
/// default are not HTTP's.
fn max_age(code: Code, headers: &HeaderMap) -> Option<u32> {
    if matches!(code, Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS) {
        return field(headers, header::RETRY_AFTER).and_then(|seconds| seconds.trim().parse().ok());
    }
    if !matches!(code, Code::CONTENT | Code::VALID) {
        return None;
    }
    let control = list(headers, header::CACHE_CONTROL).unwrap_or_default();
    let directives = || control.split(',').map(str::trim);
    let is_stored = |directive: &str| {
        !["no-store", "no-cache", "private"].iter().any(|word| {
            directive.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        })
    };
    // What varies with fields of the request would be given to clients with others.
    if !directives().all(is_stored) || headers.contains_key(header::VARY) {
        return Some(0);
    }
    let seconds = |name: &str| {
        directives()
            .find_map(|directive| directive.strip_prefix(name)?.trim_matches('"').parse().ok())
    };
    let age: u32 = field(headers, header::AGE).and_then(|age| age.parse().ok()).unwrap_or(0);
    let fresh: u32 = seconds("s-maxage=").or_else(|| seconds("max-age=")).unwrap_or(0);
    Some(fresh.saturating_sub(age))
}

/// Whether the text of an ETag is taken over as it is.
fn is_direct(tag: &str) -> bool {
    (1..=DIRECT).contains(&tag.len())
        && tag.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')
}

/// The ETag of HTTP for one of CoAP, if it is the same bytes.
pub(super) fn known_tag(etag: &[u8]) -> Option<String> {
    let text = core::str::from_utf8(etag).ok()?;
    is_direct(text).then(|| format!("\"{text}\""))
}

/// An ETag as CoAP has it: its bytes, or eight that stand for it.
fn etag(tag: &str) -> Vec<u8> {
    let strong = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    match strong.filter(|tag| is_direct(tag)) {
        Some(tag) => tag.as_bytes().to_vec(),
        // FNV-1a with 64 bits: a server that wants its own ETags to collide gains nothing.
        None => tag
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
                (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
            .to_be_bytes()
            .to_vec(),
    }
}

/// Adds where the resource is, if it is at the same server (RFC 7252 section 5.10.7).
fn created(mut answer: Response, headers: &HeaderMap) -> Response {
    let location =
        field(headers, header::LOCATION).filter(|at| at.starts_with('/') && !at.starts_with("//"));
    let uri = location.and_then(|at| format!("coap://h{at}").parse::<ebbtide::Uri>().ok());
    if let Some(uri) = uri {
        for segment in uri.path() {
            answer = answer.option(OptionNumber::LOCATION_PATH, segment.as_bytes());
        }
        for argument in uri.query() {
            answer = answer.option(OptionNumber::LOCATION_QUERY, argument.as_bytes());
        }
    }
    answer
}

/// The text of an error, if it is one for people (RFC 7252 section 5.5.2).
fn diagnostic(headers: &HeaderMap, body: Bytes) -> Bytes {
    let is_text =
        field(headers, header::CONTENT_TYPE).is_some_and(|media| media.starts_with("text/plain"));
    if is_text && body.len() <= 256 { body } else { Bytes::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn statuses_become_codes_by_the_method() {
        for (method, status, expected) in [
            (Code::GET, 200, Some(Code::CONTENT)),
            (Code::GET, 304, Some(Code::VALID)),
            (Code::PUT, 201, Some(Code::CREATED)),
            (Code::PUT, 204, Some(Code::CHANGED)),
            (Code::POST, 200, Some(Code::CHANGED)),
            (Code::DELETE, 204, Some(Code::DELETED)),
            (Code::GET, 301, None),
            (Code::GET, 418, Some(Code::BAD_REQUEST)),
            (Code::GET, 404, Some(Code::NOT_FOUND)),
            (Code::GET, 503, Some(Code::SERVICE_UNAVAILABLE)),
            (Code::GET, 599, Some(Code::INTERNAL_SERVER_ERROR)),
        ] {
            assert_eq!(code(method, StatusCode::from_u16(status).unwrap()), expected, "{status}");
        }
    }

    #[test]
    fn what_http_does_not_let_others_store_has_no_age() {
        for (fields, age) in [
            (&[("cache-control", "max-age=60")][..], 60),
            (&[("cache-control", "public, max-age=60"), ("age", "50")], 10),
            (&[("cache-control", "max-age=60, s-maxage=5")], 5),
            (&[("cache-control", "max-age=60, no-cache=\"x\"")], 0),
            (&[("cache-control", "Private, max-age=60")], 0),
            (&[("cache-control", "max-age=60"), ("cache-control", "private")], 0),
            (&[("cache-control", "public"), ("cache-control", "max-age=60")], 60),
            (&[("cache-control", "max-age=60"), ("vary", "accept")], 0),
            (&[], 0),
        ] {
            assert_eq!(max_age(Code::CONTENT, &headers(fields)), Some(age), "{fields:?}");
        }
        let later = headers(&[("retry-after", "7")]);
        assert_eq!(max_age(Code::SERVICE_UNAVAILABLE, &later), Some(7));
        assert_eq!(max_age(Code::NOT_FOUND, &later), None);
    }

    #[test]
    fn a_long_etag_is_stood_for_by_eight_bytes_that_are_never_sent_back() {
        assert_eq!(etag("\"v1\""), b"v1");
        for long in ["\"12345678\"", "W/\"v1\"", "\"\"", "v1", "\"a b\""] {
            let stands = etag(long);
            assert_eq!(stands.len(), 8, "{long}");
            assert!(!std::str::from_utf8(&stands).is_ok_and(is_direct), "{long}");
        }
        assert_ne!(etag("\"12345678\""), etag("\"12345679\""));
    }
}
