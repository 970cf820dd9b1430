//! The resource that a request to a gateway is for.

use crate::outcome;
use crate::web_uri::{self, WebScheme};
use core::fmt::Write as _;
use ebbtide::{Response, Scheme, Uri};
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The one who has chosen a target.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// A client: the address must be allowed.
    Client,
    /// The configuration of a backend.
    Operator,
}

/// The protocol by which a target is asked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetScheme {
    Coap(Scheme),
    Web(WebScheme),
}

impl TargetScheme {
    fn parse(name: &str) -> Option<Self> {
        let web = || WebScheme::parse(name).map(Self::Web);
        Scheme::parse(name).map(Self::Coap).or_else(web)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Coap(scheme) => scheme.name(),
            Self::Web(scheme) => scheme.name(),
        }
    }

    pub(crate) fn default_port(self) -> u16 {
        match self {
            Self::Coap(scheme) => scheme.default_port(),
            Self::Web(scheme) => scheme.default_port(),
        }
    }
}

/// An absolute URI in parts. Those of the path and of the query are decoded, except of an HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) scheme: TargetScheme,
    /// A name, or an address without brackets.
    pub(crate) host: Arc<str>,
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<String>,
    pub(crate) named_by: NamedBy,
}

impl Target {
    /// The target of a request with Proxy-Uri or Proxy-Scheme (RFC 7252 section 5.10.2).
    ///
    /// # Errors
    ///
    /// The answer, if the options name no target to which requests can be forwarded.
    pub(crate) fn of_message(message: &Message<'_>) -> Result<Self, Response> {
        if let Some(uri) = message.option(OptionNumber::PROXY_URI) {
            // Proxy-Uri takes precedence over all Uri-* options (section 5.10.2).
            let uri = uri.as_str().ok_or_else(|| bad("Proxy-Uri is not UTF-8"))?;
            return Self::of_proxy_uri(uri);
        }
        let scheme = message.option(OptionNumber::PROXY_SCHEME).and_then(|opt| opt.as_str());
        let scheme = scheme.and_then(TargetScheme::parse);
        let scheme = scheme.ok_or_else(|| outcome::not_supported("the scheme is not supported"))?;
        // Without Uri-Host it is this proxy itself (section 5.10.1).
        let host = message.option(OptionNumber::URI_HOST);
        let host = host.ok_or_else(|| bad("Proxy-Scheme without Uri-Host"))?;
        let host = host.as_str().ok_or_else(|| bad("an option is not UTF-8"))?;
        // Clients leave out a port that is the scheme's.
        let port = match message.option(OptionNumber::URI_PORT).map(|opt| opt.as_uint()) {
            None => scheme.default_port(),
            Some(port) => port
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port > 0)
                .ok_or_else(|| bad("Uri-Port is not a port"))?,
        };
        let (mut path, mut query) = Self::path_and_query(message)?;
        if let TargetScheme::Web(_) = scheme {
            let parts = path.iter_mut().chain(&mut query);
            parts.for_each(|part| *part = web_uri::escaped(part));
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let address = host.parse().ok();
        let plain = |c: char| c.is_alphanumeric() || "-._~!$&'()*+,;=".contains(c);
        if address.is_none() && !host.chars().all(plain) {
            return Err(bad("Uri-Host is not a host"));
        }
        let (host, named_by) = (host.into(), NamedBy::Client);
        Ok(Self { scheme, host, address, port, path, query, named_by })
    }

    /// Whether a request names a resource of HTTP, as far as it is well formed.
    pub(crate) fn is_of_web(message: &Message<'_>) -> bool {
        let option = |number| message.option(number).and_then(|opt| opt.as_str());
        match option(OptionNumber::PROXY_URI) {
            Some(uri) => web_uri::parse(uri).is_some(),
            None => option(OptionNumber::PROXY_SCHEME)
                .is_some_and(|scheme| WebScheme::parse(scheme).is_some()),
        }
    }

    /// The target of a Proxy-Uri.
    ///
    /// # Errors
    ///
    /// As [`Self::of_message`].
    pub(crate) fn of_proxy_uri(text: &str) -> Result<Self, Response> {
        let Some(uri) = web_uri::parse(text) else { return Self::parse(text) };
        let uri = uri.map_err(|_| bad("Proxy-Uri is not a URI of HTTP"))?;
        let (address, scheme) = (uri.host.parse().ok(), TargetScheme::Web(uri.scheme));
        let (host, port, path, query) = (uri.host.into(), uri.port, uri.path, uri.query);
        Ok(Self { scheme, host, address, port, path, query, named_by: NamedBy::Client })
    }

    /// The path and the query of a request.
    ///
    /// # Errors
    ///
    /// The answer, if they are not those of a URI.
    pub(crate) fn path_and_query(
        message: &Message<'_>,
    ) -> Result<(Vec<String>, Vec<String>), Response> {
        let (mut path, mut query) = (Vec::new(), Vec::new());
        for opt in message.options() {
            let parts = match opt.number {
                OptionNumber::URI_PATH => &mut path,
                OptionNumber::URI_QUERY => &mut query,
                _ => continue,
            };
            let part = opt.as_str().ok_or_else(|| bad("an option is not UTF-8"))?;
            // Section 5.10.1 forbids them; another implementation may resolve them.
            if opt.number == OptionNumber::URI_PATH && matches!(part, "." | "..") {
                return Err(bad("Uri-Path is a dot segment"));
            }
            parts.push(part.to_owned());
        }
        Ok((path, query))
    }

    /// The target of an absolute URI.
    ///
    /// # Errors
    ///
    /// The answer, if requests cannot be forwarded to it.
    pub(crate) fn parse(uri: &str) -> Result<Self, Response> {
        let parsed: Uri = uri.parse().map_err(|error| match error {
            ebbtide::UriError::Scheme(_) => outcome::not_supported("the scheme is not supported"),
            error => Response::error(Code::BAD_REQUEST, error.to_string()),
        })?;
        if parsed.zone().is_some() {
            // An interface of the proxy's machine is not for its clients to choose.
            return Err(outcome::not_supported("the address has a zone"));
        }
        Ok(Self::of_uri(&parsed))
    }

    pub(crate) fn of_uri(uri: &Uri) -> Self {
        Self {
            scheme: TargetScheme::Coap(uri.scheme()),
            host: uri.host().into(),
            address: uri.address(),
            port: uri.port(),
            path: uri.path().map(str::to_owned).collect(),
            query: uri.query().map(str::to_owned).collect(),
            named_by: NamedBy::Client,
        }
    }

    /// Whether another target is at the same server.
    pub(crate) fn is_same_server(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// The URI with this address in place of a name, so that the address that was permitted is the one that is
    /// asked.
    pub(crate) fn at(&self, address: SocketAddr) -> Result<Uri, Response> {
        let TargetScheme::Coap(scheme) = self.scheme else {
            return Err(outcome::not_supported("HTTP has no such request"));
        };
        let pinned = self.address.is_some() || !scheme.is_secure();
        let uri = if pinned {
            Uri::at(scheme, address, self.path.clone(), self.query.clone())
        } else {
            // A certificate is that of a name, and proves that the address is the name's.
            self.uri().parse()
        };
        uri.map_err(|error| Response::error(Code::BAD_REQUEST, error.to_string()))
    }

    /// The URI.
    pub(crate) fn uri(&self) -> String {
        match self.address {
            Some(address) => self.text(&SocketAddr::new(address, self.port).to_string()),
            None => self.text(&format!("{}:{}", self.host, self.port)),
        }
    }

    fn text(&self, authority: &str) -> String {
        format!("{}://{authority}{}", self.scheme.name(), self.path_with_query())
    }

    /// The path and the query as they stand in a URI.
    pub(crate) fn path_with_query(&self) -> String {
        let mut text = String::new();
        let add = |part: &str, text: &mut String| match self.scheme {
            TargetScheme::Coap(_) => escape(part, text),
            TargetScheme::Web(_) => text.push_str(part),
        };
        if self.path.is_empty() {
            text.push('/');
        }
        for segment in &self.path {
            text.push('/');
            add(segment, &mut text);
        }
        for (n, argument) in self.query.iter().enumerate() {
            text.push(if n == 0 { '?' } else { '&' });
            add(argument, &mut text);
        }
        text
    }
}

fn bad(why: &'static str) -> Response {
    Response::error(Code::BAD_REQUEST, why)
}

/// Adds a part of a URI with all characters escaped except the unreserved ones (RFC 3986 section 2.3).
pub(crate) fn escape(part: &str, text: &mut String) {
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::get_with;

    fn target(options: &[(OptionNumber, &[u8])]) -> Result<Target, Code> {
        let request = get_with(options);
        let message = Message::parse(&request).unwrap();
        Target::of_message(&message).map_err(|refusal| refusal.code())
    }

    #[test]
    fn both_forms_of_a_proxy_request_name_the_same_target() {
        let whole =
            target(&[(OptionNumber::PROXY_URI, b"coap://sensor.example:61616/a%20b/c?d=e&f")]);
        let parts = target(&[
            (OptionNumber::URI_HOST, b"Sensor.example"),
            (OptionNumber::URI_PORT, &[0xf0, 0xb0]),
            (OptionNumber::URI_PATH, b"a b"),
            (OptionNumber::URI_PATH, b"c"),
            (OptionNumber::URI_QUERY, b"d=e"),
            (OptionNumber::URI_QUERY, b"f"),
            (OptionNumber::PROXY_SCHEME, b"coap"),
        ]);
        assert_eq!(whole, parts);
        let target = whole.unwrap();
        assert_eq!(target.uri(), "coap://sensor.example:61616/a%20b/c?d%3De&f");
        let at = target.at("[2001:db8::1]:61616".parse().unwrap()).unwrap();
        assert!(at.path().eq(["a b", "c"]) && at.query().eq(["d=e", "f"]), "{at}");
    }

    #[test]
    fn what_names_no_target_is_refused() {
        for (options, code) in [
            (&[(OptionNumber::PROXY_URI, &b"ftp://a/"[..])][..], Code::PROXYING_NOT_SUPPORTED),
            (&[(OptionNumber::PROXY_URI, b"coap://[fe80::1%25lo]/")], Code::PROXYING_NOT_SUPPORTED),
            (&[(OptionNumber::PROXY_URI, b"coap://a/#b")], Code::BAD_REQUEST),
            (&[(OptionNumber::PROXY_URI, b"\xff")], Code::BAD_REQUEST),
            (&[(OptionNumber::PROXY_SCHEME, b"coap")], Code::BAD_REQUEST),
            (
                &[(OptionNumber::URI_HOST, b"a/b"), (OptionNumber::PROXY_SCHEME, b"coap")],
                Code::BAD_REQUEST,
            ),
            (
                &[
                    (OptionNumber::URI_HOST, b"a"),
                    (OptionNumber::URI_PATH, b".."),
                    (OptionNumber::PROXY_SCHEME, b"coap"),
                ],
                Code::BAD_REQUEST,
            ),
        ] {
            assert_eq!(target(options), Err(code), "{options:?}");
        }
    }
}
