//! Payloads in human-readable form, or unchanged.

use super::diagnostic;
use crate::failure::Failure;
use clap::Args;
use ebbtide::{ContentFormat, Response, is_harmless};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stdout};

/// How a payload is written to standard output.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct ShowArgs {
    /// Show payloads in readable form: JSON and CBOR (in diagnostic notation) indented, links on
    /// lines of their own, bytes in hexadecimal. This is the default on a terminal
    #[arg(long, conflicts_with = "raw")]
    pretty: bool,
    /// Write payloads exactly as they come. This is the default in a pipe or a file
    #[arg(long)]
    raw: bool,
    /// Write a newline after each payload
    #[arg(short = 'w', long)]
    newline: bool,
}

impl ShowArgs {
    fn is_pretty(self) -> bool {
        self.pretty || (!self.raw && stdout().is_terminal())
    }

    /// With a newline after each payload, unless payloads are to be written unchanged.
    pub(crate) fn separated(self) -> Self {
        Self { newline: self.newline || !self.raw, ..self }
    }

    /// Writes a payload to standard output.
    pub(crate) fn write(self, response: &Response) -> Result<(), Failure> {
        let mut out = stdout().lock();
        if self.is_pretty() {
            out.write_all(readable(response).as_bytes())?;
        } else {
            out.write_all(response.body())?;
            if self.newline && !response.body().ends_with(b"\n") {
                out.write_all(b"\n")?;
            }
        }
        Ok(out.flush()?)
    }
}

/// A payload in human-readable form, with a newline at its end.
pub(crate) fn readable(response: &Response) -> String {
    let body = response.body();
    if body.is_empty() {
        return String::new();
    }
    let name = response.content_format().map(|format| format.to_string()).unwrap_or_default();
    let has = |part: &str| name.contains(part);
    let structured = if has("json") {
        json(body)
    } else if has("cbor") || has("/cwt") || has("/cose") || is_topic(response) {
        diagnostic::notation(body)
    } else if response.content_format() == Some(ContentFormat::LINK_FORMAT) {
        std::str::from_utf8(body).ok().map(|text| links(text).join("\n"))
    } else {
        None
    };
    let plain = || std::str::from_utf8(body).map_or_else(|_| hexadecimal(body), str::to_owned);
    let mut text = harmless(&structured.unwrap_or_else(plain));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Whether it is a topic of a broker, whose format (draft-ietf-core-coap-pubsub-21) has no name yet.
fn is_topic(response: &Response) -> bool {
    response.content_format() == Some(ContentFormat(606))
}

fn json(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    serde_json::to_string_pretty(&value).ok()
}

/// The links of a list (RFC 6690 section 2). Commas within quotes and brackets do not separate
/// them.
pub(crate) fn links(text: &str) -> Vec<String> {
    let (mut quoted, mut bracketed) = (false, false);
    let parts = text.split(|c| {
        match c {
            '"' => quoted = !quoted,
            '<' => bracketed = !quoted,
            '>' => bracketed = false,
            _ => {}
        }
        c == ',' && !quoted && !bracketed
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Sixteen bytes a line: offset, hexadecimal, and the bytes that are ASCII.
fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, line) in bytes.chunks(16).enumerate() {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let ascii: String = line
            .iter()
            .map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' })
            .collect();
        // Writing to a String does not fail.
        let _ = writeln!(text, "{:08x}  {:<47}  {ascii}", index * 16, hex.join(" "));
    }
    text
}

/// Escapes characters that control the terminal or reorder its text.
pub(crate) fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => safe.push(c),
            c if is_harmless(c) => safe.push(c),
            c => safe.extend(c.escape_unicode()),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(format: u16, body: &[u8]) -> String {
        readable(&Response::content(body.to_vec()).format(ContentFormat(format)))
    }

    #[test]
    fn commas_in_quotes_do_not_separate_links() {
        let list = "</a>;title=\"x, y\",</b,c>;rt=\"z\",\n</d>";
        assert_eq!(links(list), ["</a>;title=\"x, y\"", "</b,c>;rt=\"z\"", "</d>"]);
        assert_eq!(shown(40, list.as_bytes()).lines().count(), 3);
    }

    #[test]
    fn json_is_indented_and_cbor_in_diagnostic_notation() {
        assert_eq!(shown(50, b"{\"a\":[1]}"), "{\n  \"a\": [\n    1\n  ]\n}\n");
        assert_eq!(shown(60, &[0xa1, 0x61, b'a', 0x81, 1]), "{\"a\": [1]}\n");
        assert_eq!(shown(112, &[0x81, 0xa1, 0x20, 0x01]), "[{-1: 1}]\n", "SenML");
    }

    #[test]
    fn a_payload_with_a_wrong_content_format_is_shown_all_the_same() {
        assert_eq!(shown(50, b"{\"a\":"), "{\"a\":\n");
        assert!(shown(60, &[0x82, 0x01]).starts_with("00000000  82 01   "));
        assert!(shown(42, b"\xff\x00ABC").ends_with("  ..ABC\n"));
    }

    #[test]
    fn a_payload_cannot_command_the_terminal() {
        assert_eq!(shown(0, b"a\x1b[2Jb\tc"), "a\\u{1b}[2Jb\tc\n");
    }
}
