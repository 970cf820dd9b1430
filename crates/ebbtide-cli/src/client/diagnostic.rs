//! CBOR in diagnostic notation (RFC 8949 section 8), broken into lines if it is long.

use ciborium::Value;
use std::fmt::{self, Write};

/// The maximum line length up to which an item stays on one line.
const WIDTH: usize = 76;

/// The items of a CBOR sequence (RFC 8742), usually one, in diagnostic notation, each on a line of
/// its own. `None` if the bytes are not CBOR, or are nested too deeply to be shown.
pub(crate) fn notation(mut bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    while !bytes.is_empty() {
        let item: Value = ciborium::from_reader(&mut bytes).ok()?;
        lines(&item, 0, &mut text).ok()?;
        text.push('\n');
    }
    Some(text)
}

/// Writes an item on one line if it fits, otherwise its parts on lines of their own.
fn lines(item: &Value, indent: usize, out: &mut String) -> fmt::Result {
    let mut line = DiagnosticLine { text: String::new(), room: WIDTH.saturating_sub(indent) };
    if flat(item, &mut line).is_ok() {
        return out.write_str(&line.text);
    }
    match item {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                begin(index, indent + 2, out);
                lines(item, indent + 2, out)?;
            }
            end(']', indent, out);
            Ok(())
        }
        Value::Map(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                begin(index, indent + 2, out);
                lines(key, indent + 2, out)?;
                out.push_str(": ");
                lines(value, indent + 2, out)?;
            }
            end('}', indent, out);
            Ok(())
        }
        Value::Tag(number, item) => {
            write!(out, "{number}(")?;
            lines(item, indent, out)?;
            out.push(')');
            Ok(())
        }
        // Long text is not broken.
        other => flat(other, out),
    }
}

fn begin(index: usize, indent: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

fn end(bracket: char, indent: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    out.push(bracket);
}

fn flat(item: &Value, out: &mut impl Write) -> fmt::Result {
    match item {
        Value::Integer(number) => write!(out, "{}", i128::from(*number)),
        Value::Bytes(bytes) => {
            out.write_str("h'")?;
            bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
            out.write_str("'")
        }
        Value::Float(number) if number.is_nan() => out.write_str("NaN"),
        Value::Float(number) if number.is_infinite() => {
            out.write_str(if *number > 0.0 { "Infinity" } else { "-Infinity" })
        }
        // With a decimal point or an exponent, so that it does not look like an integer.
        Value::Float(number) => write!(out, "{number:?}"),
        Value::Text(text) => quoted(text, out),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Null => out.write_str("null"),
        Value::Tag(number, item) => {
            write!(out, "{number}(")?;
            flat(item, out)?;
            out.write_str(")")
        }
        Value::Array(items) => {
            out.write_str("[")?;
            for (index, item) in items.iter().enumerate() {
                out.write_str(if index > 0 { ", " } else { "" })?;
                flat(item, out)?;
            }
            out.write_str("]")
        }
        Value::Map(entries) => {
            out.write_str("{")?;
            for (index, (key, value)) in entries.iter().enumerate() {
                out.write_str(if index > 0 { ", " } else { "" })?;
                flat(key, out)?;
                out.write_str(": ")?;
                flat(value, out)?;
            }
            out.write_str("}")
        }
        _ => out.write_str("simple"),
    }
}

/// Text in quotes, with escapes as in JSON and for other control characters.
fn quoted(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_str("\"")
}

/// A line that rejects what does not fit, so that long items are not written twice.
struct DiagnosticLine {
    text: String,
    room: usize,
}

impl Write for DiagnosticLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let length = text.chars().count();
        self.room = self.room.checked_sub(length).ok_or(fmt::Error)?;
        self.text.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(hex: &str) -> String {
        let digits: Vec<u8> = hex.bytes().collect();
        let bytes: Vec<u8> = digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        notation(&bytes).unwrap()
    }

    #[test]
    fn the_examples_of_rfc_8949_appendix_a_are_written_as_there() {
        for (hex, text) in [
            ("00", "0"),
            ("1bffffffffffffffff", "18446744073709551615"),
            ("3903e7", "-1000"),
            ("f93e00", "1.5"),
            ("fb7e37e43c8800759c", "1e300"),
            ("f97c00", "Infinity"),
            ("f97e00", "NaN"),
            ("f4", "false"),
            ("f6", "null"),
            ("c11a514b67b0", "1(1363896240)"),
            ("4401020304", "h'01020304'"),
            ("62225c", "\"\\\"\\\\\""),
            ("62c3bc", "\"\u{fc}\""),
            ("8301820203820405", "[1, [2, 3], [4, 5]]"),
            ("a26161016162820203", "{\"a\": 1, \"b\": [2, 3]}"),
            ("9f018202039f0405ffff", "[1, [2, 3], [4, 5]]"),
        ] {
            assert_eq!(shown(hex), format!("{text}\n"), "{hex}");
        }
    }

    #[test]
    fn a_long_text_gets_a_line_for_each_part() {
        let hex = format!("a1616182{}{}", "58".to_owned() + "28" + &"ab".repeat(40), "01");
        let text = shown(&hex);
        assert_eq!(text, format!("{{\n  \"a\": [\n    h'{}',\n    1\n  ]\n}}\n", "ab".repeat(40)));
    }

    #[test]
    fn a_sequence_has_an_item_per_line() {
        assert_eq!(shown("010203"), "1\n2\n3\n");
    }

    #[test]
    fn invalid_cbor_and_endless_nesting_are_refused() {
        assert_eq!(notation(&[0x82, 0x01]), None);
        assert_eq!(notation(&vec![0x81; 1_000_000]), None);
    }
}
