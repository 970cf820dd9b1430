//! Shared ownership, which on cores without atomic operations stays on one core.

#[cfg(not(target_has_atomic = "ptr"))]
pub(crate) use alloc::rc::Rc as Arc;
#[cfg(target_has_atomic = "ptr")]
pub(crate) use alloc::sync::Arc;
