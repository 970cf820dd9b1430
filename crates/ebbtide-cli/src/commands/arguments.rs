//! Arguments of requests and observations.

use ebbtide::OptionNumber;

/// Parses a block size, a power of two (RFC 7959 section 2.2).
pub(crate) fn block_size(text: &str) -> Result<u16, String> {
    let size = text.parse().ok().filter(|size: &u16| size.is_power_of_two());
    size.filter(|size| (16..=1024).contains(size))
        .ok_or_else(|| "a block has 16, 32, 64, 128, 256, 512 or 1024 bytes".to_owned())
}

/// Parses an option: `NUMBER,TEXT` or `NUMBER,0xHEX`.
pub(crate) fn option(text: &str) -> Result<(OptionNumber, Vec<u8>), String> {
    let wrong = || format!("'{text}' is not NUMBER,TEXT or NUMBER,0xHEX");
    let (number, value) = text.split_once(',').unwrap_or((text, ""));
    let number = OptionNumber(number.parse().map_err(|_| wrong())?);
    let value = match value.strip_prefix("0x") {
        None => value.as_bytes().to_vec(),
        Some(hex) => {
            let digits: Option<Vec<u8>> =
                hex.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
            let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or_else(wrong)?;
            digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        }
    };
    if number.allows_length(value.len()) {
        return Ok((number, value));
    }
    let (min, max) = number.length_bounds().unwrap_or_default();
    Err(format!("{number} has {min} to {max} bytes, not {}", value.len()))
}
