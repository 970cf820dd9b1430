//! The boards: a core that sleeps for a millisecond, and a serial line.

mod register;
#[cfg(not(feature = "virt"))]
mod systick;

#[cfg(feature = "lm3s6965")]
mod lm3s6965;
#[cfg(feature = "lm3s6965")]
use lm3s6965 as chosen;
#[cfg(feature = "microbit")]
mod microbit;
#[cfg(feature = "microbit")]
use microbit as chosen;
#[cfg(feature = "mps2-an386")]
mod mps2_an386;
#[cfg(feature = "mps2-an386")]
use mps2_an386 as chosen;
#[cfg(feature = "virt")]
mod virt;
#[cfg(feature = "virt")]
use virt as chosen;

pub use chosen::{idle, read_byte, start_serial, start_ticks, write_byte};
use ebbtide_core::time::Instant;

/// The present time. A product reads a timer.
#[must_use]
pub fn now() -> Instant {
    Instant::from_nanos(crate::semihosting::elapsed_ns())
}

/// Some thousand cycles.
pub fn pause() {
    for _ in 0..500 {
        // SAFETY: it does nothing.
        unsafe { core::arch::asm!("nop") };
    }
}
