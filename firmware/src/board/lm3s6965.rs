//! `lm3s6965evb`: Cortex-M3, PL011.

use super::register::{read, write};
pub use super::systick::idle;

const UART: usize = 0x4000_c000;

/// Starts the ticks. The reset value of RCC gives 12.5 MHz.
pub fn start_ticks() {
    super::systick::start(12_500);
}

/// Enables the serial line, with its queue of 16 bytes.
pub fn start_serial() {
    write(UART + 0x2c, 0x70);
    write(UART + 0x30, 0x301);
}

/// The next byte that has arrived.
pub fn read_byte() -> Option<u8> {
    (read(UART + 0x18) & 0x10 == 0).then(|| read(UART) as u8)
}

/// Sends a byte.
pub fn write_byte(byte: u8) {
    while read(UART + 0x18) & 0x20 != 0 {}
    write(UART, byte.into());
}
