//! The peers' programs: found, started, stopped.

use super::relay::{Trouble, relay};
use ebbtide::Client;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

pub(crate) const EBBTIDE: &str = env!("CARGO_BIN_EXE_ebbtide");

/// A relay that repeats everything.
pub(crate) const REPEATING: Trouble = Trouble { lost: 0, repeated: 100, late: 0, damaged: 0 };
/// A relay that loses a tenth each way.
pub(crate) const LOSING: Trouble = Trouble { lost: 10, repeated: 5, late: 10, damaged: 0 };

/// A program that is stopped when the test is over.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a program whose first line says that it serves.
    pub(crate) fn ready(program: impl AsRef<OsStr>, args: &[&str]) -> (Self, String) {
        let mut command = Command::new(program);
        command.args(args);
        Self::started(command)
    }

    /// As [`Self::ready`].
    pub(crate) fn started(mut command: Command) -> (Self, String) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let running = Self(child);
        let first = lines.next().expect("it serves").unwrap();
        // What it says later must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        (running, first)
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Starts a program that says nothing when it serves.
    pub(crate) fn silent(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

/// A peer that `interop/build.sh` has built.
pub(crate) struct Peer(PathBuf);

impl Peer {
    pub(crate) fn find(name: &str) -> Option<Self> {
        let target = Path::new(EBBTIDE).parent()?.parent()?;
        let program = target.join("interop").join(name).join("peer");
        present(name, program.exists()).then_some(Self(program))
    }

    pub(crate) fn program(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// The Python in whose environment it is.
    pub(crate) fn python(&self) -> String {
        self.0.with_file_name("bin").join("python").to_str().unwrap().to_owned()
    }

    /// Starts its server.
    pub(crate) fn serve(&self, host: &str) -> (Running, SocketAddr) {
        let address = free_address(host);
        let (running, _) = Running::ready(&self.0, &["server", &address.port().to_string(), host]);
        (running, address)
    }

    /// Lets its client ask `server` for `what`, which `interop/README.md` names.
    pub(crate) async fn ask(&self, server: SocketAddr, what: &str) {
        let output = output(&self.0, &["client", &format!("coap://{server}"), what]).await;
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("all answered"), "{said}\n{errors}");
    }

    /// As [`Self::ask`], behind a relay.
    pub(crate) async fn ask_through(&self, trouble: Trouble, server: SocketAddr, what: &str) {
        self.ask(relay(server, trouble, 4).await, what).await;
    }
}

/// Runs a program to its end.
pub(crate) async fn output(program: impl AsRef<OsStr>, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args);
    output_of(command).await
}

/// Runs a command to its end, without any input.
pub(crate) async fn output_of(mut command: Command) -> Output {
    command.stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// What `ebbtide` says.
pub(crate) async fn ebbtide(args: &[&str]) -> String {
    let output = output(EBBTIDE, args).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ebbtide {args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// An address that is free now.
pub(crate) fn free_address(host: &str) -> SocketAddr {
    let host: IpAddr = host.parse().unwrap();
    UdpSocket::bind((host, 0)).unwrap().local_addr().unwrap()
}

/// Waits for a server that does not say when it serves.
pub(crate) async fn answers_pings(client: &Client, uri: &str) {
    let pinged = async {
        while client.ping(uri).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), pinged).await.expect("the server answers pings");
}

/// Whether a peer is there. On a person's machine a missing one is skipped.
pub(crate) fn present(name: &str, is: bool) -> bool {
    let ci = std::env::var_os("CI").is_some();
    assert!(is || !ci, "{name} is missing: interop/build.sh {name}");
    if !is {
        // Past the capture of the test harness, which hides what a passing test prints.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("skipped: {name} is missing; interop/build.sh {name} brings it\n").as_bytes(),
        );
    }
    is
}
