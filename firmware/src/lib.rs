//! Ebbtide on microcontrollers: the parts that the programs in `bin/` share.
//!
//! [`driver`] is what a port to another board writes for itself. A [`link`] carries its datagrams, a
//! [`board`] has its clock and its serial line, and an application in [`app`] is what runs on it.
//! Arguments come from QEMU, and what a program reports goes there ([`semihosting`]).
#![no_std]

#[cfg(feature = "endpoint")]
extern crate alloc;

#[cfg(feature = "endpoint")]
pub mod app;
pub mod arguments;
pub mod board;
#[cfg(feature = "endpoint")]
pub mod driver;
pub mod fixed;
pub mod link;
pub mod memory;
pub mod rng;
pub mod semihosting;
#[cfg(target_arch = "arm")]
mod small_copies;

use arguments::Arguments;
use semihosting::{Ending, exit, report};

/// Makes a function of the arguments the program.
#[macro_export]
macro_rules! program {
    ($run:path) => {
        #[unsafe(export_name = "main")]
        extern "C" fn start() -> ! {
            $crate::run($run)
        }
    };
}

/// Prepares the board, runs a program, reports its use of the stack, and leaves QEMU.
pub fn run(program: fn(&Arguments)) -> ! {
    memory::paint_stack();
    board::start_ticks();
    let arguments = Arguments::read();
    program(&arguments);
    report("stack_peak", memory::stack_peak());
    exit(Ending::Done)
}

/// As a product's handler, it does not look at the message, so that nothing that formats one is
/// linked. Feature `locate` says where the panic is.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    match info.location().filter(|_| cfg!(feature = "locate")) {
        Some(place) => {
            semihosting::say(place.file());
            report(": panic in line", place.line());
        }
        None => semihosting::say("panic\n"),
    }
    exit(Ending::Failed)
}
