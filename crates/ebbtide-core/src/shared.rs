//! Shared ownership: counted atomically where the target can, as Cortex-M0 and RISC-V without extension A cannot.

#[cfg(not(target_has_atomic = "ptr"))]
pub(crate) use alloc::rc::Rc as Shared;
#[cfg(target_has_atomic = "ptr")]
pub(crate) use alloc::sync::Arc as Shared;
