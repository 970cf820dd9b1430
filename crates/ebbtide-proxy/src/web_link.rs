//! Lists of links in the CoRE Link Format (RFC 6690): the limited one that a directory takes (RFC 9176 appendix C).

use core::fmt;

/// A link with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebLink {
    /// A URI, or an absolute path.
    pub(crate) target: String,
    pub(crate) attributes: Vec<LinkAttribute>,
}

/// An attribute of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkAttribute {
    pub(crate) name: String,
    /// The value as it was written, with its quotation marks, so that it is returned unchanged.
    written: Option<String>,
}

impl LinkAttribute {
    /// An attribute with a quoted value.
    pub(crate) fn quoted(name: &str, value: &str) -> Self {
        let mut written = String::with_capacity(value.len() + 2);
        written.push('"');
        for c in value.chars() {
            if matches!(c, '"' | '\\') {
                written.push('\\');
            }
            written.push(c);
        }
        written.push('"');
        Self { name: name.to_owned(), written: Some(written) }
    }

    /// The value without quotation marks; empty for an attribute without one.
    pub(crate) fn value(&self) -> String {
        let written = self.written.as_deref().unwrap_or_default();
        let Some(quoted) = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
            return written.to_owned();
        };
        let mut value = String::with_capacity(quoted.len());
        let mut chars = quoted.chars();
        while let Some(c) = chars.next() {
            value.extend(if c == '\\' { chars.next() } else { Some(c) });
        }
        value
    }
}

impl WebLink {
    /// The length of its text.
    pub(crate) fn written_length(&self) -> usize {
        let of_attribute = |attribute: &LinkAttribute| {
            let value = attribute.written.as_ref().map_or(0, |written| 1 + written.len());
            1 + attribute.name.len() + value
        };
        2 + self.target.len() + self.attributes.iter().map(of_attribute).sum::<usize>()
    }
}

impl fmt::Display for WebLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.target)?;
        for LinkAttribute { name, written } in &self.attributes {
            write!(f, ";{name}")?;
            if let Some(written) = written {
                write!(f, "={written}")?;
            }
        }
        Ok(())
    }
}

/// The text of a list.
pub(crate) fn text<'l>(links: impl IntoIterator<Item = &'l WebLink>) -> String {
    let links: Vec<String> = links.into_iter().map(WebLink::to_string).collect();
    links.join(",")
}

/// Reads a list.
///
/// # Errors
///
/// The reason for the registrant.
pub(crate) fn parse(text: &str) -> Result<Vec<WebLink>, String> {
    let mut rest = text.trim();
    let mut links = Vec::new();
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let wrong = |what: &str| format!("{what} in the link at byte {at}");
        let (target, behind) = rest
            .strip_prefix('<')
            .and_then(|rest| rest.split_once('>'))
            .ok_or_else(|| wrong("no <target>"))?;
        if !is_limited_reference(target) {
            return Err(wrong("the target is neither a URI nor a path that begins with /"));
        }
        let mut link = WebLink { target: target.to_owned(), attributes: Vec::new() };
        rest = behind.trim_start();
        while let Some(behind) = rest.strip_prefix(';') {
            let (attribute, behind) =
                attribute(behind.trim_start()).ok_or_else(|| wrong("an attribute is not valid"))?;
            if attribute.name == "anchor" {
                if !is_limited_reference(&attribute.value()) {
                    return Err(wrong("the anchor is neither a URI nor a path that begins with /"));
                }
                // Each would be resolved against the base, and a link has one context (RFC 8288 section 3.2).
                if link.attributes.iter().any(|known| known.name == "anchor") {
                    return Err(wrong("there are two anchors"));
                }
            }
            link.attributes.push(attribute);
            rest = behind.trim_start();
        }
        links.push(link);
        rest = match rest.strip_prefix(',') {
            Some(behind) => behind.trim_start(),
            None if rest.is_empty() => rest,
            None => return Err(wrong("no comma behind it, or something else")),
        };
    }
    Ok(links)
}

/// The attribute at the beginning of a text, and the rest.
fn attribute(text: &str) -> Option<(LinkAttribute, &str)> {
    let end = text.find(['=', ';', ',', ' ']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~*".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        return None;
    }
    let name = name.to_owned();
    let Some(value) = rest.strip_prefix('=') else {
        return Some((LinkAttribute { name, written: None }, rest));
    };
    let length = if value.starts_with('"') {
        let mut escaped = false;
        let end = value.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        end?.0 + 1
    } else {
        value.find([';', ',', ' ', '"', '<', '>']).unwrap_or(value.len())
    };
    let (written, rest) = value.split_at_checked(length)?;
    let is_written = !written.is_empty() && !written.chars().any(char::is_control);
    is_written.then(|| (LinkAttribute { name, written: Some(written.to_owned()) }, rest))
}

/// Whether a reference is one of the Limited Link Format: a URI, or an absolute path, so that it means the same
/// wherever it is resolved.
pub(crate) fn is_limited_reference(reference: &str) -> bool {
    let is_plain = !reference.chars().any(|c| c.is_control() || " <>\"".contains(c));
    let is_path = reference.starts_with('/') && !reference.starts_with("//");
    is_plain && (is_path || is_uri(reference))
}

/// Whether a text has a scheme (RFC 3986 section 3.1).
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(is_of_scheme)
        && !rest.is_empty()
}

/// A reference of the Limited Link Format as a URI (RFC 3986 section 5.2).
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    if !reference.starts_with('/') {
        return reference.to_owned();
    }
    let authority = base.find("://").map_or(0, |at| at + 3);
    let path = base.get(authority..).and_then(|rest| rest.find('/'));
    let origin = path.map_or(base.len(), |path| authority + path);
    format!("{}{reference}", base.get(..origin).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_returned_as_it_was_written() {
        let list = "</sensors>;ct=40;title=\"Index, \\\"all\\\"; of it\",</t>;rt=temperature-c;if=sensor;obs,\
                    <http://www.example.com/t123>;anchor=\"/sensors/temp\";rel=\"describedby\"";
        let links = parse(list).unwrap();
        assert_eq!((links.len(), text(&links).as_str()), (3, list));
        assert_eq!(links[0].attributes[1].value(), "Index, \"all\"; of it");
        assert_eq!(links[1].attributes[2].value(), "");
        assert_eq!(parse(" </a>,\r\n </b> ;obs ").unwrap().len(), 2);
        assert_eq!(LinkAttribute::quoted("a", "x\"\\y").value(), "x\"\\y");
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn what_is_not_a_list_of_limited_links_is_refused_with_its_place() {
        for (list, why) in [
            ("a", "no <target> in the link at byte 0"),
            ("</a>,<b>", "neither a URI nor a path that begins with / in the link at byte 5"),
            ("<//host/a>", "neither a URI"),
            ("<>", "neither a URI"),
            ("</a b>", "neither a URI"),
            ("</a>;anchor=b", "the anchor is neither"),
            (
                "</a>;anchor=\"/b\";rt=c;anchor=\"/b\"",
                "there are two anchors in the link at byte 0",
            ),
            ("</a>;=b", "an attribute is not valid"),
            ("</a>;b=", "an attribute is not valid"),
            ("</a>;b=\"c", "an attribute is not valid"),
            ("</a>;b=\"\n\"", "an attribute is not valid"),
            ("</a> x", "no comma"),
        ] {
            let error = parse(list).unwrap_err();
            assert!(error.contains(why), "{list}: {error}");
        }
    }

    #[test]
    fn references_are_resolved_against_the_origin_of_a_base() {
        for (reference, resolved) in [
            ("/sensors", "coap://sensor1.example.com/sensors"),
            ("http://www.example.com/t", "http://www.example.com/t"),
        ] {
            assert_eq!(resolve("coap://sensor1.example.com/below", reference), resolved);
            assert_eq!(resolve("coap://sensor1.example.com", reference), resolved);
        }
    }
}
