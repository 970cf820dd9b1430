//! Runs the built program.

#[cfg(target_os = "linux")]
pub(crate) mod namespaces;
pub(crate) mod private;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

/// The built-in scenario, to be copied and changed.
pub(crate) const NB_IOT: &str = include_str!("../../../../../scenarios/nb-iot.toml");

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.args(arguments);
    command
}

pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn ebbtide(arguments: &[&str]) -> Answer {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    Answer {
        code: status.code(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// Runs it, expects success, and gives what it printed.
#[track_caller]
pub(crate) fn succeed(arguments: &[&str]) -> String {
    let answer = ebbtide(arguments);
    assert_eq!(answer.code, Some(0), "{arguments:?}: {}", answer.err);
    answer.out
}

/// Runs it, expects exit code 2, nothing on standard output, and every part in the message.
#[track_caller]
pub(crate) fn refuse(arguments: &[&str], parts: &[&str]) {
    let answer = ebbtide(arguments);
    assert_eq!(answer.code, Some(2), "{arguments:?}: {}{}", answer.out, answer.err);
    assert_eq!(answer.out, "", "{arguments:?}");
    for part in parts {
        assert!(answer.err.contains(part), "{arguments:?}: no '{part}' in: {}", answer.err);
    }
}

/// Writes a scenario file, a part of the built-in one replaced, and gives its path.
#[track_caller]
pub(crate) fn changed(folder: &Path, from: &str, to: &str) -> String {
    assert!(NB_IOT.contains(from), "the built-in scenario has no '{from}'");
    let path = folder.join("changed.toml");
    std::fs::write(&path, NB_IOT.replacen(from, to, 1)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The line of the changed file that holds `text`.
#[track_caller]
pub(crate) fn line_of(path: &str, text: &str) -> usize {
    let content = std::fs::read_to_string(path).unwrap();
    1 + content.lines().position(|line| line.contains(text)).unwrap()
}

/// `ebbtide serve` on a port that the system chose, stopped when the test is over.
pub(crate) struct Serving {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
}

impl Serving {
    #[track_caller]
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(command(&["serve", "--bind", "127.0.0.1:0"]).args(arguments))
    }

    /// Starts `ebbtide proxy` on a port that the system chose.
    #[track_caller]
    pub(crate) fn proxy(arguments: &[&str]) -> Self {
        let mut proxy = command(&["proxy", "--bind", "127.0.0.1:0"]);
        Self::spawn_until(proxy.args(arguments), "proxy at coap://")
    }

    /// Starts a command that serves at 127.0.0.1.
    #[track_caller]
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self::spawn_until(command, "serving at coap://")
    }

    /// Starts a command whose first line begins with `start`, which the address follows.
    #[track_caller]
    pub(crate) fn spawn_until(command: &mut Command, start: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut serving = Self { child, lines, address: String::new() };
        serving.address = serving.after(start);
        serving
    }

    /// What follows `start` in the next line that it prints.
    #[track_caller]
    pub(crate) fn after(&mut self, start: &str) -> String {
        let line = self.lines.next().unwrap().unwrap();
        line.strip_prefix(start)
            .unwrap_or_else(|| panic!("'{line}' begins not with {start}"))
            .into()
    }

    /// Its standard error, which must be a pipe.
    pub(crate) fn take_stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().unwrap()
    }

    /// Sends it SIGHUP.
    #[track_caller]
    pub(crate) fn hang_up(&self) {
        let id = self.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    }

    /// Sends it SIGTERM.
    #[track_caller]
    pub(crate) fn terminate(&self) {
        let id = self.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
