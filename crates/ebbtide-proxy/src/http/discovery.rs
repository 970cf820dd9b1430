//! The gateway's own `/.well-known/core`, by which HTTP clients find the prefix of target URIs (RFC 8075 section 5.5).

use super::request::PREFIX;
use super::response::{self, AnswerBody};
use crate::gateway::Gateway;
use hyper::Method;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;

const PATH: &str = "/.well-known/core";
/// The resource type of the prefix.
const TYPE: &str = "core.hc";

/// The answer to a request for the list, unless a backend has that path.
pub(super) fn of(gateway: &Gateway, parts: &Parts) -> Option<hyper::Response<AnswerBody>> {
    let is_own =
        parts.uri.path() == PATH && parts.uri.scheme_str().is_none_or(|scheme| scheme == "http");
    if !is_own || ![Method::GET, Method::HEAD].contains(&parts.method) {
        return None;
    }
    let path = PATH.split('/').skip(1).map(str::to_owned).collect();
    if gateway.inner.backends.target(path, Vec::new()).is_some() {
        return None;
    }
    let mut criteria = parts.uri.query().unwrap_or_default().split('&');
    let link = match criteria.all(matches) {
        true => format!("<{PREFIX}>;rt=\"{TYPE}\""),
        false => String::new(),
    };
    let mut answer = hyper::Response::new(response::whole(link));
    let format = HeaderValue::from_static("application/link-format");
    answer.headers_mut().insert(header::CONTENT_TYPE, format);
    Some(answer)
}

/// Whether the link matches a criterion (RFC 6690 section 4.1).
fn matches(criterion: &str) -> bool {
    let (name, value) = criterion.split_once('=').unwrap_or((criterion, "*"));
    let own = match name {
        "rt" => TYPE,
        "href" => PREFIX,
        "" => return true,
        _ => return false,
    };
    value.strip_suffix('*').map_or(own == value, |start| own.starts_with(start))
}
