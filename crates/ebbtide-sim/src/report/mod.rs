//! The report: one HTML file that opens with no network.
//!
//! Fill a [`Report`] and call [`render`]. The page says the verdict first, then shows what it
//! rests on, and prints under every figure the command that reproduces it. Nothing is read but
//! the report: no clock, no file, no environment; the same report gives the same bytes.

mod command;
mod export;
mod flows;
mod grid;
mod judged;
mod matrix;
pub mod model;
mod page;
mod palette;
mod section;
mod svg;
mod text;
mod verdict;

pub use crate::record::{FlowSeries, Handshakes, Series};
pub use crate::stats::Summary;
pub use export::{Exported, Width, csv, exported};
pub use flows::{FlowCell, FlowFigures};
pub use judged::{judge_cells, judge_classes};
pub use model::{
    BackgroundCell, Cell, Comparison, LinkCell, LoraFigures, MeshCell, MeshNode, PacketCounts,
    Packets, Report, WifiCell,
};

/// One self-contained HTML page. The same report gives the same bytes.
#[must_use]
pub fn render(report: &Report) -> String {
    page::page(report)
}
