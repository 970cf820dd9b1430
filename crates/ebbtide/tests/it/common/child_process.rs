//! Other programs that a test runs.

use std::process::Child;

/// A process that ends with the test, whatever becomes of it.
pub(crate) struct ChildProcess(pub(crate) Child);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
