//! A private key and credentials for EDHOC in a file.

use super::private_file;
use super::secret_file::{Hex, Wrong, line_of, parse};
use ebbtide::edhoc::EdhocCredentials;
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CredentialFile {
    private_key: Hex,
    credential: Hex,
    peer: Vec<toml::Spanned<PeerEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerEntry {
    credential: Hex,
    name: String,
}

pub(super) fn read(path: &Path) -> Result<EdhocCredentials, Wrong> {
    let text = private_file::read_text(path).map_err(|error| format!(": {error}"))?;
    let file: CredentialFile = parse(&text)?;
    let own = EdhocCredentials::new(&file.private_key.0, &file.credential.0);
    file.peer.into_iter().try_fold(own.map_err(|error| format!(": {error}"))?, |all, entry| {
        let line = line_of(&text, entry.span().start);
        let PeerEntry { credential, name } = entry.into_inner();
        all.peer(&credential.0, &name).map_err(|error| format!(":{line}: peer: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Of RFC 9529 chapter 3.
    const KEY: &str = "fb13adeb6518cee5f88417660841142e830a81fe334380a953406a1305e8706b";
    const OWN: &str = "a2027734322d35302d33312d46462d45462d33372d33322d333908a101a5010202412b2001215820ac75e9ece3e50bfc8ed60399889522405c47bf16df96660a41298cb4307f7eb62258206e5de611388a4b8a8211334ac7d37ecb52a387d257e6db3c2a93df21ff3affc8";

    #[test]
    fn an_error_in_a_file_names_line_and_field_and_never_the_key() {
        let good = format!(
            "private-key = \"{KEY}\"\ncredential = \"{OWN}\"\n[[peer]]\ncredential = \"{OWN}\"\nname = \"a\"\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edhoc.toml");
        for (text, expected) in [
            (good.clone(), ""),
            (good.replace("fb13", "fb1"), ":1: private-key: a value is pairs"),
            (good.replace("fb13", "fb14"), ": the private key is not that of the credential"),
            (
                good.replace("[[peer]]\ncredential = \"a2", "[[peer]]\ncredential = \"a3"),
                ":3: peer: the credential is no CWT",
            ),
            (good.replace("name = \"a\"", ""), ":3: "),
            (good.replace("name", "nam"), ":5: nam: unknown field"),
        ] {
            private_file::write(&path, &text);
            let error = read(&path).err().unwrap_or_default();
            assert_eq!(error.is_empty(), expected.is_empty(), "{error}");
            assert!(error.contains(expected) && !error.contains("6518cee5"), "{error}");
        }
    }
}
