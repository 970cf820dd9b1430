//! One file per command.

pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod shell;
