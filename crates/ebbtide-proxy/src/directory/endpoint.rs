//! An endpoint as it is registered (RFC 9176 section 5), and its stored form.

use crate::durable::{get, get_address, get_optional, put, put_address, put_optional};
use crate::web_link::{self, LinkAttribute, WebLink};
use bytes::{Buf, BufMut};
use std::net::{IpAddr, SocketAddr};

/// The lifetime of a registration that names none (RFC 9176 section 5).
const LIFETIME: u32 = 90_000;
/// The most bytes of a name (RFC 9176 section 5).
const MAX_NAME: usize = 63;
/// Bytes that an endpoint, and each of its links, take besides their texts.
const OVERHEAD: usize = 128;

/// The identity of an endpoint: its name, within a sector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EndpointName {
    pub(super) name: String,
    pub(super) sector: Option<String>,
}

/// The URI against which an endpoint's links are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaseUri {
    pub(super) text: String,
    pub(super) named_by: BaseSource,
    /// The interface of a link-local address, which the text does not name.
    pub(super) interface: Option<u32>,
}

/// Where a base URI comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum BaseSource {
    /// The parameter `base`.
    Parameter,
    /// The address of the last request.
    Address,
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegisteredEndpoint {
    pub(super) name: EndpointName,
    /// Seconds.
    pub(super) lifetime: u32,
    pub(super) base: BaseUri,
    /// Further parameters of the registration.
    pub(super) attributes: Vec<LinkAttribute>,
    pub(super) links: Vec<WebLink>,
    /// The identity that its registrant has proved; `None` without security.
    pub(super) owner: Option<Vec<u8>>,
    /// The addresses that it counts for.
    pub(super) client: IpAddr,
}

/// The parameters of a request to register or to update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) name: Option<String>,
    pub(super) sector: Option<String>,
    pub(super) lifetime: Option<u32>,
    pub(super) base: Option<String>,
    pub(super) attributes: Vec<LinkAttribute>,
}

impl Parameters {
    /// Reads the arguments of a query.
    ///
    /// # Errors
    ///
    /// The reason for the registrant.
    pub(super) fn read<'q>(arguments: impl Iterator<Item = &'q str>) -> Result<Self, String> {
        let mut read = Self::default();
        for argument in arguments.filter(|argument| !argument.is_empty()) {
            let (key, value) = argument.split_once('=').unwrap_or((argument, ""));
            match key {
                "ep" => read.name = Some(checked_name(key, value)?),
                "d" => read.sector = Some(checked_name(key, value)?),
                "lt" => {
                    let lifetime = value.parse().ok().filter(|lifetime| *lifetime > 0);
                    let why =
                        || format!("lt={value} is not a number of seconds from 1 to 4294967295");
                    read.lifetime = Some(lifetime.ok_or_else(why)?);
                }
                "base" => read.base = Some(checked_base(value)?),
                // They have a meaning of their own in look-ups.
                "page" | "count" | "href" | "anchor" => {
                    return Err(format!("{key} cannot be an attribute of an endpoint"));
                }
                key => {
                    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
                    if key.is_empty()
                        || !key.bytes().all(is_key)
                        || value.chars().any(char::is_control)
                    {
                        return Err(format!("'{argument}' is not a parameter such as et=sensor"));
                    }
                    read.attributes.push(LinkAttribute::quoted(key, value));
                }
            }
        }
        Ok(read)
    }
}

fn checked_name(key: &str, value: &str) -> Result<String, String> {
    let is_name = (1..=MAX_NAME).contains(&value.len()) && !value.chars().any(char::is_control);
    let why = || format!("{key} is not a name of 1 to {MAX_NAME} bytes without control characters");
    is_name.then(|| value.to_owned()).ok_or_else(why)
}

fn checked_base(value: &str) -> Result<String, String> {
    let wrong = || format!("base={value} is not a URI such as coap://192.0.2.7:5683");
    let (_, rest) =
        value.split_once("://").filter(|_| web_link::is_uri(value)).ok_or_else(wrong)?;
    // A zone means something on one machine alone (RFC 9176 section 5).
    let is_plain = !value.chars().any(|c| c.is_control() || " <>\"?#%".contains(c));
    let has_authority = !rest.is_empty() && !rest.starts_with('/');
    (is_plain && has_authority).then(|| value.trim_end_matches('/').to_owned()).ok_or_else(wrong)
}

impl BaseUri {
    /// The address of a registrant as a base URI.
    pub(super) fn of_address(scheme: &str, default_port: u16, from: SocketAddr) -> Self {
        let host = match from.ip().to_canonical() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let port = match from.port() {
            port if port == default_port => String::new(),
            port => format!(":{port}"),
        };
        let text = format!("{scheme}://{host}{port}");
        Self { text, named_by: BaseSource::Address, interface: interface(from) }
    }

    /// The base URI that a registrant names.
    ///
    /// # Errors
    ///
    /// The reason for the registrant.
    pub(super) fn of_parameter(text: String, from: SocketAddr) -> Result<Self, String> {
        let authority = text.split_once("://").map_or("", |(_, rest)| rest);
        let host = authority.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let is_link_local = host
            .and_then(|(host, _)| host.parse::<std::net::Ipv6Addr>().ok())
            .is_some_and(|host| host.is_unicast_link_local());
        let interface = interface(from).filter(|_| is_link_local);
        if is_link_local && interface.is_none() {
            // RFC 9176 section 5: it "MUST be local to the link on which the registration request is received".
            return Err("a link-local base needs a request from that link".to_owned());
        }
        Ok(Self { text, named_by: BaseSource::Parameter, interface })
    }

    /// A reference of a link as a URI.
    pub(super) fn resolve(&self, reference: &str) -> String {
        web_link::resolve(&self.text, reference)
    }
}

/// The interface through which a link-local address is reached.
pub(super) fn interface(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => Some(v6.scope_id()),
        _ => None,
    }
}

impl RegisteredEndpoint {
    /// The lifetime of a registration, in seconds.
    pub(super) fn lifetime_of(parameters: &Parameters) -> u32 {
        parameters.lifetime.unwrap_or(LIFETIME)
    }

    /// The bytes that it counts for: at least those that it adds to the longest result of a look-up.
    pub(super) fn cost(&self) -> usize {
        let attributes = |all: &[LinkAttribute]| -> usize {
            all.iter().map(|attribute| attribute.name.len() + attribute.value().len() + 32).sum()
        };
        let own = self.name.name.len() + self.name.sector.as_ref().map_or(0, String::len);
        let owner = self.owner.as_ref().map_or(0, Vec::len);
        let link = |link: &WebLink| {
            OVERHEAD + 2 * self.base.text.len() + link.target.len() + attributes(&link.attributes)
        };
        let links: usize = self.links.iter().map(link).sum();
        OVERHEAD + own + owner + self.base.text.len() + attributes(&self.attributes) + links
    }

    /// Its stored form; `expires` is in seconds since 1970.
    pub(super) fn encode(&self, expires: u64) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u64(expires);
        out.put_u32(self.lifetime);
        put_address(&mut out, self.client);
        out.put_u8(u8::from(self.base.named_by == BaseSource::Parameter));
        put_optional(
            &mut out,
            self.base.interface.map(u32::to_be_bytes).as_ref().map(|bytes| &bytes[..]),
        );
        put(&mut out, self.base.text.as_bytes());
        put(&mut out, self.name.name.as_bytes());
        put_optional(&mut out, self.name.sector.as_ref().map(String::as_bytes));
        put_optional(&mut out, self.owner.as_deref());
        // The attributes are those of a link as well.
        let own = WebLink { target: "/".to_owned(), attributes: self.attributes.clone() };
        put(&mut out, web_link::text([&own]).as_bytes());
        put(&mut out, web_link::text(&self.links).as_bytes());
        out
    }

    /// An endpoint and when it expires; `None` if the bytes are not valid.
    pub(super) fn decode(mut stored: &[u8]) -> Option<(Self, u64)> {
        let input = &mut stored;
        let (expires, lifetime) = (input.try_get_u64().ok()?, input.try_get_u32().ok()?);
        let client = get_address(input)?;
        let named_by = match input.try_get_u8().ok()? {
            0 => BaseSource::Address,
            1 => BaseSource::Parameter,
            _ => return None,
        };
        let interface = match get_optional(input)? {
            Some(bytes) => Some(u32::from_be_bytes(bytes.try_into().ok()?)),
            None => None,
        };
        let base = BaseUri { text: text(get(input)?)?, named_by, interface };
        let name = text(get(input)?)?;
        let sector = match get_optional(input)? {
            Some(bytes) => Some(text(bytes)?),
            None => None,
        };
        let owner = get_optional(input)?.map(<[u8]>::to_vec);
        let own = web_link::parse(&text(get(input)?)?).ok()?.pop()?;
        let links = web_link::parse(&text(get(input)?)?).ok()?;
        let name = EndpointName { name, sector };
        let attributes = own.attributes;
        Some((Self { name, lifetime, base, attributes, links, owner, client }, expires))
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> BaseUri {
        BaseUri { text: text.to_owned(), named_by: BaseSource::Parameter, interface: None }
    }

    #[test]
    fn parameters_are_checked() {
        let query =
            ["ep=node1", "d=floor-3", "lt=60", "base=coap://[2001:db8::1]:61616/", "et=\"x", "b"];
        let read = Parameters::read(query.into_iter()).unwrap();
        assert_eq!((read.name.as_deref(), read.lifetime), (Some("node1"), Some(60)));
        assert_eq!(read.base.as_deref(), Some("coap://[2001:db8::1]:61616"));
        assert_eq!(read.attributes[0].value(), "\"x");
        let long = format!("ep={}", "x".repeat(64));
        for wrong in [
            "lt=0",
            "lt=4294967296",
            "lt=",
            "ep=",
            &long,
            "ep=a\u{7f}",
            "d=",
            "base=coap:x",
            "base=/x",
            "base=coap://",
            "base=coap:///x",
            "base=coap://a?b",
            "base=coap://[fe80::1%25lo]",
            "page=1",
            "=x",
            "a b=x",
            "href=/x",
        ] {
            assert!(Parameters::read([wrong].into_iter()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_base_is_that_of_the_address_or_what_was_named() {
        for (from, text) in [
            ("192.0.2.1:5683", "coap://192.0.2.1"),
            ("[::ffff:192.0.2.1]:7", "coap://192.0.2.1:7"),
            ("[2001:db8::1]:61616", "coap://[2001:db8::1]:61616"),
        ] {
            let own = BaseUri::of_address("coap", 5683, from.parse().unwrap());
            assert_eq!((own.text.as_str(), own.interface), (text, None));
        }
        let link_local = "[fe80::1%3]:5683".parse().unwrap();
        let own = BaseUri::of_address("coap", 5683, link_local);
        assert_eq!((own.text.as_str(), own.interface), ("coap://[fe80::1]", Some(3)));
        let named = |from: SocketAddr| BaseUri::of_parameter("coap://[fe80::2]".to_owned(), from);
        assert_eq!(named(link_local).unwrap().interface, Some(3));
        assert!(named("[2001:db8::1]:5683".parse().unwrap()).is_err());
    }

    #[test]
    fn an_endpoint_is_read_as_it_was_stored_and_a_cut_one_not_at_all() {
        let endpoint = RegisteredEndpoint {
            name: EndpointName { name: "node1".to_owned(), sector: Some("d".to_owned()) },
            lifetime: 60,
            base: BaseUri { interface: Some(7), ..base("coap://[fe80::1]") },
            attributes: vec![LinkAttribute::quoted("et", "x\"y")],
            links: web_link::parse("</a>;rt=b;obs,<http://c/>;anchor=\"/a\"").unwrap(),
            owner: Some(b"key".to_vec()),
            client: [192, 0, 2, 1].into(),
        };
        let stored = endpoint.encode(1_700_000_000);
        for end in 0..stored.len() {
            assert_eq!(RegisteredEndpoint::decode(&stored[..end]), None, "{end}");
        }
        assert_eq!(RegisteredEndpoint::decode(&stored), Some((endpoint, 1_700_000_000)));
    }
}
