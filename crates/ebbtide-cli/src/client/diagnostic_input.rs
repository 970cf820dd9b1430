//! Reads CBOR in diagnostic notation (RFC 8949 section 8), of which JSON is a part: `{1: h'00ff', "t": [21.5, true]}`.

use ciborium::Value;
use ciborium::value::Integer;

/// Nesting that is read.
const MAX_DEPTH: usize = 64;

/// The CBOR of a text in diagnostic notation.
///
/// # Errors
///
/// Returns what was expected instead, and at which character.
pub(crate) fn encode(text: &str) -> Result<Vec<u8>, String> {
    let mut reader = NotationReader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.expected("the end"));
    }
    let mut bytes = Vec::new();
    ciborium::into_writer(&value, &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

struct NotationReader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> NotationReader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn expected(&self, what: &str) -> String {
        let place = self.text.get(..self.at).map_or(0, |before| before.chars().count()) + 1;
        format!(
            "character {place}: {what} is expected (CBOR diagnostic notation, RFC 8949 section 8)"
        )
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes this text, if it comes next.
    fn takes(&mut self, token: &str) -> bool {
        self.skip_space();
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn take(&mut self, token: &str) -> Result<(), String> {
        if self.takes(token) { Ok(()) } else { Err(self.expected(&format!("'{token}'"))) }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(self.expected("a value that is nested less deeply"));
        }
        for (word, value) in [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Null),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ] {
            if self.takes(word) {
                return Ok(value);
            }
        }
        if self.takes("[") {
            return Ok(Value::Array(self.items("]", |reader| reader.value(depth + 1))?));
        }
        if self.takes("{") {
            return Ok(Value::Map(self.items("}", |reader| {
                let key = reader.value(depth + 1)?;
                reader.take(":")?;
                Ok((key, reader.value(depth + 1)?))
            })?));
        }
        if self.takes("h'") {
            return self.hexadecimal();
        }
        match self.rest().chars().next() {
            Some('"') => self.string(),
            Some('-' | '0'..='9') => self.number(depth),
            _ => Err(self.expected("a value")),
        }
    }

    fn items<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut items = Vec::new();
        while !self.takes(end) {
            if !items.is_empty() {
                self.take(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn hexadecimal(&mut self) -> Result<Value, String> {
        let Some(length) = self.rest().find('\'') else { return Err(self.expected("a closing '")) };
        let digits = self.rest().get(..length).unwrap_or_default().chars();
        let digits: Option<Vec<u32>> =
            digits.filter(|c| !c.is_whitespace()).map(|digit| digit.to_digit(16)).collect();
        let Some(digits) = digits.filter(|digits| digits.len() % 2 == 0) else {
            return Err(self.expected("an even number of hexadecimal digits"));
        };
        self.at += length + 1;
        Ok(Value::Bytes(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()))
    }

    /// The text of a string is JSON's.
    fn string(&mut self) -> Result<Value, String> {
        let mut strings = serde_json::Deserializer::from_str(self.rest()).into_iter::<String>();
        match strings.next() {
            Some(Ok(text)) => {
                self.at += strings.byte_offset();
                Ok(Value::Text(text))
            }
            _ => Err(self.expected("a string as in JSON")),
        }
    }

    /// A number, or the tag of the value in parentheses behind it.
    fn number(&mut self, depth: usize) -> Result<Value, String> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let digits = rest.get(..length).unwrap_or_default();
        let (sign, unsigned) = digits.strip_prefix('-').map_or((1, digits), |rest| (-1, rest));
        let whole = match unsigned.strip_prefix("0x") {
            Some(hexadecimal) => i128::from_str_radix(hexadecimal, 16),
            None => unsigned.parse::<i128>(),
        };
        let whole = whole.ok().and_then(|whole| Integer::try_from(sign * whole).ok());
        let value = match whole {
            Some(whole) => Value::Integer(whole),
            None => Value::Float(digits.parse().map_err(|_| self.expected("a number"))?),
        };
        self.at += length;
        let Some(Ok(tag)) = whole.map(u64::try_from) else { return Ok(value) };
        if !self.rest().starts_with('(') {
            return Ok(value);
        }
        self.at += 1;
        let inner = self.value(depth + 1)?;
        self.take(")")?;
        Ok(Value::Tag(tag, Box::new(inner)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::diagnostic;

    #[test]
    fn examples_of_the_rfc_are_encoded() {
        // RFC 8949 appendix A.
        for (text, hex) in [
            ("0", "00"),
            ("1000000000000", "1b000000e8d4a51000"),
            ("-1000", "3903e7"),
            ("18446744073709551615", "1bffffffffffffffff"),
            ("1.5", "f93e00"),
            ("-Infinity", "f9fc00"),
            ("[1, [2, 3], [4, 5]]", "8301820203820405"),
            ("{\"a\": 1, \"b\": [2, 3]}", "a26161016162820203"),
            ("{1: 2, 3: 4}", "a201020304"),
            ("h'01020304'", "4401020304"),
            ("1(1363896240)", "c11a514b67b0"),
            ("23(h'01 02 03 04')", "d74401020304"),
            ("\"\\u00fc\"", "62c3bc"),
            ("[true, false, null]", "83f5f4f6"),
            (" {} ", "a0"),
            ("0x10", "10"),
        ] {
            let bytes = encode(text).unwrap();
            let written: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(written, hex, "{text}");
        }
    }

    #[test]
    fn what_is_shown_can_be_sent() {
        let text = "{1: h'00ff', \"t\": [21.5, true, -7]}";
        assert_eq!(diagnostic::notation(&encode(text).unwrap()).unwrap().trim_end(), text);
    }

    #[test]
    fn an_error_names_the_place_and_what_is_expected() {
        for (text, said) in [
            ("", "character 1: a value"),
            ("[1 2]", "character 4: ','"),
            ("{1}", "character 3: ':'"),
            ("h'0", "character 3: a closing '"),
            ("h'0'", "character 3: an even number"),
            ("\"a", "character 1: a string"),
            ("1 2", "character 3: the end"),
            ("12a", "character 1: a number"),
            ("99999999999999999999999999999999999999999 x", "the end"),
        ] {
            let error = encode(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(encode(&"[".repeat(100_000)).unwrap_err().contains("less deeply"));
    }
}
