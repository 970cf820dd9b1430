//! Panics of handlers: a bug in one handler must not stop the server for other clients.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The payload of a handler's panic.
pub(crate) struct CaughtPanic(Box<dyn Any + Send>);

impl CaughtPanic {
    /// Lets it go on.
    pub(super) fn resume(self) -> ! {
        resume_unwind(self.0)
    }
}

impl fmt::Display for CaughtPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.downcast_ref::<&str>().copied();
        let text = text.or_else(|| self.0.downcast_ref::<String>().map(String::as_str));
        f.write_str(text.unwrap_or("no message"))
    }
}

/// Calls a handler and catches its panic. State that the handler shares with other calls stays as
/// the panic left it, and a mutex that the handler had locked is poisoned.
pub(super) fn catch<R>(call: impl FnOnce() -> R) -> Result<R, CaughtPanic> {
    catch_unwind(AssertUnwindSafe(call)).map_err(CaughtPanic)
}
