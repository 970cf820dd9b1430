//! The `ebbtide` command: one file per command in `commands`.

mod commands;
mod failure;
mod output;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Congestion-safe CoAP, and the testbed that shows which congestion control your network needs.
#[derive(Parser)]
#[command(
    name = "ebbtide",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 the work itself failed, 2 the call was wrong."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(commands::list::ListArgs),
    Run(commands::run::RunArgs),
    Reproduce(commands::reproduce::ReproduceArgs),
    Replay(commands::replay::ReplayArgs),
    Report(commands::report::ReportArgs),
    Completions(commands::shell::CompletionsArgs),
    Man(commands::shell::ManArgs),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Command::List(args) => commands::list::run(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Completions(args) => commands::shell::completions::<Arguments>(&args),
        Command::Man(args) => commands::shell::man::<Arguments>(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
