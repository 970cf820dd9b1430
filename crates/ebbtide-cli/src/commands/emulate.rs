//! `ebbtide emulate`: real programs with a scenario's link between them.

use clap::Args;
use std::path::PathBuf;

/// Run programs with a modelled link between them (Linux)
///
/// COMMAND runs at the devices' end: in a network namespace whose only way out is the link. At
/// 10.83.0.1 it reaches this machine behind the link or, with --server, the namespace in which the
/// server runs. Its own addresses are 10.83.1.1 and the following ones. With --server, on links with an MTU of
/// 1280 bytes or more, the same are fd00:a:53::1, and fd00:a:53:1::1 and the following ones.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: COMMAND's own, 128 + N if signal N ended it; 1 if the emulation \
    failed or was not valid, 2 if an argument was wrong.\n\n\
    Example: ebbtide emulate --link nb-iot --server 'ebbtide serve' -- ebbtide get coap://10.83.0.1/test"
)]
pub(crate) struct EmulateArgs {
    /// A scenario whose network is used: a built-in one (see `ebbtide list scenarios`) or a TOML
    /// file
    #[arg(long, value_name = "NAME|FILE")]
    link: String,
    /// Set a key of the scenario, such as buffer=2500 or errors=low
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of delays and losses [default: the scenario's]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Addresses on the devices' side, from 10.83.1.1 on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    hosts: u32,
    /// Make a TAP device with this name at the devices' end, to which a device with its own IP
    /// stack attaches, such as QEMU's. Its address follows those of --hosts: 10.83.1.2, behind the
    /// router 10.83.1.1 (fd00:a:53:1::2 and fe80::1)
    #[arg(long, value_name = "NAME", value_parser = interface_name)]
    tap: Option<String>,
    /// Make a serial line with SLIP (RFC 1055) at the devices' end. A device opens the terminal
    /// $EBBTIDE_SLIP; its address $EBBTIDE_SLIP_HOST follows those of --hosts and --tap, as its
    /// IPv6 address does
    #[arg(long)]
    slip: bool,
    /// A command line (for `sh -c`) that runs in a namespace of its own behind the link; COMMAND
    /// starts when the server listens
    #[arg(long, value_name = "COMMAND LINE")]
    server: Option<String>,
    /// Use other addresses than 10.83.0.0/16 and fd00:a:53::/48: two numbers, such as 10.84
    #[arg(long, value_name = "A.B", default_value = "10.83", value_parser = subnet)]
    subnet: (u8, u8),
    /// Without namespaces and privileges: pass datagrams between a UDP port and a target
    #[arg(long, value_name = "LISTEN=TARGET", conflicts_with_all = ["hosts", "server", "slip", "subnet", "tap"])]
    relay: Option<String>,
    /// Write a packet capture (pcapng) of both ends
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Print the summary as one JSON object on standard output, after the output of COMMAND
    #[arg(long)]
    json: bool,
    /// The command to run at the devices' end
    #[arg(last = true, required_unless_present = "relay", value_name = "COMMAND")]
    command: Vec<String>,
}

fn subnet(text: &str) -> Result<(u8, u8), String> {
    let parsed = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed.ok_or_else(|| format!("'{text}' is not two numbers from 0 to 255, such as 10.84"))
}

fn interface_name(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // Linux has names of at most 15 bytes.
    match is_plain && (1..=15).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => Err(format!("'{text}' is not 1 to 15 letters and digits, such as tap0")),
    }
}

/// Runs the programs.
///
/// # Errors
///
/// Returns an error if an argument is wrong, or if a requirement is missing or not permitted; the
/// message states the remedy. COMMAND's exit code is passed on.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &EmulateArgs) -> Result<(), crate::failure::Failure> {
    Err(crate::failure::Failure::work(
        "emulate: needs Linux, whose network namespaces and TUN devices it uses",
    ))
}

#[cfg(target_os = "linux")]
pub(crate) use linux::run;

#[cfg(target_os = "linux")]
mod linux;
