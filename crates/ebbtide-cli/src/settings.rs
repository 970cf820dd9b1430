//! Options of a command from a file in TOML and from variables, for commands with `--config`.
//!
//! Both become arguments, so that they have the checks and messages of the command line: an option
//! that is not given there is taken from its variable, and otherwise from the file.

use crate::failure::Failure;
use clap::{Arg, ArgAction, Args, Command, Parser};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The option that names the file.
const CONFIG: &str = "config";

/// The file with options
#[derive(Args, Debug, Clone)]
pub(crate) struct SettingsArgs {
    /// Take options that are not given here from this file in TOML: names without dashes, as in
    /// bind = ["127.0.0.1:5683"], writable = true. A variable goes before it, such as EBBTIDE_BIND
    /// for --bind (several values with commas between them) and EBBTIDE_CONFIG for this option
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Parses the command line, with what a file and variables add to it. Prints help and mistakes as clap does.
///
/// # Errors
///
/// Returns an error if the file is wrong, or an option that it or a variable gives.
pub(crate) fn parse<P: Parser>() -> Result<P, Failure> {
    let given: Vec<OsString> = env::args_os().collect();
    match complete(&P::command(), &given, &|name| env::var_os(name))? {
        None => Ok(P::parse_from(given)),
        Some(completed) => {
            // What is wrong without the file is not its fault.
            if let Err(error) = P::command().try_get_matches_from(&given)
                && !is_for_want_of_an_option(&error)
            {
                error.exit();
            }
            P::try_parse_from(completed.arguments).map_err(|error| {
                let text = error.render().to_string();
                let text = text
                    .trim_start_matches("error: ")
                    .split("\n\nUsage")
                    .next()
                    .unwrap_or("")
                    .trim();
                Failure::usage(format_args!("{}: {text}", completed.sources))
            })
        }
    }
}

fn is_for_want_of_an_option(error: &clap::Error) -> bool {
    error.kind() == clap::error::ErrorKind::MissingRequiredArgument
}

/// Arguments of which some were not given.
#[derive(Debug)]
struct Completed {
    arguments: Vec<OsString>,
    /// Where the others come from.
    sources: String,
}

/// The arguments with those of the file and of variables; `None` if these add nothing.
fn complete(
    program: &Command,
    given: &[OsString],
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<Completed>, Failure> {
    let Some(command) = given
        .get(1)
        .and_then(|name| program.find_subcommand(name))
        .filter(|command| command.get_arguments().any(|arg| arg.get_id() == CONFIG))
    else {
        return Ok(None);
    };
    let behind = given.get(2..).unwrap_or_default();
    let is_given = |arg: &Arg| behind.iter().any(|argument| names(argument, arg));
    let path =
        value_of(behind, CONFIG).or_else(|| variable(&variable_of(CONFIG))).map(PathBuf::from);
    let mut added = Vec::new();
    let mut sources = Vec::new();
    let mut table = match &path {
        None => Table::new(),
        Some(path) => {
            sources.push(path.display().to_string());
            read(path)?
        }
    };
    for arg in command.get_arguments().filter(|arg| arg.get_id() != CONFIG) {
        let Some(long) = arg.get_long() else { continue };
        let in_file = table.remove(long);
        let name = variable_of(long);
        if is_given(arg) {
            continue;
        }
        if let Some(value) = variable(&name) {
            from_variable(arg, long, &value, &name, &mut added)?;
            sources.push(name);
        } else if let (Some(value), Some(path)) = (in_file, &path) {
            from_file(arg, long, &value, path, &mut added)?;
        }
    }
    if let (Some(unknown), Some(path)) = (table.keys().next(), &path) {
        let known: Vec<_> = command.get_arguments().filter_map(Arg::get_long).collect();
        let hint = ebbtide_sim::scenario::did_you_mean(unknown, known);
        let path = path.display();
        return Err(Failure::usage(format_args!("{path}: '{unknown}' is not an option{hint}")));
    }
    if added.is_empty() {
        return Ok(None);
    }
    let arguments = given.iter().take(2).cloned().chain(added).chain(behind.iter().cloned());
    Ok(Some(Completed { arguments: arguments.collect(), sources: sources.join(", ") }))
}

fn read(path: &Path) -> Result<Table, Failure> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format_args!("--config {shown}: {error}")))?;
    text.parse().map_err(|error: toml::de::Error| Failure::usage(format_args!("{shown}: {error}")))
}

/// `EBBTIDE_MAX_RATE` of `max-rate`.
fn variable_of(long: &str) -> String {
    format!("EBBTIDE_{}", long.to_uppercase().replace('-', "_"))
}

/// Whether an argument names this option: `--bind`, `--bind=ADDR`, an alias, `-v`.
fn names(argument: &OsStr, arg: &Arg) -> bool {
    let bytes = argument.as_encoded_bytes();
    if let Some(name) = bytes.strip_prefix(b"--") {
        let name = name.split(|byte| *byte == b'=').next().unwrap_or_default();
        let aliases = arg.get_all_aliases().unwrap_or_default();
        return arg.get_long().into_iter().chain(aliases).any(|long| long.as_bytes() == name);
    }
    let short = arg.get_short().and_then(|short| u8::try_from(short).ok());
    short.is_some_and(|short| bytes.len() > 1 && bytes.starts_with(&[b'-', short]))
}

fn value_of(behind: &[OsString], long: &str) -> Option<OsString> {
    let mut behind = behind.iter();
    while let Some(argument) = behind.next() {
        let text = argument.to_string_lossy();
        let Some(rest) = text.strip_prefix("--").and_then(|text| text.strip_prefix(long)) else {
            continue;
        };
        if rest.is_empty() {
            return behind.next().cloned();
        }
        if let Some(value) = rest.strip_prefix('=') {
            return Some(value.into());
        }
    }
    None
}

fn is_flag(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

fn may_be_alone(arg: &Arg) -> bool {
    is_flag(arg) || arg.get_num_args().is_some_and(|count| count.min_values() == 0)
}

fn push(added: &mut Vec<OsString>, long: &str, value: Option<&OsStr>) {
    let mut argument = OsString::from("--");
    argument.push(long);
    if let Some(value) = value {
        argument.push("=");
        argument.push(value);
    }
    added.push(argument);
}

fn from_variable(
    arg: &Arg,
    long: &str,
    value: &OsStr,
    name: &str,
    added: &mut Vec<OsString>,
) -> Result<(), Failure> {
    let text = value.to_string_lossy();
    match (&*text, is_flag(arg)) {
        ("true" | "1", true) => push(added, long, None),
        ("false" | "0" | "", true) => {}
        (other, true) => {
            return Err(Failure::usage(format_args!("{name}={other}: it is true or false")));
        }
        (texts, false) if matches!(arg.get_action(), ArgAction::Append) => {
            texts.split(',').for_each(|text| push(added, long, Some(text.trim().as_ref())));
        }
        (_, false) => push(added, long, Some(value)),
    }
    Ok(())
}

fn from_file(
    arg: &Arg,
    long: &str,
    value: &Value,
    path: &Path,
    added: &mut Vec<OsString>,
) -> Result<(), Failure> {
    let wrong = |wanted: &str| {
        let (path, kind) = (path.display(), value.type_str());
        Err(Failure::usage(format_args!("{path}: {long}: it is {wanted}, not of the type {kind}")))
    };
    match value {
        Value::Boolean(false) if may_be_alone(arg) => {}
        Value::Boolean(true) if may_be_alone(arg) => push(added, long, None),
        _ if is_flag(arg) => return wrong("true or false"),
        Value::String(text) => push(added, long, Some(text.as_ref())),
        Value::Integer(number) => push(added, long, Some(number.to_string().as_ref())),
        Value::Float(number) => push(added, long, Some(number.to_string().as_ref())),
        Value::Array(values) if matches!(arg.get_action(), ArgAction::Append) => {
            for value in values {
                let Some(text) = value.as_str() else { return wrong("a list of texts") };
                push(added, long, Some(text.as_ref()));
            }
        }
        _ => return wrong("a text or a number"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, Subcommand};

    #[derive(Parser, Debug)]
    struct Program {
        #[command(subcommand)]
        command: Commands,
    }

    #[derive(Subcommand, Debug)]
    enum Commands {
        Serve(ServeArgs),
        Other,
    }

    #[derive(Args, Debug)]
    struct ServeArgs {
        #[arg(long)]
        bind: Vec<String>,
        #[arg(long)]
        writable: bool,
        #[arg(long, default_value_t = 1)]
        workers: u16,
        #[arg(short, long, visible_alias = "folder")]
        dir: Option<PathBuf>,
        #[arg(long)]
        multicast: Option<Option<String>>,
        #[command(flatten)]
        settings: SettingsArgs,
    }

    fn added(
        file: &str,
        given: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.toml");
        fs::write(&path, file).unwrap();
        let config = format!("--config={}", path.display());
        let all = ["ebbtide", "serve", &config].into_iter().chain(given.iter().copied());
        let all: Vec<OsString> = all.map(OsString::from).collect();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let completed = complete(&Program::command(), &all, &variable);
        let completed = completed.map_err(|failure| format!("{failure:?}"))?;
        let arguments = completed.map_or(all, |completed| completed.arguments);
        Program::try_parse_from(&arguments).map_err(|error| error.to_string())?;
        let arguments =
            arguments.into_iter().skip(2).map(|argument| argument.into_string().unwrap());
        Ok(arguments.filter(|argument| !argument.starts_with("--config")).collect())
    }

    #[test]
    fn the_command_line_goes_before_variables_and_these_before_the_file() {
        let file = "bind = [\"a:1\", \"b:2\"]\nwritable = true\nworkers = 2\ndir = \"x\"\nmulticast = true\n";
        assert_eq!(
            added(file, &[], &[]).unwrap(),
            ["--bind=a:1", "--bind=b:2", "--writable", "--workers=2", "--dir=x", "--multicast"]
        );
        let variables = [("EBBTIDE_BIND", "c:3, d:4"), ("EBBTIDE_WRITABLE", "false")];
        assert_eq!(
            added(file, &["--workers", "3", "-dy"], &variables).unwrap(),
            ["--bind=c:3", "--bind=d:4", "--multicast", "--workers", "3", "-dy"]
        );
        assert_eq!(added("dir = \"x\"", &["--folder=y"], &[]).unwrap(), ["--folder=y"]);
        assert_eq!(added("multicast = \"eth0\"", &[], &[]).unwrap(), ["--multicast=eth0"]);
        assert!(added("multicast = false", &[], &[]).unwrap().is_empty());
    }

    #[test]
    fn a_mistake_names_the_file_the_option_and_what_it_takes() {
        for (file, expected) in [
            ("bnd = [\"a:1\"]", "'bnd' is not an option"),
            ("writable = 1", "writable: it is true or false, not of the type integer"),
            ("bind = [1]", "bind: it is a list of texts"),
            ("workers = [1]", "workers: it is a text or a number, not of the type array"),
            ("bind = ", "serve.toml: TOML parse error at line 1"),
        ] {
            let error = added(file, &[], &[]).unwrap_err();
            assert!(error.contains(expected) && error.contains("serve.toml"), "{error}");
        }
        let error = added("", &[], &[("EBBTIDE_WRITABLE", "maybe")]).unwrap_err();
        assert!(error.contains("EBBTIDE_WRITABLE=maybe: it is true or false"), "{error}");
        assert!(
            added("workers = \"many\"", &[], &[]).unwrap_err().contains("'--workers <WORKERS>'")
        );
    }

    #[test]
    fn commands_without_the_option_are_left_alone() {
        let given = ["ebbtide", "other"].map(OsString::from);
        let variable = |_: &str| Some(OsString::from("x"));
        assert!(complete(&Program::command(), &given, &variable).unwrap().is_none());
        let none = ["ebbtide"].map(OsString::from);
        assert!(complete(&Program::command(), &none, &variable).unwrap().is_none());
    }
}
