//! Registers of peripherals.

/// Reads a register.
pub(super) fn read(address: usize) -> u32 {
    // SAFETY: the boards name only registers that exist.
    unsafe { (address as *const u32).read_volatile() }
}

/// Writes a register.
pub(super) fn write(address: usize, value: u32) {
    // SAFETY: as above.
    unsafe { (address as *mut u32).write_volatile(value) }
}
