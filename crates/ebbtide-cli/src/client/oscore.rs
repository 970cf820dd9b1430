//! Security contexts of OSCORE in files: our own in TOML, and the credentials of aiocoap in JSON.

use super::edhoc;
use super::private_file;
use super::secret_file::{Hex, Wrong, line_of, parse};
use crate::failure::Failure;
use clap::Args;
use ebbtide::edhoc::EdhocCredentials;
use ebbtide::oscore::{Algorithm, ContextError, OscoreContext, OscoreContexts, ParameterError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Protection by OSCORE
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct OscoreArgs {
    /// Protect all messages end to end with the security contexts in this file (OSCORE): TOML, or
    /// the credentials or settings of aiocoap in JSON. Sequence numbers are kept in files next to
    /// it
    #[arg(long, value_name = "FILE")]
    oscore: Option<PathBuf>,
    /// Protect all messages by OSCORE, with security contexts that are made by a handshake (EDHOC)
    /// with the private key and the credentials in this file
    #[arg(long, value_name = "FILE")]
    edhoc: Option<PathBuf>,
}

impl OscoreArgs {
    pub(crate) const fn is_asked_for(&self) -> bool {
        self.oscore.is_some() || self.edhoc.is_some()
    }

    /// The contexts in the file, if there is one.
    pub(crate) fn contexts(&self) -> Result<Option<OscoreContexts>, Failure> {
        let Some(path) = &self.oscore else { return Ok(None) };
        read(path)
            .map(Some)
            .map_err(|error| Failure::usage(format_args!("--oscore {}{error}", path.display())))
    }

    /// The credentials in the file, if there is one.
    pub(crate) fn credentials(&self) -> Result<Option<EdhocCredentials>, Failure> {
        let Some(path) = &self.edhoc else { return Ok(None) };
        edhoc::read(path)
            .map(Some)
            .map_err(|error| Failure::usage(format_args!("--edhoc {}{error}", path.display())))
    }
}

fn read(path: &Path) -> Result<OscoreContexts, Wrong> {
    let text = private_file::read_text(path).map_err(|error| format!(": {error}"))?;
    let (contexts, lines) = if text.trim_start().starts_with('{') {
        (aiocoap(path, &text)?, Vec::new())
    } else {
        own(path, &text)?
    };
    OscoreContexts::new(contexts).map_err(|error| match (lines.get(error.index()), field(&error)) {
        (Some(first), Some(field)) => {
            let line = line_of_field(&text, *first, field);
            format!(":{line}: {field}: {error}")
        }
        (Some(line), None) => format!(":{line}: {error}"),
        (None, _) => format!(": {error}"),
    })
}

/// The field that an error is about.
fn field(error: &ContextError) -> Option<&'static str> {
    let ContextError::Parameter { reason, .. } = error else { return None };
    match reason {
        ParameterError::NoSecret => Some("master-secret"),
        ParameterError::SenderIdTooLong { .. } => Some("sender-id"),
        ParameterError::RecipientIdTooLong { .. } | ParameterError::SameIds => Some("recipient-id"),
        ParameterError::IdContextTooLong => Some("id-context"),
    }
}

/// The line of a field of the context that begins at this line; that line if the field is not at the beginning of one.
fn line_of_field(text: &str, first: usize, field: &str) -> usize {
    let rest = text.lines().skip(first).take_while(|line| !line.trim_start().starts_with('['));
    let mut places = (first + 1..).zip(rest);
    places.find(|(_, line)| line.trim_start().starts_with(field)).map_or(first, |(line, _)| line)
}

/// A file of ours.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextFile {
    context: Vec<toml::Spanned<ContextEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ContextEntry {
    sender_id: Hex,
    recipient_id: Hex,
    master_secret: Hex,
    master_salt: Option<Hex>,
    id_context: Option<Hex>,
    algorithm: Option<AlgorithmName>,
    server: Option<String>,
    name: Option<String>,
    #[serde(default)]
    state: StateKind,
}

/// The state of a context after a restart.
#[derive(Copy, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StateKind {
    /// The same one, whose sequence numbers are kept.
    #[default]
    File,
    /// One with new keys (RFC 8613 appendix B.2).
    Renewed,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct AlgorithmName(Algorithm);

impl TryFrom<String> for AlgorithmName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let known = Algorithm::ALL.into_iter().find(|known| known.name() == text);
        known.map(Self).ok_or_else(|| {
            format!("algorithms are {}", Algorithm::ALL.map(Algorithm::name).join(" and "))
        })
    }
}

/// The contexts of a file of ours, and their lines.
fn own(path: &Path, text: &str) -> Result<(Vec<OscoreContext>, Vec<usize>), Wrong> {
    let line = |at: usize| line_of(text, at);
    let file: ContextFile = parse(text)?;
    if file.context.is_empty() {
        return Err(": it has no [[context]]".to_owned());
    }
    let lines: Vec<usize> = file.context.iter().map(|entry| line(entry.span().start)).collect();
    let mut contexts = Vec::new();
    for (entry, line) in file.context.into_iter().zip(&lines) {
        let entry = entry.into_inner();
        let wrong = |field: &str, error: &dyn Display| {
            format!(":{}: {field}: {error}", line_of_field(text, *line, field))
        };
        let (sender, recipient) = (&entry.sender_id.0, &entry.recipient_id.0);
        let context = OscoreContext::new(&entry.master_secret.0, sender, recipient);
        let mut context = match entry.state {
            StateKind::File => context.state_file(state_file(path, sender, recipient)),
            StateKind::Renewed if entry.id_context.is_some() => {
                return Err(wrong("id-context", &"a context with state = \"renewed\" draws it"));
            }
            StateKind::Renewed => context.renewed(),
        };
        if let Some(Hex(salt)) = &entry.master_salt {
            context = context.salt(salt);
        }
        if let Some(Hex(id_context)) = &entry.id_context {
            context = context.id_context(id_context);
        }
        if let Some(AlgorithmName(algorithm)) = entry.algorithm {
            context = context.algorithm(algorithm);
        }
        if let Some(name) = entry.name {
            context = context.name(name);
        }
        if let Some(server) = entry.server {
            if server.contains("://") && !server.starts_with("coap://") {
                return Err(wrong(
                    "server",
                    &"it is a host, with a port if only that one is meant",
                ));
            }
            context = of_server(context, &server).map_err(|error| wrong("server", &error))?;
        }
        contexts.push(context);
    }
    Ok((contexts, lines))
}

/// The context of a server that is named as in a URI: `[2001:db8::1]:5683`, or with the scheme in front.
fn of_server(context: OscoreContext, server: &str) -> Result<OscoreContext, ebbtide::UriError> {
    let bare = server.strip_prefix("coap://").unwrap_or(server).trim_end_matches(['*', '/']);
    let uri: ebbtide::Uri = format!("coap://{bare}").as_str().try_into()?;
    let has_port = bare.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(context.server(uri.host(), has_port.then_some(uri.port())))
}

/// Where the sequence numbers of a context are kept: next to its file, under the names of its keys.
fn state_file(path: &Path, sender: &[u8], recipient: &[u8]) -> PathBuf {
    let name = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut state = path.to_path_buf().into_os_string();
    state.push(format!(".{}-{}.state", name(sender), name(recipient)));
    state.into()
}

/// Credentials of aiocoap: a map from URIs, or from names of clients, to folders of settings; or
/// such settings themselves.
fn aiocoap(path: &Path, text: &str) -> Result<Vec<OscoreContext>, Wrong> {
    let json = |error: serde_json::Error| format!(":{}: {error}", error.line());
    let whole: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).map_err(json)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    if whole.keys().any(|key| key.starts_with("sender-id")) {
        return Ok(vec![settings(folder)?.state_file(state_file(path, b"", b""))]);
    }
    let mut contexts = Vec::new();
    for (key, value) in &whole {
        let Some(oscore) = value.get("oscore") else { continue };
        let basedir = oscore.get("basedir").and_then(serde_json::Value::as_str);
        let basedir = basedir.ok_or_else(|| format!(": {key}: oscore: basedir is missing"))?;
        let folder = folder.join(basedir);
        let context = settings(&folder)?.state_file(folder.join("ebbtide.state"));
        contexts.push(match key.strip_prefix(':') {
            Some(name) => context.name(name),
            None => of_server(context, key).map_err(|error| format!(": {key}: {error}"))?,
        });
    }
    if contexts.is_empty() {
        return Err(": it has no credentials with oscore".to_owned());
    }
    Ok(contexts)
}

/// A folder with the settings of one context.
fn settings(folder: &Path) -> Result<OscoreContext, Wrong> {
    if folder.join("sequence.json").exists() {
        return Err(format!(
            ": aiocoap has used the context in {}: its numbers may not be used again, share a new secret",
            folder.display()
        ));
    }
    let mut fields: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for name in ["secret.json", "settings.json"] {
        let path = folder.join(name);
        if !path.exists() {
            continue;
        }
        let place = |what: &dyn Display| format!(": {}: {what}", path.display());
        let text = private_file::read_text(&path).map_err(|error| place(&error))?;
        let all: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(&text).map_err(|error| place(&error))?;
        for (key, value) in all {
            let text = value.as_str().map(str::to_owned);
            let (field, value) = match (key.strip_suffix("_hex"), key.strip_suffix("_ascii"), text)
            {
                (Some(field), _, Some(text)) => {
                    let Hex(bytes) =
                        text.try_into().map_err(|error| place(&format!("{key}: {error}")))?;
                    (field.to_owned(), bytes)
                }
                (_, Some(field), Some(text)) => (field.to_owned(), text.into_bytes()),
                (_, _, Some(text)) => (key, text.into_bytes()),
                // The size of their replay window.
                (_, _, None) => continue,
            };
            fields.insert(field, value);
        }
    }
    let place = |what: &dyn Display| format!(": {}: {what}", folder.display());
    let get = |name: &str| fields.get(name).ok_or_else(|| place(&format!("{name} is missing")));
    let mut context = OscoreContext::new(get("secret")?, get("sender-id")?, get("recipient-id")?);
    if fields.get("kdf-hashfun").is_some_and(|name| name != b"sha256") {
        return Err(place(&"kdf-hashfun: only sha256 is supported"));
    }
    if let Some(name) = fields.get("algorithm") {
        let name = String::from_utf8_lossy(name).into_owned();
        let AlgorithmName(algorithm) =
            name.try_into().map_err(|error| place(&format!("algorithm: {error}")))?;
        context = context.algorithm(algorithm);
    }
    if let Some(salt) = fields.get("salt") {
        context = context.salt(salt);
    }
    if let Some(id_context) = fields.get("id-context") {
        context = context.id_context(id_context);
    }
    Ok(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "[[context]]\nsender-id = \"01\"\nrecipient-id = \"\"\nmaster-secret = \"5e5a5e5a\"\n";

    fn error_of(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contexts.toml");
        private_file::write(&path, text);
        let error = read(&path).unwrap_err();
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1, "no state was begun: {error}");
        error
    }

    #[test]
    fn an_error_in_a_file_names_line_and_field_and_never_the_secret() {
        for (text, expected) in [
            (GOOD.replace("5e5a5e5a", "5e5a5e5"), ":4: master-secret: a value is pairs"),
            (GOOD.replace("\"01\"", "1"), ":2: sender-id: invalid type"),
            (GOOD.replace("recipient-id = \"\"\n", ""), "missing field `recipient-id`"),
            (
                GOOD.replace("\"01\"", "\"\""),
                ":3: recipient-id: sender ID and recipient ID are the same",
            ),
            (
                GOOD.replace("\"01\"", "\"0102030405060708\""),
                ":2: sender-id: the ID has more than 7 bytes",
            ),
            (GOOD.replace("5e5a5e5a", ""), ":4: master-secret: the master secret is empty"),
            (
                format!(
                    "{GOOD}\n{}id-context = \"{}\"\n",
                    GOOD.replace("01", "02"),
                    "00".repeat(33)
                ),
                ":10: id-context: the ID context has more than 32 bytes",
            ),
            (
                format!("{GOOD}algorithm = \"ROT13\"\n"),
                ":5: algorithm: algorithms are AES-CCM-16-64-128",
            ),
            (format!("{GOOD}salt = \"00\"\n"), ":5: salt: unknown field `salt`"),
            (format!("{GOOD}state = \"lost\"\n"), ":5: state: unknown variant `lost`"),
            (
                format!("{GOOD}state = \"renewed\"\nid-context = \"00\"\n"),
                ":6: id-context: a context with state",
            ),
            (format!("{GOOD}\n{GOOD}"), ":6: an earlier context has the same recipient ID"),
            (format!("{GOOD}server = \"http://x\"\n"), ":5: server: "),
            (GOOD.replace("= \"5e", "\"5e"), ":4: "),
            (String::new(), "missing field `context`"),
        ] {
            let error = error_of(&text);
            assert!(error.contains(expected) && !error.contains("5e5a5e"), "{error}");
        }
    }

    #[test]
    fn files_of_aiocoap_are_read_unless_aiocoap_has_used_them() {
        let folder = tempfile::tempdir().unwrap();
        let (path, basedir) = (folder.path().join("credentials.json"), folder.path().join("lamp"));
        std::fs::create_dir(&basedir).unwrap();
        private_file::write(&path, r#"{"coap://[::1]:5683/*": {"oscore": {"basedir": "lamp/"}}}"#);
        assert!(read(&path).unwrap_err().contains("secret is missing"));
        let settings = r#"{"sender-id_hex": "01", "recipient-id_ascii": "s", "secret_hex": "5e5a", "window": 32}"#;
        private_file::write(&basedir.join("settings.json"), settings);
        assert!(read(&path).is_ok());
        assert!(basedir.join("ebbtide.state").exists());
        std::fs::write(basedir.join("sequence.json"), "{}").unwrap();
        assert!(read(&path).unwrap_err().contains("aiocoap has used the context"));
    }
}
