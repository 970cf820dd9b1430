//! The lists of resources, by which HTTP and CoAP clients find the prefix of target URIs (RFC 8075 section 5.5).

use super::request::PREFIX;
use super::response::{self, AnswerBody};
use crate::gateway::Gateway;
use ebbtide::server::{Resource, Router};
use hyper::Method;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;

const PATH: &str = "/.well-known/core";
/// The resource type of the prefix.
const TYPE: &str = "core.hc";

impl Gateway {
    /// A router that tells CoAP clients, in `/.well-known/core`, where HTTP clients find this gateway (RFC 8075 section
    /// 5.5.1): at `origin`, such as `http://gateway.example:8080`. To be merged with [`Self::router`]. It is empty if a
    /// backend has the path.
    #[must_use]
    pub fn http_link(&self, origin: &str) -> Router {
        let path = PREFIX.split('/').skip(1).map(str::to_owned).collect();
        if self.inner.backends.target(path, Vec::new()).is_some() {
            return Router::new();
        }
        // It has no methods: it is a resource of HTTP.
        let link = Resource::default().attribute("anchor", origin).attribute("rt", TYPE);
        Router::new().route(PREFIX, link)
    }
}

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
