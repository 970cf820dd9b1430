//! Links the core into a program that has neither std nor, unless `alloc` is set, an allocator.
//!
//! A crate below that links std brings a second panic handler; one that allocates asks for a
//! global allocator. Either is an error here. Compiled by `ci.sh no-std`, never run.
#![no_std]

use ebbtide_core as _;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[cfg(alloc)]
mod alloc {
    use core::alloc::{GlobalAlloc, Layout};

    struct Nothing;

    // SAFETY: it never hands out memory.
    unsafe impl GlobalAlloc for Nothing {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            core::ptr::null_mut()
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[global_allocator]
    static NOTHING: Nothing = Nothing;
}
