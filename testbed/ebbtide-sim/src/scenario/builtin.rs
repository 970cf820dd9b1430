//! The built-in scenarios.

/// A scenario file compiled into the program.
#[derive(Copy, Clone, Debug)]
pub struct Builtin {
    /// Its name on the command line.
    pub name: &'static str,
    /// The file's text.
    pub toml: &'static str,
}

/// The file of `scenarios/` with this name.
macro_rules! builtin {
    ($name:literal) => {
        Builtin { name: $name, toml: include_str!(concat!("../../scenarios/", $name, ".toml")) }
    };
}

/// All built-in scenarios.
pub const BUILTIN: &[Builtin] = &[
    builtin!("nb-iot"),
    builtin!("container-ship"),
    builtin!("building"),
    builtin!("rcoap-wifi"),
    builtin!("lln-cloud"),
    builtin!("lln-grid"),
    builtin!("power-cut"),
    builtin!("lora-like"),
    builtin!("handover"),
    builtin!("handshake-storm"),
    builtin!("two-bottlenecks"),
    builtin!("firmware"),
    builtin!("lora"),
    builtin!("fleet"),
    builtin!("edrx"),
    builtin!("nb-iot-access"),
    builtin!("store-and-forward"),
    builtin!("mars"),
    builtin!("alarms"),
    builtin!("morning"),
];
