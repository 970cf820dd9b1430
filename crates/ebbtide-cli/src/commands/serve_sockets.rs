//! The protocol of systemd's socket activation (sd_listen_fds(3)): sockets that the service manager
//! keeps open while one process follows another.

use crate::failure::Failure;
use nix::libc;
use std::env;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// The first descriptor that is handed over.
const FIRST: RawFd = 3;

/// The sockets that the service manager has handed over to this process. Must be called once, before the program opens
/// anything.
pub(crate) fn handed_over() -> Result<Vec<OwnedFd>, Failure> {
    let number = |name| env::var(name).ok()?.parse::<u32>().ok();
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(Vec::new());
    }
    let count = RawFd::try_from(number("LISTEN_FDS").unwrap_or(0)).unwrap_or(0);
    (FIRST..FIRST.saturating_add(count)).map(take).collect()
}

fn take(descriptor: RawFd) -> Result<OwnedFd, Failure> {
    // SAFETY: fcntl only reads its arguments, and reports a descriptor that is not open.
    #[expect(unsafe_code, reason = "no safe function takes a number that may not be open")]
    let is_open = unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) } == 0;
    if !is_open {
        let why = format_args!("LISTEN_FDS: descriptor {descriptor} is not open");
        return Err(Failure::usage(why));
    }
    // SAFETY: the descriptor is open, the service manager has opened it for this process
    // (LISTEN_PID), and nothing here owns it, because this happens once and before the program
    // opens anything.
    #[expect(unsafe_code, reason = "the descriptor comes as a number")]
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
