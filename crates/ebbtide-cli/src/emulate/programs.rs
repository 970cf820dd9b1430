//! The programs at the ends of the path, which are started, awaited, and always ended.

use super::clock::Clock;
use crate::failure::Failure;
use ebbtide_core::time::Instant;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// How long a program may take to end after a signal.
const GRACE: Duration = Duration::from_secs(2);
/// How long a server may take until it listens.
const READY: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(10);
/// The longest pause between two checks of a server's ports, each of which makes the kernel visit
/// all of its sockets.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Signals to this process, and its descendants.
pub(crate) struct Programs {
    signals: SignalFd,
}

/// The reason why a wait ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The program ended.
    Program(ExitStatus),
    /// This process received a signal to end.
    Told,
    /// The forwarding, which was watched at the same time, failed.
    Failed,
}

impl Programs {
    /// Takes over the signals. Must be called before other threads start.
    pub(crate) fn new() -> Result<Self, Failure> {
        let mut mask = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD] {
            mask.add(signal);
        }
        mask.thread_block().map_err(Failure::work)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(&mask, flags).map_err(Failure::work)?;
        // Orphaned descendants of a program become our children, so that they can be ended.
        set_child_subreaper(true).map_err(Failure::work)?;
        Ok(Self { signals })
    }

    /// Waits until `program` ends (forever if there is none), until this process receives a signal
    /// to end, or until `has_failed`. A signal that was sent to this process only is passed on.
    pub(crate) fn wait(
        &self,
        mut program: Option<&mut Child>,
        has_failed: impl Fn() -> bool,
    ) -> Result<Ended, Failure> {
        let mut told = 0;
        loop {
            if let Some(child) = &mut program
                && let Some(status) = child.try_wait()?
            {
                return Ok(Ended::Program(status));
            }
            if has_failed() {
                return Ok(Ended::Failed);
            }
            let Some((signal, is_from_terminal)) = self.signal(Duration::from_millis(200))? else {
                continue;
            };
            if signal == Signal::SIGCHLD {
                continue;
            }
            told += 1;
            let Some(child) = &mut program else { return Ok(Ended::Told) };
            // The terminal has sent the signal to the program, too; a program that ignores it is
            // killed at the second signal.
            let signal = if told > 1 { Signal::SIGKILL } else { signal };
            if !is_from_terminal || told > 1 {
                let _ = kill(pid_of(child), signal);
            }
        }
    }

    /// The next signal, and whether the terminal sent it.
    fn signal(&self, wait: Duration) -> Result<Option<(Signal, bool)>, Failure> {
        // From the kernel, not from a process (SI_KERNEL).
        const FROM_KERNEL: i32 = 0x80;
        let mut fds = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(Failure::work(error)),
        }
        let Some(info) = self.signals.read_signal().map_err(Failure::work)? else {
            return Ok(None);
        };
        let signal = i32::try_from(info.ssi_signo).ok().and_then(|n| Signal::try_from(n).ok());
        Ok(signal.map(|signal| (signal, info.ssi_code == FROM_KERNEL)))
    }

    /// Waits until `server` listens on a port, or has ended.
    pub(crate) fn wait_until_it_listens(&self, server: &mut Child) -> Result<(), Failure> {
        let clock = Clock::start();
        let mut pause = STEP;
        while !listens(server) {
            let ended = server.try_wait()?;
            let wait = if ended.is_some() { Duration::ZERO } else { pause };
            // Checked first: Ctrl-C in a terminal ends the server, too.
            if self.is_told(wait)? {
                return Err(Failure::work("interrupted"));
            }
            if let Some(status) = ended {
                return Err(Failure::work(format_args!("--server ended immediately: {status}")));
            }
            if clock.now() >= Instant::ZERO + READY {
                return Err(Failure::work(format_args!(
                    "--server listens on no UDP or TCP port after {} s",
                    READY.as_secs()
                )));
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    /// Whether this process receives a signal to end before `wait` passes or a program ends.
    fn is_told(&self, mut wait: Duration) -> Result<bool, Failure> {
        while let Some((signal, _)) = self.signal(wait)? {
            if signal != Signal::SIGCHLD {
                return Ok(true);
            }
            wait = Duration::ZERO;
        }
        Ok(false)
    }

    /// Ends a program: with a signal to terminate, and after a while by killing it.
    pub(crate) fn end(&self, program: &mut Child) -> Result<(), Failure> {
        let _ = kill(pid_of(program), Signal::SIGTERM);
        let mut waited = Duration::ZERO;
        while waited < GRACE {
            if program.try_wait()?.is_some() {
                return Ok(());
            }
            self.signal(STEP)?;
            waited += STEP;
        }
        program.kill()?;
        program.wait()?;
        Ok(())
    }

    /// Ends all remaining descendants of the programs.
    pub(crate) fn end_descendants(&self) {
        // Children of ended processes become ours, so a bounded number of rounds follows.
        for _ in 0..100 {
            let children = children();
            if children.is_empty() {
                return;
            }
            for child in children {
                let _ = kill(child, Signal::SIGKILL);
            }
            while matches!(
                waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)),
                Ok(status) if status != WaitStatus::StillAlive
            ) {}
            // A process needs a moment to end.
            let _ = self.signal(STEP);
        }
    }
}

/// Starts a program with unblocked signals. This process blocks the signals for which it waits,
/// and a program inherits that from the thread that starts it.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| spawn_here(command));
        thread.join().map_err(|_| io::Error::other("a thread panicked"))?
    })
}

/// Starts a program from a thread that does nothing else, whose signals are unblocked.
pub(crate) fn spawn_here(command: &mut Command) -> io::Result<Child> {
    SigSet::all().thread_unblock()?;
    command.spawn()
}

/// The exit code that a shell would report.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn pid_of(child: &Child) -> Pid {
    // A process ID is a positive i32.
    Pid::from_raw(child.id() as i32)
}

/// Whether a program has a listening socket, according to its namespace.
fn listens(program: &Child) -> bool {
    ["udp", "udp6", "tcp", "tcp6"].iter().any(|table| {
        let path = format!("/proc/{}/net/{table}", program.id());
        // The first line contains the column names.
        fs::read_to_string(path).is_ok_and(|text| text.lines().nth(1).is_some())
    })
}

/// Our children, whichever thread started them.
fn children() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")));
    let lists: Vec<String> = lists.collect::<io::Result<_>>().unwrap_or_default();
    let numbers = lists.iter().flat_map(|list| list.split_ascii_whitespace());
    numbers.filter_map(|number| number.parse().ok().map(Pid::from_raw)).collect()
}
