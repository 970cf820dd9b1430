//! What commands print: tables for people, JSON for programs, progress for the patient.

pub(crate) mod json;
mod mesh;
pub(crate) mod progress;
pub(crate) mod table;
