//! The processes of an emulation, which end with it whatever becomes of it.
//!
//! They live in a process namespace, and the kernel ends all of one when its first process ends
//! (pid_namespaces(7)). That one is a `cat` which reads from a pipe of ours: it ends when we close the pipe, and
//! when we are killed.

use super::namespace::in_thread;
use super::programs;
use crate::failure::Failure;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A process namespace. All in it ends when it is dropped.
pub(crate) struct PidNamespace {
    first: Child,
    namespace: File,
}

impl PidNamespace {
    /// A new one.
    ///
    /// # Errors
    ///
    /// If namespaces cannot be made here, or there is no `cat`.
    pub(crate) fn new() -> Result<Self, Failure> {
        let made: io::Result<Self> = in_thread(|| {
            unshare(CloneFlags::CLONE_NEWPID)?;
            let mut command = Command::new("cat");
            // A terminal's signals are not for it.
            command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
            let first = programs::spawn_here(&mut command)?;
            let namespace = File::open(format!("/proc/{}/ns/pid", first.id()))?;
            Ok(Self { first, namespace })
        })?;
        made.map_err(|error| Failure::work(format_args!("no process namespace: {error}")))
    }

    /// Processes that this thread starts from now on live here. It cannot start threads any more.
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
