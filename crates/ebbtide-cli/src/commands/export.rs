//! `ebbtide export`: one figure of a folder of results, for a paper.

use super::report::read;
use crate::failure::Failure;
use clap::ValueEnum;
use ebbtide_report::{Width, csv, exported};
use ebbtide_sim::run::report;
use ebbtide_sim::scenario::did_you_mean;
use std::io::{Write, stdout};
use std::path::PathBuf;

/// Write one figure of a folder of results as PDF, SVG or CSV
#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    /// A folder that `run --out` made
    folder: PathBuf,
    /// The figure; without it, the names of all figures are listed
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,
    /// The format; csv has the data that the figure is drawn from
    #[arg(long, value_enum, default_value = "pdf")]
    format: ExportFormat,
    /// The width: a column of a paper (8.5 cm) or a page (17.5 cm)
    #[arg(long, value_enum, default_value = "column")]
    width: FigureWidth,
    /// The file to write; `-` for standard output [default: NAME.FORMAT]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    Pdf,
    Svg,
    Csv,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum FigureWidth {
    Column,
    Page,
}

pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let (_, campaign, results) = read(&args.folder)?;
    let data = report(&campaign, &results);
    let width = match args.width {
        FigureWidth::Column => Width::Column,
        FigureWidth::Page => Width::Page,
    };
    let all = exported(&data, width);
    let Some(name) = &args.figure else {
        let mut out = stdout().lock();
        for one in &all {
            writeln!(out, "{}", one.name)?;
        }
        return Ok(());
    };
    let Some(one) = all.iter().find(|one| one.name == *name) else {
        return Err(Failure::usage(format!(
            "--figure: there is no '{name}' in {}{}; without --figure all names are listed",
            args.folder.display(),
            did_you_mean(name, all.iter().map(|one| one.name.as_str()))
        )));
    };
    let (bytes, ending) = match args.format {
        ExportFormat::Pdf => (one.pdf(width), "pdf"),
        ExportFormat::Svg => (one.svg(width).into_bytes(), "svg"),
        ExportFormat::Csv => (csv(&data, &one.title).into_bytes(), "csv"),
    };
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.{ending}")));
    if path.as_os_str() == "-" {
        return Ok(stdout().write_all(&bytes)?);
    }
    std::fs::write(&path, bytes)
        .map_err(|error| Failure::work(format!("{}: {error}", path.display())))?;
    Ok(writeln!(stdout(), "{}", path.display())?)
}
