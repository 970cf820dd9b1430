//! Files that an operator hands over and that are wrong: an error names each with its option, and what is in use stays.

use crate::common::private::write_private;
use crate::common::{Serving, command, ebbtide};
use crate::metrics::scrape;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The state of a file in the place of a valid one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Missing,
    Empty,
    /// The end is missing, as while it is copied.
    Cut,
    /// Another kind of file, or one of another version.
    Foreign,
    /// A folder in its place, which nobody can read as a file.
    Unreadable,
}

const FAULTS: [Fault; 5] =
    [Fault::Missing, Fault::Empty, Fault::Cut, Fault::Foreign, Fault::Unreadable];

/// Puts a file with this fault into the place of a valid one.
fn spoil(path: &Path, valid: &str, fault: Fault) {
    let _ = fs::remove_file(path);
    match fault {
        Fault::Missing => {}
        Fault::Empty => write_private(path, ""),
        Fault::Cut => write_private(path, &valid[..valid.len() * 2 / 3]),
        Fault::Foreign => write_private(path, "\u{1}\u{2} not what it should be"),
        Fault::Unreadable => fs::create_dir(path).unwrap(),
    }
}

/// Puts the valid file back.
fn mend(path: &Path, valid: &str) {
    let _ = fs::remove_dir(path);
    write_private(path, valid);
}

/// The valid files of a server: option, path, contents.
fn valid_files(folder: &Path) -> Vec<(&'static str, PathBuf, String)> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap().pem();
    let files = [
        ("--psk-file", "keys.txt", "device:secret\nother:0x0102030405060708\n".to_owned()),
        ("--cert", "cert.pem", certificate.clone()),
        ("--key", "key.pem", key.serialize_pem()),
        ("--client-ca", "ca.pem", certificate),
    ];
    written(folder, files)
}

/// The same of a server whose clients use OSCORE.
fn valid_files_of_oscore(folder: &Path) -> Vec<(&'static str, PathBuf, String)> {
    // The initiator of RFC 9529 chapter 3.
    let key = "fb13adeb6518cee5f88417660841142e830a81fe334380a953406a1305e8706b";
    let (x, y) = (
        "ac75e9ece3e50bfc8ed60399889522405c47bf16df96660a41298cb4307f7eb6",
        "6e5de611388a4b8a8211334ac7d37ecb52a387d257e6db3c2a93df21ff3affc8",
    );
    let subject = "a2027734322d35302d33312d46462d45462d33372d33322d333908a101a5010202412b2001";
    let credential = format!("{subject}215820{x}225820{y}");
    let edhoc = format!(
        "private-key = \"{key}\"\ncredential = \"{credential}\"\n[[peer]]\ncredential = \"{credential}\"\nname = \"a\"\n"
    );
    let contexts = format!(
        "[[context]]\nsender-id = \"01\"\nrecipient-id = \"02\"\nmaster-secret = \"{}\"\n",
        "0102030405060708".repeat(2)
    );
    written(folder, [("--oscore", "contexts.toml", contexts), ("--edhoc", "edhoc.toml", edhoc)])
}

/// Writes files: option, name, contents.
fn written<const N: usize>(
    folder: &Path,
    files: [(&'static str, &str, String); N],
) -> Vec<(&'static str, PathBuf, String)> {
    let files = files.map(|(option, name, text)| (option, folder.join(name), text));
    files.iter().for_each(|(_, path, text)| write_private(path, text));
    files.into()
}

#[test]
fn a_file_that_is_wrong_at_the_start_is_named_with_its_option() {
    let folder = tempfile::tempdir().unwrap();
    for (bind, files) in [
        ("coaps://127.0.0.1:0", valid_files(folder.path())),
        ("127.0.0.1:0", valid_files_of_oscore(folder.path())),
    ] {
        let mut serve = vec!["serve", "--check", "--bind", bind];
        for (option, path, _) in &files {
            serve.extend([option, path.to_str().unwrap()]);
        }
        assert_eq!(ebbtide(&serve).code, Some(0), "{bind}");
        for (option, path, text) in &files {
            for fault in FAULTS {
                spoil(path, text, fault);
                let answer = ebbtide(&serve);
                assert_eq!(answer.code, Some(2), "{option} {fault:?}: {}", answer.err);
                let names = [option, path.file_name().unwrap().to_str().unwrap()];
                assert!(
                    names.iter().all(|name| answer.err.contains(name)),
                    "{fault:?}: {}",
                    answer.err
                );
                mend(path, text);
            }
        }
        assert_eq!(ebbtide(&serve).code, Some(0), "{bind}");
    }
    // What a file of options can lack is nothing.
    let config = folder.path().join("serve.toml");
    for (fault, code) in FAULTS.into_iter().zip([2, 0, 2, 2, 2]) {
        spoil(&config, "bind = [\"127.0.0.1:0\"]\n", fault);
        let answer = ebbtide(&["serve", "--check", "--config", config.to_str().unwrap()]);
        assert_eq!(answer.code, Some(code), "{fault:?}: {}", answer.err);
        assert_eq!(answer.err.contains("serve.toml"), code == 2, "{fault:?}: {}", answer.err);
        mend(&config, "");
    }
}

#[test]
fn a_state_that_is_wrong_is_set_aside_and_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let valid = format!("ebbtide state 3\n{}", "\0\0\0\u{9}".repeat(20));
    for fault in FAULTS {
        spoil(&state, &valid, fault);
        let serve = ["serve", "--bind", "127.0.0.1:0", "--state", state.to_str().unwrap()];
        if fault == Fault::Unreadable {
            let answer = ebbtide(&serve);
            assert!(answer.code == Some(1) && answer.err.contains("--state "), "{}", answer.err);
            continue;
        }
        let server = Serving::spawn(command(&serve).stderr(Stdio::null()));
        assert_eq!(ebbtide(&["get", &server.uri("/test"), "-B", "60"]).code, Some(0), "{fault:?}");
        let aside = folder.path().join("state.bad");
        assert_eq!(aside.exists(), fault != Fault::Missing, "{fault:?}");
        let _ = fs::remove_file(aside);
    }
}

#[test]
fn a_file_that_is_wrong_at_a_reload_is_named_in_the_log_and_what_is_in_use_stays() {
    let folder = tempfile::tempdir().unwrap();
    let files = valid_files(folder.path());
    let mut serve = vec!["serve", "--bind", "127.0.0.1:0", "--bind", "coaps://127.0.0.1:0"];
    serve.extend(["--metrics", "127.0.0.1:0"]);
    for (option, path, _) in &files {
        serve.extend([option, path.to_str().unwrap()]);
    }
    for (option, path, text) in &files {
        // Each has a server of its own, since the log says little of the same kind within a minute.
        let mut server = Serving::spawn(command(&serve).stderr(Stdio::piped()));
        let uri = format!("coaps://{}/test", server.after("serving at coaps://"));
        let metrics = server.after("metrics at http://").trim_end_matches("/metrics").to_owned();
        let mut log = BufReader::new(server.take_stderr()).lines();
        let mut failures = 0.0;
        for fault in FAULTS {
            spoil(path, text, fault);
            server.hang_up();
            let line = log.next().unwrap().unwrap();
            failures += 1.0;
            let name = path.to_str().unwrap();
            let says_all = [name, *option, "remain in use"].iter().all(|part| line.contains(part));
            assert!(says_all, "{option} {fault:?}: {line}");
            mend(path, text);
            let got = ebbtide(&["get", &uri, "-u", "device", "-k", "secret", "-B", "60"]);
            assert_eq!(got.code, Some(0), "{option} {fault:?}: {}", got.err);
            let failed = "ebbtide_reloads_total{outcome=\"failed\"}";
            assert!((0..1000).any(|_| scrape(&metrics)[failed] == failures), "{option} {fault:?}");
        }
    }
}

#[test]
fn a_folder_behind_a_link_that_an_update_replaces_is_served_after_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("current");
    for version in ["1", "2"] {
        fs::create_dir(folder.path().join(version)).unwrap();
        fs::write(folder.path().join(version).join("version"), version).unwrap();
    }
    let lead_to = |version: &str| {
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(version, &link).unwrap();
    };
    lead_to("1");
    let serve = ["serve", "--bind", "127.0.0.1:0", "--dir", link.to_str().unwrap()];
    let mut server = Serving::spawn(command(&serve).stderr(Stdio::piped()));
    let mut log = BufReader::new(server.take_stderr()).lines();
    let version = || ebbtide(&["get", &server.uri("/version"), "-B", "60"]).out;
    assert_eq!(version().trim(), "1");
    lead_to("nowhere");
    server.hang_up();
    let line = log.next().unwrap().unwrap();
    assert!(line.contains("--dir ") && line.contains("current: "), "{line}");
    assert_eq!(version().trim(), "1");
    lead_to("2");
    server.hang_up();
    assert!((0..200).any(|_| version().trim() == "2"));
}
