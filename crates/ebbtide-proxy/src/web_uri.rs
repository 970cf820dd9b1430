//! URIs of HTTP servers. Their parts remain as they were written: an escape in a query may mean
//! another one to a server.

use core::fmt::Write as _;

/// A scheme of HTTP.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum WebScheme {
    Http,
    Https,
}

impl WebScheme {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let all = [Self::Http, Self::Https];
        all.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(name))
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    pub(crate) const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// An absolute URI in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebUri {
    pub(crate) scheme: WebScheme,
    /// A name, or an address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<String>,
}

/// The text is not a URI to which requests can be forwarded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotForwardable;

/// Reads an absolute URI with the scheme `http` or `https`; `None` if it has another one.
pub(crate) fn parse(text: &str) -> Option<Result<WebUri, NotForwardable>> {
    let (scheme, _) = text.split_once(':')?;
    let scheme = WebScheme::parse(scheme)?;
    Some(parts(scheme, text).ok_or(NotForwardable))
}

fn parts(scheme: WebScheme, text: &str) -> Option<WebUri> {
    let uri: hyper::Uri = text.parse().ok()?;
    // A text without slashes is an authority to the parser.
    let authority = uri.scheme().and(uri.authority())?;
    // Credentials would reach a server that the client has not seen; a fragment is the client's own.
    if authority.as_str().contains('@') || text.contains('#') {
        return None;
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains('%') {
        return None;
    }
    let port = match authority.port() {
        Some(port) => Some(port.as_u16()).filter(|port| *port > 0)?,
        // A colon may stand without a port, and a port must be a number.
        None if authority.as_str().ends_with(':') || !has_port(authority.as_str()) => {
            scheme.default_port()
        }
        None => return None,
    };
    let segments = |path: &str| match path.strip_prefix('/') {
        None | Some("") => Vec::new(),
        Some(path) => path.split('/').map(str::to_owned).collect(),
    };
    let path = segments(uri.path());
    if path.iter().any(|segment| matches!(segment.as_str(), "." | "..")) {
        return None;
    }
    let query =
        uri.query().map_or_else(Vec::new, |query| query.split('&').map(str::to_owned).collect());
    let host = host.to_ascii_lowercase();
    Some(WebUri { scheme, host, port, path, query })
}

/// Whether there is a colon behind an authority's host.
fn has_port(authority: &str) -> bool {
    authority.rsplit(']').next().is_some_and(|behind| behind.contains(':'))
}

/// An option's value as a part of a URI (RFC 7252 section 6.5): what may stand there remains.
pub(crate) fn escaped(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        // Of the sub-delimiters, an ampersand would end an argument.
        if byte.is_ascii_alphanumeric() || b"-._~!$'()*+,;=:@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_remains_as_it_was_written() {
        for (text, uri) in [
            (
                "http://Www.Example.com/a%2Fb/c?d=e%26f&g=h+i",
                "http://www.example.com:80/a%2Fb/c?d=e%26f&g=h+i",
            ),
            ("HTTPS://192.0.2.1:8443", "https://192.0.2.1:8443/"),
            ("http://[2001:db8::1]/a/", "http://[2001:db8::1]:80/a/"),
            ("http://h/?", "http://h:80/?"),
        ] {
            assert_eq!(crate::target::Target::of_proxy_uri(text).unwrap().uri(), uri, "{text}");
        }
        assert_eq!(escaped("a b/&=+ü"), "a%20b%2F%26=+%C3%BC");
    }

    #[test]
    fn what_is_not_a_plain_uri_is_refused() {
        for text in [
            "http:",
            "http:///a",
            "http://",
            "http://user@h/",
            "http://h/#a",
            "http://h:0/",
            "http://h:99999/",
            "http://h:x/",
            "http://h/a b",
            "http://h/a\r\nX: y",
            "http://h/../a",
            "http://[::1%25lo]/",
        ] {
            assert_eq!(parse(text), Some(Err(NotForwardable)), "{text}");
        }
        assert!(
            parse("ftp://h/").is_none() && parse("coap://h/").is_none() && parse("h").is_none()
        );
    }
}
