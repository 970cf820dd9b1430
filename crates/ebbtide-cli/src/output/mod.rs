//! What commands print: tables for people, JSON for programs, progress for the patient.

#[cfg(target_os = "linux")]
pub(crate) mod emulation;
pub(crate) mod json;
pub(crate) mod progress;
pub(crate) mod table;
