//! A PID namespace for the processes of an emulation, which end with the emulation in any case.
//!
//! The kernel ends all processes of a PID namespace when its first process ends
//! (pid_namespaces(7)). The first process is a `cat` that reads from a pipe of ours; it ends when
//! we close the pipe, and when we are killed.

use super::programs;
use super::thread::in_thread;
use crate::failure::Failure;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A PID namespace. All processes in it end when it is dropped.
pub(crate) struct PidNamespace {
    first: Child,
    namespace: File,
}

impl PidNamespace {
    /// Creates a new PID namespace.
    ///
    /// # Errors
    ///
    /// Returns an error if namespaces cannot be created here, or if there is no `cat`.
    pub(crate) fn new() -> Result<Self, Failure> {
        let made: io::Result<Self> = in_thread(|| {
            unshare(CloneFlags::CLONE_NEWPID)?;
            let mut command = Command::new("cat");
            // It must not receive a terminal's signals.
            command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
            let first = programs::spawn_here(&mut command)?;
            let namespace = File::open(format!("/proc/{}/ns/pid", first.id()))?;
            Ok(Self { first, namespace })
        })?;
        made.map_err(|error| Failure::work(format_args!("cannot create a PID namespace: {error}")))
    }

    /// Places all processes that this thread starts from now on in this namespace. The thread
    /// cannot start threads any more.
    pub(crate) fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.namespace, CloneFlags::CLONE_NEWPID)?)
    }
}

impl Drop for PidNamespace {
    fn drop(&mut self) {
        drop(self.first.stdin.take());
        // Errors cannot be reported from `drop`; the exit status is irrelevant.
        let _ = self.first.wait();
    }
}
