//! What ends the sleep of a Cortex-M: an interrupt every millisecond.

use super::register::write;
use crate::semihosting::{Ending, exit, report};
use cortex_m_rt::exception;

#[exception]
fn SysTick() {}

#[exception]
unsafe fn HardFault(frame: &cortex_m_rt::ExceptionFrame) -> ! {
    report("hard fault at", frame.pc());
    exit(Ending::Failed)
}

/// Starts it, by the core's frequency in kHz.
pub(super) fn start(kilohertz: u32) {
    write(0xe000_e014, kilohertz - 1);
    write(0xe000_e018, 0);
    // Processor clock, interrupt, enabled.
    write(0xe000_e010, 0b111);
}

/// Sleeps until the next interrupt, at most a millisecond.
pub fn idle() {
    // SAFETY: it changes nothing.
    unsafe { core::arch::asm!("wfi") };
}
