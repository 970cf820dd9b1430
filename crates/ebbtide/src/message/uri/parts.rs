//! URIs of parts that are decoded already.

use super::{MAX_PART, Uri, UriError};
use crate::message::Scheme;
use core::net::SocketAddr;

impl Uri {
    /// The URI of a resource at an address, from the decoded segments of its path and arguments of its query.
    ///
    /// # Errors
    ///
    /// Returns an error if the port is 0, if a segment is `.` or `..`, or if a segment or an
    /// argument is longer than 255 bytes.
    pub fn at(
        scheme: Scheme,
        address: SocketAddr,
        path: Vec<String>,
        query: Vec<String>,
    ) -> Result<Self, UriError> {
        if address.port() == 0 {
            return Err(UriError::Port("0".to_owned()));
        }
        if let Some(dots) = path.iter().find(|segment| matches!(segment.as_str(), "." | "..")) {
            return Err(UriError::Reference(dots.clone()));
        }
        if let Some(part) = path.iter().chain(&query).find(|part| part.len() > MAX_PART) {
            return Err(UriError::TooLong(part.clone()));
        }
        let zone = match address {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id().to_string()),
            _ => None,
        };
        let (ip, port) = (address.ip(), address.port());
        Ok(Self { scheme, host: ip.to_string(), address: Some(ip), zone, port, path, query })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::str::FromStr;

    #[test]
    fn a_uri_of_parts_is_that_of_its_text_and_has_the_same_limits() {
        let at = |address: &str, path: &[&str]| {
            let path = path.iter().map(|&segment| segment.to_owned()).collect();
            Uri::at(Scheme::CoapTcp, address.parse().unwrap(), path, vec!["x=1&y".to_owned()])
        };
        let text = Uri::from_str("coap+tcp://192.0.2.1:9/a%2Fb/c%3F?x=1%26y");
        assert_eq!(at("192.0.2.1:9", &["a/b", "c?"]), text);
        let text = Uri::from_str("coap+tcp://[fe80::1%253]/?x=1%26y");
        assert_eq!(at("[fe80::1%3]:5683", &[]), text);
        assert_eq!(at("192.0.2.1:0", &[]), Err(UriError::Port("0".into())));
        assert_eq!(at("192.0.2.1:9", &["a", ".."]), Err(UriError::Reference("..".into())));
        let (fits, long) = ("x".repeat(MAX_PART), "x".repeat(MAX_PART + 1));
        assert!(at("192.0.2.1:9", &[&fits]).is_ok());
        assert_eq!(at("192.0.2.1:9", &[&long]), Err(UriError::TooLong(long)));
    }
}
