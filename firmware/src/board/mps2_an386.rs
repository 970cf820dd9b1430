//! `mps2-an386`: Cortex-M4, CMSDK's UART.

use super::register::{read, write};
pub use super::systick::idle;

const UART: usize = 0x4000_4000;

/// Starts the ticks; the core has 25 MHz.
pub fn start_ticks() {
    super::systick::start(25_000);
}

/// Enables the serial line.
pub fn start_serial() {
    write(UART + 0x10, 16);
    write(UART + 0x08, 0b11);
}

/// The next byte that has arrived.
pub fn read_byte() -> Option<u8> {
    (read(UART + 0x04) & 0b10 != 0).then(|| read(UART) as u8)
}

/// Sends a byte.
pub fn write_byte(byte: u8) {
    while read(UART + 0x04) & 0b01 != 0 {}
    write(UART, byte.into());
}
