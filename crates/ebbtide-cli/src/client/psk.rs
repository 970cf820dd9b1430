//! Identities and pre-shared keys on the command line, and in files.

use super::private_file;
use crate::failure::Failure;
use clap::Args;
use ebbtide::ClientConfig;
use ebbtide::dtls::{Credentials, DtlsBind, KeyLogger, Psk};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The longest supported identity.
const MAX_IDENTITY: usize = 128;

/// Our identity, with coaps
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct PskArgs {
    /// Our identity, for coaps
    #[arg(short = 'u', long = "identity", value_name = "IDENTITY")]
    identity: Option<String>,
    /// The pre-shared key of that identity, for coaps: text, or 0x and hexadecimal digits. Other users of
    /// this machine can see it: better use --psk-file
    #[arg(short = 'k', long = "psk", value_name = "KEY", requires = "identity")]
    psk: Option<String>,
    /// A file with our identity and its pre-shared key, for coaps: a line IDENTITY:KEY, or several of which
    /// --identity chooses one
    #[arg(long, value_name = "FILE", conflicts_with = "psk")]
    psk_file: Option<PathBuf>,
    /// Append the secrets of DTLS sessions to this file (NSS format: Wireshark decrypts a capture with
    /// them)
    #[arg(long, value_name = "FILE")]
    keylog: Option<PathBuf>,
}

impl PskArgs {
    /// The identity and the key in a file, which has one alone.
    pub(crate) fn of_file(path: Option<PathBuf>) -> Self {
        Self { psk_file: path, ..Self::default() }
    }

    /// Applies them to a client's configuration.
    pub(crate) fn apply(&self, mut config: ClientConfig) -> Result<ClientConfig, Failure> {
        if let Some(credentials) = self.credentials()? {
            config = config.credentials(credentials);
        }
        Ok(config.key_log(key_log(self.keylog.as_deref())?))
    }

    /// Our identity and its key.
    fn credentials(&self) -> Result<Option<Credentials>, Failure> {
        if let Some(identity) = &self.identity {
            check_identity(identity).map_err(|error| wrong("--identity", &error))?;
        }
        match (&self.identity, &self.psk, &self.psk_file) {
            (None, None, None) => Ok(None),
            (Some(identity), Some(key), _) => {
                let psk = parse_key(key).map_err(|error| wrong("--psk", &error))?;
                Ok(Some(Credentials::new(identity, psk)))
            }
            (identity, None, Some(path)) => {
                let (identity, psk) = own_key(path, identity.as_deref())
                    .map_err(|error| wrong("--psk-file", &error))?;
                Ok(Some(Credentials::new(identity, psk)))
            }
            (_, _, None) | (None, Some(_), Some(_)) => Err(Failure::usage(
                "--identity: its key is missing; add --psk-file FILE, or --psk KEY",
            )),
        }
    }

    /// Whether a pre-shared key is given.
    pub(crate) fn has_identity(&self) -> bool {
        self.identity.is_some() || self.psk_file.is_some()
    }

    /// Refuses a key log that would stay empty: sessions with certificates over DTLS 1.3 have none.
    #[cfg(any(feature = "dtls13", test))]
    pub(crate) fn check_key_log(&self, dtls13: bool) -> Result<(), Failure> {
        if dtls13 && self.keylog.is_some() && !self.has_identity() {
            return Err(Failure::usage(
                "--keylog: sessions of DTLS 1.3 have no key log; without --dtls13 the session is one of DTLS 1.2, which has one",
            ));
        }
        Ok(())
    }
}

/// The key of an identity in a file, or of its only one.
fn own_key(path: &Path, identity: Option<&str>) -> Result<(Vec<u8>, Psk), String> {
    let mut keys = read(path)?;
    let found = match identity {
        Some(identity) => keys.remove_entry(identity.as_bytes()),
        None if keys.len() > 1 => {
            let path = path.display();
            return Err(format!(
                "{path}: it has {} identities: choose one with --identity",
                keys.len()
            ));
        }
        None => keys.pop_first(),
    };
    let first = found.and_then(|(identity, keys)| Some((identity, keys.into_iter().next()?)));
    first.ok_or_else(|| {
        format!("{}: it has no key of '{}'", path.display(), identity.unwrap_or_default())
    })
}

fn wrong(option: &str, error: &dyn Display) -> Failure {
    Failure::usage(format_args!("{option}: {error}"))
}

/// Appends key log lines to the file that `--keylog` names, which only its owner may read.
pub(crate) fn key_log(path: Option<&Path>) -> Result<Option<KeyLogger>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file: File = options
        .open(path)
        .map_err(|error| Failure::usage(format_args!("--keylog {}: {error}", path.display())))?;
    let file = Mutex::new(file);
    Ok(Some(KeyLogger::new(move |line| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not end the session.
        let _ = writeln!(file, "{line}");
    })))
}

fn check_identity(identity: &str) -> Result<(), String> {
    match identity.len() {
        0 => Err("an identity has at least one byte".to_owned()),
        length if length > MAX_IDENTITY => {
            Err(format!("an identity has at most {MAX_IDENTITY} bytes, not {length}"))
        }
        _ => Ok(()),
    }
}

/// A key as text, or as `0x` and hexadecimal digits.
fn parse_key(text: &str) -> Result<Psk, String> {
    let bytes = match text.strip_prefix("0x") {
        None => text.as_bytes().to_vec(),
        Some(digits) => {
            let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
            let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
            let byte = |[a, b]: &[u8; 2]| Some(digit(*a)? << 4 | digit(*b)?);
            let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
            bytes
                .filter(|_| rest.is_empty())
                .ok_or("0x is followed by pairs of hexadecimal digits")?
        }
    };
    Psk::new(&bytes).map_err(|error| error.to_string())
}

/// The keys of a server's clients, read from a file and reloaded on demand.
#[derive(Clone, Debug)]
pub(crate) struct KeyFile {
    path: Arc<Path>,
    keys: Arc<RwLock<Keys>>,
}

/// The keys of each identity: one, or two while they are replaced.
type Keys = BTreeMap<Vec<u8>, Vec<Psk>>;

/// The keys of one identity in a file.
const KEYS_OF_ONE: usize = 2;

/// The change of a file of keys.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReloadedKeys {
    /// The number of identities now.
    pub(crate) identities: usize,
    /// The identities that lost a key.
    pub(crate) revoked: BTreeSet<Vec<u8>>,
}

impl KeyFile {
    /// Reads a file of lines `IDENTITY:KEY`, divided at the last colon. Empty lines and lines that
    /// begin with `#` are skipped.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let keys = read(path).map_err(|error| wrong("--psk-file", &error))?;
        Ok(Self { path: path.into(), keys: Arc::new(RwLock::new(keys)) })
    }

    /// Reads the file again. If it is not valid, the old keys remain.
    pub(crate) fn reload(&self) -> Result<ReloadedKeys, String> {
        let new = read(&self.path)?;
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let is_kept = |identity: &Vec<u8>, key: &Psk| {
            new.get(identity).is_some_and(|keys| keys.contains(key))
        };
        let lost = |(identity, keys): &(&Vec<u8>, &Vec<Psk>)| {
            keys.iter().any(|key| !is_kept(identity, key))
        };
        let revoked = keys.iter().filter(lost).map(|(identity, _)| identity.clone()).collect();
        let identities = new.len();
        *keys = new;
        Ok(ReloadedKeys { identities, revoked })
    }

    /// An address at which clients with a key in the file are served.
    pub(crate) fn serve_at(self, address: SocketAddr) -> DtlsBind {
        let others = self.clone();
        DtlsBind::new(address, move |identity: &[u8]| self.key(identity, 0))
            .and_other_keys(move |identity: &[u8]| others.key(identity, 1))
    }

    /// A key of an identity, in the order of the file.
    fn key(&self, identity: &[u8], number: usize) -> Option<Psk> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(identity)?.get(number).cloned()
    }
}

fn read(path: &Path) -> Result<Keys, String> {
    let text =
        private_file::read_text(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if !text.is_empty() && !text.ends_with('\n') {
        // A key that is cut is a key as well, and nobody could say later why a device is refused.
        let path = path.display();
        return Err(format!(
            "{path}: the last line has no end, so the file may be cut: end it with a newline"
        ));
    }
    let mut keys = Keys::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_end_matches('\r');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The key itself is not printed.
        let place = |error: String| format!("{}:{number}: {error}", path.display());
        let (identity, key) = line
            .rsplit_once(':')
            .ok_or_else(|| place("a line is IDENTITY:KEY, the key as text or 0x...".to_owned()))?;
        check_identity(identity).map_err(place)?;
        let psk = parse_key(key).map_err(place)?;
        let of_one = keys.entry(identity.as_bytes().to_vec()).or_default();
        if of_one.len() == KEYS_OF_ONE {
            return Err(place(format!("the identity '{identity}' has two keys already")));
        }
        of_one.push(psk);
    }
    if keys.is_empty() {
        return Err(format!("{}: it has no keys, so all devices would be refused", path.display()));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_keys_names_the_line_that_is_wrong_and_never_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        for (text, expected) in [
            ("a:b\nnothing\n", "keys:2: a line is IDENTITY:KEY"),
            (":sesame\n", "keys:1: an identity has at least one byte"),
            ("a:\n", "keys:1: a key has 1 to 64 bytes, not 0: set the key that the peer has"),
            ("a:0x1\n", "keys:1: 0x is followed by pairs"),
            ("a:0xsesame\n", "keys:1: 0x is followed by pairs"),
            ("", "keys: it has no keys"),
            ("# none\n", "keys: it has no keys"),
            ("a:sesame\nb:ses", "keys: the last line has no end"),
            ("a:sesame\n\na:b\na:c\n", "keys:4: the identity 'a' has two keys already"),
        ] {
            private_file::write(&path, text);
            let error = read(&path).unwrap_err();
            assert!(error.contains(expected) && !error.contains("sesame"), "{error}");
        }
        assert!(read(&folder.path().join("none")).unwrap_err().contains("none"));
    }

    #[test]
    fn a_client_takes_its_key_from_a_file_and_is_told_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let args = |identity: Option<&str>| PskArgs {
            identity: identity.map(str::to_owned),
            psk_file: Some(path.clone()),
            ..PskArgs::default()
        };
        let said = |identity| match args(identity).credentials() {
            Ok(found) => String::from_utf8_lossy(&found.unwrap().identity).into_owned(),
            Err(failure) => format!("{failure:?}"),
        };
        private_file::write(&path, "one:sesame\n");
        assert_eq!((said(None), said(Some("one"))), ("one".to_owned(), "one".to_owned()));
        assert!(
            said(Some("two")).contains("--psk-file: ")
                && said(Some("two")).contains("no key of 'two'")
        );
        private_file::write(&path, "one:sesame\ntwo:sesame\n");
        assert!(said(None).contains("it has 2 identities: choose one"), "{}", said(None));
        assert_eq!(said(Some("two")), "two");
        let alone = PskArgs { identity: Some("one".to_owned()), ..PskArgs::default() };
        assert!(format!("{:?}", alone.credentials().unwrap_err()).contains("add --psk-file"));
    }

    #[test]
    fn a_key_log_of_dtls_1_3_is_refused_because_it_would_stay_empty() {
        let file = || Some(PathBuf::from("keys.log"));
        let with = |identity: Option<&str>, keylog| PskArgs {
            identity: identity.map(str::to_owned),
            psk: identity.map(str::to_owned),
            psk_file: None,
            keylog,
        };
        let error = format!("{:?}", with(None, file()).check_key_log(true).unwrap_err());
        assert!(error.contains("--keylog: sessions of DTLS 1.3 have no key log"), "{error}");
        // With a key the session is one of DTLS 1.2.
        for (args, dtls13) in [
            (with(Some("device"), file()), true),
            (with(None, file()), false),
            (with(None, None), true),
        ] {
            assert!(args.check_key_log(dtls13).is_ok(), "{args:?}, {dtls13}");
        }
    }

    #[test]
    fn a_file_that_is_wrong_when_it_is_read_again_leaves_the_old_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        private_file::write(&path, "# devices\n\nurn:dev:1:0x736563726574\ntwo:text\n");
        let file = KeyFile::read(&path).unwrap();
        assert!(file.key(b"urn:dev:1", 0).is_some() && file.key(b"two", 0).is_some());
        private_file::write(&path, "wrong\n");
        assert!(file.reload().is_err());
        assert!(file.key(b"two", 0).is_some());
        private_file::write(&path, "two:new\ntwo:text\nthree:text\n");
        let revoked = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let expected = ReloadedKeys { identities: 2, revoked: revoked(&["urn:dev:1"]) };
        assert_eq!(file.reload(), Ok(expected));
        assert!(file.key(b"two", 1).is_some() && file.key(b"three", 1).is_none());
        private_file::write(&path, "two:new\nthree:text\n");
        let expected = ReloadedKeys { identities: 2, revoked: revoked(&["two"]) };
        assert_eq!(file.reload(), Ok(expected));
    }
}
