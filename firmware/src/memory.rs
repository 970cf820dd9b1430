//! The heap and the stack, with their peaks.

/// The byte pattern of stack that was never used.
const PAINT: u32 = 0xc0de_cafe;

unsafe extern "C" {
    static mut __sheap: u32;
    static _stack_start: u32;
}

/// Fills the memory between the static data and the stack, so that [`stack_peak`] sees how far the stack came.
#[inline(never)]
pub(crate) fn paint_stack() {
    let here = 0u32;
    // Below this frame, and what an interrupt may have put there.
    let end = &raw const here as usize - 128;
    let mut at = &raw mut __sheap;
    while (at as usize) < end {
        // SAFETY: nothing else uses the memory between `__sheap` and the stack.
        unsafe {
            at.write_volatile(PAINT);
            at = at.add(1);
        }
    }
}

/// The largest number of bytes that the stack has had.
#[must_use]
pub fn stack_peak() -> u32 {
    let mut at = &raw const __sheap;
    // SAFETY: it ends at the first word that the stack has overwritten, at the latest at this function's frame.
    while unsafe { at.read_volatile() } == PAINT {
        // SAFETY: as above.
        at = unsafe { at.add(1) };
    }
    (&raw const _stack_start as usize - at as usize) as u32
}

#[cfg(feature = "endpoint")]
pub use heap::{heap_peak, heap_used, init_heap};

#[cfg(feature = "endpoint")]
mod heap {
    use core::alloc::{GlobalAlloc, Layout};
    use core::cell::UnsafeCell;
    use core::mem::MaybeUninit;
    use core::ptr::NonNull;
    use linked_list_allocator::Heap;

    /// The size of the heap's arena in bytes.
    #[cfg(feature = "microbit")]
    const ARENA: usize = 6 * 1024;
    #[cfg(not(feature = "microbit"))]
    const ARENA: usize = 24 * 1024;

    /// A first-fit heap that remembers its peak.
    struct Metered(UnsafeCell<Meter>);

    struct Meter {
        heap: Heap,
        peak: usize,
    }

    // SAFETY: there is one core and one thread, and no interrupt handler allocates.
    unsafe impl Sync for Metered {}

    #[global_allocator]
    static HEAP: Metered = Metered(UnsafeCell::new(Meter { heap: Heap::empty(), peak: 0 }));

    // SAFETY: `Heap` keeps the contract of the trait, and calls do not overlap.
    unsafe impl GlobalAlloc for Metered {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: see `Sync`.
            let meter = unsafe { &mut *self.0.get() };
            let place = meter.heap.allocate_first_fit(layout);
            meter.peak = meter.peak.max(meter.heap.used());
            place.map_or(core::ptr::null_mut(), NonNull::as_ptr)
        }

        unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
            // SAFETY: see `Sync`; the caller returns what `alloc` gave it, which is not null.
            unsafe { (*self.0.get()).heap.deallocate(NonNull::new_unchecked(place), layout) };
        }
    }

    /// Gives the heap its memory. To be called once, before anything allocates.
    pub fn init_heap() {
        #[unsafe(link_section = ".uninit.heap")]
        static mut MEMORY: [MaybeUninit<u64>; ARENA / 8] = [MaybeUninit::uninit(); ARENA / 8];
        // SAFETY: the memory is used by nothing else, and for ever.
        unsafe { (*HEAP.0.get()).heap.init((&raw mut MEMORY).cast(), ARENA) };
    }

    /// The number of bytes of the heap in use.
    #[must_use]
    pub fn heap_used() -> u32 {
        // SAFETY: see `Sync`.
        unsafe { (*HEAP.0.get()).heap.used() as u32 }
    }

    /// The largest number of bytes in use until now.
    #[must_use]
    pub fn heap_peak() -> u32 {
        // SAFETY: see `Sync`.
        unsafe { (*HEAP.0.get()).peak as u32 }
    }
}
