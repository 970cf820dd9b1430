//! `microbit`: nRF51822 (Cortex-M0).

use super::register::{read, write};
pub use super::systick::idle;

const UART: usize = 0x4000_2000;

/// Starts the ticks; the core has 16 MHz.
pub fn start_ticks() {
    super::systick::start(16_000);
}

/// Enables the serial line.
pub fn start_serial() {
    write(UART + 0x500, 4);
    write(UART, 1);
    write(UART + 0x008, 1);
}

/// The next byte that has arrived.
pub fn read_byte() -> Option<u8> {
    if read(UART + 0x108) == 0 {
        return None;
    }
    write(UART + 0x108, 0);
    Some(read(UART + 0x518) as u8)
}

/// Sends a byte.
pub fn write_byte(byte: u8) {
    write(UART + 0x11c, 0);
    write(UART + 0x51c, byte.into());
    while read(UART + 0x11c) == 0 {}
}
