//! Runs a shell command for states as they come, beside the client, which goes on answering its server meanwhile.

use crate::failure::Failure;
use bytes::Bytes;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The next state for the command.
#[derive(Debug, Default)]
struct NextState {
    latest: Option<Bytes>,
    is_over: bool,
}

/// A command, and the thread that runs it: once for each state, but of those that come while it
/// runs only for the latest.
#[derive(Debug)]
pub(crate) struct StateCommand {
    waiting: Arc<(Mutex<NextState>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl StateCommand {
    /// # Errors
    ///
    /// Returns an error if no thread can be started.
    pub(crate) fn start(command: &str) -> Result<Self, Failure> {
        let waiting = Arc::<(Mutex<NextState>, Condvar)>::default();
        let (shared, command) = (waiting.clone(), command.to_owned());
        let work = move || {
            while let Some(state) = next(&shared) {
                if let Err(error) = run(&command, &state) {
                    eprintln!("ebbtide: --exec {command}: {error}");
                }
            }
        };
        let thread = std::thread::Builder::new().name("exec".into()).spawn(work);
        let thread = thread.map_err(|error| Failure::work(format_args!("--exec: {error}")))?;
        Ok(Self { waiting, thread: Some(thread) })
    }

    /// Runs it for this state.
    pub(crate) fn run(&self, state: Bytes) {
        self.change(|waiting| waiting.latest = Some(state));
    }

    fn change(&self, change: impl FnOnce(&mut NextState)) {
        let (waiting, changed) = &*self.waiting;
        change(&mut waiting.lock().unwrap_or_else(PoisonError::into_inner));
        changed.notify_one();
    }
}

impl Drop for StateCommand {
    /// Waits for the command of the last state.
    fn drop(&mut self) {
        self.change(|waiting| waiting.is_over = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn next((waiting, changed): &(Mutex<NextState>, Condvar)) -> Option<Bytes> {
    let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let is_idle = |waiting: &mut NextState| waiting.latest.is_none() && !waiting.is_over;
    let mut waiting = changed.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner);
    waiting.latest.take()
}

fn run(command: &str, state: &[u8]) -> std::io::Result<()> {
    let mut shell = Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = shell.stdin.take() {
        // A command need not read it.
        let _ = input.write_all(state);
    }
    shell.wait().map(drop)
}
