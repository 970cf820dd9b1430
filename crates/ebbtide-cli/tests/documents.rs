//! The README's and docs/cli.md's commands, run as they stand: their output is compared with what
//! the documents show, `[..]` standing for anything within a line, `...` for any lines.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use common::Serving;
use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../../README.md");
const TUTORIAL: &str = include_str!("../../../docs/tutorial.md");
const CLI: &str = include_str!("../../../docs/cli.md");

/// Where the documents' server is, and where it is here.
struct Place {
    server: Serving,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { server: Serving::start(&[]), folder: tempfile::tempdir().unwrap() }
    }

    /// Port 5683 may be taken: the documents' server is at another one.
    fn here(&self, text: &str) -> String {
        text.replace("coap://127.0.0.1/", &format!("coap://{}/", self.server.address))
            .replace("coap://127.0.0.1 ", &format!("coap://{} ", self.server.address))
            .replace("127.0.0.1:5683", &self.server.address)
    }

    /// What a command prints, standard error included.
    fn run(&self, command: &str) -> (bool, String) {
        let programs = Path::new(env!("CARGO_BIN_EXE_ebbtide")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{{ {}; }} 2>&1", self.here(command))]);
        let output = shell.env("PATH", path).current_dir(self.folder.path()).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }
}

/// Whether a line is as shown: the parts between `[..]` are found in their order.
fn is_like(shown: &str, line: &str) -> bool {
    let mut parts = shown.split("[..]");
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut open = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        open = part.is_empty();
    }
    open || rest.is_empty()
}

fn are_like(shown: &[&str], lines: &[&str]) -> bool {
    match (shown, lines) {
        ([], []) => true,
        (["...", shown @ ..], _) => (0..=lines.len()).any(|skip| are_like(shown, &lines[skip..])),
        ([first, shown @ ..], [line, lines @ ..]) => is_like(first, line) && are_like(shown, lines),
        _ => false,
    }
}

#[test]
fn the_examples_of_the_command_line_print_what_the_document_shows() {
    let place = Place::new();
    let mut seen = 0;
    for block in CLI.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for example in block.split("$ ").skip(1) {
            let (command, shown) = example.split_once('\n').unwrap();
            // It would serve for ever; the test's own server stands for it.
            if shown.starts_with("serving at ") {
                continue;
            }
            let (_, printed) = place.run(command);
            let shown = place.here(shown);
            let shown: Vec<&str> = shown.lines().collect();
            let lines: Vec<&str> = printed.lines().collect();
            assert!(are_like(&shown, &lines), "$ {command}\n{printed}\nshown is:\n{shown:#?}");
            seen += 1;
        }
    }
    assert!(seen >= 15, "{seen} examples");
}

/// Runs the commands of a section, for which the test's own server stands.
fn run_commands(document: &str, heading: &str, at_least: usize) {
    let place = Place::new();
    let section = document.split(heading).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let commands = section.lines().filter_map(|line| line.strip_prefix("    ebbtide "));
    let commands: Vec<&str> = commands.filter(|command| !command.starts_with("serve ")).collect();
    assert!(commands.len() >= at_least, "{commands:?}");
    for command in commands {
        let (succeeded, printed) = place.run(&format!("ebbtide {command}"));
        assert!(succeeded && !printed.is_empty(), "ebbtide {command}\n{printed}");
    }
}

#[test]
fn the_readmes_commands_for_real_endpoints_work() {
    run_commands(README, "## Real endpoints", 4);
}

#[test]
fn the_tutorials_commands_for_real_endpoints_work() {
    run_commands(TUTORIAL, "## 3. Talk to a real endpoint", 2);
}

#[test]
fn every_command_is_in_the_document() {
    let help = common::succeed(&["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| line.starts_with("  "));
    // A line that is indented further continues the description of a command.
    let commands = commands.filter(|line| !line.starts_with("   "));
    for name in commands.filter_map(|line| line.split_whitespace().next()) {
        let in_heading = |line: &str| {
            line.strip_prefix("## ").is_some_and(|names| names.split(", ").any(|n| n == name))
        };
        let elsewhere = ["help", "man", "completions"].contains(&name);
        assert!(elsewhere || CLI.lines().any(in_heading), "docs/cli.md has no section '{name}'");
    }
}

#[test]
fn shown_lines_match_with_gaps_only_where_they_are_marked() {
    assert!(is_like("a [..] c", "a b c") && is_like("[..]", "") && is_like("a[..]", "a b"));
    assert!(!is_like("a [..] c", "a b d") && !is_like("a", "a b") && !is_like("b", "a b"));
    assert!(are_like(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(!are_like(&["a", "d"], &["a", "b", "d"]));
}
