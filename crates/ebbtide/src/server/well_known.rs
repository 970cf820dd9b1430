//! `/.well-known/core` (RFC 6690).

use super::route::Route;
use crate::message::{ContentFormat, Response};
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::sync::Arc;

/// Whether a request is for the list of resources.
pub(super) fn is_asked(message: &Message<'_>) -> bool {
    message.path().eq([b".well-known".as_slice(), b"core"])
}

/// The answer to a path without a route: the list of resources, or 4.04.
pub(super) fn answer<'r>(
    routes: impl Iterator<Item = &'r Arc<Route>>,
    message: &Message<'_>,
) -> Response {
    if !is_asked(message) {
        return Response::new(Code::NOT_FOUND);
    }
    if message.code() != Code::GET {
        return Response::new(Code::METHOD_NOT_ALLOWED);
    }
    let format = ContentFormat::LINK_FORMAT;
    let accepted = message.option(OptionNumber::ACCEPT).and_then(|opt| opt.as_uint());
    if accepted.is_some_and(|accepted| accepted != u32::from(format.0)) {
        // RFC 7252 section 5.10.4.
        return Response::new(Code::NOT_ACCEPTABLE);
    }
    let mut options = message.options();
    let filter =
        options.find(|opt| opt.number == OptionNumber::URI_QUERY).and_then(|opt| opt.as_str());
    let filter = filter.filter(|filter| !filter.is_empty());
    // A template is not the path of a resource: RFC 6690 section 2 requires a URI reference.
    let listed = routes.filter(|route| !route.resource.hidden && !route.is_template());
    let links: Vec<String> = listed
        .filter(|route| filter.is_none_or(|filter| matches(route, filter)))
        .map(|route| link(route))
        .collect();
    Response::content(links.join(",")).format(format)
}

fn link(route: &Route) -> String {
    let mut link = format!("<{}>", href(&route.path));
    for (name, value) in &route.resource.attributes {
        link.push(';');
        link.push_str(name);
        link.push('=');
        if is_number(name) {
            link.push_str(value);
        } else {
            quote(value, &mut link);
        }
    }
    if route.resource.subject.is_some() {
        // RFC 7641 section 6.
        link.push_str(";obs");
    }
    link
}

/// Whether an attribute is a number or a list of numbers, which are written without quotes (RFC
/// 6690 section 3.3, RFC 7252 section 7.2.1).
fn is_number(name: &str) -> bool {
    matches!(name, "sz" | "ct")
}

/// A quoted string (RFC 6690 section 2, RFC 2616 section 2.2).
fn quote(value: &str, out: &mut String) {
    out.push('"');
    for char in value.chars() {
        if matches!(char, '"' | '\\') {
            out.push('\\');
        }
        out.push(char);
    }
    out.push('"');
}

/// A path as a URI reference: characters that a segment may not contain are percent-encoded (RFC
/// 3986 section 3.3).
fn href(path: &str) -> String {
    const ALLOWED: &[u8] = b"-._~!$&'()*+,;=:@/";
    let mut href = String::new();
    if !path.starts_with('/') {
        href.push('/');
    }
    for &byte in path.as_bytes() {
        if byte.is_ascii_alphanumeric() || ALLOWED.contains(&byte) {
            href.push(char::from(byte));
        } else {
            href.push_str(&format!("%{byte:02X}"));
        }
    }
    href
}

/// Matches a query `name=value`, whose value may end with `*` for any ending, or a name alone,
/// which matches resources that have the attribute (RFC 6690 section 4.1).
fn matches(route: &Route, filter: &str) -> bool {
    let resource = &route.resource;
    let Some((name, wanted)) = filter.split_once('=') else {
        let observable = filter == "obs" && resource.subject.is_some();
        return observable || resource.attributes.iter().any(|(known, _)| known == filter);
    };
    let fits = |value: &str| match wanted.strip_suffix('*') {
        Some(start) => value.starts_with(start),
        None => value == wanted,
    };
    if name == "href" {
        return fits(&route.path) || fits(&href(&route.path));
    }
    resource.attributes.iter().any(|(known, value)| {
        // Some attributes are lists (section 3).
        known == name && (fits(value) || value.split(' ').any(fits))
    })
}
