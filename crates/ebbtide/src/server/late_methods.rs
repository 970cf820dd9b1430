//! The methods of a resource that are answered later.

use ebbtide_core::wire::Code;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// See the [module](self). Whether a handler returns a future is known once it has done so. A request of such a method
/// needs a place among the handlers at work before its handler is called.
#[derive(Clone, Debug, Default)]
pub(super) struct LateMethods(Arc<AtomicU8>);

impl LateMethods {
    /// A handler of this method has returned a future.
    pub(super) fn note(&self, method: Code) {
        self.0.fetch_or(bit(method), Ordering::Relaxed);
    }

    pub(super) fn has(&self, method: Code) -> bool {
        self.0.load(Ordering::Relaxed) & bit(method) != 0
    }
}

/// Methods have the codes 0.01 to 0.07.
fn bit(method: Code) -> u8 {
    1_u8.checked_shl(method.0.into()).unwrap_or(0)
}
