//! QEMU's `virt`: RV32, 16550.

use super::register::{read, write};
use core::arch::{asm, global_asm};

const UART: usize = 0x1000_0000;
/// CLINT: `mtimecmp` and `mtime`, which counts at 10 MHz.
const MTIMECMP: usize = 0x0200_4000;
const MTIME: usize = 0x0200_bff8;
const TICKS_PER_MS: u64 = 10_000;

global_asm!(
    ".section .init, \"ax\"",
    ".global _start",
    "_start:",
    "la sp, _stack_start",
    "la t0, 1f",
    "csrw mtvec, t0",
    "call main",
    // mtvec takes a multiple of 4, which code with compressed instructions need not be.
    ".balign 4",
    "1: j {trap}",
    trap = sym trap,
);

extern "C" fn trap() -> ! {
    let place: u32;
    // SAFETY: it reads a register.
    unsafe { asm!("csrr {}, mepc", out(reg) place) };
    crate::semihosting::report("trap at", place);
    crate::semihosting::exit(crate::semihosting::Ending::Failed)
}

fn ticks() -> u64 {
    loop {
        let (high, low) = (read(MTIME + 4), read(MTIME));
        if read(MTIME + 4) == high {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

/// Lets the timer end [`idle`]: its interrupt is enabled, but interrupts as a whole are not.
pub fn start_ticks() {
    // SAFETY: no interrupt is taken.
    unsafe { asm!("csrs mie, {}", in(reg) 1 << 7) };
}

/// Sleeps for a millisecond.
pub fn idle() {
    let until = ticks() + TICKS_PER_MS;
    write(MTIMECMP + 4, u32::MAX);
    write(MTIMECMP, until as u32);
    write(MTIMECMP + 4, (until >> 32) as u32);
    // SAFETY: it changes nothing.
    unsafe { asm!("wfi") };
}

fn read8(offset: usize) -> u8 {
    // SAFETY: the UART has these registers of a byte each.
    unsafe { ((UART + offset) as *const u8).read_volatile() }
}

fn write8(offset: usize, value: u8) {
    // SAFETY: as above.
    unsafe { ((UART + offset) as *mut u8).write_volatile(value) }
}

/// Enables the serial line, with its queue of 16 bytes.
pub fn start_serial() {
    write8(2, 0xc1);
}

/// The next byte that has arrived.
pub fn read_byte() -> Option<u8> {
    (read8(5) & 1 != 0).then(|| read8(0))
}

/// Sends a byte.
pub fn write_byte(byte: u8) {
    while read8(5) & 0x20 == 0 {}
    write8(0, byte);
}
