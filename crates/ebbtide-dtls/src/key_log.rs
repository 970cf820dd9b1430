//! Lines of an NSS key log, with which Wireshark decrypts a capture.

use crate::keys::MasterSecret;
use alloc::string::String;

/// Receives the lines of an NSS key log.
pub type KeyLog = dyn FnMut(&str) + Send;

/// `CLIENT_RANDOM <client random> <master secret>`, both in hexadecimal.
pub(crate) fn line(client_random: &[u8; 32], master: &MasterSecret) -> String {
    let mut line = String::from("CLIENT_RANDOM ");
    hex(&mut line, client_random);
    line.push(' ');
    hex(&mut line, master.as_bytes());
    line
}

/// Without `core::fmt`, which a device would link for this alone.
fn hex(line: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            line.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
        }
    }
}
