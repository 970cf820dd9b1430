//! CoAP URIs (RFC 7252 section 6, RFC 8323 section 8).

use super::scheme::Scheme;
use super::{Options, Response};
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;
use ebbtide_core::wire::OptionNumber;
use iri_string::spec::IriSpec;
use iri_string::types::{IriAbsoluteStr, IriReferenceStr};
use iri_string::validate;

mod parts;

/// The port of `coap` (RFC 7252 section 6.1).
pub const DEFAULT_PORT: u16 = 5683;

/// A parsed URI with one of the [`Scheme`]s. `.` and `..` segments have been removed from its path
/// (RFC 3986 section 5.2.4).
///
/// ```
/// use ebbtide::Uri;
///
/// let uri: Uri = "coap://sensor.example/rooms/kitchen?unit=C".parse()?;
/// assert_eq!((uri.host(), uri.port()), ("sensor.example", 5683));
/// assert!(uri.path().eq(["rooms", "kitchen"]));
/// assert_eq!(uri.join("../hall")?.to_string(), "coap://sensor.example/hall");
/// # Ok::<(), ebbtide::UriError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Uri {
    scheme: Scheme,
    host: String,
    /// The host as an address, if it is one, without its zone.
    address: Option<IpAddr>,
    zone: Option<String>,
    port: u16,
    path: Vec<String>,
    query: Vec<String>,
}

/// The reason why a text is not a valid URI for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UriError {
    /// The text does not begin with a supported scheme and `://`.
    Scheme(String),
    /// The scheme needs a feature that this program was built without.
    Feature {
        /// The scheme.
        scheme: &'static str,
        /// The feature of the crate that it needs.
        feature: &'static str,
    },
    /// The host is missing, or has characters that a host must not have.
    Host(String),
    /// The port is not a number from 1 to 65535.
    Port(String),
    /// A `%` is not followed by two hexadecimal digits, or the decoded bytes are not UTF-8.
    Escape(String),
    /// A character must be written as `%` and two hexadecimal digits.
    Character(char),
    /// There is a `#`, but CoAP does not transmit fragments (RFC 7252 section 6.1).
    Fragment,
    /// A segment of the path or an argument of the query is longer than 255 bytes (section
    /// 5.10.1).
    TooLong(String),
    /// A link-local address lacks the interface through which it is reached.
    NoZone(String),
    /// The text is not a valid URI reference (RFC 3986 section 4.1).
    Reference(String),
}

impl Uri {
    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host: a name, or an address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host as an address; `None` if it is a name.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The interface of a link-local address, as in `coap://[fe80::1%25eth0]/` (RFC 6874).
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// The port, or the scheme's default port if none is given.
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

    /// Resolves a reference found in this URI's representation, such as `../hall`, `?unit=C` or
    /// `coap://other.example/` (RFC 3986 section 5.2).
    ///
    /// # Errors
    ///
    /// Returns an error if `reference` is not a valid URI reference, or if the result is not a
    /// valid URI for a CoAP request.
    pub fn join(&self, reference: &str) -> Result<Self, UriError> {
        let zoneless = Self { zone: None, ..self.clone() }.to_string();
        let wrong = || UriError::Reference(reference.to_owned());
        let parsed = IriReferenceStr::new(reference).map_err(|_| wrong())?;
        let base = IriAbsoluteStr::new(&zoneless).map_err(|_| wrong())?;
        let joined: Self = parsed.resolve_against(base).to_string().parse()?;
        // A zone has a meaning on this machine only, so references cannot name it.
        let is_same_host = parsed.authority_str().is_none();
        Ok(Self { zone: self.zone.clone().filter(|_| is_same_host), ..joined })
    }

    /// The URI of the resource that a response to a request for this URI reports as created, from
    /// Location-Path and Location-Query (RFC 7252 section 5.10.7). `None` if the response has
    /// neither option, if the path is not a valid path of a request, or if the response has one of the
    /// options that are reserved for more parts of such a URI (section 5.10.7).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), ebbtide::Error> {
    /// # use ebbtide::{Client, Request, Uri};
    /// let client = Client::new();
    /// let uri: Uri = "coap://192.0.2.7/readings".parse()?;
    /// let created = client.post(&uri, "22.3").await?;
    /// if let Some(reading) = uri.location(&created) {
    ///     println!("{reading} is {}", client.get(&reading).await?.text());
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn location(&self, response: &Response) -> Option<Self> {
        let named = |number: OptionNumber| {
            let options = response.options().iter().filter(move |opt| opt.number == number);
            options.map(|opt| opt.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
        };
        let path = named(OptionNumber::LOCATION_PATH)?;
        let query = named(OptionNumber::LOCATION_QUERY)?;
        let is_path = !path.iter().any(|segment| matches!(segment.as_str(), "." | ".."));
        let says = !path.is_empty() || !query.is_empty();
        let is_whole = !response.options().iter().any(|opt| RESERVED.contains(&opt.number.0));
        (says && is_path && is_whole).then(|| Self { path, query, ..self.clone() })
    }

    /// Adds the options of the URI (RFC 7252 section 6.4): Uri-Host for a name, Uri-Path,
    /// Uri-Query. The port is that of the datagram (step 7).
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

/// The maximum length of Uri-Path and Uri-Query (RFC 7252 section 5.10).
const MAX_PART: usize = 255;

/// The options that may add to what Location-Path and Location-Query say (RFC 7252 section 5.10.7).
const RESERVED: [u16; 4] = [128, 132, 136, 140];

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, rest) = text
            .split_once(':')
            .and_then(|(scheme, rest)| Some((scheme, rest.strip_prefix("//")?)))
            .ok_or_else(|| UriError::Scheme(text.to_owned()))?;
        let scheme = Scheme::parse(scheme).ok_or_else(|| UriError::Scheme(scheme.to_owned()))?;
        if rest.contains('#') {
            return Err(UriError::Fragment);
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, q)| (rest, Some(q)));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, zone, port) = split_authority(authority, scheme.default_port())?;
        let address = host.parse::<IpAddr>().ok();
        if validate::path::<IriSpec>(path).is_err() {
            return Err(misspelt(path));
        }
        if let Some(query) = query.filter(|query| validate::query::<IriSpec>(query).is_err()) {
            return Err(misspelt(query));
        }
        Ok(Self {
            scheme,
            host,
            address,
            zone,
            port,
            path: segments(path)?,
            query: query.map_or(Ok(Vec::new()), |query| decode_all(query.split('&')))?,
        })
    }
}

/// The segments of a path according to RFC 7252 section 6.4: dot segments are resolved (step 1); a
/// lone slash has no segment (step 8), but `a/` ends with an empty one.
fn segments(path: &str) -> Result<Vec<String>, UriError> {
    let resolved = if path.split('/').any(is_dots) {
        let uri = format!("coap://host{path}");
        let uri = IriAbsoluteStr::new(&uri).map_err(|_| misspelt(path))?.normalize().to_string();
        uri.strip_prefix("coap://host").map(str::to_owned)
    } else {
        None
    };
    let path = resolved.as_deref().unwrap_or(path);
    match path.strip_prefix('/') {
        None | Some("") => Ok(Vec::new()),
        Some(path) => decode_all(path.split('/')),
    }
}

/// Whether a segment is `.` or `..`, escaped or not.
fn is_dots(segment: &str) -> bool {
    let after_dot = |text: &str| match text.as_bytes() {
        [b'.', ..] => Some(1),
        [b'%', b'2', b'e' | b'E', ..] => Some(3),
        _ => None,
    };
    let Some(first) = after_dot(segment) else { return false };
    let rest = segment.get(first..).unwrap_or_default();
    rest.is_empty() || after_dot(rest) == Some(rest.len())
}

/// The error for a path or query that RFC 3986 does not allow.
fn misspelt(part: &str) -> UriError {
    let allowed = |c: char| c.is_alphanumeric() || "-._~!$&'()*+,;=:@/?%".contains(c);
    match part.chars().find(|c| !allowed(*c)) {
        Some(character) => UriError::Character(character),
        None => UriError::Escape(part.trim_start_matches('/').to_owned()),
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        match (&self.zone, self.address) {
            (Some(zone), _) => write!(f, "[{}%25{zone}]", self.host)?,
            (None, Some(IpAddr::V6(_))) => write!(f, "[{}]", self.host)?,
            (None, _) => encode(f, &self.host, "-._~!$'()*+,;=&")?,
        }
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        // Without a segment there is nothing after the slash (RFC 7252 section 6.5 step 6).
        f.write_str(if self.path.is_empty() { "/" } else { "" })?;
        for segment in &self.path {
            f.write_str("/")?;
            encode(f, segment, "-._~!$&'()*+,;=:@")?;
        }
        for (n, argument) in self.query.iter().enumerate() {
            f.write_str(if n == 0 { "?" } else { "&" })?;
            encode(f, argument, "-._~!$'()*+,;=:@/?")?;
        }
        Ok(())
    }
}

/// Writes a part of a URI with all characters escaped except letters, digits and those in `plain`.
fn encode(f: &mut fmt::Formatter<'_>, part: &str, plain: &str) -> fmt::Result {
    part.bytes().try_for_each(|byte| {
        if byte.is_ascii_alphanumeric() || plain.as_bytes().contains(&byte) {
            write!(f, "{}", char::from(byte))
        } else {
            write!(f, "%{byte:02X}")
        }
    })
}

impl TryFrom<&str> for Uri {
    type Error = UriError;
    fn try_from(text: &str) -> Result<Self, UriError> {
        text.parse()
    }
}

impl TryFrom<&Uri> for Uri {
    type Error = UriError;
    fn try_from(uri: &Uri) -> Result<Self, UriError> {
        Ok(uri.clone())
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
        let mut host = decode(host)?;
        host.make_ascii_lowercase();
        (host, None, port)
    };
    // The characters that a decoded name may contain (RFC 3986 section 3.2.2), and colons for
    // addresses.
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
            if decoded.len() > MAX_PART { Err(UriError::TooLong(decoded)) } else { Ok(decoded) }
        })
        .collect()
}

fn decode(text: &str) -> Result<String, UriError> {
    if !text.as_bytes().contains(&b'%') {
        return Ok(text.to_owned());
    }
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
            Self::Feature { scheme, feature } => {
                write!(f, "{scheme} needs the feature '{feature}' of the crate ebbtide")
            }
            Self::Scheme(what) => {
                write!(
                    f,
                    "'{what}' has no scheme that is supported here: coap://HOST[:PORT]/PATH"
                )?;
                f.write_str(", or coaps, coap+tcp, coaps+tcp, coap+ws, coaps+ws")
            }
            Self::Host(what) => {
                f.write_str(if what.is_empty() { "the host is missing" } else { "" })?;
                if !what.is_empty() {
                    write!(f, "'{what}' is not a valid host")?;
                }
                f.write_str(": give a name, an IPv4 address, or an IPv6 address in []")
            }
            Self::Port(what) => write!(f, "'{what}' is not a valid port: give 1 to 65535"),
            Self::Escape(what) => {
                write!(f, "'{what}': after % come two hexadecimal digits, in all UTF-8")
            }
            Self::Character(what) => {
                write!(f, "a URI cannot contain '{}': write it as ", what.escape_debug())?;
                let mut bytes = [0; 4];
                what.encode_utf8(&mut bytes).bytes().try_for_each(|byte| write!(f, "%{byte:02X}"))
            }
            Self::NoZone(what) => write!(
                f,
                "{what} is a link-local address: name its interface, as in [{what}%25eth0]"
            ),
            Self::Reference(what) => write!(f, "'{what}' is not a valid URI reference"),
            Self::Fragment => f.write_str("a CoAP URI has no fragment: write # as %23"),
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
    use ebbtide_core::wire::Opt;

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
    fn the_options_of_a_uri_name_the_host_unless_it_is_an_address() {
        let options = |text: &str| {
            let mut options = Options::new();
            parse(text).to_options(&mut options);
            let one = |opt: Opt<'_>| format!("{}={}", opt.number.0, opt.as_str().unwrap());
            options.iter().map(one).collect::<Vec<_>>()
        };
        // RFC 7252 section 6.4; the port is that of the datagram.
        let all = options("coap://Sensor.Example:61616/a%2Fb/c/?x=1&%26&");
        assert_eq!(all, ["3=sensor.example", "11=a/b", "11=c", "11=", "15=x=1", "15=&", "15="]);
        assert!(options("coap://192.0.2.1/").is_empty());
        assert_eq!(options("coap://[2001:db8::1]?"), ["15="]);
        assert_eq!(options("coap://192.0.2.1//"), ["11=", "11="]);
    }

    #[test]
    fn dot_segments_are_resolved_before_the_path_is_taken_apart() {
        for (text, path) in [
            ("coap://h/a/../test", &["test"][..]),
            ("coap://h/./a/.", &["a", ""]),
            ("coap://h/..", &[]),
            ("coap://h/../../a/b/..", &["a", ""]),
            ("coap://h/a/%2E%2e/b", &["b"]),
            ("coap://h/a/.%2e/b//c", &["b", "", "c"]),
            ("coap://h/...", &["..."]),
            ("coap://h/a..b/.c", &["a..b", ".c"]),
        ] {
            assert!(parse(text).path().eq(path.iter().copied()), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn a_uri_prints_as_it_can_be_read_again() {
        for (text, printed) in [
            ("coap://EXAMPLE.com:/%7Esensors/temp.xml", "coap://example.com/~sensors/temp.xml"),
            (
                "coap://198.51.100.1:61616//%2F//?%2F%2F&?%26",
                "coap://198.51.100.1:61616//%2F//?//&?%26",
            ),
            ("coap://[fe80::1%25eth0]:9/x", "coap://[fe80::1%25eth0]:9/x"),
            ("coap+tcp://[2001:db8::1]", "coap+tcp://[2001:db8::1]/"),
            ("coaps+ws://h:443/a%20b?c=%23", "coaps+ws://h/a%20b?c=%23"),
            ("coap://h/küche", "coap://h/k%C3%BCche"),
        ] {
            let uri = parse(text);
            assert_eq!(uri.to_string(), printed);
            assert_eq!(parse(printed), uri, "{text}");
        }
    }

    #[test]
    fn a_reference_is_joined_as_rfc_3986_section_5_4_has_it() {
        let base = parse("coap://a/b/c/d;p?q");
        for (reference, joined) in [
            ("g", "coap://a/b/c/g"),
            ("./g", "coap://a/b/c/g"),
            ("g/", "coap://a/b/c/g/"),
            ("/g", "coap://a/g"),
            ("coap://g", "coap://g/"),
            ("//g", "coap://g/"),
            ("?y", "coap://a/b/c/d;p?y"),
            ("", "coap://a/b/c/d;p?q"),
            ("..", "coap://a/b/"),
            ("../../../g", "coap://a/g"),
            ("./g/.", "coap://a/b/c/g/"),
            ("g;x=1/../y", "coap://a/b/c/y"),
        ] {
            assert_eq!(base.join(reference).unwrap().to_string(), joined, "{reference}");
        }
        let local = parse("coap://[fe80::1%25eth0]/x/y");
        assert_eq!(local.join("z").unwrap().to_string(), "coap://[fe80::1%25eth0]/x/z");
        assert_eq!(local.join("coap://[fe80::2]/").unwrap().zone(), None);
        assert_eq!(base.join("a b"), Err(UriError::Reference("a b".into())));
        assert_eq!(base.join("http://h/"), Err(UriError::Scheme("http".into())));
    }

    #[test]
    fn the_location_of_what_a_request_made_is_a_uri() {
        let uri = parse("coap://h:9/things?q");
        let made = |segments: &[&str], arguments: &[&str]| {
            let mut response = Response::new(ebbtide_core::wire::Code::CREATED);
            for segment in segments {
                response = response.option(OptionNumber::LOCATION_PATH, segment.as_bytes());
            }
            for argument in arguments {
                response = response.option(OptionNumber::LOCATION_QUERY, argument.as_bytes());
            }
            uri.location(&response).map(|uri| uri.to_string())
        };
        assert_eq!(made(&["things", "a/b"], &[]).unwrap(), "coap://h:9/things/a%2Fb");
        assert_eq!(made(&["new"], &["n=1&2", "m"]).unwrap(), "coap://h:9/new?n=1%262&m");
        assert_eq!(made(&[], &[]), None);
        assert_eq!(made(&["..", "x"], &[]), None);
        // What a reserved option would add is not known.
        let created = Response::new(ebbtide_core::wire::Code::CREATED);
        let located = created.option(OptionNumber::LOCATION_PATH, b"new");
        assert!(uri.location(&located).is_some());
        for number in RESERVED {
            let more = located.clone().option(OptionNumber(number), b"x");
            assert_eq!(uri.location(&more), None, "{number}");
        }
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
    fn an_invalid_uri_says_why() {
        for (text, error) in [
            ("http://a/b", UriError::Scheme("http".into())),
            ("coap+sms://a/b", UriError::Scheme("coap+sms".into())),
            ("host/path", UriError::Scheme("host/path".into())),
            ("coap:///x", UriError::Host(String::new())),
            ("coap://a:0/", UriError::Port("0".into())),
            ("coap://a/%f", UriError::Escape("%f".into())),
            ("coap://a/%ff", UriError::Escape("%ff".into())),
            ("coap://a/b c", UriError::Character(' ')),
            ("coap://a/{b}", UriError::Character('{')),
            ("coap://u@a/", UriError::Host("u@a".into())),
            ("coap://a/b#c", UriError::Fragment),
        ] {
            assert_eq!(text.parse::<Uri>(), Err(error), "{text}");
        }
    }
}
