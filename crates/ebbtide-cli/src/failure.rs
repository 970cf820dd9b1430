//! Errors of a command and their exit codes.

use crate::text::paragraph;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write, stderr};
use std::process::ExitCode;

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An argument was wrong: exit code 2.
    Usage(String),
    /// The work itself failed: exit code 1.
    Work(String),
    /// A program that was run ended with this exit code and has printed the reason itself.
    Exit(u8),
    /// The reader of the output has closed it (`| head`): no message, exit code 0.
    OutputClosed,
}

impl Failure {
    pub(crate) fn usage(error: impl Display) -> Self {
        Self::Usage(error.to_string())
    }

    pub(crate) fn work(error: impl Display) -> Self {
        Self::Work(error.to_string())
    }

    /// Prints the message and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                print(message);
                ExitCode::from(2)
            }
            Self::Work(message) => {
                print(message);
                ExitCode::from(1)
            }
            Self::Exit(code) => ExitCode::from(*code),
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

/// Prints an error; an error output that is closed changes nothing.
fn print(message: &str) {
    let _ = write_error(&mut stderr().lock(), message, stderr().is_terminal());
}

/// Writes an error, for a terminal in lines of 80 columns. A message of several lines, such as the place of a
/// mistake in a file, stays as it is, and so does what a program reads.
fn write_error(out: &mut impl Write, message: &str, to_terminal: bool) -> io::Result<()> {
    match to_terminal && !message.contains('\n') {
        true => paragraph(out, "ebbtide: ", message),
        false => writeln!(out, "ebbtide: {message}"),
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Work(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::write_error;

    fn written(message: &str, to_terminal: bool) -> String {
        let mut out = Vec::new();
        write_error(&mut out, message, to_terminal).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_long_error_is_wrapped_for_a_terminal_and_only_there() {
        let message = "--bind: the address is not one of this machine ".repeat(4);
        let wrapped = written(message.trim(), true);
        assert!(wrapped.lines().count() > 2, "{wrapped}");
        assert!(wrapped.lines().all(|line| line.len() <= 80), "{wrapped}");
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("         ")), "{wrapped}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&wrapped), words(&format!("ebbtide: {message}")));
        assert_eq!(written(message.trim(), false).lines().count(), 1);
    }

    #[test]
    fn the_lines_of_an_error_that_shows_a_file_stay_as_they_are() {
        let message = "lte.toml: line 3\n  | rate = \"fast\"\n  |         ^ expected a rate";
        assert_eq!(written(message, true), format!("ebbtide: {message}\n"));
    }
}
