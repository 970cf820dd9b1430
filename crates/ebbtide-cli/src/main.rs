//! The `ebbtide` command.

mod client;
mod commands;

use clap::{Parser, Subcommand};
use commands::{bench, request, serve};
use ebbtide::Code;
use std::process::ExitCode;

/// Congestion-safe CoAP
#[derive(Parser, Debug)]
#[command(name = "ebbtide", version, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Ask for a resource
    Get(request::RequestArgs),
    /// Replace or create a resource
    Put(request::RequestArgs),
    /// Hand something to a resource
    Post(request::RequestArgs),
    /// Delete a resource
    Delete(request::RequestArgs),
    /// Ask for a part of a resource, named by the payload (RFC 8132)
    Fetch(request::RequestArgs),
    /// Change a part of a resource (RFC 8132)
    Patch(request::RequestArgs),
    Serve(serve::ServeArgs),
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Get(args) => request::run(Code::GET, args),
        Command::Put(args) => request::run(Code::PUT, args),
        Command::Post(args) => request::run(Code::POST, args),
        Command::Delete(args) => request::run(Code::DELETE, args),
        Command::Fetch(args) => request::run(Code::FETCH, args),
        Command::Patch(args) => request::run(Code::PATCH, args),
        Command::Serve(args) => serve::run(args),
        Command::Bench(args) => bench::run(args),
    };
    result.unwrap_or_else(|problem| {
        eprintln!("ebbtide: {problem}");
        problem.exit_code()
    })
}
