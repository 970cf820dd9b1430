//! From an HTTP request to a CoAP request (RFC 8075 sections 5 to 7).

use crate::ask::{Ask, BodyForm, StoredUse};
use crate::cell::Applicant;
use crate::forward::URGENCY;
use crate::gateway::Gateway;
use crate::media::{self, Accepted};
use crate::options::{Forwarded, HOPS};
use crate::system;
use crate::target::Target;
use bytes::Bytes;
use ebbtide::{Code, OptionNumber, Options};
use ebbtide_core::sharing_prefix;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Uri, Version};
use std::net::IpAddr;
use std::time::Duration;

/// Where the target URI begins in the path (RFC 8075 section 5.3: the default mapping).
pub(crate) const PREFIX: &str = "/hc/";

/// A request and the form of its answer.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) ask: Ask,
    pub(super) form: Form,
}

/// The form of the answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    /// As Whole, without the body.
    Head,
    /// Each state of the resource as a server-sent event.
    Events,
    /// The answer that is stored, or none (RFC 9111 section 5.2.1.7).
    OnlyStored,
}

/// Why a request is not forwarded.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) why: String,
}

fn refused(status: StatusCode, why: impl Into<String>) -> Refused {
    Refused { status, why: why.into() }
}

/// The text of a field; several lines of one name count as one (RFC 9110 section 5.3).
fn field(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let texts: Vec<_> =
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The target URI in a request, by the default mapping or as an absolute URI.
fn target(gateway: &Gateway, uri: &Uri) -> Result<Target, Refused> {
    let bad = |why: String| refused(StatusCode::BAD_REQUEST, why);
    let text = match uri.scheme_str() {
        Some(scheme) if scheme.starts_with("coap") => uri.to_string(),
        _ => {
            let whole = uri.path_and_query().map_or("", |path| path.as_str());
            let Some(rest) = whole.strip_prefix(PREFIX) else {
                let own = Target::parse(&format!("coap://gateway{whole}"));
                let own = own.map_err(|refusal| bad(refusal.text().into_owned()))?;
                let backend = gateway.inner.backends.target(own.path, own.query);
                let why = || format!("request {PREFIX}coap://HOST/PATH");
                return backend.ok_or_else(|| refused(StatusCode::NOT_FOUND, why()));
            };
            // Clients may escape the colon and the slashes (RFC 8075 section 5.3).
            let text = match rest.split_once("%3A//").or_else(|| rest.split_once("%3a//")) {
                Some((scheme, rest)) if !scheme.contains('/') => format!("{scheme}://{rest}"),
                _ => rest.to_owned(),
            };
            with_brackets(text)
        }
    };
    Target::parse(&text).map_err(|refusal| bad(refusal.text().into_owned()))
}

/// A target URI in which the brackets around an address are as they are in a URI: in the path of
/// another one they have to be escaped (RFC 8075 section 5.3.2).
fn with_brackets(uri: String) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri };
    let is_open = rest.get(..3).is_some_and(|first| first.eq_ignore_ascii_case("%5B"));
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let closed = authority.find("%5D").or_else(|| authority.find("%5d")).filter(|_| is_open);
    match closed.map(|at| (authority.get(3..at), authority.get(at + 3..))) {
        Some((Some(address), Some(port))) => format!("{scheme}://[{address}]{port}{path}"),
        _ => uri,
    }
}

/// Reads a request's head; `payload` is its body, or the beginning of a long one.
///
/// # Errors
///
/// The status and the reason, if it cannot be forwarded.
pub(super) fn read(
    gateway: &Gateway,
    client: IpAddr,
    parts: &Parts,
    payload: Bytes,
) -> Result<Wanted, Refused> {
    let target = target(gateway, &parts.uri)?;
    let headers = &parts.headers;
    let (code, mut form) = match &parts.method {
        method if *method == Method::GET => (Code::GET, Form::Whole),
        method if *method == Method::HEAD => (Code::GET, Form::Head),
        method if *method == Method::POST => (Code::POST, Form::Whole),
        method if *method == Method::PUT => (Code::PUT, Form::Whole),
        method if *method == Method::DELETE => (Code::DELETE, Form::Whole),
        method if *method == Method::PATCH => (Code::PATCH, Form::Whole),
        _ => return Err(refused(StatusCode::NOT_IMPLEMENTED, "CoAP has no such method")),
    };
    let mut options = Options::new();
    conditions(headers, code, &mut options)?;
    if !payload.is_empty() {
        content_format(headers, &mut options)?;
    }
    match field(headers, header::ACCEPT).as_deref().map_or(Accepted::Anything, media::accepted) {
        Accepted::Anything => {}
        Accepted::Format(format) => options.push_uint(OptionNumber::ACCEPT, format.into()),
        Accepted::Events if code == Code::GET => form = Form::Events,
        Accepted::Events | Accepted::Nothing => {
            return Err(refused(
                StatusCode::NOT_ACCEPTABLE,
                "CoAP has no number for these media types",
            ));
        }
    }
    let caching = field(headers, header::CACHE_CONTROL).unwrap_or_default();
    let has = |directive: &str| {
        caching.split(',').any(|known| known.trim().eq_ignore_ascii_case(directive))
    };
    if has("only-if-cached") && code == Code::GET {
        form = Form::OnlyStored;
    }
    let confirm = has("no-cache") || has("no-store") || has("max-age=0");
    let ask = Ask {
        applicant: Applicant { client: sharing_prefix(client), urgency: urgency(headers) },
        target,
        code,
        forwarded: Forwarded { options, hop_limit: hop_limit(headers)? },
        payload,
        deadline: system::now() + wait(headers).unwrap_or(gateway.inner.deadline),
        freshness: if confirm { StoredUse::Validated } else { StoredUse::Stored },
        body: match parts.version {
            // The end of the connection is the end of the body, so one that breaks off would seem whole (RFC 9112
            // section 6.3).
            Version::HTTP_09 | Version::HTTP_10 => BodyForm::Held,
            _ => BodyForm::Streamed,
        },
        arriving: None,
    };
    Ok(Wanted { ask, form })
}

/// If-Match and If-None-Match. An ETag is its bytes in hexadecimal digits, as this gateway writes it.
fn conditions(headers: &HeaderMap, code: Code, options: &mut Options) -> Result<(), Refused> {
    let failed = || refused(StatusCode::PRECONDITION_FAILED, "no resource has such an ETag");
    if let Some(matches) = field(headers, header::IF_MATCH) {
        for tag in matches.split(',').map(str::trim) {
            match tag {
                "*" => options.push(OptionNumber::IF_MATCH, &[]),
                tag => options.push(OptionNumber::IF_MATCH, &bytes_of(tag).ok_or_else(failed)?),
            }
        }
    }
    if let Some(versions) = field(headers, header::IF_NONE_MATCH) {
        for tag in versions.split(',').map(str::trim) {
            match (tag, code) {
                ("*", _) => options.push(OptionNumber::IF_NONE_MATCH, &[]),
                // One that is not of a CoAP resource matches none.
                (tag, Code::GET) => {
                    if let Some(bytes) = bytes_of(tag) {
                        options.push(OptionNumber::ETAG, &bytes);
                    }
                }
                _ => return Err(failed()),
            }
        }
    }
    Ok(())
}

/// The bytes of a quoted ETag.
fn bytes_of(tag: &str) -> Option<Vec<u8>> {
    let digits = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')?;
    let is_etag = (2..=16).contains(&digits.len()) && digits.len() % 2 == 0 && digits.is_ascii();
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    is_etag.then(|| (0..digits.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()).flatten()
}

fn content_format(headers: &HeaderMap, options: &mut Options) -> Result<(), Refused> {
    let coding = field(headers, header::CONTENT_ENCODING);
    let Some(media) = field(headers, header::CONTENT_TYPE) else {
        let unknown =
            || refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Encoding needs Content-Type");
        return if coding.is_none() { Ok(()) } else { Err(unknown()) };
    };
    let format = media::to_format(&media, coding.as_deref()).ok_or_else(|| {
        let why = format!("CoAP has no Content-Format for {media}; application/coap-payload;cf=N names one by number");
        refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, why)
    })?;
    options.push_uint(OptionNumber::CONTENT_FORMAT, format.into());
    Ok(())
}

/// The urgency of RFC 9218 section 4.1, of this client's own requests.
fn urgency(headers: &HeaderMap) -> u8 {
    let priority = field(headers, HeaderName::from_static("priority")).unwrap_or_default();
    let urgency = priority.split(',').find_map(|part| part.trim().strip_prefix("u=")?.parse().ok());
    urgency.filter(|urgency| *urgency <= 7).unwrap_or(URGENCY)
}

/// How long the client waits (RFC 7240 section 4.3).
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let prefer = field(headers, HeaderName::from_static("prefer"))?;
    let seconds = prefer
        .split([',', ';'])
        .find_map(|part| part.trim().strip_prefix("wait=")?.parse::<u32>().ok());
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}

/// Each gateway on the way counts as a hop, so that a loop over HTTP ends as well.
fn hop_limit(headers: &HeaderMap) -> Result<u8, Refused> {
    let lines = headers.get_all(header::VIA).iter().map(HeaderValue::as_bytes);
    let passed = lines.map(|line| 1 + line.iter().filter(|byte| **byte == b',').count()).sum();
    let left = usize::from(HOPS).checked_sub(passed).filter(|left| *left > 0);
    left.and_then(|left| u8::try_from(left).ok())
        .ok_or_else(|| refused(StatusCode::LOOP_DETECTED, "too many gateways on the way (Via)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GatewayConfig;

    fn read_one(
        method: &str,
        uri: &str,
        fields: &[(&str, &str)],
        body: &'static str,
    ) -> Result<Wanted, StatusCode> {
        let mut request = hyper::Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let gateway = Gateway::new(GatewayConfig::new());
        read(&gateway, [192, 0, 2, 1].into(), &parts, body.into()).map_err(|refused| refused.status)
    }

    fn options(wanted: &Wanted) -> Vec<(u16, Vec<u8>)> {
        wanted.ask.forwarded.options.iter().map(|opt| (opt.number.0, opt.value.to_vec())).collect()
    }

    #[test]
    fn the_target_is_what_follows_the_prefix() {
        for uri in [
            "/hc/coap://s.example.com/light?on&x=1",
            "http://p.example.com/hc/coap://s.example.com/light?on&x=1",
            "/hc/coap%3A//s.example.com/light?on&x=1",
            "coap://s.example.com/light?on&x=1",
        ] {
            let wanted = read_one("GET", uri, &[], "").unwrap();
            assert_eq!(
                wanted.ask.target.uri(),
                "coap://s.example.com:5683/light?on&x%3D1",
                "{uri}"
            );
        }
        let wanted = read_one("GET", "/hc/coap://[2001:db8::1]:61616/a", &[], "").unwrap();
        assert_eq!(wanted.ask.target.uri(), "coap://[2001:db8::1]:61616/a");
        for (uri, status) in [
            ("/", StatusCode::NOT_FOUND),
            ("/hc/", StatusCode::BAD_REQUEST),
            ("/hc/http://a/", StatusCode::BAD_REQUEST),
            ("/hc/coap://", StatusCode::BAD_REQUEST),
        ] {
            assert_eq!(read_one("GET", uri, &[], "").unwrap_err(), status, "{uri}");
        }
    }

    #[test]
    fn fields_become_options() {
        let fields = [
            ("if-none-match", "\"0102\", W/\"ff\", \"not-hex\""),
            ("accept", "application/cbor"),
            ("priority", "u=1, i"),
            ("via", "1.1 a, 1.1 b"),
            ("cache-control", "no-cache"),
        ];
        let wanted = read_one("GET", "/hc/coap://a/", &fields, "").unwrap();
        assert_eq!(options(&wanted), [(4, vec![1, 2]), (4, vec![0xff]), (17, vec![60])]);
        assert_eq!((wanted.ask.applicant.urgency, wanted.ask.forwarded.hop_limit), (1, 14));
        assert_eq!(wanted.ask.freshness, StoredUse::Validated);
        let fields =
            [("content-type", "application/json"), ("if-match", "\"aa\""), ("if-none-match", "*")];
        let wanted = read_one("PUT", "/hc/coap://a/", &fields, "{}").unwrap();
        assert_eq!(options(&wanted), [(1, vec![0xaa]), (5, vec![]), (12, vec![50])]);
    }

    #[test]
    fn what_coap_cannot_express_is_refused_with_the_reason() {
        for (method, fields, body, status) in [
            ("OPTIONS", &[][..], "", StatusCode::NOT_IMPLEMENTED),
            ("GET", &[("accept", "text/html")], "", StatusCode::NOT_ACCEPTABLE),
            ("POST", &[("accept", "text/event-stream")], "", StatusCode::NOT_ACCEPTABLE),
            ("PUT", &[("content-type", "video/mp4")], "x", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("PUT", &[("content-encoding", "gzip")], "x", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("PUT", &[("if-match", "\"xyz\"")], "x", StatusCode::PRECONDITION_FAILED),
            ("GET", &[("via", ",,,,,,,,,,,,,,,,,,,,")], "", StatusCode::LOOP_DETECTED),
        ] {
            assert_eq!(
                read_one(method, "/hc/coap://a/", fields, body).unwrap_err(),
                status,
                "{method}"
            );
        }
    }
}
