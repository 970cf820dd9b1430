//! `/.well-known/core` (RFC 6690).

use super::router::{Route, Router};
use crate::message::{ContentFormat, Response};
use ebbtide_core::wire::{Code, Message, OptionNumber};

/// The answer to a path without a route: the list of resources, or 4.04.
pub(crate) fn answer(router: &Router, message: &Message<'_>) -> Response {
    if !message.path().eq([b".well-known".as_slice(), b"core"]) {
        return Response::new(Code::NOT_FOUND);
    }
    if message.code() != Code::GET {
        return Response::new(Code::METHOD_NOT_ALLOWED);
    }
    let mut options = message.options();
    let filter =
        options.find(|opt| opt.number == OptionNumber::URI_QUERY).and_then(|opt| opt.as_str());
    let listed = router.routes.iter().filter(|route| !route.resource.hidden);
    let links: Vec<String> = listed
        .filter(|route| filter.is_none_or(|filter| matches(route, filter)))
        .map(link)
        .collect();
    Response::content(links.join(",")).format(ContentFormat::LINK_FORMAT)
}

fn link(route: &Route) -> String {
    let mut link = format!("<{}>", route.path);
    for (name, value) in &route.resource.attributes {
        let quoted = value.parse::<u64>().is_err();
        link.push_str(&if quoted {
            format!(";{name}=\"{value}\"")
        } else {
            format!(";{name}={value}")
        });
    }
    if route.resource.subject.is_some() {
        // RFC 7641 section 6.
        link.push_str(";obs");
    }
    link
}

/// RFC 6690 section 4.1: `name=value`, the value with a `*` at its end for any ending.
fn matches(route: &Route, filter: &str) -> bool {
    let Some((name, wanted)) = filter.split_once('=') else { return true };
    let fits = |value: &str| match wanted.strip_suffix('*') {
        Some(start) => value.starts_with(start),
        None => value == wanted,
    };
    if name == "href" {
        return fits(&route.path);
    }
    route.resource.attributes.iter().any(|(known, value)| {
        // Some attributes are lists (section 3).
        known == name && (fits(value) || value.split(' ').any(fits))
    })
}
