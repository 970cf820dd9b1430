//! The `ebbtide` command: one file per command in `commands`.

// A closed standard output must be handled as an error; `println!` would panic.
#![warn(clippy::print_stdout)]

mod check;
mod client;
mod commands;
#[cfg(target_os = "linux")]
mod emulate;
mod failure;
mod log;
mod output;
mod settings;
mod text;

use clap::{Parser, Subcommand};
use ebbtide::Code;
use std::process::ExitCode;

/// The version and the build. A packaged build sets `EBBTIDE_VERSION` to its version, commit and
/// date.
const VERSION: &str = match option_env!("EBBTIDE_VERSION") {
    Some(version) => version,
    None => concat!(env!("CARGO_PKG_VERSION"), " (built from source)"),
};

/// Congestion-safe CoAP, and a testbed that shows which congestion control suits your network.
#[derive(Parser)]
#[command(
    name = "ebbtide",
    version = VERSION,
    max_term_width = 100,
    after_help = "Exit codes: 0 success, 1 the work itself failed, 2 an argument was wrong."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Get a resource
    Get(commands::request::RequestArgs),
    /// Replace or create a resource
    Put(commands::request::RequestArgs),
    /// Send a payload to a resource for processing
    Post(commands::request::RequestArgs),
    /// Delete a resource
    Delete(commands::request::RequestArgs),
    /// Get a part of a resource, selected by the payload (RFC 8132)
    Fetch(commands::request::RequestArgs),
    /// Change a part of a resource (RFC 8132)
    Patch(commands::request::RequestArgs),
    Observe(commands::observe::ObserveArgs),
    Ping(commands::ping::PingArgs),
    Discover(commands::discover::DiscoverArgs),
    Serve(commands::serve::ServeArgs),
    Proxy(commands::proxy::ProxyArgs),
    Bench(commands::bench::BenchArgs),
    Check(commands::check::CheckArgs),
    List(commands::list::ListArgs),
    Run(commands::run::RunArgs),
    Play(commands::play::PlayArgs),
    Map(commands::map::MapArgs),
    Fit(commands::fit::FitArgs),
    Reproduce(commands::reproduce::ReproduceArgs),
    Replay(commands::replay::ReplayArgs),
    Emulate(commands::emulate::EmulateArgs),
    Report(commands::report::ReportArgs),
    Export(commands::export::ExportArgs),
    Compact(commands::compact::CompactArgs),
    Completions(commands::shell::CompletionsArgs),
    Man(commands::shell::ManArgs),
}

fn main() -> ExitCode {
    let arguments = match settings::parse::<Arguments>() {
        Ok(arguments) => arguments,
        Err(failure) => return failure.report(),
    };
    let outcome = match arguments.command {
        Command::Get(args) => commands::request::run(Code::GET, args),
        Command::Put(args) => commands::request::run(Code::PUT, args),
        Command::Post(args) => commands::request::run(Code::POST, args),
        Command::Delete(args) => commands::request::run(Code::DELETE, args),
        Command::Fetch(args) => commands::request::run(Code::FETCH, args),
        Command::Patch(args) => commands::request::run(Code::PATCH, args),
        Command::Observe(args) => commands::observe::run(args),
        Command::Ping(args) => commands::ping::run(args),
        Command::Discover(args) => commands::discover::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Proxy(args) => commands::proxy::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Check(args) => commands::check::run(&args),
        Command::List(args) => commands::list::run(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Play(args) => commands::play::run(&args),
        Command::Map(args) => commands::map::run(&args),
        Command::Fit(args) => commands::fit::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Emulate(args) => commands::emulate::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Compact(args) => commands::compact::run(&args),
        Command::Completions(args) => commands::shell::completions::<Arguments>(&args),
        Command::Man(args) => commands::shell::man::<Arguments>(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
