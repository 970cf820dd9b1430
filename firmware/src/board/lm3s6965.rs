//! `lm3s6965evb`: Cortex-M3, PL011.

use super::register::{read, write};
pub use super::systick::idle;

const UART: usize = 0x4000_c000;
/// The interrupts that this controller has, none of which is enabled.
const INTERRUPTS: usize = 44;

unsafe extern "C" {
    fn DefaultHandler();
}

// SAFETY: cortex-m-rt places the handlers of interrupts by these names behind those of exceptions.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [unsafe extern "C" fn(); INTERRUPTS] = [DefaultHandler; INTERRUPTS];

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
