//! The arguments of a program: `key=value`, separated by spaces.

use crate::semihosting;

/// The command line that QEMU passes.
pub struct Arguments {
    text: [u8; Self::LENGTH],
    length: usize,
}

impl Arguments {
    const LENGTH: usize = 192;

    /// Reads the command line.
    #[must_use]
    pub fn read() -> Self {
        let mut text = [0; Self::LENGTH];
        let length = semihosting::command_line(&mut text);
        Self { text, length }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.text[..self.length]
            .split(|byte| *byte == b' ')
            .find_map(|argument| argument.strip_prefix(key.as_bytes())?.strip_prefix(b"="))
    }

    /// The value of a key as a number, or `default` if it is absent.
    #[must_use]
    pub fn number(&self, key: &str, default: u32) -> u32 {
        let digits = self.get(key).unwrap_or_default();
        let digits = digits.iter().filter(|digit| digit.is_ascii_digit());
        digits
            .map(|digit| u32::from(digit - b'0'))
            .reduce(|number, digit| number.wrapping_mul(10).wrapping_add(digit))
            .unwrap_or(default)
    }
}
