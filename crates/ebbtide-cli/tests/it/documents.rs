//! The commands that documents show, run as a reader pastes them: a block at a time, a block that
//! serves in a terminal of its own. Where a document shows the output, it is compared, `[..]`
//! standing for anything within a line, `...` for any lines.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const README: &str = include_str!("../../../../README.md");
const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");
const CLI: &str = include_str!("../../../../docs/cli.md");
const TCP: &str = include_str!("../../../../docs/tcp.md");
const DTLS: &str = include_str!("../../../../docs/dtls.md");
const OSCORE: &str = include_str!("../../../../docs/oscore.md");
const METRICS: &str = include_str!("../../../../docs/metrics.md");

/// A reader's folder and terminals.
struct Reader {
    folder: tempfile::TempDir,
    server: Option<Server>,
}

/// What a command that serves has printed, up to the addresses at which it does.
struct Server {
    child: Child,
    /// Scheme and address, such as `coap` and `127.0.0.1:40001`.
    addresses: Vec<(String, String)>,
    printed: Vec<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reader {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A clone's scenarios, of which documents copy one.
        std::fs::create_dir(folder.path().join("scenarios")).unwrap();
        std::fs::write(folder.path().join("scenarios/nb-iot.toml"), crate::common::NB_IOT).unwrap();
        Self { folder, server: None }
    }

    fn shell(&self, script: &str) -> Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_ebbtide")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env("PATH", path).current_dir(self.folder.path());
        shell
    }

    /// Runs a command that serves, at ports that are free: the documents' may be taken.
    fn serve(&mut self, command: &str) {
        self.server = None;
        let mut command =
            command.replace(":5683", ":0").replace(":5684", ":0").replace(":9683", ":0");
        let is_secure = command.contains("--psk-file") || command.contains("--cert");
        if !command.contains("--bind") {
            command += " --bind 127.0.0.1:0";
            command += if is_secure { " --bind coaps://127.0.0.1:0" } else { "" };
        }
        let expected = command.matches("--bind ").count() + command.matches("--metrics ").count();
        let mut shell = self.shell(&format!("exec {command}"));
        let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let printed: Vec<String> = lines.take(expected).map(Result::unwrap).collect();
        let address = |line: &String| {
            let (scheme, address) = line.strip_prefix("serving at ")?.split_once("://")?;
            Some((scheme.to_owned(), address.to_owned()))
        };
        let addresses: Vec<_> = printed.iter().filter_map(address).collect();
        assert_eq!(addresses.len(), command.matches("--bind ").count(), "{command}: {printed:?}");
        self.server = Some(Server { child, addresses, printed });
    }

    /// The text with the addresses of the server that runs.
    fn here(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (scheme, address) in self.server.iter().flat_map(|server| &server.addresses) {
            let port = address.rsplit_once(':').unwrap().1;
            for host in ["127.0.0.1", "localhost"] {
                for end in ['/', ' ', '\n'] {
                    let shown = format!("{scheme}://{host}{end}");
                    text = text.replace(&shown, &format!("{scheme}://{host}:{port}{end}"));
                }
            }
            if scheme == "coap" {
                text = text.replace("127.0.0.1:5683", address);
            }
        }
        text
    }

    /// What a command prints, standard error included.
    fn run(&self, command: &str) -> (bool, String) {
        let script = format!("{{ {}\n}} 2>&1", self.here(&format!("{command}\n")));
        let output = self.shell(&script).output().unwrap();
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
    let mut reader = Reader::new();
    reader.serve("ebbtide serve");
    let mut seen = 0;
    for block in CLI.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for example in block.split("$ ").skip(1) {
            let (command, shown) = example.split_once('\n').unwrap();
            let printed = if shown.starts_with("serving at ") {
                let mut other = Reader::new();
                other.serve(command);
                other.server.as_ref().unwrap().printed.join("\n")
            } else {
                reader.run(command).1
            };
            // A port that was chosen stands for the documents'.
            let serves = shown.starts_with("serving at ");
            let shown = if serves { without_ports(shown) } else { reader.here(shown) };
            let printed = if serves { without_ports(&printed) } else { printed };
            let shown: Vec<&str> = shown.lines().collect();
            let lines: Vec<&str> = printed.lines().collect();
            assert!(are_like(&shown, &lines), "$ {command}\n{printed}\nshown is:\n{shown:#?}");
            seen += 1;
        }
    }
    assert!(seen >= 16, "{seen} examples");
}

/// Addresses without their ports.
fn without_ports(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "127.0.0.1" + part.trim_start_matches(|digit: char| digit.is_ascii_digit())
    })
}

/// The blocks of commands of a section: indented ones, and those marked as `sh`.
fn blocks(section: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    // Within a fence: whether it is one of commands.
    let mut fence = None;
    for line in section.lines() {
        let command = match fence {
            None => line.strip_prefix("    "),
            Some(of_commands) => Some(line).filter(|_| of_commands),
        };
        if let Some(language) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language == "sh") };
            blocks.push(String::new());
        } else if let Some(command) = command {
            let block = blocks.last_mut().unwrap();
            block.push_str(command);
            block.push('\n');
        } else {
            blocks.push(String::new());
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Runs the blocks of a section as a reader does, and gives what its commands of `ebbtide` printed.
fn paste(document: &str, heading: &str) -> Vec<String> {
    let mut reader = Reader::new();
    let document = format!("\n{document}");
    let section = document.split(&format!("\n{heading}\n")).nth(1).unwrap();
    // Up to the next heading.
    let section = section.split("\n#").next().unwrap();
    let mut outputs = Vec::new();
    for block in blocks(section) {
        let block = block.replace("\\\n", " ");
        if block.starts_with("ebbtide serve") {
            assert_eq!(block.lines().count(), 1, "after it nothing that is pasted runs:\n{block}");
            reader.serve(block.trim_end());
            outputs.push(String::new());
            continue;
        }
        assert!(
            !block.contains("serve &"),
            "it may not listen yet when the next line runs:\n{block}"
        );
        // A loop is one command. The program is built, and clients of other implementations are tested elsewhere.
        let is_loop = block.contains("\nfor ");
        let lines: Vec<&str> = if is_loop { vec![&block] } else { block.lines().collect() };
        let elsewhere = |line: &str| line.starts_with("coap-client") || line.starts_with("cargo ");
        for command in lines.into_iter().filter(|line| !elsewhere(line)) {
            let (succeeded, printed) = reader.run(command);
            let is_ours = command.starts_with("ebbtide ");
            assert!(succeeded && !(is_ours && printed.is_empty()), "{command}\n{printed}");
            if is_ours {
                outputs.push(printed);
            }
        }
    }
    outputs
}

#[test]
fn the_readmes_commands_for_real_endpoints_work_as_they_are_pasted() {
    assert_eq!(paste(README, "## Real endpoints").len(), 5);
}

#[test]
fn the_readmes_commands_that_judge_a_network_name_a_control() {
    let outputs = paste(README, "## Judge your network");
    assert!(matches!(&outputs[..], [printed] if printed.contains("\nUse ")), "{outputs:?}");
}

#[test]
fn the_tutorials_commands_for_real_endpoints_work_as_they_are_pasted() {
    assert_eq!(paste(TUTORIAL, "## 3. Talk to a real endpoint").len(), 3);
}

/// Whether the program is there that makes certificates, which must be so in CI.
fn has_openssl() -> bool {
    let found = Command::new("openssl").arg("version").output().is_ok();
    assert!(found || std::env::var_os("CI").is_none(), "openssl is missing");
    if !found {
        println!("skipped: openssl is missing");
    }
    found
}

#[test]
fn the_commands_for_tcp_and_tls_work_as_they_are_pasted() {
    if !has_openssl() {
        return;
    }
    assert_eq!(paste(TCP, "# CoAP over TCP, TLS and WebSockets").len(), 4);
}

#[test]
fn the_commands_for_dtls_with_keys_work_as_they_are_pasted() {
    assert_eq!(paste(DTLS, "## Keys").len(), 2);
}

#[test]
fn the_commands_for_oscore_work_as_they_are_pasted() {
    assert_eq!(paste(OSCORE, "## Keys").len(), 2);
}

#[test]
fn the_commands_for_edhoc_work_as_they_are_pasted() {
    if !has_openssl() {
        return;
    }
    assert_eq!(paste(OSCORE, "## Keys by EDHOC").len(), 2);
}

#[test]
fn the_commands_for_dtls_with_certificates_work_as_they_are_pasted() {
    if !has_openssl() {
        return;
    }
    assert_eq!(paste(DTLS, "## Certificates").len(), 2);
}

#[test]
fn the_command_for_metrics_works_as_it_is_pasted() {
    assert_eq!(paste(METRICS, "# Metrics").len(), 1);
}

#[test]
fn every_command_is_in_the_document() {
    let help = crate::common::succeed(&["--help"]);
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
