//! Folders of results whose replications are put together in few files.

use crate::common::{ebbtide, succeed};
use std::path::Path;

fn parquet_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".parquet")).collect()
}

fn run(out: &str, cc: &str) -> Vec<String> {
    let fixed = ["run", "nb-iot", "--set", "clients=3", "--set", "exchanges=4", "--reps", "5"];
    let all = fixed.iter().copied().chain(["--cc", cc, "--out", out, "--json"]);
    all.map(str::to_owned).collect()
}

fn document(out: &str, cc: &str) -> serde_json::Value {
    let arguments = run(out, cc);
    let text = succeed(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    for cell in document["cells"].as_array_mut().unwrap() {
        cell["wall_s"] = 0.into();
    }
    document
}

#[test]
fn compacted_results_are_read_as_before_and_other_results_stay() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let place = out.to_str().unwrap();
    document(place, "cocoa");
    let before = document(place, "default,fasor");
    assert_eq!(parquet_files(&out.join("runs")).len(), 15);
    assert_eq!(succeed(&["compact", place]), format!("1 file in {place}/chunks\n"));
    assert_eq!(parquet_files(&out.join("runs")).len(), 5, "those of cocoa");
    assert_eq!(parquet_files(&out.join("chunks")).len(), 1);
    assert_eq!(document(place, "default,fasor"), before);
    // Once more changes nothing.
    succeed(&["compact", place]);
    assert_eq!(parquet_files(&out.join("chunks")).len(), 1);
    succeed(&["report", place]);
}

#[test]
fn a_folder_without_results_cannot_be_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let answer = ebbtide(&["compact", folder.path().to_str().unwrap()]);
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert!(answer.err.contains("is not a folder that `ebbtide run --out` made"), "{}", answer.err);
}
