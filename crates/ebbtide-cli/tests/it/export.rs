//! Figures of a folder one by one: as SVG, PDF and CSV.

use crate::common::{ebbtide, succeed};
use std::process::Command;

/// A small sweep in a folder.
fn sweep(folder: &tempfile::TempDir) -> String {
    let out = folder.path().join("results").to_str().unwrap().to_owned();
    let set = ["--set", "clients=2,4", "--set", "exchanges=3"];
    let rest = ["--cc", "default,fasor-token", "--reps", "2", "--out", &out];
    succeed(&[&["run", "nb-iot"][..], &set, &rest].concat());
    out
}

const LINES: &str = "share-delivered-over-clients";

#[test]
fn every_figure_has_a_name_and_can_be_written_in_each_format() {
    let folder = tempfile::tempdir().unwrap();
    let out = sweep(&folder);
    let names = succeed(&["export", &out]);
    let names: Vec<&str> = names.lines().collect();
    assert!(names.contains(&LINES) && names.len() > 10, "{names:?}");
    for name in names {
        for (format, begins) in [("svg", "<svg xmlns="), ("pdf", "%PDF-1.4")] {
            let file = folder.path().join(format!("figure.{format}"));
            let place = file.to_str().unwrap();
            let call = ["export", &out, "--figure", name, "--format", format, "--output", place];
            succeed(&call);
            let bytes = std::fs::read(&file).unwrap();
            assert!(bytes.starts_with(begins.as_bytes()), "{name}");
            let first = bytes.clone();
            succeed(&call);
            assert_eq!(std::fs::read(&file).unwrap(), first, "{name}: the same bytes again");
        }
    }
}

#[test]
fn an_svg_stands_alone_in_the_size_of_a_column_or_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = sweep(&folder);
    let svg = |width: &str| {
        let figure = ["--figure", LINES, "--format", "svg", "--width", width, "--output", "-"];
        succeed(&[&["export", &out][..], &figure].concat())
    };
    for (width, points) in [("column", "width=\"241pt\""), ("page", "width=\"496pt\"")] {
        let text = svg(width);
        assert!(text.contains(points), "{text:.300}");
        for word in ["class=", "var(", "currentColor", "data-tip"] {
            assert!(!text.contains(word), "{word} needs the page");
        }
        assert!(text.contains("stroke=\"#cf4f00\""), "the colour of default");
        assert!(text.contains(">fasor-token</text>"), "{text}");
    }
}

#[test]
fn a_pdf_is_read_by_other_programs() {
    if Command::new("pdftotext").arg("-v").output().is_err() {
        eprintln!("skipped: pdftotext is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = sweep(&folder);
    let file = folder.path().join("lines.pdf");
    succeed(&["export", &out, "--figure", LINES, "--output", file.to_str().unwrap()]);
    let text = Command::new("pdftotext").arg(&file).arg("-").output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("fasor-token") && text.contains("clients"), "{text}");
}

#[test]
fn the_places_of_a_pdfs_objects_are_those_of_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let out = sweep(&folder);
    let file = folder.path().join("lines.pdf");
    succeed(&["export", &out, "--figure", LINES, "--output", file.to_str().unwrap()]);
    let bytes = std::fs::read(&file).unwrap();
    let find = |text: &[u8]| bytes.windows(text.len()).rposition(|window| window == text).unwrap();
    let start = find(b"startxref\n") + 10;
    let digits = |at: usize| {
        let end = bytes[at..].iter().position(|b| !b.is_ascii_digit()).unwrap();
        std::str::from_utf8(&bytes[at..at + end]).unwrap().parse::<usize>().unwrap()
    };
    let table = digits(start);
    assert!(bytes[table..].starts_with(b"xref\n0 12\n"));
    for number in 1..12 {
        let place = digits(table + 10 + 20 * number);
        assert!(bytes[place..].starts_with(format!("{number} 0 obj\n").as_bytes()), "{number}");
    }
}

#[test]
fn the_fonts_of_a_pdf_are_those_that_publishers_accept_and_it_says_what_made_it() {
    if Command::new("pdffonts").arg("-v").output().is_err() {
        eprintln!("skipped: pdffonts is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = sweep(&folder);
    let file = folder.path().join("lines.pdf");
    succeed(&["export", &out, "--figure", LINES, "--output", file.to_str().unwrap()]);
    let fonts = Command::new("pdffonts").arg(&file).output().unwrap();
    let fonts = String::from_utf8(fonts.stdout).unwrap();
    let fonts: Vec<Vec<&str>> =
        fonts.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    // IEEE PDF eXpress and ACM's checker want every font embedded, and no Type 3: name, type,
    // encoding, embedded, subset.
    assert_eq!(fonts.len(), 2);
    for font in &fonts {
        assert!(font[0].starts_with("EBBTID+Arimo"), "{font:?}");
        assert_eq!(font[1..5], ["TrueType", "WinAnsi", "yes", "yes"], "{font:?}");
    }
    let info = Command::new("pdfinfo").arg(&file).output().unwrap();
    let info = String::from_utf8(info.stdout).unwrap();
    for says in ["share delivered over clients", "ebbtide run nb-iot", "seed 1", "Ebbtide 0."] {
        assert!(info.contains(says), "{says}: {info}");
    }
}

#[test]
fn every_panel_of_a_sweep_over_two_keys_has_a_name_and_a_csv_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results").to_str().unwrap().to_owned();
    let set = ["--set", "clients=2,4", "--set", "exchanges=2,3", "--cc", "default,fasor-token"];
    succeed(&[&["run", "nb-iot"][..], &set, &["--reps", "1", "--out", &out]].concat());
    let names = succeed(&["export", &out]);
    let csv = |name: &str, head: &str| {
        let figure = ["--figure", name, "--format", "csv", "--output", "-"];
        let text = succeed(&[&["export", &out][..], &figure].concat());
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert!(lines[0].starts_with(head), "{name}: {}", lines[0]);
        assert!(lines[0].ends_with(",version,seed,command"), "{}", lines[0]);
        lines
    };
    for (start, head) in [
        ("flow-completion-time-by-congestion-control", "clients,exchanges,cc,min_s,p10_s,"),
        ("exchanges-by-number-of-retransmissions", "clients,exchanges,cc,share_0,share_1,"),
        ("unnecessary-retransmissions-per-client", "clients,exchanges,cc,min_per_client,"),
    ] {
        for (clients, exchanges) in [(2, 2), (2, 3), (4, 2), (4, 3)] {
            let name = format!("{start}-exchanges-{exchanges}-clients-{clients}");
            assert!(names.lines().any(|line| line == name), "{name}: {names}");
            let rows = csv(&name, head);
            assert_eq!(rows.len(), 3);
            for (row, cc) in rows[1..].iter().zip(["default", "fasor-token"]) {
                assert!(row.starts_with(&format!("{clients},{exchanges},{cc},")), "{name}: {row}");
            }
        }
    }
    // A line over one key has the points of the other key's value.
    let rows = csv("share-delivered-over-clients-exchanges-3", "clients,exchanges,cc,mean,half,");
    let points: Vec<String> =
        rows[1..].iter().map(|row| row.split(',').take(4).collect::<Vec<_>>().join(",")).collect();
    assert_eq!(points.len(), 4);
    assert!(points.contains(&"2,3,default,100".to_owned()), "{points:?}");
}

#[test]
fn the_csv_of_a_line_has_the_mean_of_every_cell() {
    let folder = tempfile::tempdir().unwrap();
    let out = sweep(&folder);
    let figure = ["--figure", LINES, "--format", "csv", "--output", "-"];
    let text = succeed(&[&["export", &out][..], &figure].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "clients,cc,mean,half,version,seed,command");
    assert_eq!(lines.len(), 1 + 2 * 2);
    assert!(lines[1].starts_with("2,default,100,0,"), "{}", lines[1]);
}

#[test]
fn the_csv_of_a_distribution_has_the_points_of_its_curves() {
    let folder = tempfile::tempdir().unwrap();
    let out = sweep(&folder);
    let names = succeed(&["export", &out]);
    let figure = |start: &str| names.lines().find(|name| name.starts_with(start)).unwrap();
    let csv = |name: &str| {
        let figure = ["--figure", name, "--format", "csv", "--output", "-"];
        succeed(&[&["export", &out][..], &figure].concat())
    };
    let text = csv(figure("share-of-the-exchanges-answered-within-a-time"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "clients,cc,share,seconds,version,seed,command");
    assert_eq!(lines.len(), 1 + 2 * 101);
    assert!(lines[101].starts_with("2,default,1,"), "{}", lines[101]);
    let text = csv(figure("queue-length-over-time"));
    assert!(text.starts_with("clients,cc,replication,quantity,time_s,value,version,"), "{text}");
    assert!(text.contains(",0,to the server (bytes),"), "{text}");
}

#[test]
fn a_figure_that_is_not_there_is_answered_with_the_nearest_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = sweep(&folder);
    let answer = ebbtide(&["export", &out, "--figure", "share-delivered-over-client"]);
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert!(answer.err.contains(LINES), "{}", answer.err);
}

#[test]
fn the_table_of_a_curve_fits_a_terminal() {
    let cc = "default,cocoa,fasor-token,ebb,fasor:initial-rto=3,linux-rto,peak-hopper";
    let call = ["run", "nb-iot", "--curve", "clients=10..100", "--points", "3", "--cc", cc];
    let rest = ["--set", "exchanges=3", "--reps", "1", "--work", "200"];
    let text = succeed(&[&call[..], &rest].concat());
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    let row = text.lines().find(|line| line.starts_with("100 ")).unwrap();
    assert!(row.starts_with("100               200   1.00"), "{row}");
    assert!(text.contains("\nfasor:initial-rto=3: most goodput "), "{text}");
    let refused = ebbtide(&["run", "nb-iot", "--curve", "clients=0..10"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("begins at zero"), "{}", refused.err);
}
