//! What QEMU does for a program: arguments, output, and the end (Arm's and RISC-V's semihosting).

const SYS_WRITE0: usize = 0x04;
const SYS_GET_CMDLINE: usize = 0x15;
const SYS_EXIT: usize = 0x18;
const SYS_ELAPSED: usize = 0x30;

/// How a program ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// ADP_Stopped_ApplicationExit: QEMU returns 0.
    Done = 0x20026,
    /// ADP_Stopped_RunTimeErrorUnknown: QEMU returns 1.
    Failed = 0x20023,
}

#[cfg(target_arch = "arm")]
fn call(operation: usize, argument: usize) -> usize {
    let mut result = operation;
    // SAFETY: QEMU reads and writes only the memory that the operation names.
    unsafe { core::arch::asm!("bkpt #0xAB", inout("r0") result, in("r1") argument) };
    result
}

#[cfg(target_arch = "riscv32")]
fn call(operation: usize, argument: usize) -> usize {
    let mut result = operation;
    // SAFETY: as above. QEMU knows the call by these three instructions, uncompressed and within a page.
    unsafe {
        core::arch::asm!(
            ".balign 16", ".option push", ".option norvc",
            "slli x0, x0, 0x1f", "ebreak", "srai x0, x0, 7",
            ".option pop", inout("a0") result, in("a1") argument,
        );
    }
    result
}

/// Writes a text.
pub fn say(text: &str) {
    write(text.as_bytes());
}

fn write(text: &[u8]) {
    let mut buffer = [0; 64];
    for piece in text.chunks(buffer.len() - 1) {
        buffer[..piece.len()].copy_from_slice(piece);
        buffer[piece.len()] = 0;
        call(SYS_WRITE0, buffer.as_ptr() as usize);
    }
}

/// Writes a line with a figure, `NAME NUMBER`.
pub fn report(name: &str, number: u32) {
    let mut digits = *b"           \n";
    let mut at = digits.len() - 1;
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    say(name);
    write(&digits[at - 1..]);
}

/// Reads the command line, and returns its length.
pub(crate) fn command_line(buffer: &mut [u8]) -> usize {
    let mut block = [buffer.as_mut_ptr() as usize, buffer.len()];
    match call(SYS_GET_CMDLINE, block.as_mut_ptr() as usize) {
        0 => block[1].min(buffer.len()),
        _ => 0,
    }
}

/// Nanoseconds since QEMU began, by the host's clock: on a busy host a core in QEMU misses interrupts, so a
/// clock that counts them is late.
#[must_use]
pub fn elapsed_ns() -> u64 {
    let mut ticks = 0u64;
    call(SYS_ELAPSED, &raw mut ticks as usize);
    ticks
}

/// Leaves QEMU.
pub fn exit(ending: Ending) -> ! {
    call(SYS_EXIT, ending as usize);
    loop {
        core::hint::spin_loop();
    }
}
