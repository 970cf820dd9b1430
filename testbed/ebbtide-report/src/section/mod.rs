//! The sections of the page, one file each, and what they share.

pub(super) mod classes;
pub(super) mod course;
pub(super) mod curve;
pub(super) mod distribution;
pub(super) mod fct;
pub(super) mod flows;
pub(super) mod group;
mod load;
mod matrix;
pub(super) mod mesh;
pub(super) mod mesh_spread;
pub(super) mod packets;
pub(super) mod published;
pub(super) mod reproduce;
mod requirements;
pub(super) mod retransmissions;
pub(super) mod sweep;
pub(super) mod time;
pub(super) mod until;
pub(super) mod verdict;

use super::command;
use super::grid::{FigureCells, Grid, Panel};
use super::palette::Palette;
use super::svg::{Descriptions, PANEL, WIDE};
use super::text::escape;
use ebbtide_sim::result::{Cell, Report};

/// The report data that all sections share, and the numbers assigned so far.
pub(super) struct PageContext<'a> {
    pub(super) report: &'a Report,
    pub(super) grid: Grid<'a>,
    pub(super) palette: Palette,
    figures: u32,
    drawings: u32,
    /// Set while figures are made of which one at a time is shown: they share a number, and this
    /// tells their places on the page apart.
    alternative: Option<String>,
    /// The settings of the figure that is drawn, if it has several panels: part of each panel's title.
    within: String,
}

/// The caption of a figure.
pub(super) struct Caption<'a> {
    /// Description of the figure, in plain text.
    pub(super) text: String,
    /// The cells shown, for the command.
    pub(super) cells: &'a [&'a Cell],
}

impl<'a> PageContext<'a> {
    pub(super) fn new(report: &'a Report) -> Self {
        let (grid, palette) = (Grid::from_report(report), Palette::for_report(report));
        Self {
            report,
            grid,
            palette,
            figures: 0,
            drawings: 0,
            alternative: None,
            within: String::new(),
        }
    }

    /// Words for the next drawing.
    pub(super) fn words(&mut self, title: String, desc: String) -> Descriptions {
        self.drawings += 1;
        let title = format!("{title}{}", where_(&self.within));
        Descriptions { id: format!("d{}", self.drawings), title, desc }
    }

    /// A numbered figure with its caption and the command that reproduces it.
    pub(super) fn figure(&mut self, caption: &Caption<'_>, body: &str) -> String {
        self.figures += u32::from(self.alternative.is_none());
        let (number, text) = (self.figures, escape(&caption.text));
        let place = self.alternative.as_ref().map_or_else(String::new, |own| format!("-{own}"));
        let command = command::for_cells(caption.cells, &self.report.command);
        format!(
            "<figure id=\"figure-{number}{place}\">\n<figcaption><b>Figure {number}.</b> \
             {text}</figcaption>\n\
             {body}{}</figure>\n",
            // The command of the whole page stands there once.
            if self.report.command.starts_with(&command) {
                String::new()
            } else {
                command_line(&command)
            }
        )
    }

    /// The drawings of a figure: side by side, or in two widths if there is only one, of
    /// which the style sheet shows the one that fits.
    pub(super) fn panels(
        &mut self,
        figure: &FigureCells<'_>,
        mut draw: impl FnMut(&mut Self, &Panel<'_>, f64) -> String,
    ) -> String {
        self.within.clone_from(&figure.label);
        if let [only] = figure.panels.as_slice() {
            let (wide, narrow) = (draw(self, only, WIDE), draw(self, only, PANEL));
            self.within.clear();
            return format!(
                "<div class=\"wide\">{wide}</div>\n<div class=\"narrow\">{narrow}</div>\n"
            );
        }
        let drawings: String = figure.panels.iter().map(|panel| draw(self, panel, PANEL)).collect();
        self.within.clear();
        format!("<div class=\"panels\">\n{drawings}</div>\n")
    }

    /// Every figure of the grid, drawn by `draw`; if there are many cells, all but the one
    /// farthest from the limit are folded.
    pub(super) fn figures(
        &mut self,
        mut draw: impl FnMut(&mut Self, &FigureCells<'a>) -> String,
    ) -> String {
        let figures = std::mem::take(&mut self.grid.figures);
        let fold = self.grid.dense && figures.len() > 1;
        let worst = figures.iter().map(FigureCells::worst).fold(0.0, f64::max);
        let unfolded = figures.iter().position(|figure| figure.worst() >= worst);
        let mut out = String::new();
        for (index, figure) in figures.iter().enumerate() {
            let body = draw(self, figure);
            if fold {
                let open = if unfolded == Some(index) { " open=\"open\"" } else { "" };
                let label = escape(&figure.label);
                out.push_str(&format!(
                    "<details{open}><summary>{label}</summary>\n{body}</details>\n"
                ));
            } else {
                out.push_str(&body);
            }
        }
        self.grid.figures = figures;
        if self.grid.omitted > 0 {
            out.push_str(&format!(
                "<p class=\"note\">{} further combinations of settings are in the tables but not \
                 drawn, to keep this file small; run fewer settings at a time to draw them.</p>\n",
                self.grid.omitted
            ));
        }
        out
    }

    /// The chip and name of a control.
    pub(super) fn name(&self, cc: &str) -> String {
        format!("<span class=\"chip {}\"></span>{}", self.palette.class(cc), escape(cc))
    }

    /// Buttons that show and hide controls everywhere on the page; nothing if there is one.
    pub(super) fn legend(&self, controls: &[&str]) -> String {
        if controls.len() < 2 {
            return String::new();
        }
        let buttons: String = controls
            .iter()
            .map(|cc| {
                let class = self.palette.class(cc);
                format!(
                    "<button type=\"button\" aria-pressed=\"true\" data-k=\"{class}\">\
                     <svg class=\"swatch\" viewBox=\"0 0 26 8\" width=\"26\" height=\"8\" \
                     aria-hidden=\"true\"><path class=\"curve {class}\" d=\"M0 4H26\"/></svg>{}\
                     </button>",
                    escape(cc)
                )
            })
            .collect();
        format!(
            "<div class=\"legend\" role=\"group\" aria-label=\"Show or hide\">{buttons}</div>\n"
        )
    }
}

/// A command to copy.
pub(super) fn command_line(command: &str) -> String {
    format!("<div class=\"command\"><code>{}</code></div>\n", escape(command))
}

/// " for buffer = 2500", or nothing.
pub(super) fn where_(label: &str) -> String {
    if label.is_empty() { String::new() } else { format!(", {label}") }
}

/// The head of a table with a row per cell: its settings, then its control, then what was measured.
pub(super) fn head<'a>(keys: &[&'a str], columns: impl IntoIterator<Item = &'a str>) -> String {
    let column = |name: &str| format!("<th scope=\"col\">{}</th>", escape(name));
    let settings: String = keys.iter().map(|key| column(key)).collect();
    let columns: String = columns.into_iter().map(column).collect();
    // Above names, which begin at the left.
    format!("<tr>{settings}<th scope=\"col\" class=\"t\">control</th>{columns}</tr>")
}

/// A row of such a table: the settings of a cell, its control, and what was measured.
pub(super) fn row(
    context: &PageContext<'_>,
    keys: &[&str],
    cell: &Cell,
    values: impl IntoIterator<Item = String>,
) -> String {
    let field = |text: String| format!("<td>{text}</td>");
    let settings: String = keys.iter().map(|key| field(escape(cell.setting(key)))).collect();
    let values: String = values.into_iter().map(field).collect();
    let name = context.name(&cell.cc);
    format!("<tr>{settings}<th scope=\"row\">{name}</th>{values}</tr>\n")
}

/// A table that scrolls within itself when it is wider than the page.
pub(super) fn table(class: &str, label: &str, head: &str, body: &str) -> String {
    let label = escape(label);
    format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">\
         <table class=\"{class}\"><thead>{head}</thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
}
