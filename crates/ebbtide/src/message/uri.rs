//! CoAP URIs (RFC 7252 section 6, RFC 8323 section 8).

use super::Options;
use super::scheme::Scheme;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;
use ebbtide_core::wire::OptionNumber;

/// The port of `coap` (RFC 7252 section 6.1).
pub const DEFAULT_PORT: u16 = 5683;

/// A URI of one of the [`Scheme`]s, taken apart.
///
/// ```
/// use ebbtide::Uri;
///
/// let uri: Uri = "coap://sensor.example/rooms/kitchen?unit=C".parse()?;
/// assert_eq!((uri.host(), uri.port()), ("sensor.example", 5683));
/// assert!(uri.path().eq(["rooms", "kitchen"]));
/// # Ok::<(), ebbtide::UriError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    scheme: Scheme,
    host: String,
    /// The host as an address, if it is one; its zone apart.
    address: Option<IpAddr>,
    zone: Option<String>,
    port: u16,
    path: Vec<String>,
    query: Vec<String>,
}

/// Why a text is not a URI that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UriError {
    /// It does not begin with a scheme that is spoken here and `://`.
    Scheme(String),
    /// No host, or one with characters that no host has.
    Host(String),
    /// Not a port number from 1 to 65535.
    Port(String),
    /// A `%` that two hexadecimal digits do not follow, or bytes that are not UTF-8.
    Escape(String),
    /// A `#`: CoAP sends no fragments (RFC 7252 section 6.1).
    Fragment,
    /// A segment of the path or an argument of the query longer than 255 bytes (section 5.10.1).
    TooLong(String),
}

impl Uri {
    /// How it is asked for.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host: a name, or an address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host as an address, unless it is a name.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The interface of a link-local address, as in `coap://[fe80::1%25eth0]/` (RFC 6874).
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// The port, the scheme's own if none is given.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path's segments, decoded.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.path.iter().map(String::as_str)
    }

    /// The query's arguments, decoded.
    pub fn query(&self) -> impl Iterator<Item = &str> {
        self.query.iter().map(String::as_str)
    }

    /// The options that say it (RFC 7252 section 6.4): Uri-Host for a name, Uri-Path, Uri-Query.
    /// The port is that of the datagram (step 7).
    pub(crate) fn to_options(&self, options: &mut Options) {
        if self.address.is_none() {
            options.push(OptionNumber::URI_HOST, self.host.as_bytes());
        }
        for segment in &self.path {
            options.push(OptionNumber::URI_PATH, segment.as_bytes());
        }
        for argument in &self.query {
            options.push(OptionNumber::URI_QUERY, argument.as_bytes());
        }
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| UriError::Scheme(text.to_owned()))?;
        let scheme = Scheme::parse(scheme).ok_or_else(|| UriError::Scheme(scheme.to_owned()))?;
        if rest.contains('#') {
            return Err(UriError::Fragment);
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, q)| (rest, Some(q)));
        let (authority, path) = rest.split_once('/').map_or((rest, ""), |(a, path)| (a, path));
        let (host, zone, port) = split_authority(authority, scheme.default_port())?;
        let address = host.parse::<IpAddr>().ok();
        // A lone slash is no path (section 6.4 step 8), but "a/" ends with an empty segment.
        let path = if path.is_empty() { Ok(Vec::new()) } else { decode_all(path.split('/')) };
        Ok(Self {
            scheme,
            host,
            address,
            zone,
            port,
            path: path?,
            query: query.map_or(Ok(Vec::new()), |query| decode_all(query.split('&')))?,
        })
    }
}

impl TryFrom<&str> for Uri {
    type Error = UriError;
    fn try_from(text: &str) -> Result<Self, UriError> {
        text.parse()
    }
}

impl TryFrom<String> for Uri {
    type Error = UriError;
    fn try_from(text: String) -> Result<Self, UriError> {
        text.parse()
    }
}

impl TryFrom<&String> for Uri {
    type Error = UriError;
    fn try_from(text: &String) -> Result<Self, UriError> {
        text.parse()
    }
}

impl From<core::convert::Infallible> for UriError {
    fn from(never: core::convert::Infallible) -> Self {
        match never {}
    }
}

fn split_authority(
    authority: &str,
    default_port: u16,
) -> Result<(String, Option<String>, u16), UriError> {
    let bad = || UriError::Host(authority.to_owned());
    let (host, zone, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or_else(bad)?;
        let (address, zone) = match address.split_once("%25").or_else(|| address.split_once('%')) {
            Some((address, zone)) => (address, Some(zone.to_owned())),
            None => (address, None),
        };
        address.parse::<Ipv6Addr>().map_err(|_| bad())?;
        (address.to_owned(), zone, port)
    } else {
        let end = authority.find(':').unwrap_or(authority.len());
        let (host, port) = authority.split_at(end);
        (decode(host)?.to_ascii_lowercase(), None, port)
    };
    let legal = |c: char| c.is_alphanumeric() || "-._~!$&'()*+,;=:".contains(c);
    if host.is_empty() || host.len() > 255 || !host.chars().all(legal) {
        return Err(bad());
    }
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => default_port,
        None => return Err(bad()),
        Some("") => default_port,
        Some(text) => match text.parse() {
            Ok(port) if port != 0 => port,
            _ => return Err(UriError::Port(text.to_owned())),
        },
    };
    Ok((host, zone, port))
}

fn decode_all<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Vec<String>, UriError> {
    parts
        .map(|part| {
            let decoded = decode(part)?;
            if decoded.len() > 255 { Err(UriError::TooLong(decoded)) } else { Ok(decoded) }
        })
        .collect()
}

fn decode(text: &str) -> Result<String, UriError> {
    let bad = || UriError::Escape(text.to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            let (high, low) = (digit().ok_or_else(bad)?, digit().ok_or_else(bad)?);
            bytes.push((high * 16 + low) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(what) => {
                write!(f, "'{what}' has no scheme that is spoken here: coap://HOST[:PORT]/PATH")?;
                f.write_str(", or coap+tcp, coaps+tcp, coap+ws, coaps+ws")
            }
            Self::Host(what) => {
                write!(f, "'{what}' is no host: a name, an IPv4 address, or an IPv6 address in []")
            }
            Self::Port(what) => write!(f, "'{what}' is no port: 1 to 65535"),
            Self::Escape(what) => {
                write!(f, "'{what}': after % come two hexadecimal digits, in all UTF-8")
            }
            Self::Fragment => f.write_str("a URI of CoAP has no fragment: write # as %23"),
            Self::TooLong(what) => {
                write!(f, "'{what}': a part of path or query has at most 255 bytes")
            }
        }
    }
}

impl core::error::Error for UriError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn the_examples_of_rfc_7252_section_6_4_are_taken_apart() {
        let uri = parse("coap://example.com:5683/~sensors/temp.xml");
        assert!(uri.path().eq(["~sensors", "temp.xml"]));
        assert_eq!(uri, parse("coap://EXAMPLE.com/%7Esensors/temp.xml"));
        assert_eq!(uri, parse("coap://EXAMPLE.com:/%7esensors/temp.xml"));
        let uri = parse("coap://198.51.100.1:61616//%2F//?%2F%2F&?%26");
        assert!(uri.path().eq(["", "/", "", ""]));
        assert!(uri.query().eq(["//", "?&"]));
        assert_eq!(uri.port(), 61616);
    }

    #[test]
    fn an_ipv6_address_stands_in_brackets_and_may_name_its_interface() {
        let uri = parse("coap://[fe80::1%25eth0]:9/x");
        assert_eq!((uri.address(), uri.zone()), (Some("fe80::1".parse().unwrap()), Some("eth0")));
    }

    #[test]
    fn each_scheme_has_its_port() {
        for (text, scheme, port) in [
            ("coap://a/", Scheme::Coap, 5683),
            ("coap+tcp://a/", Scheme::CoapTcp, 5683),
            ("COAPS+TCP://a/", Scheme::CoapsTcp, 5684),
            ("coap+ws://a/", Scheme::CoapWs, 80),
            ("coaps+ws://a:/", Scheme::CoapsWs, 443),
            ("coap+ws://a:8080/", Scheme::CoapWs, 8080),
        ] {
            let uri = parse(text);
            assert_eq!((uri.scheme(), uri.port()), (scheme, port), "{text}");
        }
    }

    #[test]
    fn what_is_no_uri_says_why() {
        for (text, error) in [
            ("http://a/b", UriError::Scheme("http".into())),
            ("coaps://a/b", UriError::Scheme("coaps".into())),
            ("host/path", UriError::Scheme("host/path".into())),
            ("coap:///x", UriError::Host(String::new())),
            ("coap://a:0/", UriError::Port("0".into())),
            ("coap://a/%f", UriError::Escape("%f".into())),
            ("coap://a/b#c", UriError::Fragment),
        ] {
            assert_eq!(text.parse::<Uri>(), Err(error), "{text}");
        }
    }
}
