//! The figures of a report one by one: as SVG that stands alone, as PDF, and what is drawn as CSV.

mod csv;
mod font;
mod pdf;
mod shapes;
mod style;
mod svg;

pub use csv::csv;

use ebbtide_sim::result::Report;
use shapes::Drawing;

/// A drawing of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// Its name: its title in lower case, with hyphens.
    pub name: String,
    /// Its title.
    pub title: String,
    from: Provenance,
    drawing: Drawing,
}

/// Where a figure is from; each file says so.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Provenance {
    version: String,
    seed: u64,
    command: String,
}

/// How wide an exported figure is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Width {
    /// A column of a paper: 8.5 cm.
    Column,
    /// A page of it: 17.5 cm.
    Page,
}

impl Width {
    /// Points, 1/72 inch.
    const fn points(self) -> f64 {
        match self {
            Self::Column => 241.0,
            Self::Page => 496.0,
        }
    }
}

/// Every drawing of a report in the order of the page, as wide as fits best.
pub fn exported(report: &Report, width: Width) -> Vec<Exported> {
    let Report { version, seed, command, .. } = report;
    let from = Provenance { version: version.clone(), seed: *seed, command: command.clone() };
    let page = crate::page::page(report);
    let mut all: Vec<Exported> = Vec::new();
    for text in page.split("<svg viewBox").skip(1) {
        let Some((text, _)) = text.split_once("</svg>") else { continue };
        let Some(drawing) = Drawing::parse(text) else { continue };
        let name = slug(&drawing.title);
        let one = Exported { name, title: drawing.title.clone(), from: from.clone(), drawing };
        // A figure that has the page to itself is drawn in two widths.
        match all.iter_mut().find(|known| known.name == one.name) {
            Some(known) => {
                let is_wider = one.drawing.width > known.drawing.width;
                if is_wider == (width == Width::Page) {
                    *known = one;
                }
            }
            None => all.push(one),
        }
    }
    all
}

impl Exported {
    /// As SVG that needs no style sheet.
    pub fn svg(&self, width: Width) -> String {
        svg::write(&self.drawing, width.points(), &self.from)
    }

    /// As a PDF of one page, as large as the figure. The same figure gives the same bytes.
    pub fn pdf(&self, width: Width) -> Vec<u8> {
        pdf::write(&self.drawing, width.points(), &self.from)
    }
}

fn slug(title: &str) -> String {
    let mut name = String::new();
    for c in title.to_lowercase().chars() {
        if c.is_alphanumeric() || c == '.' {
            name.push(c);
        } else if !name.ends_with('-') && !name.is_empty() {
            name.push('-');
        }
    }
    name.trim_end_matches('-').to_owned()
}
