//! The report: one HTML file that opens with no network.
//!
//! Fill a [`Report`] and call [`render`]. The page says the verdict first, then shows what it
//! rests on, and prints under every figure the command that reproduces it. Nothing is read but
//! the report: no clock, no file, no environment; the same report gives the same bytes.

mod command;
mod export;
mod grid;
mod page;
mod palette;
mod section;
mod svg;
mod text;
mod verdict;

pub use export::{Exported, Width, csv, exported};
pub use palette::{Look, looks};

use ebbtide_sim::result::Report;

/// One self-contained HTML page. The same report gives the same bytes.
pub fn render(report: &Report) -> String {
    page::page(report)
}
