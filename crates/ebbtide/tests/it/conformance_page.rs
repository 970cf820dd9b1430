//! Every test that `docs/conformance.md` names exists.

use crate::wire_verdicts;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The rows, and their last cells, of the tables whose last column is of the wire.
fn on_the_wire(page: &str) -> Vec<(&str, &str)> {
    let mut rows = Vec::new();
    let mut is_of_wire = false;
    for line in page.lines() {
        let Some(row) = line.strip_prefix('|').and_then(|row| row.strip_suffix('|')) else {
            is_of_wire = false;
            continue;
        };
        let last = row.rsplit('|').next().unwrap().trim();
        if is_of_wire && last != "---" {
            rows.push((line, last));
        }
        is_of_wire |= last == "on the wire";
    }
    rows
}

/// The names in a cell.
fn named(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn the_conformance_page_names_every_case_that_the_wire_shows_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/conformance.md")).unwrap();
    let rows = on_the_wire(&page);
    // A row that nothing on the wire shows names a test.
    let cases = rows.iter().flat_map(|(_, cell)| named(cell)).filter(|name| !name.contains("::"));
    let cases: BTreeSet<_> = cases.map(str::to_owned).collect();
    assert_eq!(cases, wire_verdicts::names());
}

#[test]
fn every_row_of_the_conformance_page_names_a_case_or_a_test_as_its_verdict() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/conformance.md")).unwrap();
    let rows = on_the_wire(&page);
    assert!(rows.len() > 100, "only {} rows", rows.len());
    for (row, verdict) in rows {
        assert!(named(verdict).next().is_some(), "no verdict: {row}");
    }
}

#[test]
fn every_test_that_the_conformance_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/conformance.md")).unwrap();
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    let mut named = 0;
    for (file, test) in page.split('`').filter_map(|code| code.split_once(".rs::")) {
        let name = format!("{file}.rs");
        let of_that_name = files.iter().filter(|path| path.file_name().unwrap() == name.as_str());
        let exists = of_that_name
            .map(|path| fs::read_to_string(path).unwrap())
            .any(|text| text.contains(&format!("fn {test}(")));
        assert!(exists, "{name} has no test {test}");
        named += 1;
    }
    assert!(named > 60, "only {named} tests are named");
}
