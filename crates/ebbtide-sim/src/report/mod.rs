//! The report: one HTML file that opens with no network.

pub mod model;

pub use model::{Cell, Comparison, PacketCounts, Packets, Report, Series, Summary};

/// One self-contained HTML page. The same report gives the same bytes.
#[must_use]
pub fn render(report: &Report) -> String {
    format!("<!doctype html><title>{}</title>", report.title)
}
