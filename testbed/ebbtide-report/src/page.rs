//! The page around the sections.

use super::section::{
    PageContext, classes, course, curve, distribution, fct, flows, group, mesh, mesh_spread,
    packets, published, reproduce, retransmissions, sweep, time, until, verdict,
};
use super::text::escape;
use ebbtide_sim::result::Report;
use ebbtide_sim::result::metrics::{GROUPS, MESH};

/// The whole file.
pub(super) fn page(report: &Report) -> String {
    let mut context = PageContext::new(report);
    let is_mesh = report.cells.iter().any(|cell| MESH.is_of(cell));
    let has_time_of_its_own = flows::are_streams(report);
    let mut sections = Vec::new();
    // The page of a paper begins with the paper.
    sections.push(("published", "Published", published::section(&mut context)));
    if !has_time_of_its_own {
        sections.push(("verdict", "Verdict", verdict::section(&context)));
    }
    sections.push(("until", "Breaking point", until::section(&mut context)));
    sections.push(("curve", "Curve", curve::section(&mut context)));
    sections.push(("classes", "Classes", classes::section(&context)));
    sections.push(("phases", "Phases", classes::phases(&context)));
    if is_mesh {
        sections.push(("network", "Network", mesh::section(&mut context)));
        let completions = mesh_spread::completions(&mut context);
        sections.push(("completions", "Completed over time", completions));
        let boxes = mesh_spread::boxes(&mut context);
        sections.push(("spread", "Timeouts and round trips", boxes));
        let retransmissions = retransmissions::section(&mut context);
        sections.push(("retransmissions", "Retransmissions", retransmissions));
    } else if !has_time_of_its_own {
        sections.push(("sweep", "Sweep", sweep::section(&mut context)));
    }
    sections.push(("flows", "Flows", flows::section(&mut context)));
    if !report.cells.is_empty() && !is_mesh && !has_time_of_its_own {
        let name = if report.is_periodic { "Exchange time" } else { "Completion time" };
        sections.push(("fct", name, fct::boxes(&mut context)));
        sections.push(("cdf", "Distribution", distribution::section(&mut context)));
    }
    if !report.cells.is_empty() && !is_mesh {
        if !has_time_of_its_own {
            let retransmissions = retransmissions::section(&mut context);
            sections.push(("retransmissions", "Retransmissions", retransmissions));
        }
        sections.push(("course", "Replications over time", course::section(&mut context)));
        sections.push(("time", "Over time", time::section(&mut context)));
        sections.push(("packets", "Packets", packets::section(&context)));
        sections.push(("links", "Links", classes::links(&context)));
        sections.push(("cross", "Cross traffic", classes::cross(&context)));
        for of in GROUPS.iter().filter(|group| !group.key.is_empty()) {
            sections.push((of.key, of.name, group::section(&context, of)));
        }
    }
    sections.push(("reproduce", "Reproduce", reproduce::section(&context)));
    sections.retain(|(_, _, body)| !body.is_empty());
    let links: String =
        sections.iter().map(|(id, name, _)| format!("<a href=\"#{id}\">{name}</a>")).collect();
    let body: String = sections.into_iter().map(|(_, _, body)| body).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\"/>\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         {}<nav aria-label=\"Sections\">{links}</nav>\n</header>\n<main>\n{body}</main>\n\
         <footer>Ebbtide {} · scenario {} · seed {}</footer>\n\
         <script>\n{}</script>\n</body>\n</html>\n",
        include_str!("style.css"),
        introduction(report),
        escape(&report.version),
        escape(&report.scenario),
        report.seed,
        include_str!("script.js"),
        title = escape(&report.title),
    )
}

fn introduction(report: &Report) -> String {
    let paragraph = |class: &str, before: &str, text: &str| {
        if text.is_empty() {
            return String::new();
        }
        format!("<p class=\"{class}\">{before}{}</p>\n", escape(text))
    };
    [
        paragraph("subtitle", "", &report.subtitle),
        paragraph("description", "", &report.description),
        paragraph("note", "Source: ", &report.source),
    ]
    .concat()
}
