//! Content-Formats and media types (RFC 8075 section 6).

use coap_numbers::content_format;

/// The media type of payloads whose Content-Format has no name here (RFC 8075 section 6.2).
const PAYLOAD: &str = "application/coap-payload;cf=";

/// A media type with its content coding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Media {
    pub(crate) content_type: String,
    /// The value of Content-Encoding, if the coding is not the identity.
    pub(crate) coding: Option<String>,
}

/// The media type of a Content-Format.
pub(crate) fn of_format(format: u16) -> Media {
    match content_format::to_str(format) {
        Some(name) => {
            let (name, coding) =
                name.split_once('@').map_or((name, None), |(name, coding)| (name, Some(coding)));
            Media { content_type: name.to_owned(), coding: coding.map(str::to_owned) }
        }
        None => Media { content_type: format!("{PAYLOAD}{format}"), coding: None },
    }
}

/// The Content-Format of a media type, with its parameters, and a content coding.
pub(crate) fn to_format(media: &str, coding: Option<&str>) -> Option<u16> {
    let normal = normalized(media);
    let coding = coding.filter(|coding| !coding.eq_ignore_ascii_case("identity"));
    if let Some(number) = normal.strip_prefix(PAYLOAD).filter(|_| coding.is_none()) {
        return number.trim_matches('"').parse().ok();
    }
    let known = |name: &str| match coding {
        None => content_format::from_str(name),
        Some(coding) => {
            content_format::from_str(&format!("{name}@{}", coding.to_ascii_lowercase()))
        }
    };
    // The registry writes a blank behind the semicolon.
    if let Some(format) = known(&normal.replace(';', "; ")).or_else(|| known(&normal)) {
        return Some(format);
    }
    match normal.split(';').next() {
        // The only text that CoAP has a number for.
        Some("text/plain") if !normal.contains(';') => known("text/plain; charset=utf-8"),
        // RFC 8259 section 11: JSON has no charset parameter, and clients send one.
        Some(name) if normal.ends_with(";charset=utf-8") => known(name),
        _ => None,
    }
}

/// A media type without blanks, and in lower case where case does not matter (RFC 9110 section 8.3.1).
fn normalized(media: &str) -> String {
    let parts = media.split(';').map(|part| {
        let part = part.trim();
        match part.split_once('=') {
            Some((name, value)) if !name.trim().eq_ignore_ascii_case("charset") => {
                format!("{}={value}", name.trim().to_ascii_lowercase())
            }
            _ => part.to_ascii_lowercase(),
        }
    });
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(";")
}

/// The media types that a client accepts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    Anything,
    Format(u16),
    /// The client wants events as they come (`text/event-stream`).
    Events,
    /// Nothing that CoAP has a number for.
    Nothing,
}

/// The format that an Accept field asks for (RFC 9110 section 12.5.1): of those that CoAP has a number for the one with
/// the highest weight, and of several the first.
pub(crate) fn accepted(accept: &str) -> Accepted {
    let mut best: Option<(u16, Accepted)> = None;
    for range in accept.split(',') {
        let (media, weight) = weighted(range);
        let accepted = match media.as_str() {
            _ if weight == 0 => continue,
            "*/*" => Accepted::Anything,
            "text/event-stream" => Accepted::Events,
            media => match to_format(media, None) {
                Some(format) => Accepted::Format(format),
                // A range of types is one of many formats, so the server chooses.
                None if media.ends_with("/*") => Accepted::Anything,
                None => continue,
            },
        };
        if best.is_none_or(|(known, _)| weight > known) {
            best = Some((weight, accepted));
        }
    }
    best.map_or(Accepted::Nothing, |(_, accepted)| accepted)
}

/// A media range without its weight, and its weight in thousandths.
fn weighted(range: &str) -> (String, u16) {
    let mut weight = 1000;
    let parts = range.split(';').map(str::trim).filter(|part| {
        let Some(value) = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")) else {
            return true;
        };
        weight = value.parse::<f32>().map_or(0, |value| (value.clamp(0.0, 1.0) * 1000.0) as u16);
        false
    });
    let media = parts.collect::<Vec<_>>().join(";");
    (media, weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_format_and_its_media_type_are_the_same_in_both_directions() {
        for format in
            (0..=u16::MAX).filter(|format| content_format::to_str(*format).is_some()).chain([65001])
        {
            let Media { content_type, coding } = of_format(format);
            assert_eq!(to_format(&content_type, coding.as_deref()), Some(format), "{content_type}");
        }
        assert_eq!(of_format(65001).content_type, "application/coap-payload;cf=65001");
    }

    #[test]
    fn media_types_are_read_as_clients_write_them() {
        for (media, coding, format) in [
            ("application/json", None, Some(50)),
            ("Application/JSON; charset=UTF-8", None, Some(50)),
            ("text/plain", None, Some(0)),
            ("text/plain;charset=utf-8", Some("identity"), Some(0)),
            ("text/plain; charset=latin1", None, None),
            ("application/json", Some("deflate"), Some(11050)),
            ("application/json", Some("br"), None),
            ("application/coap-payload;cf=50", None, Some(50)),
            ("application/coap-payload;cf=99999", None, None),
            ("application/x-www-form-urlencoded", None, None),
        ] {
            assert_eq!(to_format(media, coding), format, "{media} {coding:?}");
        }
    }

    #[test]
    fn the_best_format_that_coap_has_is_requested() {
        for (accept, expected) in [
            ("*/*", Accepted::Anything),
            ("text/html, application/cbor;q=0.5, application/json;q=0.9", Accepted::Format(50)),
            ("text/html, application/xhtml+xml, */*;q=0.8", Accepted::Anything),
            ("text/event-stream", Accepted::Events),
            ("text/html", Accepted::Nothing),
            ("application/json;q=0", Accepted::Nothing),
        ] {
            assert_eq!(accepted(accept), expected, "{accept}");
        }
    }
}
