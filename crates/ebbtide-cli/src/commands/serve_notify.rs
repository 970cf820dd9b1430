//! The protocol of systemd's `Type=notify` (sd_notify(3)): the service is ready, lives, and ends.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager that has started this process.
pub(crate) struct ServiceManager {
    socket: UnixDatagram,
    /// The interval within which it wants a sign of life.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The manager that the environment names, if there is one.
    pub(crate) fn from_environment() -> Option<Self> {
        let socket = connect(&env::var_os("NOTIFY_SOCKET")?).ok()?;
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_ours && *micros > 0);
        Some(Self { socket, watchdog: watchdog.map(Duration::from_micros) })
    }

    /// The service goes on without a manager that goes away or does not read.
    fn send(&self, state: &str) {
        let _ = self.socket.send(state.as_bytes());
    }

    /// Announces that requests are answered from now on, and from then on gives signs of life, as long as the runtime
    /// runs. Must be called within it.
    pub(crate) fn ready(self) {
        self.send("READY=1");
        let Some(interval) = self.watchdog else { return };
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(interval / 3).await;
                self.send("WATCHDOG=1");
            }
        });
    }

    /// Announces that the service ends.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1");
    }
}

fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    match name.as_encoded_bytes().strip_prefix(b"@") {
        None => socket.connect(name)?,
        Some(name) => socket.connect_addr(&abstract_address(name)?)?,
    }
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}
