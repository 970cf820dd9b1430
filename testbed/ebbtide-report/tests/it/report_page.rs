//! The report as a file: whole, self-contained, small, the same every time.

use crate::reports::{degenerate, every_control, nb_iot, reproduction, sweep};
use ebbtide_report::render;
use ebbtide_sim::result::Report;

const LARGEST: usize = 1_500_000;

fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("one setting", nb_iot()),
        ("published", reproduction()),
        ("every control", every_control()),
        ("192 cells", sweep(2, 6, 4)),
        ("degenerate", degenerate()),
        ("nothing", Report::default()),
    ]
}

/// Checks that tags nest and attributes are quoted; what scripts and styles hold is skipped.
fn check_well_formed(page: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").ok_or("no doctype")?;
    while let Some(start) = rest.find('<') {
        if rest[..start].contains('>') {
            return Err(format!("bare > in {:?}", &rest[..start]));
        }
        let end = start + rest[start..].find('>').ok_or("unclosed tag")?;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.contains('<') {
            return Err(format!("bare < in {tag:?}"));
        }
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("quotes of {tag:?}"));
        }
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or("");
        if tag.starts_with('/') {
            let opened = open.pop();
            if opened != Some(name) {
                return Err(format!("{opened:?} closed by {name}"));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
            if name == "script" || name == "style" {
                let close = rest.find(&format!("</{name}>")).ok_or("no end of raw text")?;
                rest = &rest[close..];
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("left open: {open:?}")) }
}

#[test]
fn every_page_is_well_formed() {
    for (name, report) in all() {
        let verdict = check_well_formed(&render(&report));
        assert!(verdict.is_ok(), "{name}: {verdict:?}");
    }
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    for (name, report) in all() {
        assert!(render(&report) == render(&report.clone()), "{name}");
    }
}

#[test]
fn a_sweep_of_192_cells_and_one_of_many_more_stay_under_the_bound() {
    for (workloads, clients, buffers) in [(2, 6, 4), (4, 6, 4)] {
        let report = sweep(workloads, clients, buffers);
        let size = render(&report).len();
        println!("{} cells: {size} bytes", report.cells.len());
        assert!(size < LARGEST, "{} cells: {size} bytes", report.cells.len());
    }
    let mut report = sweep(4, 6, 4);
    let cells = report.cells.clone();
    for cc in ["default-b", "cocoa-01", "cocoa-plus", "rcoap"] {
        report.cells.extend(cells.iter().cloned().map(|mut cell| {
            cell.cc = format!("{cc}-{}", cell.cc);
            cell
        }));
    }
    let size = render(&report).len();
    println!("{} cells: {size} bytes", report.cells.len());
    assert!(size < LARGEST, "{} cells: {size} bytes", report.cells.len());
}

#[test]
fn series_for_every_cell_stay_under_the_bound() {
    let mut report = sweep(2, 6, 4);
    let series = nb_iot().cells[0].series.clone();
    report.cells.iter_mut().for_each(|cell| cell.series.clone_from(&series));
    let size = render(&report).len();
    println!("{size} bytes");
    assert!(size < LARGEST, "{size} bytes");
}

#[test]
fn a_missing_value_is_never_printed_as_a_number() {
    for (name, report) in all() {
        let page = render(&report);
        let body = &page[page.find("</style>").unwrap()..page.find("<script>").unwrap()];
        for word in ["NaN", ">inf<", "-inf", " inf ", "Infinity", "−0 ", "\"-0\""] {
            let place = body.find(word).map(|at| body.get(at.saturating_sub(80)..at + 20));
            assert!(place.is_none(), "{name}: {word:?} in {place:?}");
        }
    }
}

#[test]
fn every_drawing_says_what_it_shows() {
    for (name, report) in all() {
        let page = render(&report);
        for figure in page.split("<figure").skip(1) {
            let figure = figure.split("</figure>").next().unwrap();
            let drawings = figure.matches("<svg viewBox").count();
            assert!(drawings > 0, "{name}");
            assert_eq!(figure.matches("role=\"img\"").count(), drawings, "{name}");
            assert_eq!(figure.matches("<title id=").count(), drawings, "{name}");
            assert_eq!(figure.matches("<desc id=").count(), drawings, "{name}");
        }
    }
}

#[test]
fn a_figure_of_a_sweep_has_the_command_for_just_its_cells() {
    let page = render(&sweep(2, 6, 4));
    assert!(page.contains(
        "ebbtide run nb-iot --set workload=random --set clients=50 \
         --set buffer=2500,14100,28200,infinite --cc default,cocoa,fasor,fasor-token --reps 20 \
         --seed 1</code>"
    ));
}

#[test]
fn text_from_the_report_is_never_markup() {
    let page = render(&degenerate());
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("mine <b>"));
    assert_eq!(page.matches("</script>").count(), 1);
    assert!(page.contains("&lt;script&gt;alert(&#39;no&#39;)&lt;/script&gt;"));
}

#[test]
fn nothing_is_fetched() {
    for (name, report) in all() {
        let page = render(&report);
        for word in ["http://", "https://", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(word), "{name}: {word}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn the_verdict_comes_first_and_names_the_best_and_the_collapsed() {
    let page = render(&nb_iot());
    let lead = page.split("class=\"lead\">").nth(1).and_then(|rest| rest.split("</p>").next());
    let lead = lead.unwrap();
    let words = "Use <strong>fasor-token</strong>: it delivers 100 % of the exchanges, the first 99 % within";
    assert!(lead.starts_with(words), "{lead}");
    assert!(
        lead.contains(" fasor (+") && lead.contains(" take longer. default (delivers"),
        "{lead}"
    );
    assert!(lead.ends_with("of its transmissions unnecessary) collapses."), "{lead}");
    let first = page.find("<section").unwrap();
    assert!(page[first..].starts_with("<section id=\"verdict\">"));
}

#[test]
fn a_control_that_fails_its_exchanges_is_not_recommended_for_being_fast() {
    let mut report = nb_iot();
    // The fastest by far, of those exchanges that it does not give up.
    let outcome = &mut report.cells[2].outcome;
    for figures in outcome.runs.iter_mut().chain([&mut outcome.all]) {
        figures.delivered = 0.75;
        figures.delivered_by_s = [Some(100.0), None, None, None];
    }
    let page = render(&report);
    assert!(page.contains("Use <strong>fasor-token</strong>"));
    assert!(page.contains("fasor (75 %) delivers less."), "{page:.4000}");
}

/// Two settings in which two controls are level, although the second one is a little faster.
fn level_sweep(given_first: &str, faster: &str) -> Report {
    let mut report = nb_iot();
    let slower = report.cells.pop().unwrap();
    report.cells.clear();
    for buffer in ["2500", "infinite"] {
        for (cc, factor) in [(given_first, 1.0), (faster, 0.99)] {
            let mut cell = slower.clone();
            cell.cc = cc.to_owned();
            cell.settings = vec![("buffer".to_owned(), buffer.to_owned())];
            for figures in cell.outcome.runs.iter_mut().chain([&mut cell.outcome.all]) {
                figures.delivered_by_s =
                    figures.delivered_by_s.map(|time| time.map(|s| s * factor));
            }
            report.cells.push(cell);
        }
    }
    report
}

#[test]
fn a_sweep_of_equals_names_the_default_or_else_the_control_given_first() {
    for (given_first, faster, named) in
        [("ebb", "cocoa", "ebb"), ("cocoa", "ebb", "ebb"), ("fasor", "cocoa", "fasor")]
    {
        let page = render(&level_sweep(given_first, faster));
        let words =
            format!("Use <strong>{named}</strong>: over 2 settings it is best or level in all.");
        assert!(page.contains(&words), "{page:.4000}");
    }
}

#[test]
fn a_report_kept_as_json_gives_the_same_verdict() {
    let report = reproduction();
    let text = serde_json::to_string(&report).unwrap();
    let kept: Report = serde_json::from_str(&text).unwrap();
    let lead = |report: &Report| {
        render(report).split("class=\"lead\">").nth(1).map(|rest| rest[..400].to_owned())
    };
    assert_eq!(lead(&kept), lead(&report));
    assert_eq!(kept.published.len(), report.published.len());
}
