//! Folders of results: what is damaged, renamed, foreign or of something else is refused by name.

use crate::common::{changed, ebbtide, succeed};
use ebbtide_sim::record::Store;
use std::path::{Path, PathBuf};

/// Byte changes tried; `EBBTIDE_CHANGES=1000` tries more.
fn changes() -> usize {
    std::env::var("EBBTIDE_CHANGES").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

fn run<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["run", "nb-iot", "--set", "clients=3", "--set", "exchanges=4", "--reps", "2"];
    fixed.iter().copied().chain(["--out", out]).chain(more.iter().copied()).collect()
}

fn files(out: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("{out}/runs")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[test]
fn one_byte_changed_anywhere_in_a_result_file_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let out = out.to_str().unwrap();
    succeed(&run(out, &["--cc", "default"]));
    let mut targets = files(out);
    targets.push(PathBuf::from(format!("{out}/manifest.json")));
    let mut state = 88_172_645_463_325_252u64;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for change in 0..changes() {
        let target = &targets[change % targets.len()];
        let whole = std::fs::read(target).unwrap();
        let mut bytes = whole.clone();
        let place = draw(bytes.len());
        bytes[place] ^= 1 << draw(8);
        std::fs::write(target, &bytes).unwrap();
        let answer = ebbtide(&["report", out]);
        assert_eq!(answer.code, Some(1), "byte {place} of {}: {}", name(target), answer.err);
        assert!(answer.err.contains(name(target)), "{}", answer.err);
        std::fs::write(target, &whole).unwrap();
    }
    succeed(&["report", out]);
}

#[test]
fn a_file_renamed_over_another_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let out = out.to_str().unwrap();
    succeed(&run(out, &["--cc", "default,fasor"]));
    let files = files(out);
    std::fs::copy(&files[0], &files[1]).unwrap();
    for arguments in [run(out, &["--cc", "default,fasor"]), vec!["report", out]] {
        let answer = ebbtide(&arguments);
        assert_eq!(answer.code, Some(1), "{}", answer.err);
        assert!(answer.err.contains(name(&files[1])), "{}", answer.err);
        assert!(answer.err.contains("something else under this name"), "{}", answer.err);
    }
}

#[test]
fn a_foreign_file_among_the_replications_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let out = out.to_str().unwrap();
    succeed(&run(out, &["--cc", "default"]));
    std::fs::write(format!("{out}/runs/zzz.parquet"), "PAR1").unwrap();
    for arguments in [run(out, &["--cc", "default"]), vec!["report", out]] {
        let answer = ebbtide(&arguments);
        assert_eq!(answer.code, Some(1), "{}", answer.err);
        assert!(answer.err.contains("zzz.parquet"), "{}", answer.err);
    }
}

#[test]
fn an_edited_scenario_does_not_go_into_the_folder_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let path = changed(folder.path(), "rate = \"30 kbit/s\"", "rate = \"31 kbit/s\"");
    let arguments = ["run", &path, "--set", "clients=2", "--reps", "1", "--cc", "default", "--out"];
    let arguments: Vec<&str> = arguments.into_iter().chain([out.to_str().unwrap()]).collect();
    succeed(&arguments);
    let text = std::fs::read_to_string(&path).unwrap();
    // What it says of itself does not matter.
    std::fs::write(&path, text.replace("title = \"", "title = \"Another ")).unwrap();
    succeed(&arguments);
    std::fs::write(&path, text.replace("31 kbit/s", "32 kbit/s")).unwrap();
    let answer = ebbtide(&arguments);
    assert_eq!(answer.code, Some(1), "{}", answer.err);
    for words in ["results of another scenario", &path, "before it was changed", "another --out"] {
        assert!(answer.err.contains(words), "{words}: {}", answer.err);
    }
}

#[test]
fn settings_written_in_another_way_are_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let out = out.to_str().unwrap();
    let ways: [&[&str]; 3] = [
        &["--set", "clients=3", "--set", "buffer=2500"],
        &["--set", "buffer=2.5 kB", "--set", "clients=3"],
        &[
            "--set",
            "network.down.buffer=2500",
            "--set",
            "network.up.buffer=2500 B",
            "--set",
            "clients.count=3",
        ],
    ];
    for (index, way) in ways.iter().enumerate() {
        let mut arguments = vec!["run", "nb-iot", "--reps", "2", "--cc", "default", "--out", out];
        arguments.extend(*way);
        let text = succeed(&arguments);
        let reused = text.contains("2 of 2 replications were there already.");
        assert_eq!(reused, index > 0, "{way:?}: {text}");
    }
    assert_eq!(files(out).len(), 2);
}

#[test]
fn two_commands_at_once_do_not_share_a_folder_but_parts_of_one_do() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let store = Store::open(&out).unwrap();
    let out = out.to_str().unwrap();
    succeed(&run(out, &["--cc", "default"]));
    let claim = store.claim(&store.load_manifest().unwrap()).unwrap();
    let other = ebbtide(&run(out, &["--cc", "cocoa"]));
    assert_eq!(other.code, Some(1), "{}", other.err);
    assert!(other.err.contains("another command is being computed"), "{}", other.err);
    succeed(&run(out, &["--cc", "default", "--shard", "1/2"]));
    let page = std::fs::read_to_string(format!("{out}/report.html")).unwrap();
    assert!(page.contains("--cc default") && !page.contains("--cc cocoa"));
    drop(claim);
    succeed(&run(out, &["--cc", "cocoa"]));
}
