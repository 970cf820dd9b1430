//! The row of a table of figures, and the tables.
//!
//! One row of such a table is all that a figure needs beside the place that measures it: the JSON
//! document, the page, the terminal and Python show whatever the tables hold.

use super::figures::{Figures, Value};
use super::model::Cell;
use super::sample::Replications;
use crate::record::RunRecord;

/// The unit of a figure.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Seconds.
    Seconds,
    /// A share of 1.
    Share,
    /// Bits per second.
    BitRate,
    /// Milliwatts.
    Milliwatts,
    /// A quotient, a rate or an index.
    Ratio,
}

impl Unit {
    /// Its symbol; empty for numbers of things and for quotients.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Count | Self::Ratio => "",
            Self::Seconds => "s",
            Self::Share => "share of 1",
            Self::BitRate => "bit/s",
            Self::Milliwatts => "mW",
        }
    }
}

/// Which values of a figure are the better ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Better {
    /// Small ones.
    Less,
    /// Large ones.
    More,
    /// It describes, and does not rate.
    Neither,
}

/// How a column shows a figure.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Whole.
    Count,
    /// About three significant digits on the page, four in the terminal.
    Brief,
    /// So many decimals.
    Fixed(usize),
    /// A share as a percentage with so many decimals.
    Percent(usize),
    /// A share as a percentage without its sign, which the heading has.
    Hundredths,
    /// A bit rate with its unit.
    BitRate,
    /// Thousands.
    Kilo,
    /// Milliwatts with their unit and so many decimals.
    Milliwatts(usize),
    /// From the tenth to the ninetieth percentile.
    Span,
}

/// A column of a table.
#[derive(Copy, Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub heading: &'static str,
    /// Its width in the terminal, the space before it included.
    pub width: usize,
    /// How it shows the figure.
    pub format: Format,
}

/// Where a figure comes from.
#[derive(Copy, Clone)]
pub(super) enum FigureSource {
    /// The records of the replications; `None` if it does not say anything about them.
    Measured(fn(&Replications<'_>) -> Option<Value>),
    /// Counts of the replications, which are added up; `None` in one without such a part.
    Counted(fn(&RunRecord) -> Option<u64>),
    /// Numbers of the replications, of which it is the mean; `None` in one without such a part.
    Averaged(fn(&RunRecord) -> Option<f64>),
    /// Other figures, where it is shown.
    Derived(fn(&Cell) -> f64),
}

/// The cells of which a column says something.
pub(super) type Concerns = fn(&Cell) -> bool;

/// A row of a table of figures.
#[derive(Copy, Clone)]
pub struct Metric {
    /// Its name in the JSON document and in Python; dots lead into objects.
    pub name: &'static str,
    /// A sentence about it.
    pub about: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// Its column on the page, if it has one.
    pub page: Option<Column>,
    /// Its column in the terminal, if it has one.
    pub terminal: Option<Column>,
    /// Whether the document has it for each class of clients as well.
    pub(super) of_classes: bool,
    source: FigureSource,
    concerns: Concerns,
    /// Of which number the columns show it as a share.
    whole: Option<fn(&Cell) -> f64>,
}

impl Metric {
    const fn new(
        name: &'static str,
        about: &'static str,
        unit: Unit,
        source: FigureSource,
    ) -> Self {
        let (better, of_classes, concerns) = (Better::Neither, false, always as Concerns);
        let (page, terminal, whole) = (None, None, None);
        Self { name, about, unit, better, page, terminal, of_classes, source, concerns, whole }
    }

    /// A figure that is computed from the records of a cell's replications.
    pub(super) const fn measured(
        name: &'static str,
        about: &'static str,
        unit: Unit,
        measure: fn(&Replications<'_>) -> Option<Value>,
    ) -> Self {
        Self::new(name, about, unit, FigureSource::Measured(measure))
    }

    /// A count, summed over replications.
    pub(super) const fn count(
        name: &'static str,
        about: &'static str,
        count: fn(&RunRecord) -> Option<u64>,
    ) -> Self {
        Self::new(name, about, Unit::Count, FigureSource::Counted(count))
    }

    /// A number, averaged over replications.
    pub(super) const fn average(
        name: &'static str,
        about: &'static str,
        unit: Unit,
        number: fn(&RunRecord) -> Option<f64>,
    ) -> Self {
        Self::new(name, about, unit, FigureSource::Averaged(number))
    }

    /// A figure that a table shows and that follows from others of the cell; no document has it.
    pub(super) const fn derived(
        name: &'static str,
        about: &'static str,
        unit: Unit,
        derive: fn(&Cell) -> f64,
    ) -> Self {
        Self::new(name, about, unit, FigureSource::Derived(derive))
    }

    pub(super) const fn better(self, better: Better) -> Self {
        Self { better, ..self }
    }

    pub(super) const fn of_classes(self) -> Self {
        Self { of_classes: true, ..self }
    }

    pub(super) const fn page(self, heading: &'static str, format: Format) -> Self {
        Self { page: Some(Column { heading, width: 0, format }), ..self }
    }

    pub(super) const fn terminal(
        self,
        heading: &'static str,
        width: usize,
        format: Format,
    ) -> Self {
        Self { terminal: Some(Column { heading, width, format }), ..self }
    }

    /// Shows it in its columns as a share of this number.
    pub(super) const fn share_of(self, whole: fn(&Cell) -> f64) -> Self {
        Self { whole: Some(whole), ..self }
    }

    /// Shows its columns only in tables with a cell that it says something about.
    pub(super) const fn only(self, concerns: Concerns) -> Self {
        Self { concerns, ..self }
    }

    /// Whether it is computed from records, and documents have it.
    pub(super) const fn is_measured(&self) -> bool {
        !matches!(self.source, FigureSource::Derived(_))
    }

    /// Its value in these replications; `None` if it says nothing about them, or follows from others.
    fn measure(&self, sample: &Replications<'_>) -> Option<Value> {
        match self.source {
            FigureSource::Measured(measure) => measure(sample),
            FigureSource::Counted(count) => sample.sum(count),
            FigureSource::Averaged(number) => sample.mean(number),
            FigureSource::Derived(_) => None,
        }
    }

    /// The value that its columns show of a cell; `None` if there is none.
    pub fn value(&self, cell: &Cell) -> Option<Value> {
        match (self.source, self.whole) {
            (FigureSource::Derived(derive), _) => Some(Value::Number(derive(cell))),
            (_, None) => cell.figures.get(self.name).cloned(),
            (_, Some(whole)) => Some(Value::Number(cell.number(self.name) / whole(cell).max(1.0))),
        }
    }
}

fn always(_: &Cell) -> bool {
    true
}

/// A table of figures: of the cell as a whole, or of a part of its network.
pub struct Group {
    /// Its key in the JSON document; empty for the cell as a whole.
    pub key: &'static str,
    /// Its name in a table of contents.
    pub name: &'static str,
    /// The heading of its table on the page.
    pub title: &'static str,
    /// The meaning of the columns on the page, in a few sentences.
    pub note: &'static str,
    /// The heading of its first column in the terminal; empty if it has no table of its own there.
    pub terminal_title: &'static str,
    /// A remark under its table in the terminal; may be empty.
    pub terminal_note: &'static str,
    /// Its figures.
    pub metrics: &'static [Metric],
}

impl Group {
    /// Measures all its figures; nothing if the replications have no such part.
    pub(super) fn measure(&self, sample: &Replications<'_>, figures: &mut Figures) {
        for metric in self.metrics {
            if let Some(value) = metric.measure(sample) {
                figures.set(metric.name, value);
            }
        }
    }

    /// Removes its figures.
    pub(super) fn remove(&self, figures: &mut Figures) {
        self.metrics.iter().for_each(|metric| figures.remove(metric.name));
    }

    /// Whether a cell has figures of the group.
    pub fn is_of(&self, cell: &Cell) -> bool {
        self.metrics.iter().any(|metric| cell.figures.get(metric.name).is_some())
    }

    /// The figures that a table on some cells shows, in order, with the columns of one place.
    pub fn columns(
        &self,
        place: fn(&Metric) -> Option<Column>,
        cells: &[&Cell],
    ) -> Vec<(&'static Metric, Column)> {
        let shown = |metric: &'static Metric| {
            let column = place(metric)?;
            cells.iter().any(|cell| (metric.concerns)(cell)).then_some((metric, column))
        };
        self.metrics.iter().filter_map(shown).collect()
    }
}
