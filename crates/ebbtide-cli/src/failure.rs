//! Errors of a command and their exit codes.

use std::fmt::Display;
use std::io;
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
                eprintln!("ebbtide: {message}");
                ExitCode::from(2)
            }
            Self::Work(message) => {
                eprintln!("ebbtide: {message}");
                ExitCode::from(1)
            }
            Self::Exit(code) => ExitCode::from(*code),
            Self::OutputClosed => ExitCode::SUCCESS,
        }
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
