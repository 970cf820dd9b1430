//! Files in TOML with secrets, which no error message shows.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// An error in a file, which follows the file's name.
pub(super) type Wrong = String;

/// Bytes as hexadecimal digits.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Hex(pub(super) Vec<u8>);

impl TryFrom<String> for Hex {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let byte = |[a, b]: &[u8; 2]| Some(digit(*a)? << 4 | digit(*b)?);
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        bytes.filter(|_| rest.is_empty()).map(Self).ok_or("a value is pairs of hexadecimal digits")
    }
}

/// Parses TOML with secrets.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Wrong> {
    toml::from_str(text).map_err(|error| {
        // The message of the library shows the whole line, which may have a secret.
        let Some(span) = error.span() else { return format!(": {}", error.message()) };
        let line = line_of(text, span.start);
        let of_line = text.lines().nth(line - 1).and_then(|line| line.split_once('='));
        let field = of_line.map_or(String::new(), |(field, _)| format!("{}: ", field.trim()));
        format!(":{line}: {field}{}", error.message())
    })
}

/// The line of a position in a text.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
