//! The report in a browser: no error, plots present, readable at both widths and in both
//! schemes. Needs Python 3 and Chromium; without them it is skipped, but fails where `CI=true`.

use std::path::Path;
use std::process::Command;

use crate::reports::{degenerate, every_control, nb_iot, reproduction, sweep};
use ebbtide_report::render;
use ebbtide_sim::result::Report;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/look_at_report.py");

/// Looks at a report; the pictures stay in the target directory. Returns how many pages it has in
/// print; `None` if it was not looked at.
fn look_at(name: &str, report: &Report, has_drawings: bool) -> Option<usize> {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&out).unwrap();
    let file = out.join(format!("{name}.html"));
    std::fs::write(&file, render(report)).unwrap();
    let strict = std::env::var("CI").is_ok_and(|ci| ci == "true");
    let output = match Command::new("python3").arg(SCRIPT).arg(&file).arg(&out).output() {
        Ok(output) if output.status.code() != Some(2) => output,
        failed => {
            let why = failed.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
            assert!(!strict, "the report cannot be looked at: {why:?}");
            eprintln!("SKIPPED: no look at the report in a browser: {why:?}");
            return None;
        }
    };
    let seen = String::from_utf8_lossy(&output.stdout);
    println!("{name}: pictures in {}\n{seen}", out.display());
    assert!(output.status.success(), "{name}:\n{seen}");
    assert_eq!(seen.lines().count(), 4, "{name}:\n{seen}");
    assert!(!has_drawings || !seen.contains("\"drawings\": 0"), "{name}:\n{seen}");
    let pages = seen.split("\"pages\": ").nth(1).expect("pages").split([',', '}']).next();
    Some(pages.unwrap().parse().unwrap())
}

#[test]
fn a_comparison_of_four_controls_reads_well_in_a_browser() {
    look_at("nb-iot", &nb_iot(), true);
}

#[test]
fn every_control_in_one_figure_reads_well_in_a_browser_and_on_eight_pages() {
    let pages = look_at("every-control", &every_control(), true);
    assert!(pages.is_none_or(|pages| (2..=8).contains(&pages)), "{pages:?} pages");
}

#[test]
fn published_figures_beside_measured_ones_read_well_in_a_browser() {
    look_at("reproduction", &reproduction(), true);
}

#[test]
fn a_sweep_of_192_cells_reads_well_in_a_browser() {
    look_at("sweep", &sweep(2, 6, 4), true);
}

#[test]
fn a_report_of_next_to_nothing_opens_in_a_browser() {
    look_at("degenerate", &degenerate(), true);
    look_at("nothing", &Report::default(), false);
}
