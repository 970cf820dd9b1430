//! The scenarios that come with the program.

/// A scenario file compiled into the program.
#[derive(Copy, Clone, Debug)]
pub struct Builtin {
    /// Its name on the command line.
    pub name: &'static str,
    /// The file's text.
    pub toml: &'static str,
}

/// All of them.
pub const BUILTIN: &[Builtin] =
    &[Builtin { name: "nb-iot", toml: include_str!("../../../../scenarios/nb-iot.toml") }];
